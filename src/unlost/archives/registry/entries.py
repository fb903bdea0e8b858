"""Entries of a registry: from tables to archives, with every field checked."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unlost.archives.archive import Archive, Figure, Kind, Limit, Lister, Work
from unlost.archives.registry.fields import Fields
from unlost.errors import InputError

LOCAL = frozenset({Kind.FILES, Kind.HAR, Kind.CHROMIUM, Kind.FIREFOX})
"""The kinds of archives that are folders on this machine."""

MATCHES = ("exact", "prefix", "host", "domain")

_DEFAULT = "our own choice for an entry without `lister`"
_WAYBACK_ROWS = Figure(
    150_000, f"{_DEFAULT}: the documented maximum of a Wayback CDX query; a resume key gets the rest"
)
_PYWB_ROWS = Figure(1_000_000, f"{_DEFAULT}: pywb has no second page, and a longer response is not read")
_LISTERS = {
    Kind.WAYBACK: Lister(MATCHES, _WAYBACK_ROWS),
    Kind.PYWB: Lister(MATCHES, _PYWB_ROWS),
    Kind.MEMENTO: Lister(MATCHES, _PYWB_ROWS),
    Kind.COMMON_CRAWL: Lister(MATCHES, Figure(15_000, f"{_DEFAULT}: the page of Common Crawl's index server")),
}

_NEEDED = {
    Kind.WAYBACK: ("cdx", "replay"),
    Kind.PYWB: ("cdx", "replay"),
    Kind.MEMENTO: ("timemap", "timegate"),
    Kind.COMMON_CRAWL: ("cdx", "replay"),
    Kind.ARCHIVE_TODAY: ("timemap",),
} | dict.fromkeys(LOCAL, ("folder",))
_OF_THE_NETWORK = ("timemap", "timegate", "cdx", "replay", "search", "limits", "quotas")
_BY_PAGE = ("{datetime}", "{uri}")
_BY_FILE = ("{filename}",)  # Common Crawl's copies are parts of files, which its index names
_DAY = 86_400
_MANY = 10**9  # of anything that is counted here: nobody has more


def read_entry(fields: Fields, folder: Path) -> dict[str, Any]:
    """Return what an entry says, as fields of an `Archive`; what it does not say is not there. Raises InputError.

    folder: of the registry's file, from which its relative paths lead.
    """
    fields.know(tuple(_READERS))
    return {"id": fields.id()} | {name: _READERS[name](fields, name, folder) for name in fields.names()}


def finish(read: dict[str, Any], place: str, default_limits: Sequence[Limit]) -> Archive:
    """Return the archive that an entry describes, with limits for every kind of request. Raises InputError.

    An entry with a CDX URL and without `lister` gets the default lister of its kind.
    An entry without `limits` gets the default ones; one with some gets them for the kinds of questions that its own
    do not cover; one whose list is empty has none, which is for servers of one's own.
    """
    for name in ("name", "kind"):
        if name not in read:
            raise InputError(f"{place}: {name}: missing")
    kind: Kind = read["kind"]
    missing = [name for name in _NEEDED[kind] if name not in read]
    if missing and not (kind is Kind.MEMENTO and len(missing) == 1):  # either is enough
        alternative = ", or a timegate" if kind is Kind.MEMENTO else ""
        raise InputError(f"{place}: {missing[0]}: missing: an archive of the kind {kind} needs it{alternative}")
    for name in _OF_THE_NETWORK if kind in LOCAL else ("folder",):
        if name in read:
            raise InputError(f"{place}: {name}: an archive of the kind {kind} has none")
    parts = _BY_FILE if kind is Kind.COMMON_CRAWL else _BY_PAGE
    if any(part not in read.get("replay", " ".join(parts)) for part in parts):
        raise InputError(f"{place}: replay: expected {' and '.join(parts)} in it, for an archive of the kind {kind}")
    both = set(read.get("canonical", ())) & set(read.get("migrated", ()))
    if both:
        raise InputError(f"{place}: migrated: `{min(both)}` is canonical, too: expected one or the other")
    archive = with_default_lister(Archive(**read))
    if kind in LOCAL or read.get("limits") == ():
        return archive
    return replace(archive, limits=(*archive.limits, *_for_the_rest(archive, default_limits)))


def with_default_lister(archive: Archive) -> Archive:
    """Return the archive with a lister: an archive with a CDX URL lists captures unless its entry limits that."""
    if archive.cdx is None or archive.lister is not None:
        return archive
    return replace(archive, lister=_LISTERS.get(archive.kind))


def _for_the_rest(archive: Archive, default_limits: Sequence[Limit]) -> list[Limit]:
    """Return the default limits, each for what the archive can be asked and no limit of its own is for."""
    covered = {work for limit in archive.limits for work in limit.works}
    if archive.search is None:
        covered.add(Work.SEARCH)
    rest = [(limit, tuple(work for work in limit.works if work not in covered)) for limit in default_limits]
    return [replace(limit, works=works) for limit, works in rest if works]


def read_limit(fields: Fields) -> Limit:
    """Return a rate. Raises InputError."""
    fields.know(("requests", "seconds", "works", "source"))
    return Limit(
        fields.whole("requests", 1, _MANY), fields.number("seconds", 0.001, 366 * _DAY), _works(fields), _source(fields)
    )


def _read_quota(fields: Fields) -> Limit:
    fields.know(("requests", "works", "source"))
    return Limit(fields.whole("requests", 1, _MANY), _DAY, _works(fields), _source(fields))


def _works(fields: Fields) -> tuple[Work, ...]:
    return tuple(Work(each) for each in fields.choices("works", tuple(Work)))


def _read_lister(fields: Fields) -> Lister:
    fields.know(("matches", "rows_per_page", "cap"))
    matches = fields.choices("matches", MATCHES)
    rows = _read_figure(fields.inner("rows_per_page"))
    return Lister(matches, rows, _read_figure(fields.inner("cap")) if "cap" in fields else None)


def _read_figure(fields: Fields, *, share: bool = False) -> Figure:
    """Return a count, or a share between 0 and 1, with its source."""
    fields.know(("value", "source"))
    value = fields.number("value", 0, 1) if share else fields.whole("value", 1, _MANY)
    return Figure(float(value), _source(fields))


def _source(fields: Fields) -> str:
    return fields.text("source", "where the number is from, in words")


def _read_replay(fields: Fields, name: str, _: Path) -> str:
    is_by_file = _BY_FILE[0] in str(fields.value(name))
    return fields.address(name, _BY_FILE if is_by_file else _BY_PAGE)


def _address(fields: Fields, name: str, _: Path) -> str:
    return fields.address(name)


def _media_types(fields: Fields, name: str, _: Path) -> tuple[str, ...]:
    return fields.media_types(name)


def _flag(fields: Fields, name: str, _: Path) -> bool:
    return fields.flag(name)


_READERS: dict[str, Callable[[Fields, str, Path], object]] = {
    "id": lambda fields, name, _: fields.id(name),
    "name": lambda fields, name, _: fields.text(name),
    "kind": lambda fields, name, _: Kind(fields.choice(name, tuple(kind for kind in Kind if kind is not Kind.LIVE))),
    "timemap": _address,
    "timegate": _address,
    "cdx": _address,
    "replay": _read_replay,
    "search": lambda fields, name, _: fields.address(name, ("{terms}",)),
    "folder": lambda fields, name, folder: fields.path(name, folder),
    "deep": _flag,
    "canonical": _media_types,
    "migrated": _media_types,
    "lister": lambda fields, name, _: _read_lister(fields.inner(name)),
    "limits": lambda fields, name, _: tuple(read_limit(each) for each in fields.tables(name)),
    "quotas": lambda fields, name, _: tuple(_read_quota(each) for each in fields.tables(name)),
    "mementomap": lambda fields, name, folder: fields.path_or_address(name, folder),
    "filters": lambda fields, name, folder: fields.paths_or_addresses(name, folder),
    "hit_rate": lambda fields, name, _: _read_figure(fields.inner(name), share=True),
    "page_bytes": lambda fields, name, _: _read_figure(fields.inner(name)),
    "enabled": _flag,
}
"""How each field of an `Archive` is read."""
