"""A small site with changing pages and optional misbehaviour, and harvests of it with a virtual clock."""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator

from tests.external.fault_server import Exchange, FaultServer, run_fault_server
from tests.virtual_clock import VirtualClock
from unlost.refresh import (
    CELL_COUNT,
    HarvestOptions,
    HarvestResult,
    HarvestState,
    Policy,
    add_pages,
    begin_round,
    format_cell,
    harvest,
    normalize_visit_url,
)

DAY = 86_400.0


def etag_policy(audit: float = 0.0) -> Policy:
    """Return a policy that skips a page if its ETag, or without one its date, is the same."""
    means = {}
    for cell in range(CELL_COUNT):
        date, tag = format_cell(cell).split(".")[:2]
        same = tag in {"same", "weak", "alike"} or (tag == "missing" and date == "same")
        means[cell] = 0.001 if same else 0.9
    return Policy(cell_probabilities=means, skip_threshold=0.01, audit_share=audit)


@dataclass
class ServedPage:
    """A page. `headers` are sent in addition to the validators, which are omitted if None."""

    body: bytes
    etag: str | None = None
    last_modified: str | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def all_headers(self) -> dict[str, str]:
        """All response headers."""
        validators = {"etag": self.etag, "last-modified": self.last_modified}
        return {
            "content-type": "text/html",
            **{name: value for name, value in validators.items() if value},
            **self.headers,
        }


Trick = Callable[["Site", Exchange, ServedPage], Any]


@dataclass
class Site:
    """A running site.

    Attributes:
        requests: Requests as (method, path, is conditional), without robots.txt.
        events: Events of harvests.
    """

    server: FaultServer
    clock: VirtualClock
    pages: dict[str, ServedPage]
    trick: Trick | None = None
    requests: list[tuple[str, str, bool]] = field(default_factory=list)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def respond(self, exchange: Exchange) -> None:
        """Respond as a correct server does, unless there is a trick."""
        if exchange.path == "/robots.txt":
            page = self.pages.get(exchange.path, ServedPage(b"", status=404))
            await exchange.respond(page.status, page.body, content_type="text/plain")
            return
        condition = "if-none-match" in exchange.headers or "if-modified-since" in exchange.headers
        self.requests.append((exchange.method, exchange.path, condition))
        page = self.pages.get(exchange.path, ServedPage(b"not found", status=404))
        if self.trick is not None and await self.trick(self, exchange, page):
            return
        tag, date = exchange.headers.get("if-none-match"), exchange.headers.get("if-modified-since")
        is_same = tag == page.etag if tag else date is not None and date == page.last_modified
        if condition and is_same:
            await exchange.send(b"HTTP/1.1 304 Same\r\netag: %s\r\n\r\n" % (page.etag or "").encode())
        else:
            await exchange.respond(page.status, page.body, **page.all_headers)

    async def harvest(
        self,
        folder: Path,
        policy: Policy,
        *paths: str,
        after: float = DAY,
        due: float | None = None,
        **options: Any,  # noqa: ANN401
    ) -> HarvestResult:
        """Harvest pages after a while."""
        self.clock.advance(after)
        self.requests.clear()
        urls = [self.server.url + path for path in paths or self.pages if path != "/robots.txt"]

        def on_event(event: str, fields: Any) -> None:  # noqa: ANN401
            self.events.append((event, dict(fields)))

        return await harvest_pages(self.clock, folder, policy, urls, due=due, on_event=on_event, **options)


async def harvest_pages(
    clock: VirtualClock,
    folder: Path,
    policy: Policy,
    urls: Iterable[str],
    *,
    due: float | None = None,
    on_event: Any = lambda *_: None,  # noqa: ANN401
    **options: Any,  # noqa: ANN401
) -> HarvestResult:
    """Harvest pages of any server."""
    folder.mkdir(exist_ok=True)
    with HarvestState(folder) as state:
        state.set_scheme(str(id(policy)))
        state.clear_listed()
        add_pages(state, [normalize_visit_url(url) for url in urls])
        begin_round(state, int(clock.now() * 1000), only_listed=True, min_change_probability=due)
        harvest_options = HarvestOptions(**{"contact": "me@example.org", "delay": 0.0, **options})
        return await harvest(state, folder, policy, harvest_options, clock, on_event=on_event)


@asynccontextmanager
async def run_changing_site(pages: dict[str, ServedPage], trick: Trick | None = None) -> AsyncIterator[Site]:
    """Run a site."""
    clock = VirtualClock()

    async def answering(exchange: Exchange) -> None:
        await site.respond(exchange)

    async with run_fault_server(answering, clock) as server:
        site = Site(server, clock, pages, trick)
        yield site


@dataclass(frozen=True)
class Record:
    """A WARC record."""

    type: str
    uri: str
    headers: dict[str, str]
    body: bytes

    @property
    def profile(self) -> str:
        """Last component of its profile."""
        return self.headers.get("WARC-Profile", "").rpartition("/")[2]


def records(folder: Path) -> list[Record]:
    """Return the records of a folder's WARC files, without request and warcinfo records."""
    found = []
    for path in sorted((folder / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, no_record_parse=True):
                if record.rec_type in {"response", "revisit"}:
                    headers = dict(record.rec_headers.headers)
                    found.append(
                        Record(record.rec_type, headers["WARC-Target-URI"], headers, record.content_stream().read())
                    )
    return found


def log(folder: Path) -> list[dict[str, Any]]:
    """Return the log."""
    return [json.loads(line) for line in (folder / "visits.ndjson").read_text().splitlines()]


def kinds(found: Iterable[Record]) -> list[str]:
    """Return what records are, in a word each."""
    return [record.profile or record.type for record in found]
