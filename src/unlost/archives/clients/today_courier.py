"""Asks archive.today: follows it from name to name, knows its captchas, and stays away for a while after one."""

from dataclasses import replace

from unlost.archives.archive import Archive
from unlost.archives.asking.question import Asks, Question, Reply
from unlost.archives.clients.today_names import TodayNames
from unlost.archives.clients.urims import joined
from unlost.clock import Clock
from unlost.errors import FailedError, NotNowError

PAUSE_SECONDS = 3600.0
"""After a captcha, by our own choice: who goes on asking only makes it last, also for the person at this machine."""

ADVICE = "open it in a browser at this machine and answer its captcha, wait some hours, or leave this archive out"

_MARKS = (b"captcha", b"please complete the security check", b"one more step")
_LOOKED_AT = 1 << 16  # bytes of a page: the marks stand in its head
_MOVES = 4  # from name to name, for one question


class TodayCourier:
    """A courier for one client of archive.today."""

    def __init__(self, archive: Archive, courier: Asks, clock: Clock) -> None:
        self.names = TodayNames(archive)
        self._courier = courier
        self._clock = clock
        self._until = 0.0

    async def ask(self, archive: Archive, question: Question) -> Reply:
        """Return the answer, with all names of the archive brought to one. Raises NotNowError, FailedError.

        A captcha is FailedError of kind `status`; for an hour after it nothing is sent, which is NotNowError.
        """
        if self._clock.now() < self._until:
            raise NotNowError(f"it asked for a captcha: {ADVICE}", archive.id, self._until, "blocked")
        url, follows, moves = question.url, question.redirects, 0
        while True:
            reply = await self._ask(archive, replace(question, url=self.names.at_present(url), redirects=0))
            link = reply.header("location") if 300 <= reply.status < 400 else None
            if link is None:
                break
            target = joined(reply.url, link)
            if moves < _MOVES and self.names.moved(reply.url, target):
                moves += 1
            elif question.redirects == 0:
                break
            elif follows == 0 or not self.names.is_own(target):
                reply.body.close()
                raise FailedError(f"it redirects to {ascii(target)[1:-1][:100]}", archive.id, "redirects")
            else:
                follows -= 1
            reply.body.close()
            url = target
        self._check(archive, reply)
        return self.names.told(reply)

    async def _ask(self, archive: Archive, question: Question) -> Reply:
        try:
            return await self._courier.ask(self.names.archive, question)
        except NotNowError as error:
            message = f"{error}: it may want a captcha: {ADVICE}"
            raise NotNowError(message, archive.id, error.until, error.reason) from error

    def _check(self, archive: Archive, reply: Reply) -> None:
        """Raise FailedError for a page that asks for a captcha."""
        if reply.header("memento-datetime") is not None:
            return
        head = reply.body.read(_LOOKED_AT).lower()
        reply.body.seek(0)
        if head.lstrip()[:1] == b"<" and b"<html" in head and any(mark in head for mark in _MARKS):
            reply.body.close()
            self._until = self._clock.now() + PAUSE_SECONDS
            raise FailedError(f"it asks for a captcha: {ADVICE}", archive.id, "status")
