"""A fake Common Crawl: a list of crawls, and an index server for each with rows of real WARCs.

It responds like the public one: pages of JSON rows, 404 with a message without rows, one object for `showNumPages`. The
records are on another server. A test may replace any response.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from warcio.archiveiterator import ArchiveIterator

from tests.external.fault_server import Exchange, run_fault_server
from unlost import uri

Row = dict[str, str]


@dataclass(slots=True)
class Crawl:
    """A crawl: its rows by key and date, and further fields of its entry in the list."""

    id: str
    rows: list[Row]
    dates: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class CommonCrawl:
    """The running server.

    Attributes:
        crawls: Crawls, newest first.
        page_rows: Rows per page.
        is_loose: Whether a prefix query of a folder also returns the folder itself.
        overrides: Replaced responses (status, body) by part of the path.
        requests: Requested paths in order.
    """

    crawls: list[Crawl]
    page_rows: int = 15_000
    is_loose: bool = False
    overrides: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    url: str = ""
    requests: list[str] = field(default_factory=list)

    async def handle(self, exchange: Exchange) -> None:
        """Respond to a request."""
        self.requests.append(exchange.path)
        for part, (status, body) in self.overrides.items():
            if part in exchange.path:
                await exchange.respond(status, body)
                return
        parts = urlsplit(exchange.path)
        if parts.path == "/collinfo.json":
            await exchange.respond(200, json.dumps([self._entry(crawl) for crawl in self.crawls]).encode())
            return
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        rows = next(crawl.rows for crawl in self.crawls if parts.path == f"/{crawl.id}-index")
        await exchange.respond(
            *self._query_response([row for row in rows if _matches(row, query, self.is_loose)], query)
        )

    def _entry(self, crawl: Crawl) -> dict[str, str]:
        url = f"{self.url}/{crawl.id}"
        return {
            "id": crawl.id,
            "name": f"{crawl.id} Index",
            "timegate": f"{url}/",
            "cdx-api": f"{url}-index",
            **crawl.dates,
        }

    def _query_response(self, rows: list[Row], query: dict[str, str]) -> tuple[int, bytes]:
        if not rows:
            return 404, json.dumps({"message": f"No Captures found for: {query['url']}"}).encode()
        pages = -(-len(rows) // self.page_rows)
        if "showNumPages" in query:
            return 200, json.dumps({"pages": pages, "pageSize": 5, "blocks": pages}).encode() + b"\n"
        page = int(query.get("page", "0"))
        if page >= pages:
            message = f"Page {page} invalid: First Page is 0, Last Page is {pages - 1}"
            return 400, json.dumps({"message": message}).encode()
        page_rows = rows[page * self.page_rows : (page + 1) * self.page_rows]
        return 200, b"".join(json.dumps(row).encode() + b"\n" for row in page_rows)


def _matches(row: Row, query: dict[str, str], is_loose: bool) -> bool:
    """Return whether a key matches, as on the server: keys of folders have no final slash, and prefixes do."""
    if not query.get("from", "0") <= row["timestamp"] <= query.get("to", "9"):
        return False
    key, url, match = row["urlkey"], query["url"], query["matchType"]
    prefix = uri.surt(url)
    if match == "exact" or (is_loose and key == prefix):
        return key == prefix
    if match == "prefix":
        return key.startswith(prefix + "/" if url.endswith("/") and not prefix.endswith("/") else prefix)
    host = prefix.partition(")")[0]
    return key.startswith(f"{host})") or (match == "domain" and key.startswith(f"{host},"))


def read_rows(warc: Path, filename: str) -> list[Row]:
    """Return the rows of a WARC's responses, read with warcio. filename: WARC name in the rows."""
    rows = []
    with warc.open("rb") as file:
        records = ArchiveIterator(file)
        for record in records:
            if record.rec_type not in ("response", "revisit"):
                continue
            headers, http = record.rec_headers, record.http_headers
            url = headers.get_header("WARC-Target-URI")
            if not url.startswith("http"):
                continue
            offset = records.get_record_offset()
            row = {
                "urlkey": uri.surt(url),
                "timestamp": "".join(filter(str.isdigit, headers.get_header("WARC-Date")))[:14],
                "url": url,
                "mime": "warc/revisit" if record.rec_type == "revisit" else "text/html",
                "mime-detected": "text/html",
                "status": http.get_statuscode() if http else "-",
                "digest": (headers.get_header("WARC-Payload-Digest") or "-").removeprefix("sha1:"),
                "length": str(records.get_record_length()),
                "offset": str(offset),
                "filename": filename,
            }
            if headers.get_header("WARC-Truncated"):
                row["truncated"] = headers.get_header("WARC-Truncated")
            rows.append(row)
    return sorted(rows, key=lambda row: (row["urlkey"], row["timestamp"]))


@asynccontextmanager
async def fake_common_crawl(crawls: list[Crawl]) -> AsyncIterator[CommonCrawl]:
    """Run the server until the block ends."""
    server = CommonCrawl(crawls)
    async with run_fault_server(server.handle) as faults:
        server.url = faults.url
        yield server
