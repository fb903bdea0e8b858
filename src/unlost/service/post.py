"""The post: sends letters to owners as they fall due, or shows them to whoever runs the service."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage

from unlost.clock import Clock
from unlost.errors import DatabaseError
from unlost.service.going_on import background_task
from unlost.service.jobs.letters import RENEW_SECONDS, PendingMail, MailOutbox
from unlost.service.letter_texts import MailRenderer
from unlost.service.mail import SmtpConnectionPool, MailError, MailServer

_POLL_SECONDS = 2.0
_CONNECTIONS = 4  # to the mail server: one slow receiver does not hold up the others
_SHOWN_BATCH = 50  # letters, where nobody waits for a mail server
_RETRY_SECONDS = 10.0  # after the database was out of reach
_log = logging.getLogger(__name__)


class MailSender:
    """Sends what is due, over a few connections at once.

    server: None if there is none: then links are shown by `tell`, for whoever runs it to pass on.
    """

    def __init__(
        self,
        outbox: MailOutbox,
        renderer: MailRenderer,
        server: MailServer | None,
        clock: Clock,
        on_message: Callable[[str], None],
    ) -> None:
        self._outbox = outbox
        self._renderer = renderer
        self._server = server
        self._clock = clock
        self._on_message = on_message
        self._connections = None if server is None else SmtpConnectionPool(server)
        self._threads = ThreadPoolExecutor(_CONNECTIONS, "mail")
        self._claimed: set[int] = set()

    async def run(self) -> None:
        """Send, until cancelled."""
        async with background_task(self._renew()):
            await self._run()

    def close(self) -> None:
        """Finish what is being sent, and close all connections."""
        self._threads.shutdown(cancel_futures=True)
        if self._connections is not None:
            self._connections.close()

    async def _run(self) -> None:
        while True:
            try:
                while await asyncio.to_thread(self.send_batch):
                    pass
                await self._clock.sleep(_POLL_SECONDS)
            except DatabaseError as error:
                _log.warning("%s", error)
                await self._clock.sleep(_RETRY_SECONDS)
            except Exception:  # noqa: BLE001  whatever it is, other letters are still to be sent
                _log.exception("a fault of ours; it goes on with the next letters")
                await self._clock.sleep(_RETRY_SECONDS)

    async def _renew(self) -> None:
        """Renew the claims of what is being sent, since a mail server may take long."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await asyncio.to_thread(self._outbox.renew, frozenset(self._claimed))
            except DatabaseError as error:
                _log.warning("%s", error)

    def send_batch(self) -> bool:
        """Send the next letters that are due; return whether there were any. Raises DatabaseError."""
        if self._connections is None:
            letters = self._outbox.claim(_SHOWN_BATCH)
            for letter in letters:
                job = letter.job
                self._on_message(
                    f"{job.order.mail}, job {job.number}, {letter.kind}: {self._renderer.job_link(letter)}"
                )
            if letters:
                self._outbox.mark_sent(letters)
        else:
            letters = self._outbox.claim()
            self._claimed |= {letter.number for letter in letters}
            try:
                list(self._threads.map(self._send, letters))
            finally:
                self._claimed.clear()
        return bool(letters)

    def _send(self, mail: PendingMail) -> None:
        about = {"job": mail.job.number, "letter": mail.kind.value}
        try:
            if self._server is not None and self._connections is not None:
                self._connections.send(self._render(mail, self._server))
        except MailError as error:
            self._claimed.discard(mail.number)
            goes_on = self._outbox.record_failure(mail, str(error), is_final=error.is_final)
            what = "is tried again" if goes_on else "is given up"
            _log.warning("a letter of job %s %s: %s", mail.job.number, what, error, extra=about)
        else:
            self._outbox.mark_sent([mail])
            _log.info("a letter of job %s was sent", mail.job.number, extra=about)

    def _render(self, mail: PendingMail, server: MailServer) -> EmailMessage:
        """Return a letter as it is sent. Raises MailError for one that cannot be: others must not wait behind it."""
        try:
            return self._renderer.render_message(mail, server.sender, self._clock.now())
        except Exception as error:
            _log.exception("a letter of job %s cannot be written", mail.job.number)
            raise MailError(f"it cannot be written: {type(error).__name__}", is_final=True) from error
