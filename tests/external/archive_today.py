"""A fake archive.today according to public transcripts: several hosts, TimeMaps, pages and captchas.

All hosts redirect to `archive.ph`; TimeMaps have mementos at `archive.md`; a long URI-M redirects to a short one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.external.fault_server import Exchange, run_fault_server
from unlost import dates
from unlost.clock import Clock

CURRENT_HOST = "archive.ph"
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
        redirect_to: Target of a redirect of every request, if set.
        requests: Host and path of each request.
    """

    pages: dict[str, list[tuple[str, str, bytes]]]
    captcha: tuple[str, ...] = ()
    captcha_status: int = 200
    port: int = 0
    timemap: bytes | None = None
    redirect_to: str | None = None
    requests: list[str] = field(default_factory=list)

    async def handle(self, exchange: Exchange) -> None:
        """Respond to a request."""
        host, path = exchange.headers["host"].partition(":")[0], exchange.path
        self.requests.append(f"{host}{path}")
        if self.redirect_to is not None:
            await exchange.respond(302, location=self.redirect_to)
        elif host != CURRENT_HOST:
            await exchange.respond(307, location=f"http://{CURRENT_HOST}:{self.port}{path}")
        elif path.startswith(self.captcha) and self.captcha:
            await exchange.respond(self.captcha_status, CAPTCHA, content_type="text/html")
        elif path.startswith("/timemap/"):
            await self._timemap(exchange, path.removeprefix("/timemap/"))
        elif path.startswith("/timegate/"):
            await self._timegate(exchange, path.removeprefix("/timegate/"))
        elif path.startswith("/short-"):
            await self._page(exchange, path.removeprefix("/short-"))
        else:
            await self._redirect(exchange, path[1:15], path[16:])

    async def _timemap(self, exchange: Exchange, url: str) -> None:
        captures = self.pages.get(url)
        if self.timemap is not None:
            await exchange.respond(200, self.timemap, content_type="application/link-format")
            return
        if not captures:
            await exchange.respond(404, b"TimeMap does not exists. The archive has no Mementos for the requested URI")
            return
        lines = [f'<{url}>; rel="original",', f'<http://archive.md/timegate/{url}>; rel="timegate",']
        for index, (timestamp, original, _) in enumerate(captures):
            rel = "first " * (index == 0) + "last " * (index == len(captures) - 1) + "memento"
            memento = f"http://archive.md:{self.port}/{timestamp}/{original}"
            lines.append(f'<{memento}>; rel="{rel}"; datetime="{dates.to_http(timestamp)}",')
        lines.append(
            f'<http://archive.md/timemap/{url}>; rel="self"; type="application/link-format"; '
            f'from="{dates.to_http(captures[0][0])}"; until="{dates.to_http(captures[-1][0])}"'
        )
        await exchange.respond(200, "\n".join(lines).encode(), content_type="application/link-format")

    async def _timegate(self, exchange: Exchange, url: str) -> None:
        """Redirect to the last capture, whatever the requested date."""
        captures = self.pages.get(url)
        if not captures:
            await exchange.respond(404, b"")
            return
        timestamp, original, _ = captures[-1]
        links = f'<{url}>; rel="original", <http://archive.md:{self.port}/timemap/{url}>; rel="timemap"; '
        links += 'type="application/link-format"'
        location = f"http://archive.md:{self.port}/{timestamp}/{original}"
        await exchange.respond(302, location=location, vary="Accept-Datetime", link=links)

    async def _redirect(self, exchange: Exchange, timestamp: str, original: str) -> None:
        for captures in self.pages.values():
            if any(capture[:2] == (timestamp, original) for capture in captures):
                await exchange.respond(302, location=f"http://archive.vn:{self.port}/short-{timestamp}")
                return
        await exchange.respond(404, b"<html>Not Found</html>", content_type="text/html")

    async def _page(self, exchange: Exchange, timestamp: str) -> None:
        url, (_, original, body) = next(
            (url, capture) for url, captures in self.pages.items() for capture in captures if capture[0] == timestamp
        )
        dotted = f"{timestamp[:4]}.{timestamp[4:6]}.{timestamp[6:8]}-{timestamp[8:]}"
        links = f'<{original}>; rel="original", <http://archive.md/timegate/{url}>; rel="timegate", '
        links += f'<http://archive.md/{dotted}/{original}>; rel="memento"; datetime="{dates.to_http(timestamp)}"'
        await exchange.respond(
            200,
            b"<!DOCTYPE html><html>" + body + b"</html>",
            content_type="text/html;charset=utf-8",
            memento_datetime=dates.to_http(timestamp),
            link=links,
        )


@asynccontextmanager
async def fake_archive_today(
    pages: dict[str, list[tuple[str, str, bytes]]], clock: Clock | None = None
) -> AsyncIterator[ArchiveToday]:
    """Run the server until the block ends."""
    server = ArchiveToday(pages)
    async with run_fault_server(server.handle, clock) as faults:
        server.port = faults.port
        yield server
