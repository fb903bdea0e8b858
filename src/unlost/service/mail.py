"""Sends mail by SMTP, over TLS; a password is never part of a message, a log or a repr."""

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import unquote, urlsplit

from unlost.errors import UsageError

_SECONDS = 30.0  # for each step of a conversation
_PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}
_EXPECTED = (
    "expected smtp://USER@HOST:587 (STARTTLS), smtps://USER@HOST:465 or, on this machine, smtp+plain://localhost"
)


class MailError(Exception):
    """A letter was not taken. is_final: trying again does not help: the receiver does not exist, say."""

    def __init__(self, message: str, *, is_final: bool) -> None:
        super().__init__(message)
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mail is handed over.

    scheme: `smtp` (TLS is begun by STARTTLS, and nothing is sent without it), `smtps` (TLS from the first byte) or
        `smtp+plain` (none). ca: a file with certificates to trust in place of the system's.
    """

    scheme: str
    host: str
    port: int
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)
    ca: Path | None = None

    def send(self, message: EmailMessage) -> None:
        """Hand one letter over. Raises MailError."""
        try:
            with self._connected() as connection:
                connection.send_message(message, self.sender, [message["To"]])
        except smtplib.SMTPAuthenticationError as error:
            # What a server says to a login may repeat it.
            raise MailError(f"{self.host} refused the login ({error.smtp_code})", is_final=False) from None
        except smtplib.SMTPRecipientsRefused as error:
            code, reason = next(iter(error.recipients.values()), (500, b""))
            raise MailError(f"{self.host} refused the receiver: {_said(code, reason)}", is_final=code >= 500) from None
        except smtplib.SMTPResponseException as error:
            said = _said(error.smtp_code, error.smtp_error)
            raise MailError(f"{self.host}: {said}", is_final=False) from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise MailError(f"{self.host}: {type(error).__name__}: {str(error)[:200]}", is_final=False) from None

    @contextmanager
    def _connected(self) -> Iterator[smtplib.SMTP]:
        context = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
        if self.scheme == "smtps":
            connection: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=_SECONDS, context=context)
        else:
            connection = smtplib.SMTP(self.host, self.port, timeout=_SECONDS)
        with connection:
            if self.scheme == "smtp":
                connection.starttls(context=context)  # raises where there is none
            if self.user:
                connection.login(self.user, self.password)
            yield connection


def mail_server(url: str, sender: str, password: str = "", ca: Path | None = None) -> MailServer:
    """Return the server that an address names. A password may also be part of it. Raises UsageError.

    >>> mail_server("smtps://me@mail.example.org", "unlost@example.org").port
    465
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UsageError(f"the mail server's address is none: {_EXPECTED}") from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/"):
        raise UsageError(f"the mail server's address is none: {_EXPECTED}")
    if parts.scheme == "smtp+plain" and parts.username:
        raise UsageError("smtp+plain would send the password for everybody to read: use smtp or smtps")
    if "@" not in sender or not sender.isascii() or not sender.isprintable():
        raise UsageError("the sender of mail: expected an address, such as unlost@example.org")
    user, inside = unquote(parts.username or ""), unquote(parts.password or "")
    place = port or _PORTS[parts.scheme]
    return MailServer(parts.scheme, parts.hostname, place, sender, user, password or inside, ca)


def _said(code: int, reason: bytes | str) -> str:
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
    line = " ".join(text.split())[:200]
    return f"{code} {line}"
