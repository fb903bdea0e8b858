"""Sends email by SMTP over TLS. Passwords never appear in messages, logs or reprs."""

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

_TIMEOUT_SECONDS = 30.0  # for each command
_IDLE_SECONDS = 20.0  # after which a connection is not reused: servers close idle connections
_MAX_SENT = 100  # emails per connection: many servers accept no more
_PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}  # submission (RFC 6409, RFC 8314) and relay
_EXPECTED_URL = (
    "expected smtp://USER@HOST:587 (STARTTLS), smtps://USER@HOST:465 or, on this machine, smtp+plain://localhost"
)


class MailError(Exception):
    """An email was not accepted. `is_final` means that a retry is pointless, for example for an unknown recipient."""

    def __init__(self, message: str, *, is_final: bool) -> None:
        super().__init__(message)
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class MailServer:
    """Connection settings of a mail server.

    Attributes:
        scheme: `smtp` (STARTTLS required), `smtps` (implicit TLS) or `smtp+plain` (no TLS).
        host: Host name.
        port: Port.
        sender: Sender of all emails.
        user: User name; empty for no login.
        password: Password.
        ca: PEM file with certificates to trust instead of the system's.
    """

    scheme: str
    host: str
    port: int
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)
    ca: Path | None = None

    def send(self, message: EmailMessage) -> None:
        """Send one email over a new connection.

        Raises:
            MailError: The email was not accepted.
        """
        with closing(SmtpConnectionPool(self)) as connections:
            connections.send(message)

    def connect(self) -> smtplib.SMTP:
        """Connect, start TLS and log in. Raises as `smtplib` does."""
        context = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
        if self.scheme == "smtps":
            connection: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=_TIMEOUT_SECONDS, context=context)
        else:
            connection = smtplib.SMTP(self.host, self.port, timeout=_TIMEOUT_SECONDS)
        try:
            if self.scheme == "smtp":
                connection.starttls(context=context)  # raises an exception if the server does not support it
            if self.user:
                connection.login(self.user, self.password)
        except BaseException:
            connection.close()
            raise
        return connection


@dataclass(slots=True)
class _OpenConnection:
    """A connection, the monotonic time of its last use, and the number of emails sent over it."""

    connection: smtplib.SMTP
    last_used: float = 0.0
    sent_count: int = 0


class SmtpConnectionPool:
    """A pool of connections to a mail server. Thread-safe: each thread uses a connection of its own."""

    def __init__(self, server: MailServer) -> None:
        self._server = server
        self._idle: list[_OpenConnection] = []
        self._lock = threading.Lock()

    def send(self, message: EmailMessage) -> None:
        """Send one email.

        Raises:
            MailError: The email was not accepted.
        """
        with _translate_errors(self._server.host):
            while (open_connection := self._take()) is not None:
                try:
                    self._send(open_connection, message)
                except (smtplib.SMTPServerDisconnected, ConnectionError, ssl.SSLError):
                    continue  # the server closed it while it was idle
                return
            self._send(_OpenConnection(self._server.connect()), message)

    def _take(self) -> _OpenConnection | None:
        """Return an idle connection that may be reused, or None."""
        with self._lock:
            while self._idle:
                open_connection = self._idle.pop()
                if (
                    open_connection.sent_count < _MAX_SENT
                    and time.monotonic() - open_connection.last_used < _IDLE_SECONDS
                ):
                    return open_connection
                _quit(open_connection.connection)
        return None

    def _send(self, open_connection: _OpenConnection, message: EmailMessage) -> None:
        try:
            open_connection.connection.send_message(message, self._server.sender, [message["To"]])
        finally:
            # smtplib resets the connection after a rejected email, and closes it after a failure.
            if open_connection.connection.sock is not None:
                open_connection.last_used, open_connection.sent_count = time.monotonic(), open_connection.sent_count + 1
                with self._lock:
                    self._idle.append(open_connection)

    def close(self) -> None:
        """Close all idle connections."""
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
    """Raise MailError for the exceptions of `smtplib`."""
    try:
        yield
    except smtplib.SMTPAuthenticationError as error:
        # The server's reply may contain the login.
        raise MailError(f"{host} refused the login ({error.smtp_code})", is_final=False) from None
    except smtplib.SMTPRecipientsRefused as error:
        code, reason = next(iter(error.recipients.values()), (500, b""))
        raise MailError(f"{host} refused the receiver: {_format_reply(code, reason)}", is_final=code >= 500) from None
    except smtplib.SMTPResponseException as error:
        raise MailError(f"{host}: {_format_reply(error.smtp_code, error.smtp_error)}", is_final=False) from None
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise MailError(f"{host}: {type(error).__name__}: {str(error)[:200]}", is_final=False) from None


def parse_mail_server(url: str, sender: str, password: str = "", ca: Path | None = None) -> MailServer:
    """Parse the URL of a mail server, which may include user and password.

    Raises:
        UsageError: The URL or the sender is invalid.

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
    user, url_password = unquote(parts.username or ""), unquote(parts.password or "")
    return MailServer(
        parts.scheme, parts.hostname, port or _PORTS[parts.scheme], sender, user, password or url_password, ca
    )


def _format_reply(code: int, reason: bytes | str) -> str:
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
    line = " ".join(text.split())[:200]
    return f"{code} {line}"
