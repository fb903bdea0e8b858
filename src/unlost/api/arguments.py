"""Arguments of the Python API: archives and dates as callers pass them. Warnings go to the logger `unlost`."""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

from unlost import dates
from unlost.errors import UsageError
from unlost.registry.loader import load_registry, with_default_listing
from unlost.registry.models import Archive

_LOG = logging.getLogger("unlost")
_LOG.addHandler(logging.NullHandler())  # without a handler, Python would print warnings to stderr


def log_info(message: str) -> None:
    """Log normal operation."""
    _LOG.info("%s", message)


def log_warning(message: str) -> None:
    """Log a problem that needs attention."""
    _LOG.warning("%s", message)


DateLike: TypeAlias = datetime | date | str
"""A datetime (UTC if it has no time zone), a date, or text: `2014`, `2014-02-10`, `20140210000001`."""


def parse_date(when: DateLike) -> str:
    """Return a date as digits: 14 for a datetime, 8 for a date, as many as given for text. Raises DateError.

    >>> parse_date("2014"), parse_date(date(2014, 2, 10)), parse_date(datetime(2014, 2, 10, 0, 0, 1))
    ('2014', '20140210', '20140210000001')
    """
    if isinstance(when, datetime):
        return dates.from_datetime(when if when.tzinfo else when.replace(tzinfo=UTC))
    if isinstance(when, date):
        return f"{when.year:04d}{when:%m%d}"
    digits = when.replace("-", "")
    if digits.isdecimal():
        dates.pad(digits)  # raises DateError for an invalid date
        return digits
    return dates.from_user_input(when)


ArchiveSelection: TypeAlias = str | PathLike[str] | Iterable[Archive] | None
"""Archives to use: None for the built-in registry, the path of a registry file, or archives."""


def select_archives(
    archives: ArchiveSelection, only: Collection[str] = (), maps: Mapping[str, str | PathLike[str]] | None = None
) -> dict[str, Archive]:
    """Return the archives to query, by ID, each with its map.

    Args:
        archives: The available archives.
        only: IDs of the archives to use, including disabled ones; empty for all enabled archives.
        maps: MementoMap files by archive ID.

    Raises:
        UsageError: An ID is unknown, or no archive is left.
        InputError: The registry cannot be read.
    """
    if isinstance(only, str):
        raise UsageError(f"only: expected a list of ids, such as ['{only[:40]}'], found a text")
    selected = {each.id: with_default_listing(each) for each in _registered_archives(archives, only)}
    if not selected:
        raise UsageError("no archive to ask: give some, or name some by `only`")
    for name, file in (maps or {}).items():
        if name not in selected:
            raise UsageError(f"maps: no archive `{name[:100]}`: there are {', '.join(selected)}")
        selected[name] = replace(selected[name], mementomap=fspath(file))
    return selected


def _registered_archives(archives: ArchiveSelection, only: Collection[str]) -> Iterable[Archive]:
    if archives is not None and not isinstance(archives, str | PathLike):
        given = list(archives)
        for each in given:
            if not isinstance(each, Archive):
                raise UsageError(f"archives: expected archives, found {str(each)[:40]!r}: name them by `only`")
        known = {each.id: each for each in given}
        missing = [name for name in only if name not in known]
        if missing:
            raise UsageError(f"no archive `{missing[0][:100]}`: there are {', '.join(known)}")
        return [replace(each, enabled=True) for name, each in known.items() if not only or name in only]
    registry = load_registry(None if archives is None else Path(archives))
    for note in registry.notes:
        log_warning(note)
    return [replace(each, enabled=True) for each in registry.only(only)]
