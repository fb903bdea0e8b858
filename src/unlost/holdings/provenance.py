"""When and from what a map was made, as its header says it."""

import json
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from unlost import _core
from unlost.errors import DateError
from unlost.formats.ukvs import UkvsHeader

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
