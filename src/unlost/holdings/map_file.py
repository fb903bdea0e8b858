"""The file of a map: its format version, and the size of its rows, by which a truncated map is recognized."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from shutil import copyfileobj

from unlost import _core
from unlost.errors import InputError
from unlost.formats.output import atomic_path
from unlost.formats.ukvs import ROW_BYTES_FIELD, UkvsHeader

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
    as `unlost.formats.output.whole_path` does.
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
