"""Which archives are asked: those that are shipped, those of a file, or just these."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

from unlost.api.messages import log_warning
from unlost.archives.archive import Archive
from unlost.archives.registry.entries import with_default_listing
from unlost.archives.registry.registry import load_registry
from unlost.errors import UsageError

ArchiveSelection: TypeAlias = str | PathLike[str] | Iterable[Archive] | None
"""Which archives there are: None for the registry that is shipped, the path of a registry, or archives themselves."""


def select_archives(
    archives: ArchiveSelection, only: Collection[str] = (), maps: Mapping[str, str | PathLike[str]] | None = None
) -> dict[str, Archive]:
    """Return the archives to ask, by id, each with its map.

    only: the ids of the only ones to ask, also if they are off. Raises UsageError for an id that is not there, and if
    no archive is left; InputError for a registry that cannot be read.
    """
    if isinstance(only, str):
        raise UsageError(f"only: expected a list of ids, such as ['{only[:40]}'], found a text")
    found = {each.id: with_default_listing(each) for each in _registered_archives(archives, only)}
    if not found:
        raise UsageError("no archive to ask: give some, or name some by `only`")
    for name, file in (maps or {}).items():
        if name not in found:
            raise UsageError(f"maps: no archive `{name[:100]}`: there are {', '.join(found)}")
        found[name] = replace(found[name], mementomap=fspath(file))
    return found


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
