"""A mail server (aiosmtpd) that stores its emails: with TLS and login, in its own thread."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from tests.external.certificate import make_certificate

USER, PASSWORD = "unlost", "a-secret-word"


@dataclass
class SmtpSink:
    """Received emails.

    Attributes:
        full_mailbox: Recipient with a full mailbox.
        unknown_recipients: Recipients that do not exist.
        connections: Peers of connections that delivered an email.
    """

    ca: Path
    port: int = 0
    full_mailbox: str = ""
    unknown_recipients: tuple[str, ...] = ("nobody@example.org",)
    messages: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    connections: set[object] = field(default_factory=set)

    async def handle_RCPT(self, _: Any, __: Any, envelope: Any, address: str, ___: Any) -> str:  # noqa: ANN401, N802
        """Accept or reject a recipient."""
        if address == self.full_mailbox:
            return "452 no room"
        if address in self.unknown_recipients:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _: Any, session: Any, envelope: Any) -> str:  # noqa: ANN401, N802
        """Store an email."""
        self.connections.add(session.peer)
        self.messages.append(message_from_bytes(envelope.content, policy=policy.default))
        self.recipients.append(envelope.rcpt_tos)
        return "250 OK"


def _authenticate(*arguments: Any) -> AuthResult:  # noqa: ANN401  of aiosmtpd
    data = arguments[-1]
    is_valid = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_valid, handled=False)


@contextmanager
def run_smtp_sink(folder: Path, *, tls: str = "starttls", cert_for: str = "127.0.0.1") -> Iterator[SmtpSink]:
    """Run a mail server. tls: `starttls`, which it requires together with a login, `smtps` or `none`."""
    cert, key = make_certificate(folder, cert_for)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    sink = SmtpSink(cert)
    options: dict[str, Any] = {"hostname": "127.0.0.1", "port": 0}
    if tls == "smtps":
        options |= {"ssl_context": context}
    elif tls == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
        options |= {"authenticator": _authenticate, "auth_required": True}

    class AnyPortController(Controller):
        def _trigger_server(self) -> None:  # the base class connects to port 0
            sink.port = self.server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
            self.port = sink.port
            super()._trigger_server()  # type: ignore[no-untyped-call]

    controller = AnyPortController(sink, **options)
    controller.start()
    try:
        yield sink
    finally:
        controller.stop()
