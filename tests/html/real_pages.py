"""Pages of real crawls."""

from collections.abc import Iterator
from pathlib import Path

import brotli
from warcio.archiveiterator import ArchiveIterator

from tests.real_data import DATA

WARCS = DATA / "warc"


def bodies(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield URL, media type and decoded body of each response."""
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            url = record.rec_headers.get_header("WARC-Target-URI") or ""
            if record.rec_type == "response" and url.startswith("http") and record.http_headers is not None:
                is_brotli = record.http_headers.get_header("Content-Encoding") == "br"
                raw = record.raw_stream.read() if is_brotli else b""  # warcio would need another package for Brotli
                body = brotli.decompress(raw) if is_brotli else record.content_stream().read()
                yield url, record.http_headers.get_header("Content-Type") or "", body


# Per file: the number of links to pages, to requisites, and to listings.
FILES = {
    "archive-org-2008.warc.gz": (21_269, 1_512, 10),
    "iana-2020.warc.gz": (1_865, 49, 0),
    "iana-2021.warc.gz": (1_892, 49, 0),
    "magazine.warc.gz": (7_400, 3_942, 53),
}
