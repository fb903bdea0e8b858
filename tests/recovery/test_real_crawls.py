"""Tests with real crawls: all captures are recovered byte for byte."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import brotli
import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.external import pywb
from tests.quality.classified import is_labelled_bad
from tests.real_data import DATA
from tests.recovery.command import Command
from tests.recovery.recovery_output import read_warcs, summary
from tests.recovery.registry import registry
from unlost.errors import UriError
from unlost.registry import Archive, ArchiveKind
from unlost.uri import page_name

SITES = {
    "http://www.archive.org/": ["archive-org-2008.warc.gz"],
    "https://www.iana.org/": ["iana-2020.warc.gz", "iana-2021.warc.gz"],
    "http://magazine.odu.edu/": ["magazine.warc.gz"],
}


class StoredPage(NamedTuple):
    """A page in a WARC."""

    name: str
    datetime: str
    status: int
    body: bytes


def pages(file: Path) -> Iterator[StoredPage]:
    """Yield the pages of a WARC, read with warcio; a revisit has no bytes."""
    with file.open("rb") as opened:
        for record in ArchiveIterator(opened):
            if record.rec_type not in ("response", "revisit") or record.http_headers is None:
                continue
            head = record.rec_headers
            try:
                name = page_name(head.get_header("WARC-Target-URI"))
            except UriError:
                continue
            date = "".join(filter(str.isdigit, head.get_header("WARC-Date")))[:14]
            yield StoredPage(name, date, int(record.http_headers.get_statuscode()), body_of(record))


def body_of(record: Any) -> bytes:  # noqa: ANN401  warcio's, which has no types
    """Return the decoded body of a record; warcio does not support current Brotli versions."""
    if record.http_headers.get_header("content-encoding") != "br":
        return bytes(record.content_stream().read())
    raw = record.raw_stream.read()
    if record.http_headers.get_header("transfer-encoding") == "chunked":
        raw = pywb.decode_chunked(raw)
    return bytes(brotli.decompress(raw)) if raw else b""


def digest(body: bytes) -> str:
    """Return a digest of the bytes."""
    return hashlib.sha256(body).hexdigest()


def is_below(name: str, site: str) -> bool:
    """Return whether a page is on the host of a site."""
    return name.partition("/")[0] == page_name(site).partition("/")[0]


@pytest.mark.real_data
@pytest.mark.parametrize("by", ["files", "pywb"])
@pytest.mark.parametrize("site", SITES)
def test_real_crawl_is_recovered(site: str, by: str, tmp_path: Path) -> None:
    """Every page with a good capture is recovered with the bytes of one of its captures."""
    files = [DATA / "warc" / name for name in SITES[site]]
    held = [stored for file in files for stored in pages(file) if is_below(stored.name, site)]
    good = {
        stored.name
        for stored in held
        if stored.status == 200 and stored.body and not is_labelled_bad(stored.name, stored.datetime)
    }
    bodies = {(stored.name, digest(stored.body)) for stored in held if stored.body}
    if by == "files":
        archives = [
            Archive(file.name.partition(".")[0], file.name, ArchiveKind.FILES, folder=str(file)) for file in files
        ]
        _recovered(registry(tmp_path / "archives.toml", *archives), site, good, bodies, tmp_path)
        return
    with pywb.serve_warcs(files, tmp_path) as servers:
        archives = [server.archive(f"archive-{number}") for number, server in enumerate(servers)]
        _recovered(registry(tmp_path / "archives.toml", *archives), site, good, bodies, tmp_path)


def _recovered(archives: Path, site: str, good: set[str], bodies: set[tuple[str, str]], folder: Path) -> None:
    command = Command(archives, folder / "site.recovery", folder / "home")
    done = command.run(site, "--policy", "exhaustive")
    records = read_warcs(command.folder)
    lines = [line for line in summary(command.summary) if not line.is_missing]
    assert done.code in (0 if lines else 1, 4), done.stderr
    found = {page_name(line.uri): records[line.file, line.offset] for line in lines}
    assert good - found.keys() == set()
    for name in good:
        assert (name, digest(found[name].body)) in bodies, name
