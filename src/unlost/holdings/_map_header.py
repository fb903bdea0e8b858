"""The header of a map whose rows the core is about to read, from the beginning."""

from io import BytesIO
from os import PathLike, fspath

from unlost import _core
from unlost.errors import InputError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.problems import Problems
from unlost.formats.ukvs import UkvsHeader, UkvsReader
from unlost.formats.unread import require_rereadable, unreadable_error
from unlost.holdings.map_file import refuse_truncated, refuse_unknown_version
from unlost.uri import DEFAULT_RULES


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
