"""Asks archive.today: follows it from name to name, knows its captchas, and stays away for a while after one."""

from dataclasses import replace

from unlost.archives.archive import Archive
from unlost.archives.asking.question import HttpClient, HttpRequest, HttpResponse
from unlost.archives.clients.today_names import ArchiveTodayDomains
from unlost.archives.clients.urims import join_url
from unlost.clock import Clock
from unlost.errors import FailedError, NotNowError

CAPTCHA_PAUSE_SECONDS = 3600.0
"""After a captcha, by our own choice: who goes on asking only makes it last, also for the person at this machine."""

CAPTCHA_ADVICE = (
    "open it in a browser at this machine and answer its captcha, wait some hours, or leave this archive out"
)

_CAPTCHA_MARKS = (b"captcha", b"please complete the security check", b"one more step")
_INSPECTED_BYTES = 1 << 16  # bytes of a page: the marks stand in its head
_MAX_MOVES = 4  # from name to name, for one question


class ArchiveTodayHttpClient:
    """A courier for one client of archive.today."""

    def __init__(self, archive: Archive, client: HttpClient, clock: Clock) -> None:
        self.domains = ArchiveTodayDomains(archive)
        self._client = client
        self._clock = clock
        self._paused_until = 0.0

    async def send(self, archive: Archive, request: HttpRequest) -> HttpResponse:
        """Return the answer, with all names of the archive brought to one. Raises NotNowError, FailedError.

        A captcha is FailedError of kind `status`; for an hour after it nothing is sent, which is NotNowError.
        """
        if self._clock.now() < self._paused_until:
            raise NotNowError(f"it asked for a captcha: {CAPTCHA_ADVICE}", archive.id, self._paused_until, "blocked")
        url, follows, moves = request.url, request.max_redirects, 0
        while True:
            reply = await self._send_once(
                archive, replace(request, url=self.domains.at_current_domain(url), max_redirects=0)
            )
            link = reply.header("location") if 300 <= reply.status < 400 else None
            if link is None:
                break
            target = join_url(reply.url, link)
            if moves < _MAX_MOVES and self.domains.follow_move(reply.url, target):
                moves += 1
            elif request.max_redirects == 0:
                break
            elif follows == 0 or not self.domains.is_own(target):
                reply.body.close()
                raise FailedError(f"it redirects to {ascii(target)[1:-1][:100]}", archive.id, "redirects")
            else:
                follows -= 1
            reply.body.close()
            url = target
        self._check_captcha(archive, reply)
        return self.domains.normalize_response(reply)

    async def _send_once(self, archive: Archive, request: HttpRequest) -> HttpResponse:
        try:
            return await self._client.send(self.domains.archive, request)
        except NotNowError as error:
            message = f"{error}: it may want a captcha: {CAPTCHA_ADVICE}"
            raise NotNowError(message, archive.id, error.until, error.reason) from error

    def _check_captcha(self, archive: Archive, response: HttpResponse) -> None:
        """Raise FailedError for a page that asks for a captcha."""
        if response.header("memento-datetime") is not None:
            return
        head = response.body.read(_INSPECTED_BYTES).lower()
        response.body.seek(0)
        if head.lstrip()[:1] == b"<" and b"<html" in head and any(mark in head for mark in _CAPTCHA_MARKS):
            response.body.close()
            self._paused_until = self._clock.now() + CAPTCHA_PAUSE_SECONDS
            raise FailedError(f"it asks for a captcha: {CAPTCHA_ADVICE}", archive.id, "status")
