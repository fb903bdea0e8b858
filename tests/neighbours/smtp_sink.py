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

from tests.neighbours.certificate import certificate

USER, PASSWORD = "unlost", "a-secret-word"


@dataclass
class Sink:
    """Received emails.

    Attributes:
        full_for: Recipient with a full mailbox.
        unknown: Recipients that do not exist.
        connections: Peers of connections that delivered an email.
    """

    ca: Path
    port: int = 0
    full_for: str = ""
    unknown: tuple[str, ...] = ("nobody@example.org",)
    got: list[EmailMessage] = field(default_factory=list)
    receivers: list[list[str]] = field(default_factory=list)
    connections: set[object] = field(default_factory=set)

    async def handle_RCPT(self, _: Any, __: Any, envelope: Any, address: str, ___: Any) -> str:  # noqa: ANN401, N802
        """Accept or reject a recipient."""
        if address == self.full_for:
            return "452 no room"
        if address in self.unknown:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _: Any, session: Any, envelope: Any) -> str:  # noqa: ANN401, N802
        """Store an email."""
        self.connections.add(session.peer)
        self.got.append(message_from_bytes(envelope.content, policy=policy.default))
        self.receivers.append(envelope.rcpt_tos)
        return "250 OK"


def _known(*arguments: Any) -> AuthResult:  # noqa: ANN401  of aiosmtpd
    data = arguments[-1]
    is_known = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_known, handled=False)


@contextmanager
def receiving(folder: Path, *, tls: str = "starttls", cert_for: str = "127.0.0.1") -> Iterator[Sink]:
    """Run a mail server. tls: `starttls`, which it requires together with a login, `smtps` or `none`."""
    cert, key = certificate(folder, cert_for)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    sink = Sink(cert)
    options: dict[str, Any] = {"hostname": "127.0.0.1", "port": 0}
    if tls == "smtps":
        options |= {"ssl_context": context}
    elif tls == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
        options |= {"authenticator": _known, "auth_required": True}

    class OnAnyPort(Controller):
        def _trigger_server(self) -> None:  # it would look for itself at port 0
            sink.port = self.server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
            self.port = sink.port
            super()._trigger_server()  # type: ignore[no-untyped-call]

    controller = OnAnyPort(sink, **options)
    controller.start()
    try:
        yield sink
    finally:
        controller.stop()
