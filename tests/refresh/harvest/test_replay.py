"""Harvests of real servers: replay by pywb, and fetch methods by measured behaviour."""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.external import pywb
from tests.external.file_servers import serve_folder
from tests.refresh.harvest.site import DAY, etag_policy, harvest_pages, kinds, log, records
from tests.virtual_clock import VirtualClock
from unlost.refresh import Policy

PAGES = 5
WORDS = "first " * 4_000


@pytest.fixture
def served_folder() -> Iterator[Path]:
    """Give a folder that every user may read, with pages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        put(folder / "ready.html", "here", 1)
        for number in range(PAGES):
            put(folder / f"{number}.html", f"<p>{number} {WORDS}", number)
        yield folder


def put(page: Path, text: str, hour: int) -> None:
    """Write a page that was changed at some hour."""
    page.write_text(text)
    page.chmod(0o644)
    os.utime(page, (1_600_000_000 + 3600 * hour,) * 2)


def harvest_without_audits(clock: VirtualClock, folder: Path, urls: list[str]) -> dict[str, int]:
    """Harvest without audits, which the command always makes of one skip in a hundred; return how pages ended."""
    clock.advance(DAY)
    return dict(asyncio.run(harvest_pages(clock, folder, etag_policy(audit=0.0), urls)).outcomes)


# Apache does not match the ETag of a gzipped page: this is measured, and HEAD stays the way.
@pytest.mark.parametrize(
    ("kind", "conditions"), [("nginx", True), ("Apache", False), ("lighttpd", True), ("Caddy", True)]
)
def test_fetch_method_follows_measured_server_behaviour(
    kind: str, conditions: bool, served_folder: Path, tmp_path: Path
) -> None:
    """No change is missed, nothing else is downloaded, and conditional requests are sent only where they work."""
    folder, clock = tmp_path / "harvest", VirtualClock()
    (tmp_path / "work").mkdir()
    with serve_folder(kind, served_folder, tmp_path / "work") as port:
        urls = [f"http://127.0.0.1:{port}/{number}.html" for number in range(PAGES)]
        assert harvest_without_audits(clock, folder, urls) == {"new": PAGES}
        for turn in (1, 2):
            put(served_folder / "0.html", f"<p>{turn} {WORDS}", 10 + turn)
            found = harvest_without_audits(clock, folder, urls)
            assert found.pop("changed") == 1
            assert sum(found.values()) == PAGES - 1
    last = log(folder)[-PAGES:]
    assert {line["way"] for line in last} == ({"conditional"} if conditions else {"head"})
    assert found == ({"not-modified": PAGES - 1} if conditions else {"skipped": PAGES - 1}), last
    assert kinds(records(folder))[-1] == ("server-not-modified" if conditions else "response")


def test_revisit_records_replay_in_pywb(served_folder: Path, tmp_path: Path) -> None:
    """An identical digest replays as the original page, a 304 as 304 without a body."""
    folder, clock = tmp_path / "harvest", VirtualClock()
    (tmp_path / "work").mkdir()
    (tmp_path / "pywb").mkdir()
    with serve_folder("nginx", served_folder, tmp_path / "work") as port:
        urls = [f"http://127.0.0.1:{port}/{number}.html" for number in range(PAGES)]
        for policy, some in ((Policy(), urls), (Policy(), urls[:1]), (etag_policy(), urls[1:])):
            asyncio.run(harvest_pages(clock, folder, policy, some))
            clock.advance(DAY)
    found = records(folder)
    assert kinds(found) == ["response"] * PAGES + ["identical-payload-digest"] + ["server-not-modified"] * 3
    index = tmp_path / "index.cdxj"
    warcs = sorted((folder / "warc").glob("*.warc.gz"))
    assert unlost("index", "build", *map(str, warcs), "-o", str(index)).returncode == 0
    with pywb.serve_index(index, folder / "warc", tmp_path / "pywb") as archive:
        for record in found:
            timestamp = "".join(char for char in record.headers["WARC-Date"] if char.isdigit())
            response = archive.fetch(timestamp, record.uri)
            number = record.uri[-6]
            if record.profile == "server-not-modified":
                assert (response.status, response.body) == (304, b"")
            else:
                assert (response.status, response.body) == (200, f"<p>{number} {WORDS}".encode())
