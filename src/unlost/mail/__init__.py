"""Emails to the owners of jobs.

Modules in reading order:

- `smtp`: connections to the mail server
- `sender`: renders and sends the emails that are due in `unlost.jobs.outbox`

Must not import `unlost.web` or `unlost.cli`.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
