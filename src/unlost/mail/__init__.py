"""Emails to the owners of jobs.

Modules in reading order:

- `smtp`: connections to the mail server
- `sender`: renders and sends the emails that are due in `unlost.jobs.outbox`

Must not import `unlost.web` or `unlost.cli`.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.mail.sender import MailRenderer as MailRenderer
    from unlost.mail.sender import MailSender as MailSender
    from unlost.mail.smtp import MailError as MailError
    from unlost.mail.smtp import MailServer as MailServer
    from unlost.mail.smtp import SmtpConnectionPool as SmtpConnectionPool
    from unlost.mail.smtp import parse_mail_server as parse_mail_server
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "sender": "MailRenderer MailSender",
            "smtp": "MailError MailServer SmtpConnectionPool parse_mail_server",
        },
    )
