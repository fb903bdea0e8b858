"""The post: sends letters to owners as they fall due, or shows them to whoever runs the service."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage

from unlost.clock import Clock
from unlost.errors import DatabaseError
from unlost.service.going_on import going_on
from unlost.service.jobs.letters import RENEW_SECONDS, Due, Letters
from unlost.service.letter_texts import LetterTexts
from unlost.service.mail import MailConnections, MailError, MailServer

_LOOK_SECONDS = 2.0
_CONNECTIONS = 4  # to the mail server: one slow receiver does not hold up the others
_SHOWN_AT_ONCE = 50  # letters, where nobody waits for a mail server
_AGAIN_SECONDS = 10.0  # after the database was out of reach
_log = logging.getLogger(__name__)


class Post:
    """Sends what is due, over a few connections at once.

    server: None if there is none: then links are shown by `tell`, for whoever runs it to pass on.
    """

    def __init__(
        self,
        letters: Letters,
        texts: LetterTexts,
        server: MailServer | None,
        clock: Clock,
        tell: Callable[[str], None],
    ) -> None:
        self._letters = letters
        self._texts = texts
        self._server = server
        self._clock = clock
        self._tell = tell
        self._connections = None if server is None else MailConnections(server)
        self._threads = ThreadPoolExecutor(_CONNECTIONS, "mail")
        self._claimed: set[int] = set()

    async def run(self) -> None:
        """Send, until cancelled."""
        async with going_on(self._renew()):
            await self._run()

    def close(self) -> None:
        """Finish what is being sent, and close all connections."""
        self._threads.shutdown(cancel_futures=True)
        if self._connections is not None:
            self._connections.close()

    async def _run(self) -> None:
        while True:
            try:
                while await asyncio.to_thread(self.send_some):
                    pass
                await self._clock.sleep(_LOOK_SECONDS)
            except DatabaseError as error:
                _log.warning("%s", error)
                await self._clock.sleep(_AGAIN_SECONDS)
            except Exception:  # noqa: BLE001  whatever it is, other letters are still to be sent
                _log.exception("a fault of ours; it goes on with the next letters")
                await self._clock.sleep(_AGAIN_SECONDS)

    async def _renew(self) -> None:
        """Renew the claims of what is being sent, since a mail server may take long."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await asyncio.to_thread(self._letters.renew, frozenset(self._claimed))
            except DatabaseError as error:
                _log.warning("%s", error)

    def send_some(self) -> bool:
        """Send the next letters that are due; return whether there were any. Raises DatabaseError."""
        if self._connections is None:
            letters = self._letters.take(_SHOWN_AT_ONCE)
            for letter in letters:
                job = letter.job
                self._tell(f"{job.order.mail}, job {job.number}, {letter.kind}: {self._texts.link(letter)}")
            if letters:
                self._letters.sent(letters)
        else:
            letters = self._letters.take()
            self._claimed |= {letter.number for letter in letters}
            try:
                list(self._threads.map(self._send, letters))
            finally:
                self._claimed.clear()
        return bool(letters)

    def _send(self, letter: Due) -> None:
        about = {"job": letter.job.number, "letter": letter.kind.value}
        try:
            if self._server is not None and self._connections is not None:
                self._connections.send(self._written(letter, self._server))
        except MailError as error:
            self._claimed.discard(letter.number)
            goes_on = self._letters.failed(letter, str(error), is_final=error.is_final)
            what = "is tried again" if goes_on else "is given up"
            _log.warning("a letter of job %s %s: %s", letter.job.number, what, error, extra=about)
        else:
            self._letters.sent([letter])
            _log.info("a letter of job %s was sent", letter.job.number, extra=about)

    def _written(self, letter: Due, server: MailServer) -> EmailMessage:
        """Return a letter as it is sent. Raises MailError for one that cannot be: others must not wait behind it."""
        try:
            return self._texts.message(letter, server.sender, self._clock.now())
        except Exception as error:
            _log.exception("a letter of job %s cannot be written", letter.job.number)
            raise MailError(f"it cannot be written: {type(error).__name__}", is_final=True) from error
