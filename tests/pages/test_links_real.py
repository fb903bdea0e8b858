"""Pages of real crawls, against Python's own parser."""

from collections.abc import Iterator
from pathlib import Path

import brotli
import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.models import pages as model
from tests.real_data import DATA
from unlost.pages.link import Use
from unlost.pages.links import find_links

WARCS = DATA / "warc"

# warcio leaves its temporary files to the garbage collector.
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def bodies(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield address, type and decoded body of each response."""
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            address = record.rec_headers.get_header("WARC-Target-URI") or ""
            if record.rec_type == "response" and address.startswith("http") and record.http_headers is not None:
                is_brotli = record.http_headers.get_header("Content-Encoding") == "br"
                raw = record.raw_stream.read() if is_brotli else b""  # warcio would need another package for it
                body = brotli.decompress(raw) if is_brotli else record.content_stream().read()
                yield address, record.http_headers.get_header("Content-Type") or "", body


# Each file: how many links lead from its bodies to pages, to what shows them, and to lists.
FILES = {
    "archive-org-2008.warc.gz": (21_269, 1_512, 10),
    "iana-2020.warc.gz": (1_865, 49, 0),
    "iana-2021.warc.gz": (1_892, 49, 0),
    "magazine.warc.gz": (7_400, 3_942, 53),
}


@pytest.mark.parametrize("name", FILES)
def test_real_pages(name: str) -> None:
    """As many links as were counted once, none left out, and nearly all that Python's parser finds, too."""
    counts = dict.fromkeys(Use, 0)
    expected = missed = 0
    for number, (address, mime, body) in enumerate(bodies(WARCS / name)):
        found = find_links(body, mime, address)
        assert (found.left_out, found.cut) == (0, False), address
        for link in found.links:
            counts[link.use] += 1
        if mime.startswith("text/html") and number % 8 == 0:  # Python's parser takes its time
            simple = {uri for uri, _ in model.page(body.decode("utf-8", "replace"), address) if is_plain(uri)}
            lost = simple - {link.uri for link in found.links}
            expected += len(simple)
            missed += len(lost)
    assert tuple(counts.values()) == FILES[name]
    assert missed <= expected / 1_000


def is_plain(uri: str) -> bool:
    """Whether an address is one that Python and browsers spell alike."""
    host, slash, _ = uri.partition("://")[2].partition("/")
    return (
        bool(slash)
        and host == host.lower()
        and uri.isascii()
        and not set(uri) & set(" \\\"'<>[]{}|^`\t\n\r")
        and "/." not in uri
    )
