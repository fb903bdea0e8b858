"""The MementoMap file format: header, version, provenance, row size and expiring exclusions.

A header declares the size of the rows, by which a truncated map is detected, when and from which inputs the map was
built,
and the rule set of its keys. Exclusions may end: `com,a)/b 0 {"expires": "2026-12-31"}`.
"""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from shutil import copyfileobj
from typing import TypeAlias

from unlost import _core
from unlost.atomic import atomic_path
from unlost.errors import DateError, InputError
from unlost.index.ukvs import ROW_BYTES_FIELD, Frequency, UkvsHeader, UkvsReader, UkvsRow, parse_lenient_json
from unlost.problems import Problems, require_rereadable, unreadable_error
from unlost.text_lines import MAX_LINE_BYTES
from unlost.uri import DEFAULT_RULES

FORMAT_VERSION = 2
"""Version 2 adds to the header when and from what a map was made, and the size of its rows. Rows have not changed."""
_ROW_BYTES = re.compile(rb'(?<="' + ROW_BYTES_FIELD.encode() + rb'": ) *\d+(?=\}\n)')


def with_row_bytes(header: UkvsHeader) -> UkvsHeader:
    """Return a header of this version that has room for the size of the rows, which `map_file` fills in."""
    return replace(header, meta={**header.meta, "version": FORMAT_VERSION, ROW_BYTES_FIELD: 0})


def without_row_bytes(header: UkvsHeader) -> UkvsHeader:
    """Return a header that does not declare the size of the rows."""
    return replace(header, meta={name: value for name, value in header.meta.items() if name != ROW_BYTES_FIELD})


@contextmanager
def atomic_map_file(output: str | PathLike[str]) -> Iterator[Path]:
    """Give the path of an empty file to write a map to, which gets its name only when the block ends well.

    The file must begin with the lines of a header made by `with_row_bytes`. At the end the size of the rows is written
    into it. A pipe or a device, in which nothing can be overwritten, gets the map from a temporary file. Raises OSError
    as `unlost.atomic.whole_path` does.
    """
    with atomic_path(output) as aside:
        if aside.is_file():
            yield aside
            write_row_bytes(aside)
            return
        from tempfile import TemporaryDirectory  # noqa: PLC0415  start-up

        with TemporaryDirectory(prefix="unlost-map-") as folder:
            made = Path(folder, "map.ukvs")
            made.touch()
            yield made
            write_row_bytes(made)
            with made.open("rb") as source, aside.open("wb") as target:
                copyfileobj(source, target, 1 << 20)


def write_row_bytes(path: Path) -> None:
    """Write the size of the rows of a map into its header, in place."""
    with path.open("rb+") as file:
        header_size, place = 0, None
        for line in file:
            if not line.startswith(b"!"):
                break
            if found := _ROW_BYTES.search(line):
                place = header_size + found.start(), len(found[0])
            header_size += len(line)
        if place is None:
            raise ValueError("the header has no room for the size of the rows")
        start, width = place
        size = file.seek(0, 2) - header_size
        file.seek(start)
        file.write(f"{size:>{width}}".encode())


def refuse_unknown_version(header: UkvsHeader) -> None:
    """Raise InputError for a map whose header names a later version of the format: its rows may mean something else."""
    version = header.meta.get("version")
    if header.meta.get("type", "MementoMap") == "MementoMap" and isinstance(version, int) and version > FORMAT_VERSION:
        raise InputError(
            f"version {version} of the map format, but this unlost reads up to {FORMAT_VERSION}: update unlost, or "
            "build the map with this one"
        )


def truncation_problem(header: UkvsHeader, source: _core.MapSource) -> str | None:
    """Return why the rows of a map are not those that its header was written for; None if there is no sign of it.

    The rows of a compressed file are counted when they are read.
    """
    declared = header.meta.get(ROW_BYTES_FIELD)
    if declared is not None:
        if not isinstance(declared, int) or declared < 0:
            return f"expected a number of bytes as `{ROW_BYTES_FIELD}` of the header, found {ascii(declared)[:40]}"
        found = source.row_bytes
        return None if found in (None, declared) else _core.wrong_row_bytes(declared, found)
    if source.row_bytes == 0 and b"!meta" not in source.header:
        return "neither `!meta` nor rows: a truncated map, or none: copy or build the map again"
    if header.meta.get("version") == FORMAT_VERSION and not source.has_line_end:
        return "truncated: the last line has no end: copy or build the map again"
    return None


def refuse_truncated(header: UkvsHeader, source: _core.MapSource) -> None:
    """Raise InputError for a map that is truncated: the pages that it lost would not be held."""
    if problem := truncation_problem(header, source):
        raise InputError(problem)


def read_map_header(path: str | PathLike[str], *, is_whole: bool = True) -> UkvsHeader:
    """Return what stands above the rows of a map, plain, gzip or zstd.

    is_whole: False for a piece of a map, which has the header of the whole.

    Raises InputError if the file cannot be read, is no map as far as its first row tells, has a header that cannot be
    read, something else than a frequency behind its keys or another version of the format, or is truncated. Whether a
    compressed file is, is seen when its rows are read.
    """
    name = fspath(path)
    source = open_map_source(path)
    problems = Problems()
    header = UkvsReader(BytesIO(source.header), problems, name).header
    refuse_bad_header(problems)
    try:
        refuse_unknown_version(header)
        if is_whole:
            refuse_truncated(header, source)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    if header.values[:1] != ("frequency",):
        found = ascii(", ".join(header.values))[1:-1][:60]
        raise InputError(f"{name}: expected the frequency right behind the keys, found `{found}` in its !fields")
    return header


def open_map_source(path: str | PathLike[str]) -> _core.MapSource:
    """Return a map whose header is read. Raises InputError if the file is a pipe, cannot be read, or is not a map."""
    name = fspath(path)
    require_rereadable(path)
    try:
        return _core.MapSource.load(name, MAX_LINE_BYTES)
    except OSError as error:
        raise unreadable_error(name, error) from error
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def refuse_bad_header(problems: Problems) -> None:
    """Raise InputError if a line of a map's header could not be read.

    By which rules its keys were made, or whether all was rolled up, may be what it said: pages that are held would be
    denied.
    """
    if bad := problems.first.get("bad-header"):
        raise InputError(f"{bad}: mend the line, which may say how to read all others")


def header_rules(header: UkvsHeader) -> str:
    """Return the rule set by which a map's keys were made: `wayback` if its header names none."""
    return str(header.meta.get("rules", DEFAULT_RULES))


def is_fully_rolled_up(header: UkvsHeader) -> bool:
    """Return whether everything is held, by the `*` row that is otherwise only the total."""
    return header.meta.get("rolled_up") is True


DIGEST_END_BYTES = 1 << 20
"""How many bytes of the beginning and of the end the digest of a large file covers."""
MAX_INPUT_DIGESTS = 100
"""The most inputs that have digests of their own. More have one digest of all."""
CaptureRange: TypeAlias = tuple[str, str]
"""The dates of the first and the last capture, 14 digits each."""
UNKNOWN_CAPTURE_RANGE: CaptureRange = ("00000101000000", "00000101000000")
"""A placeholder that takes as many bytes in a header as any other range."""


def build_time() -> str:
    """Return what the variable SOURCE_DATE_EPOCH says, else the time, as 14 digits. Raises DateError."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch:
        from unlost.dates import from_epoch  # noqa: PLC0415  start-up

        return from_epoch(epoch)
    return datetime.now(UTC).strftime("%Y%m%d%H%M%S")


def add_provenance(
    header: UkvsHeader,
    updated_at: str | None,
    captures: CaptureRange | None,
    inputs: "Sequence[object] | dict[str, object]",
) -> UkvsHeader:
    """Return a header that says when its map was made, 14 digits, and from what, as far as that is known."""
    meta = {
        **header.meta,
        **({"updated_at": _format_iso_date(updated_at)} if updated_at else {}),
        **(
            {"captures": {"first": _format_iso_date(captures[0]), "last": _format_iso_date(captures[1])}}
            if captures
            else {}
        ),
        **({"inputs": inputs} if inputs else {}),
    }
    return replace(header, meta=meta)


def map_update_date(header: UkvsHeader) -> str | None:
    """Return when a map was made, or updated last, as 14 digits; None if its header does not say, or not as a date."""
    return _parse_iso_date(header.meta.get("updated_at"))


def oldest_update_date(headers: Iterable[UkvsHeader], built_at: str | None = None) -> str | None:
    """Return the oldest date of maps, and of what is made of them now; None if one of them has none."""
    found = [map_update_date(header) for header in headers]
    known = [date for date in (*found, built_at) if date is not None]
    return min(known) if known and None not in found else None


def capture_range(headers: Iterable[UkvsHeader], captures: CaptureRange | None = None) -> CaptureRange | None:
    """Return the range of the captures of maps, and of others; None if it is not known of one of the maps."""
    ranges = [captures] if captures else []
    for header in headers:
        value = header.meta.get("captures")
        first, last = (
            _parse_iso_date(value.get(name)) if isinstance(value, dict) else None for name in ("first", "last")
        )
        if first is None or last is None:
            return None
        ranges.append((first, last))
    return (min(first for first, _ in ranges), max(last for _, last in ranges)) if ranges else None


def input_digests(paths: Iterable[str | PathLike[str]]) -> list[object] | dict[str, object]:
    """Return the sizes and digests of the inputs that are files, in an order that does not depend on their names."""
    found = sorted((entry for path in paths if (entry := _input_digest(path))), key=json.dumps)
    if len(found) <= MAX_INPUT_DIGESTS:
        return list(found)
    every = _core.sha256_hex("\n".join(map(json.dumps, found)).encode())
    return {"files": len(found), "bytes": sum(int(str(entry["bytes"])) for entry in found), "sha256_of_digests": every}


def _input_digest(path: str | PathLike[str]) -> dict[str, object] | None:
    """Return a file's size and digest; nothing for a pipe, or for what cannot be read, which counting reports."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return None
        with Path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0, os.SEEK_SET)
            if size <= 2 * DIGEST_END_BYTES:
                return {"bytes": size, "sha256": _core.sha256_hex(file.read(2 * DIGEST_END_BYTES))}
            ends = file.read(DIGEST_END_BYTES)
            file.seek(size - DIGEST_END_BYTES, os.SEEK_SET)
            return {"bytes": size, "sha256_of_ends": _core.sha256_hex(ends + file.read(DIGEST_END_BYTES))}
    except OSError:
        return None


def _format_iso_date(digits: str) -> str:
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T{digits[8:10]}:{digits[10:12]}:{digits[12:14]}Z"


def _parse_iso_date(value: object) -> str | None:
    from unlost.dates import from_iso  # noqa: PLC0415  start-up

    try:
        return from_iso(value) if isinstance(value, str) else None
    except DateError:
        return None


_EXPIRES = "expires"


def row_expiry_date(row: UkvsRow) -> date | None:
    """Return the day on which an exclusion ends; None for what is none, or never does."""
    is_exclusion = row.frequency is not None and row.frequency.is_exclusion
    return _parse_expiry_date(row.attributes) if is_exclusion else None


def line_expiry_date(line: bytes) -> date | None:
    """Return the same for a row of a map of one key field, as it stands.

    >>> line_expiry_date(b'com,a)/b 0 {"expires": "2026-12-31"}')
    datetime.date(2026, 12, 31)
    """
    # Most rows end here: a map may have millions, and few of them expire.
    if _EXPIRES.encode() not in line:
        return None
    fields, brace, attributes = line.partition(b" {")
    try:
        is_exclusion = Frequency.parse(fields.split()[1].decode()).is_exclusion
        return _parse_expiry_date(parse_lenient_json((brace + attributes).decode())) if is_exclusion else None
    except (IndexError, InputError, ValueError, RecursionError):
        return None


def format_exclusion(key: bytes, expires: date) -> bytes:
    """Return a row, with its end, that excludes a key for a time.

    `unlost map merge` knows the object by its first bytes, and keeps the earliest of several.
    """
    return b'%b 0 {"%b": "%b"}\n' % (key, _EXPIRES.encode(), expires.isoformat().encode())


def _parse_expiry_date(attributes: object) -> date | None:
    value = attributes.get(_EXPIRES) if isinstance(attributes, Mapping) else None
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
