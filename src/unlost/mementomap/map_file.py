"""The MementoMap file format: header, version, provenance, row size and expiring exclusions.

The header declares the size of the rows, so that a truncated map never denies pages: comparing it with the size of the
file does not require reading all rows, as a digest would. It also says when and from which inputs the map was built,
and names the rule set of its keys. Exclusions may expire: `com,a)/b 0 {"expires": "2026-12-31"}`.
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
"""Version 2 adds the build time, the inputs and the size of the rows to the header. The rows are as in version 1."""
_ROW_BYTES = re.compile(rb'(?<="' + ROW_BYTES_FIELD.encode() + rb'": ) *\d+(?=\}\n)')

DIGEST_END_BYTES = 1 << 20
"""Bytes at the beginning and at the end that the digest of a larger file covers.

Hashing all of a large index would take longer than building its map. With the size, both ends identify a file, even one
that was appended to."""
MAX_INPUT_DIGESTS = 100
"""Maximum number of inputs that are listed with their digests; more inputs have one combined digest."""
CaptureRange: TypeAlias = tuple[str, str]
"""Dates of the first and the last capture, 14 digits each."""
UNKNOWN_CAPTURE_RANGE: CaptureRange = ("00000101000000", "00000101000000")
"""Placeholder for a range that is not known yet, of the same length in a header."""

_EXPIRES = "expires"


def with_row_bytes(header: UkvsHeader) -> UkvsHeader:
    """Return a header of the current version with a placeholder for the size of the rows.

    `write_row_bytes` fills in the size.
    """
    return replace(header, meta={**header.meta, "version": FORMAT_VERSION, ROW_BYTES_FIELD: 0})


def without_row_bytes(header: UkvsHeader) -> UkvsHeader:
    """Return a header without the size of the rows."""
    return replace(header, meta={name: value for name, value in header.meta.items() if name != ROW_BYTES_FIELD})


@contextmanager
def atomic_map_file(output: str | PathLike[str]) -> Iterator[Path]:
    """Yield the path of an empty file for a map, which is renamed to `output` when the block succeeds.

    The map must begin with a header from `with_row_bytes`; the size of the rows is filled in at the end. If `output` is
    a pipe or a device, which cannot be overwritten, the map is written to a temporary file first. Raises OSError as
    `unlost.atomic.atomic_path` does.
    """
    with atomic_path(output) as path:
        if path.is_file():
            yield path
            write_row_bytes(path)
            return
        from tempfile import TemporaryDirectory  # noqa: PLC0415  start-up time

        with TemporaryDirectory(prefix="unlost-map-") as folder:
            temporary_path = Path(folder, "map.ukvs")
            temporary_path.touch()
            yield temporary_path
            write_row_bytes(temporary_path)
            with temporary_path.open("rb") as source, path.open("wb") as target:
                copyfileobj(source, target, 1 << 20)


def write_row_bytes(path: Path) -> None:
    """Write the size of the rows into the header of a map, in place."""
    with path.open("rb+") as file:
        header_size, position = 0, None
        for line in file:
            if not line.startswith(b"!"):
                break
            if match := _ROW_BYTES.search(line):
                position = header_size + match.start(), len(match[0])
            header_size += len(line)
        if position is None:
            raise ValueError("the header has no room for the size of the rows")
        start, width = position
        size = file.seek(0, 2) - header_size
        file.seek(start)
        file.write(f"{size:>{width}}".encode())


def refuse_unknown_version(header: UkvsHeader) -> None:
    """Raise InputError for a map of a later format version, whose rows may have another meaning."""
    version = header.meta.get("version")
    if header.meta.get("type", "MementoMap") == "MementoMap" and isinstance(version, int) and version > FORMAT_VERSION:
        raise InputError(
            f"version {version} of the map format, but this unlost reads up to {FORMAT_VERSION}: update unlost, or "
            "build the map with this one"
        )


def truncation_problem(header: UkvsHeader, source: _core.MapSource) -> str | None:
    """Return why a map seems truncated; None if it seems complete.

    The size of the rows of a compressed file is unknown until they are read.
    """
    declared = header.meta.get(ROW_BYTES_FIELD)
    if declared is not None:
        if not isinstance(declared, int) or declared < 0:
            return f"expected a number of bytes as `{ROW_BYTES_FIELD}` of the header, found {ascii(declared)[:40]}"
        actual = source.row_bytes
        return None if actual in (None, declared) else _core.wrong_row_bytes(declared, actual)
    if source.row_bytes == 0 and b"!meta" not in source.header:
        return "neither `!meta` nor rows: a truncated map, or none: copy or build the map again"
    if header.meta.get("version") == FORMAT_VERSION and not source.has_line_end:
        return "truncated: the last line has no end: copy or build the map again"
    return None


def refuse_truncated(header: UkvsHeader, source: _core.MapSource) -> None:
    """Raise InputError for a truncated map, which would deny the pages of its missing rows."""
    if problem := truncation_problem(header, source):
        raise InputError(problem)


def read_map_header(path: str | PathLike[str], *, is_whole: bool = True) -> UkvsHeader:
    """Return the header of a map (plain, gzip or zstd).

    Args:
        path: The map.
        is_whole: False for a part of a map with the header of the whole.

    Raises:
        InputError: The file cannot be read, is not a map judging by its first row, has an invalid header or another
            version, has no frequency right after the keys, or is truncated. Truncation of a compressed file is detected
            when its rows are read.
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
        fields = ascii(", ".join(header.values))[1:-1][:60]
        raise InputError(f"{name}: expected the frequency right behind the keys, found `{fields}` in its !fields")
    return header


def open_map_source(path: str | PathLike[str]) -> _core.MapSource:
    """Open a map. Raises InputError if it is a pipe, cannot be read, or is not a map."""
    name = fspath(path)
    require_rereadable(path)
    try:
        return _core.MapSource.load(name, MAX_LINE_BYTES)
    except OSError as error:
        raise unreadable_error(name, error) from error
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def refuse_bad_header(problems: Problems) -> None:
    """Raise InputError if a header line could not be parsed.

    The line may have named the rule set, or said that everything is rolled up. Without it, pages that are held would be
    denied.
    """
    if bad := problems.first.get("bad-header"):
        raise InputError(f"{bad}: mend the line, which may say how to read all others")


def header_rules(header: UkvsHeader) -> str:
    """Return the rule set of a map's keys: `wayback` if the header names none."""
    return str(header.meta.get("rules", DEFAULT_RULES))


def is_fully_rolled_up(header: UkvsHeader) -> bool:
    """Return whether the `*` row means that everything is held; otherwise it is only the total."""
    return header.meta.get("rolled_up") is True


def build_time() -> str:
    """Return the build time as 14 digits: SOURCE_DATE_EPOCH if it is set, else the current time. Raises DateError."""
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
    """Return a header with the build time (14 digits), the range of captures and the inputs, where they are known."""
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
    """Return when a map was last built or updated, as 14 digits; None if the header has no valid date."""
    return _parse_iso_date(header.meta.get("updated_at"))


def oldest_update_date(headers: Iterable[UkvsHeader], built_at: str | None = None) -> str | None:
    """Return the oldest of the dates of the maps and `built_at`; None if a map has no date."""
    map_dates = [map_update_date(header) for header in headers]
    valid_dates = [date for date in (*map_dates, built_at) if date is not None]
    return min(valid_dates) if valid_dates and None not in map_dates else None


def capture_range(headers: Iterable[UkvsHeader], captures: CaptureRange | None = None) -> CaptureRange | None:
    """Return the range of all captures; None if it is unknown for one of the maps."""
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
    """Return sizes and digests of the inputs that are files, in an order that does not depend on their names.

    Names are omitted: they say where a file was, not what it is.
    """
    digests = sorted((entry for path in paths if (entry := _input_digest(path))), key=json.dumps)
    if len(digests) <= MAX_INPUT_DIGESTS:
        return list(digests)
    combined = _core.sha256_hex("\n".join(map(json.dumps, digests)).encode())
    return {
        "files": len(digests),
        "bytes": sum(int(str(entry["bytes"])) for entry in digests),
        "sha256_of_digests": combined,
    }


def _input_digest(path: str | PathLike[str]) -> dict[str, object] | None:
    """Return the size and digest of a file; None for a pipe or an unreadable file, which is reported later."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return None
        with Path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0, os.SEEK_SET)
            if size <= 2 * DIGEST_END_BYTES:
                return {"bytes": size, "sha256": _core.sha256_hex(file.read(2 * DIGEST_END_BYTES))}
            sample = file.read(DIGEST_END_BYTES)
            file.seek(size - DIGEST_END_BYTES, os.SEEK_SET)
            return {"bytes": size, "sha256_of_ends": _core.sha256_hex(sample + file.read(DIGEST_END_BYTES))}
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


def row_expiry_date(row: UkvsRow) -> date | None:
    """Return the day on which an exclusion expires; None for other rows, and for exclusions without an expiry date."""
    is_exclusion = row.frequency is not None and row.frequency.is_exclusion
    return _parse_expiry_date(row.attributes) if is_exclusion else None


def line_expiry_date(line: bytes) -> date | None:
    """Return the result of `row_expiry_date` for a line of a map with one key field.

    >>> line_expiry_date(b'com,a)/b 0 {"expires": "2026-12-31"}')
    datetime.date(2026, 12, 31)
    """
    # Fast path: a map may have millions of rows, and few of them expire.
    if _EXPIRES.encode() not in line:
        return None
    fields, brace, attributes = line.partition(b" {")
    try:
        is_exclusion = Frequency.parse(fields.split()[1].decode()).is_exclusion
        return _parse_expiry_date(parse_lenient_json((brace + attributes).decode())) if is_exclusion else None
    except (IndexError, InputError, ValueError, RecursionError):
        return None


def format_exclusion(key: bytes, expires: date) -> bytes:
    """Return a row, with its line end, that excludes a key until a date.

    The bytes matter: the merge in the Rust core recognizes the object by them, and uses the earliest of several dates.
    """
    return b'%b 0 {"%b": "%b"}\n' % (key, _EXPIRES.encode(), expires.isoformat().encode())


def _parse_expiry_date(attributes: object) -> date | None:
    value = attributes.get(_EXPIRES) if isinstance(attributes, Mapping) else None
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
