"""The post: sends letters to owners as they fall due, or shows them to whoever runs the service."""

import asyncio
import logging
from collections.abc import Callable

from unlost.clock import Clock
from unlost.errors import DatabaseError
from unlost.service.jobs.letters import Letters
from unlost.service.letter_texts import LetterTexts
from unlost.service.mail import MailError, MailServer

_LOOK_SECONDS = 2.0
_AGAIN_SECONDS = 10.0  # after the database was out of reach
_log = logging.getLogger(__name__)


class Post:
    """Sends what is due, one letter after the other.

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

    async def run(self) -> None:
        """Send, for ever."""
        while True:
            try:
                while await asyncio.to_thread(self.send_one):
                    pass
                await self._clock.sleep(_LOOK_SECONDS)
            except DatabaseError as error:
                _log.warning("%s", error)
                await self._clock.sleep(_AGAIN_SECONDS)

    def send_one(self) -> bool:
        """Send the next letter that is due; return whether there was one. Raises DatabaseError."""
        letter = self._letters.take()
        if letter is None:
            return False
        about = {"job": letter.job.number, "letter": letter.kind.value}
        if self._server is None:
            self._tell(f"{letter.job.order.mail}, job {letter.job.number}, {letter.kind}: {self._texts.link(letter)}")
            self._letters.sent(letter)
            return True
        message = self._texts.message(letter, self._server.sender, self._clock.now())
        try:
            self._server.send(message)
        except MailError as error:
            goes_on = self._letters.failed(letter, str(error), is_final=error.is_final)
            what = "is tried again" if goes_on else "is given up"
            _log.warning("a letter of job %s %s: %s", letter.job.number, what, error, extra=about)
        else:
            self._letters.sent(letter)
            _log.info("a letter of job %s was sent", letter.job.number, extra=about)
        return True
