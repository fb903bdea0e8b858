"""The reference site in three real archives: each a WARC file served by pywb behind a proxy that counts requests."""

import base64
import hashlib
import io
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests.cli.run import unlost
from tests.external import pywb
from tests.external.fault_proxy import FaultProxy, run_fault_proxy
from tests.external.fault_server import Exchange, Handler
from tests.recovery.background_server import run_in_background
from tests.recovery.random_pages import ARCHIVES
from tests.recovery.registry import registry
from tests.recovery.site import Held, Site
from unlost.clock import SystemClock


def digest_of(body: bytes) -> str:
    """Return the digest of a payload as in WARC files."""
    return "sha1:" + base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()


def _iso(date: str) -> str:
    day, time = (date[:4], date[4:6], date[6:8]), (date[8:10], date[10:12], date[12:14])
    return f"{'-'.join(day)}T{':'.join(time)}Z"


def _write(writer: WARCWriter, held: Held) -> None:
    fields = [("Content-Type", held.mime), ("X-Capture", f"{held.archive} {held.date}")]
    if held.location is not None:
        fields.append(("Location", held.location))
    if held.coding == "chunked":
        fields.append(("Transfer-Encoding", "chunked"))
    elif held.coding:
        fields.append(("Content-Encoding", held.coding))
    head = StatusAndHeaders(f"{held.status} {HTTPStatus(held.status).phrase}", fields, protocol="HTTP/1.1")
    dated = {"WARC-Date": _iso(held.date)}
    if held.revisit_of is not None:
        uri, date = held.revisit_of
        record = writer.create_revisit_record(held.uri, digest_of(held.body), uri, _iso(date), head, dated)
    else:
        body = io.BytesIO(held.stored())
        record = writer.create_warc_record(held.uri, "response", body, http_headers=head, warc_headers_dict=dated)
    writer.write_record(record)
    record.raw_stream.close()  # warcio would leave it to the garbage collector


def write_warc(path: Path, captures: Iterable[Held]) -> list[int]:
    """Write captures to a WARC file; return the offsets to damage."""
    damaged = []
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for held in sorted(captures, key=lambda held: held.date):
            begin = file.tell()
            _write(writer, held)
            if held.damaged:
                damaged.append(begin if held.damaged == "lost" else (begin + file.tell()) // 2)
    return damaged


def damage(path: Path, offsets: Iterable[int]) -> None:
    """Overwrite bytes at some offsets; an existing index still lists the records."""
    with path.open("r+b") as file:
        for offset in offsets:
            file.seek(offset)
            file.write(b"\0" * 64)


def _proxy_handler(proxy: FaultProxy, lost: frozenset[str]) -> Handler:
    """Return the handler of a proxy, which responds with a server error for an unreadable record.

    pywb itself responds with 503, after which a client waits a minute, too long for tests.
    """

    async def answering(exchange: Exchange) -> None:
        if any(exchange.path.endswith(f"id_/{uri}") for uri in lost):
            await exchange.respond(500, b"cannot read it")
        else:
            await proxy.handle(exchange)

    return answering


@dataclass(slots=True)
class Archives:
    """The running archives.

    Attributes:
        servers: pywb servers by id.
        proxies: Proxies by id, to which the command sends requests.
        registry: The registry file.
    """

    servers: dict[str, pywb.Pywb]
    proxies: dict[str, FaultProxy]
    registry: Path

    def clear_requests(self) -> None:
        """Discard the recorded requests."""
        for proxy in self.proxies.values():
            proxy.server.requests.clear()

    def lists(self) -> dict[str, list[str]]:
        """Return the index queries by archive."""
        return {name: [path for path in proxy.server.paths if "/cdx" in path] for name, proxy in self.proxies.items()}

    def replays(self) -> list[tuple[str, str]]:
        """Return archive and path of every request for a capture."""
        return [
            (name, path)
            for name, proxy in self.proxies.items()
            for path in proxy.server.paths
            if "/cdx" not in path and "/timemap/" not in path
        ]


@contextmanager
def archives(site: Site, folder: Path) -> Iterator[Archives]:
    """Run three pywb servers that hold the site."""
    with ExitStack() as stack:
        servers, proxies, entries = {}, {}, []
        for name in ARCHIVES:
            place = folder / name
            place.mkdir()
            warc, index = place / "held.warc.gz", place / "index.cdxj"
            damaged = write_warc(warc, (held for _, held in site.captures() if held.archive == name))
            done = unlost("index", "build", str(warc), "-o", str(index))
            if done.returncode != 0:
                raise RuntimeError(done.stderr.decode())
            damage(warc, damaged)
            servers[name] = stack.enter_context(pywb.serve_index(index, place, place))
            proxies[name] = stack.enter_context(
                run_in_background(run_fault_proxy(servers[name].port, SystemClock(), []))
            )
            lost = {held.uri for _, held in site.captures() if held.archive == name and held.damaged == "lost"}
            proxies[name].server.handler = _proxy_handler(proxies[name], frozenset(lost))
            entries.append(proxies[name].rewrite_archive(servers[name].archive(name)))
        yield Archives(servers, proxies, registry(folder / "archives.toml", *entries))
