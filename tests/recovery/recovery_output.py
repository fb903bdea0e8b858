"""Reads the output of a recovery: the summary, and the WARC files with warcio, which verifies every digest."""

import io
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from tests.recovery.archives import digest_of


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """A line of the summary; a missing resource has only a URL."""

    uri: str
    is_missing: bool
    mime: str = ""
    file: str = ""
    offset: int = 0
    archive: str = ""
    date: str = ""
    others: str = ""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A WARC record. body: for a revisit, that of its original. date: 14 digits."""

    uri: str
    date: str
    status: int
    body: bytes
    location: str | None
    headers: dict[str, str]


def summary(path: Path) -> list[SummaryLine]:
    """Return the lines of a summary."""
    return [_line(text) for text in path.read_text().splitlines()]


def _line(text: str) -> SummaryLine:
    fields = text.split("\t")
    assert fields[0][4] == "-", f"expected an ISO date first: {text!r}"
    if fields[2] == "MISSING":
        assert len(fields) == 3, f"expected time, URL and MISSING: {text!r}"
        return SummaryLine(fields[1], is_missing=True)
    _, uri, mime, place, archive, date, others = fields
    file, _, offset = place.removeprefix("warc/").rpartition(":")
    return SummaryLine(uri, False, mime, file, int(offset), archive, date, others)


def warc_files(folder: Path) -> list[Path]:
    """Return the WARC files of a recovery in order; the last one may be open."""
    return sorted((folder / "warc").glob("*.warc.gz*"))


def read_warcs(folder: Path, *, may_be_torn: bool = False) -> dict[tuple[str, int], StoredRecord]:
    """Return the captures in all WARC files by file and offset, and verify every record.

    Args:
        folder: The folder of the recovery.
        may_be_torn: Whether the last file may end with an incomplete record, or one without its metadata; these are
            not returned.
    """
    found: dict[tuple[str, int], StoredRecord] = {}
    bodies: dict[str, bytes] = {}
    for path in warc_files(folder):
        is_capture = False
        for offset, text in _members(path.read_bytes()):
            if text is None:
                assert may_be_torn, f"{path.name} is torn at {offset}"
                assert path == warc_files(folder)[-1], f"{path.name} is torn at {offset} and is not the last"
                break
            record = _record(text, bodies)
            is_capture = record is not None
            if record is not None:
                found[path.name.removesuffix(".open"), offset] = record
        if may_be_torn and is_capture:
            found.popitem()
    return found


def _members(data: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Yield offset and text of every gzip member; None for the text of an incomplete one.

    warcio would take an incomplete member for the end of the file.
    """
    offset = 0
    while offset < len(data):
        unpacking = zlib.decompressobj(31)
        try:
            text = unpacking.decompress(data[offset:])
        except zlib.error:
            unpacking, text = zlib.decompressobj(31), b""
        if not unpacking.eof:
            yield offset, None
            return
        yield offset, text
        offset = len(data) - len(unpacking.unused_data)


def _record(text: bytes, bodies: dict[str, bytes]) -> StoredRecord | None:
    """Return the capture in a record, if it is a response or revisit."""
    found: list[StoredRecord | None] = []
    for record in ArchiveIterator(io.BytesIO(text), check_digests="raise"):
        head, body = record.rec_headers, record.content_stream().read()
        found.append(None)
        if record.rec_type not in ("response", "revisit"):
            continue
        digest = head.get_header("WARC-Payload-Digest")
        if record.rec_type == "revisit":
            body = bodies[digest]
        else:
            assert digest == digest_of(body)
            bodies[digest] = body
        http = record.http_headers  # a revisit has them only if they differ
        found[-1] = StoredRecord(
            head.get_header("WARC-Target-URI"),
            "".join(filter(str.isdigit, head.get_header("WARC-Date")))[:14],
            int(http.get_statuscode()) if http else 200,
            body,
            http.get_header("Location") if http else None,
            {name.lower(): value for name, value in head.headers},
        )
    assert len(found) == 1, "expected one record in each gzip member"
    return found[0]


def listed_only(folder: Path) -> set[str]:
    """Return the names in the database that archives listed and that were not fetched."""
    with closing(sqlite3.connect(folder / "state.sqlite")) as state:
        return {name for (name,) in state.execute("SELECT name FROM resource WHERE standing = 'listed'")}
