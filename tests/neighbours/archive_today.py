"""A fake archive.today according to public transcripts: several hosts, TimeMaps, pages and captchas.

All hosts redirect to `archive.ph`; TimeMaps have mementos at `archive.md`; a long URI-M redirects to a short one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.neighbours.faults import Talk, faulty
from unlost import dates
from unlost.clock import Clock

PRESENT = "archive.ph"
CAPTCHA = b"""<!DOCTYPE html><html><head><title>archive.ph</title></head><body>
<h1>One more step</h1><p>Please complete the security check to access</p>
<div id="g-recaptcha" class="g-recaptcha" data-sitekey="x"></div></body></html>"""


@dataclass(slots=True)
class ArchiveToday:
    """The running server.

    Attributes:
        pages: Captures by URL: 14-digit date, exact URL and body.
        captcha: Path prefixes that yield a captcha, with the status `captcha_status`.
        timemap: Response to every TimeMap request, if set.
        asked: Host and path of each request.
    """

    pages: dict[str, list[tuple[str, str, bytes]]]
    captcha: tuple[str, ...] = ()
    captcha_status: int = 200
    port: int = 0
    timemap: bytes | None = None
    leads: str | None = None
    asked: list[str] = field(default_factory=list)

    async def answer(self, talk: Talk) -> None:
        """Respond to a request."""
        host, path = talk.headers["host"].partition(":")[0], talk.path
        self.asked.append(f"{host}{path}")
        if self.leads is not None:
            await talk.answer(302, location=self.leads)
        elif host != PRESENT:
            await talk.answer(307, location=f"http://{PRESENT}:{self.port}{path}")
        elif path.startswith(self.captcha) and self.captcha:
            await talk.answer(self.captcha_status, CAPTCHA, content_type="text/html")
        elif path.startswith("/timemap/"):
            await self._timemap(talk, path.removeprefix("/timemap/"))
        elif path.startswith("/timegate/"):
            await self._timegate(talk, path.removeprefix("/timegate/"))
        elif path.startswith("/short-"):
            await self._page(talk, path.removeprefix("/short-"))
        else:
            await self._redirect(talk, path[1:15], path[16:])

    async def _timemap(self, talk: Talk, address: str) -> None:
        copies = self.pages.get(address)
        if self.timemap is not None:
            await talk.answer(200, self.timemap, content_type="application/link-format")
            return
        if not copies:
            await talk.answer(404, b"TimeMap does not exists. The archive has no Mementos for the requested URI")
            return
        lines = [f'<{address}>; rel="original",', f'<http://archive.md/timegate/{address}>; rel="timegate",']
        for place, (moment, original, _) in enumerate(copies):
            rel = "first " * (place == 0) + "last " * (place == len(copies) - 1) + "memento"
            memento = f"http://archive.md:{self.port}/{moment}/{original}"
            lines.append(f'<{memento}>; rel="{rel}"; datetime="{dates.to_http(moment)}",')
        lines.append(
            f'<http://archive.md/timemap/{address}>; rel="self"; type="application/link-format"; '
            f'from="{dates.to_http(copies[0][0])}"; until="{dates.to_http(copies[-1][0])}"'
        )
        await talk.answer(200, "\n".join(lines).encode(), content_type="application/link-format")

    async def _timegate(self, talk: Talk, address: str) -> None:
        """Redirect to the last capture, whatever the requested date."""
        copies = self.pages.get(address)
        if not copies:
            await talk.answer(404, b"")
            return
        moment, original, _ = copies[-1]
        links = f'<{address}>; rel="original", <http://archive.md:{self.port}/timemap/{address}>; rel="timemap"; '
        links += 'type="application/link-format"'
        place = f"http://archive.md:{self.port}/{moment}/{original}"
        await talk.answer(302, location=place, vary="Accept-Datetime", link=links)

    async def _redirect(self, talk: Talk, moment: str, original: str) -> None:
        for copies in self.pages.values():
            if any(copy[:2] == (moment, original) for copy in copies):
                await talk.answer(302, location=f"http://archive.vn:{self.port}/short-{moment}")
                return
        await talk.answer(404, b"<html>Not Found</html>", content_type="text/html")

    async def _page(self, talk: Talk, moment: str) -> None:
        address, (_, original, body) = next(
            (address, copy) for address, copies in self.pages.items() for copy in copies if copy[0] == moment
        )
        dotted = f"{moment[:4]}.{moment[4:6]}.{moment[6:8]}-{moment[8:]}"
        links = f'<{original}>; rel="original", <http://archive.md/timegate/{address}>; rel="timegate", '
        links += f'<http://archive.md/{dotted}/{original}>; rel="memento"; datetime="{dates.to_http(moment)}"'
        await talk.answer(
            200,
            b"<!DOCTYPE html><html>" + body + b"</html>",
            content_type="text/html;charset=utf-8",
            memento_datetime=dates.to_http(moment),
            link=links,
        )


@asynccontextmanager
async def serving(
    pages: dict[str, list[tuple[str, str, bytes]]], clock: Clock | None = None
) -> AsyncIterator[ArchiveToday]:
    """Run the server until the block ends."""
    server = ArchiveToday(pages)
    async with faulty(server.answer, clock) as faults:
        server.port = faults.port
        yield server
