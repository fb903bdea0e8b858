"""Emails to owners of jobs.

In reading order: smtp (connections to the mail server), sender (renders and sends what is due in `jobs.outbox`).
Must not import `web`.
"""
