"""Sends email by SMTP over TLS. A password is never part of a message, a log or a repr."""

import smtplib
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import unquote, urlsplit

from unlost.errors import UsageError

_TIMEOUT_SECONDS = 30.0  # for each step of a conversation
_IDLE_SECONDS = 20.0  # after which a connection is not used again: servers close it
_MAX_SENT = 100  # emails over one connection: many servers take no more
_PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}
_EXPECTED_URL = (
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
        """Send one email over a connection of its own. Raises MailError."""
        with closing(SmtpConnectionPool(self)) as connections:
            connections.send(message)

    def connect(self) -> smtplib.SMTP:
        """Return a connection that is ready to send. Raises as `smtplib` does."""
        context = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
        if self.scheme == "smtps":
            connection: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=_TIMEOUT_SECONDS, context=context)
        else:
            connection = smtplib.SMTP(self.host, self.port, timeout=_TIMEOUT_SECONDS)
        try:
            if self.scheme == "smtp":
                connection.starttls(context=context)  # raises where there is none
            if self.user:
                connection.login(self.user, self.password)
        except BaseException:
            connection.close()
            raise
        return connection


@dataclass(slots=True)
class _OpenConnection:
    """A connection. used: when it was used last, by the monotonic clock. sent: how many emails."""

    connection: smtplib.SMTP
    last_used: float = 0.0
    sent_count: int = 0


class SmtpConnectionPool:
    """Sends email over connections that are reused. Several threads may send at once, each over its own."""

    def __init__(self, server: MailServer) -> None:
        self._server = server
        self._idle: list[_OpenConnection] = []
        self._lock = threading.Lock()

    def send(self, message: EmailMessage) -> None:
        """Send one email. Raises MailError."""
        with _translate_errors(self._server.host):
            while (found := self._take()) is not None:
                try:
                    self._send(found, message)
                except (smtplib.SMTPServerDisconnected, ConnectionError, ssl.SSLError):
                    continue  # the server closed it while it was idle
                return
            self._send(_OpenConnection(self._server.connect()), message)

    def _take(self) -> _OpenConnection | None:
        """Return an idle connection; None if there is none that may be used."""
        with self._lock:
            while self._idle:
                found = self._idle.pop()
                if found.sent_count < _MAX_SENT and time.monotonic() - found.last_used < _IDLE_SECONDS:
                    return found
                _quit(found.connection)
        return None

    def _send(self, found: _OpenConnection, message: EmailMessage) -> None:
        try:
            found.connection.send_message(message, self._server.sender, [message["To"]])
        finally:
            # After a response that refuses an email, smtplib has reset the connection; after a failure, closed it.
            if found.connection.sock is not None:
                found.last_used, found.sent_count = time.monotonic(), found.sent_count + 1
                with self._lock:
                    self._idle.append(found)

    def close(self) -> None:
        """Close all connections that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            _quit(each.connection)


def _quit(connection: smtplib.SMTP) -> None:
    with suppress(smtplib.SMTPException, OSError):
        connection.quit()
    connection.close()


@contextmanager
def _translate_errors(host: str) -> Iterator[None]:
    """Raise MailError for what `smtplib` raises."""
    try:
        yield
    except smtplib.SMTPAuthenticationError as error:
        # What a server says to a login may repeat it.
        raise MailError(f"{host} refused the login ({error.smtp_code})", is_final=False) from None
    except smtplib.SMTPRecipientsRefused as error:
        code, reason = next(iter(error.recipients.values()), (500, b""))
        raise MailError(f"{host} refused the receiver: {_format_reply(code, reason)}", is_final=code >= 500) from None
    except smtplib.SMTPResponseException as error:
        raise MailError(f"{host}: {_format_reply(error.smtp_code, error.smtp_error)}", is_final=False) from None
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise MailError(f"{host}: {type(error).__name__}: {str(error)[:200]}", is_final=False) from None


def parse_mail_server(url: str, sender: str, password: str = "", ca: Path | None = None) -> MailServer:
    """Return the server that an address names. A password may also be part of it. Raises UsageError.

    >>> parse_mail_server("smtps://me@mail.example.org", "unlost@example.org").port
    465
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UsageError(f"the mail server's address is none: {_EXPECTED_URL}") from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/"):
        raise UsageError(f"the mail server's address is none: {_EXPECTED_URL}")
    if parts.scheme == "smtp+plain" and parts.username:
        raise UsageError("smtp+plain would send the password for everybody to read: use smtp or smtps")
    if "@" not in sender or not sender.isascii() or not sender.isprintable():
        raise UsageError("the sender of mail: expected an address, such as unlost@example.org")
    user, inside = unquote(parts.username or ""), unquote(parts.password or "")
    place = port or _PORTS[parts.scheme]
    return MailServer(parts.scheme, parts.hostname, place, sender, user, password or inside, ca)


def _format_reply(code: int, reason: bytes | str) -> str:
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
    line = " ".join(text.split())[:200]
    return f"{code} {line}"
