"""Pages of real crawls."""

from collections.abc import Iterator
from pathlib import Path

import brotli
from warcio.archiveiterator import ArchiveIterator

from tests.real_data import DATA

WARCS = DATA / "warc"


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
