"""Logs: access logs of web servers and archives (`access`), and logs of upstream responses of aggregators (`upstream`).

Read as streams in bounded memory; lines that cannot be read are counted. Imports the top level only.
"""
