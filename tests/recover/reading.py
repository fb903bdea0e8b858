"""Reads what a recovery left: its summary, and its WARCs by warcio, which checks every digest."""

import base64
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the summary; of what is missing there is only the address."""

    uri: str
    is_missing: bool
    mime: str = ""
    file: str = ""
    offset: int = 0
    archive: str = ""
    date: str = ""
    others: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """A record of a WARC. body: of a revisit, that of the record with the same digest; date: 14 digits."""

    uri: str
    date: str
    status: int
    body: bytes
    location: str | None
    headers: dict[str, str]


def summary(path: Path) -> list[Line]:
    """Return the lines of a summary."""
    return [_line(text) for text in path.read_text().splitlines()]


def _line(text: str) -> Line:
    fields = text.split("\t")
    assert fields[0][4] == "-", f"expected an ISO date first: {text!r}"
    if fields[2] == "MISSING":
        assert len(fields) == 3, f"expected time, address and MISSING: {text!r}"
        return Line(fields[1], is_missing=True)
    _, uri, mime, place, archive, date, others = fields
    file, _, offset = place.rpartition(":")
    return Line(uri, False, mime, file, int(offset), archive, date, others)


def files(folder: Path) -> list[Path]:
    """Return the WARCs of a recovery, in order; the last one may be open."""
    return sorted((folder / "warc").glob("*.warc.gz*"))


def kept(folder: Path, *, may_be_torn: bool = False) -> dict[tuple[str, int], Kept]:
    """Return the records of all WARCs by file and offset, and check each of them.

    may_be_torn: whether the last file may end in the middle of a record, which then does not count; nor does a copy
        behind which its provenance is missing.
    """
    found: dict[tuple[str, int], Kept] = {}
    bodies: dict[str, bytes] = {}
    for path in files(folder):
        try:
            for offset, record in _records(path, bodies):
                if record is not None:
                    found[path.name.removesuffix(".open"), offset] = record
                last = record is not None
        except (ArchiveLoadFailed, EOFError, OSError):
            if not may_be_torn or path != files(folder)[-1]:
                raise
            last = bool(found)
        if may_be_torn and found and last:
            found.popitem()
    return found


def _records(path: Path, bodies: dict[str, bytes]) -> Iterator[tuple[int, Kept | None]]:
    """Yield the offset of every record, and what is kept in it if it is a copy."""
    with io.BytesIO(path.read_bytes()) as file:
        records = ArchiveIterator(file, check_digests="raise")
        for record in records:
            offset, head = records.get_record_offset(), record.rec_headers
            if record.rec_type not in ("response", "revisit"):
                record.content_stream().read()
                yield offset, None
                continue
            digest, body = head.get_header("WARC-Payload-Digest"), record.content_stream().read()
            if record.rec_type == "revisit":
                body = bodies[digest]
            else:
                assert digest == "sha1:" + base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()
                bodies[digest] = body
            http = record.http_headers
            yield offset, Kept(
                head.get_header("WARC-Target-URI"),
                "".join(filter(str.isdigit, head.get_header("WARC-Date")))[:14],
                int(http.get_statuscode()),
                body,
                http.get_header("Location"),
                {name.lower(): value for name, value in head.headers},
            )


def listed_only(folder: Path) -> set[str]:
    """Return the names that archives listed and that were not fetched, as the state of a recovery has them."""
    # TODO(lead): read them from the state, once it is known which table they are in.
    raise NotImplementedError(folder)
