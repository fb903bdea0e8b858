"""Tests with real sites and pages: the default command recovers everything that an archive holds."""

import base64
import gzip
import hashlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.archives.clients.records import response
from tests.cli.run import UNLOST, unlost
from tests.external import pywb
from tests.real_data import DATA
from tests.recovery.command import Command, CommandResult
from tests.recovery.recovery_output import read_warcs, summary
from tests.recovery.registry import registry
from tests.recovery.test_real_crawls import body_of

SITES = {
    "academic": "https://dahrse-midlands.github.io/",
    "uhp": "https://uhp.example/",
    "gb3ok": "https://gb3ok.com/",
    "kiwix": "https://kiwix.org/",
    "books": "http://books.toscrape.com/",
    "netarkivet": "http://netarkivet.dk/",
}
LEFT_OUT = {"netarkivet": {"netarkivet.dk/robots.txt": "no-content"}}
COMPOSED = {"stats.kiwix.org/matomo.js"}  # no page has this URL: a script composes it of two strings
REQUESTS = 1.05  # for captures, per recovered resource
GOOD_LABELS = ("good", "function-page", "redirect-stub")
SAMPLE = 10  # one of 10 labelled pages is in the normal run


class Held(NamedTuple):
    """A response in a WARC. page: its URL without the scheme and `www.`, which do not make another page."""

    page: str
    uri: str
    status: int
    digest: str

    @property
    def host(self) -> str:
        """The host of the page."""
        return self.page.partition("/")[0]


@dataclass(frozen=True, slots=True)
class RecoveredSite:
    """The result of the default command on a site. held: all http(s) responses of its WARC."""

    host: str
    held: list[Held]
    done: CommandResult
    found: dict[str, set[tuple[int, str]]]
    left_out: dict[str, str]

    @property
    def requests(self) -> int:
        """Number of capture requests that the command reported."""
        return self.done.requests

    @property
    def lookups(self) -> int:
        """Number of look-ups for other hosts that the command reported."""
        return int(self.done.events_of("done")[-1]["other_host_lookups"])


def page_of(uri: str) -> str:
    """Return the identity of a page: host, path and query."""
    parts = urlsplit(uri)
    query = f"?{parts.query}" if parts.query else ""
    return (parts.hostname or "").removeprefix("www.") + (parts.path or "/") + query


def digest(body: bytes) -> str:
    """Return a digest of the bytes."""
    return hashlib.sha256(body).hexdigest()


def responses(warc: Path) -> Iterator[Held]:
    """Yield the http(s) responses of a WARC, read with warcio."""
    with warc.open("rb") as file:
        for record in ArchiveIterator(file):
            uri = record.rec_headers.get_header("WARC-Target-URI") or ""
            if record.rec_type == "response" and uri.startswith(("http://", "https://")):
                status = int(record.http_headers.get_statuscode())
                yield Held(page_of(uri), uri, status, digest(body_of(record)))


def recover_from_pywb(name: str, folder: Path) -> RecoveredSite:
    """Recover a site from pywb by the default command."""
    warc = DATA / "sites" / f"{name}.warc.gz"
    start = SITES[name]
    with pywb.serve_warcs([warc], folder) as (server,):
        archives = registry(folder / "archives.toml", server.archive("pywb"))
        command = Command(archives, folder / "site.recovery", folder / "home", is_linked_only=False)
        done = command.run(start)
    assert done.code == 0, done.stderr
    records = read_warcs(command.folder)
    found: dict[str, set[tuple[int, str]]] = {}
    for line in summary(command.summary):
        if not line.is_missing:
            record = records[line.file, line.offset]
            found.setdefault(page_of(line.uri), set()).add((record.status, digest(record.body)))
    listed = unlost("report", str(command.folder), "--list", "listed")
    assert listed.returncode == 0, listed.stderr
    rows = [line.split("\t") for line in listed.stdout.decode().splitlines()]
    left_out = {page_of(uri): reason for uri, reason in rows}
    host = page_of(start).partition("/")[0]
    return RecoveredSite(host, list(responses(warc)), done, found, left_out)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RecoveredSite]:
    """Recover every site once."""
    return {name: recover_from_pywb(name, tmp_path_factory.mktemp(name)) for name in SITES}


@pytest.mark.real_data
@pytest.mark.parametrize("name", SITES)
def test_all_responses_of_the_site_are_recovered(sites: dict[str, RecoveredSite], name: str) -> None:
    """All responses of the host are recovered with their bytes, or reported as left out with a reason."""
    site = sites[name]
    own = [each for each in site.held if each.host == site.host]
    assert len(own) > 20
    missing = {each.page for each in own} - site.found.keys()
    assert {page: site.left_out.get(page) for page in missing} == LEFT_OUT.get(name, {})
    assert site.left_out == LEFT_OUT.get(name, {})
    for page in {each.page for each in own} - missing:
        held = {(each.status, each.digest) for each in own if each.page == page}
        assert site.found[page] <= held, page
    assert site.done.events_of("done")[-1]["failed"] == 0


@pytest.mark.real_data
@pytest.mark.parametrize("name", SITES)
def test_page_requisites_of_other_hosts_are_recovered(sites: dict[str, RecoveredSite], name: str) -> None:
    """All responses of other hosts in the WARC are requisites and are recovered with their bytes."""
    site = sites[name]
    others = [each for each in site.held if each.host != site.host and each.page not in COMPOSED]
    assert {"kiwix": 12, "books": 1}.get(name, 0) == len(others)
    for each in others:
        assert (each.status, each.digest) in site.found.get(each.page, ()), each.uri


@pytest.mark.real_data
def test_capture_requests_per_resource_are_bounded(sites: dict[str, RecoveredSite]) -> None:
    """Hardly any capture is requested twice; look-ups for other hosts are counted separately."""
    count = sum(len(site.done.events_of("recovered")) for site in sites.values())
    requests = sum(site.requests for site in sites.values())
    for name, site in sites.items():
        print(f"{name}: {site.requests} requests, {len(site.found)} recovered, {site.lookups} look-ups of other hosts")
    print(f"all: {requests / count:.3f} requests for captures per recovered resource, of {count}")
    assert requests / count <= REQUESTS
    assert {name for name, site in sites.items() if site.lookups == 0} == {"netarkivet"}


def labelled_pages(step: int) -> list[tuple[str, bytes]]:
    """Return label and body of every labelled page, or of every `step`-th."""
    with gzip.open(DATA / "pages" / "real-pages.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [(row["label"], base64.b64decode(row["body_base64"])) for row in rows[::step]]


@pytest.mark.real_data
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long), SAMPLE])
def test_labelled_pages_are_recovered(tmp_path: Path, step: int) -> None:
    """Pages with content, forms and redirect stubs in a local WARC are all recovered unchanged."""
    pages = {f"http://pages.example/{number:04}.html": page for number, page in enumerate(labelled_pages(step))}
    warc = tmp_path / "pages.warc.gz"
    with warc.open("wb") as file:
        for uri, (_, body) in pages.items():
            file.write(response(uri, "2021-05-05T10:00:00Z", body))
    folder = tmp_path / "pages.recovery"
    words = ("recover", "http://pages.example/", "--warc", str(warc), "--no-archives", "-o", str(folder), "--json")
    environment = Command(warc, folder, tmp_path / "home").environment
    done = subprocess.run([UNLOST, *words], capture_output=True, check=False, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    chosen = {event["uri"] for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "recovered"}
    lost = {uri: label for uri, (label, _) in pages.items() if label in GOOD_LABELS and uri not in chosen}
    assert lost == {}
    stored = {(record.uri, digest(record.body)) for record in read_warcs(folder).values()}
    assert {(uri, digest(body)) for uri, (label, body) in pages.items() if label in GOOD_LABELS} <= stored
