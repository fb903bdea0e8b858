"""Entries of a registry: from tables to archives, with every field checked."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unlost.archives.archive import Archive, SourcedNumber, ArchiveKind, RateLimit, PrefixListing, RequestKind
from unlost.archives.registry.fields import FieldReader
from unlost.errors import InputError

LOCAL_KINDS = frozenset({ArchiveKind.FILES, ArchiveKind.HAR, ArchiveKind.CHROMIUM, ArchiveKind.FIREFOX})
"""The kinds of archives that are folders on this machine."""

MATCH_TYPES = ("exact", "prefix", "host", "domain")

_DEFAULT_SOURCE = "our own choice for an entry without `lister`"
_WAYBACK_ROWS = SourcedNumber(
    150_000, f"{_DEFAULT_SOURCE}: the documented maximum of a Wayback CDX query; a resume key gets the rest"
)
_PYWB_ROWS = SourcedNumber(1_000_000, f"{_DEFAULT_SOURCE}: pywb has no second page, and a longer response is not read")
_DEFAULT_LISTINGS = {
    ArchiveKind.WAYBACK: PrefixListing(MATCH_TYPES, _WAYBACK_ROWS),
    ArchiveKind.PYWB: PrefixListing(MATCH_TYPES, _PYWB_ROWS),
    ArchiveKind.MEMENTO: PrefixListing(MATCH_TYPES, _PYWB_ROWS),
    ArchiveKind.COMMON_CRAWL: PrefixListing(
        MATCH_TYPES, SourcedNumber(15_000, f"{_DEFAULT_SOURCE}: the page of Common Crawl's index server")
    ),
}

_REQUIRED_FIELDS = {
    ArchiveKind.WAYBACK: ("cdx", "replay"),
    ArchiveKind.PYWB: ("cdx", "replay"),
    ArchiveKind.MEMENTO: ("timemap", "timegate"),
    ArchiveKind.COMMON_CRAWL: ("cdx", "replay"),
    ArchiveKind.ARCHIVE_TODAY: ("timemap",),
} | dict.fromkeys(LOCAL_KINDS, ("folder",))
_REMOTE_FIELDS = ("timemap", "timegate", "cdx", "replay", "search", "limits", "quotas")
_PAGE_PLACEHOLDERS = ("{datetime}", "{uri}")
_FILE_PLACEHOLDERS = ("{filename}",)  # Common Crawl's copies are parts of files, which its index names
_DAY = 86_400
_MAX_COUNT = 10**9  # of anything that is counted here: nobody has more


def parse_entry(fields: FieldReader, folder: Path) -> dict[str, Any]:
    """Return what an entry says, as fields of an `Archive`; what it does not say is not there. Raises InputError.

    folder: of the registry's file, from which its relative paths lead.
    """
    fields.reject_unknown(tuple(_FIELD_PARSERS))
    return {"id": fields.id()} | {name: _FIELD_PARSERS[name](fields, name, folder) for name in fields.names()}


def build_archive(read: dict[str, Any], place: str, default_limits: Sequence[RateLimit]) -> Archive:
    """Return the archive that an entry describes, with limits for every kind of request. Raises InputError.

    An entry with a CDX URL and without `lister` gets the default lister of its kind.
    An entry without `limits` gets the default ones; one with some gets them for the kinds of questions that its own
    do not cover; one whose list is empty has none, which is for servers of one's own.
    """
    for name in ("name", "kind"):
        if name not in read:
            raise InputError(f"{place}: {name}: missing")
    kind: ArchiveKind = read["kind"]
    missing = [name for name in _REQUIRED_FIELDS[kind] if name not in read]
    if missing and not (kind is ArchiveKind.MEMENTO and len(missing) == 1):  # either is enough
        alternative = ", or a timegate" if kind is ArchiveKind.MEMENTO else ""
        raise InputError(f"{place}: {missing[0]}: missing: an archive of the kind {kind} needs it{alternative}")
    for name in _REMOTE_FIELDS if kind in LOCAL_KINDS else ("folder",):
        if name in read:
            raise InputError(f"{place}: {name}: an archive of the kind {kind} has none")
    parts = _FILE_PLACEHOLDERS if kind is ArchiveKind.COMMON_CRAWL else _PAGE_PLACEHOLDERS
    if any(part not in read.get("replay", " ".join(parts)) for part in parts):
        raise InputError(f"{place}: replay: expected {' and '.join(parts)} in it, for an archive of the kind {kind}")
    both = set(read.get("canonical", ())) & set(read.get("migrated", ()))
    if both:
        raise InputError(f"{place}: migrated: `{min(both)}` is canonical, too: expected one or the other")
    archive = with_default_listing(Archive(**read))
    if kind in LOCAL_KINDS or read.get("limits") == ():
        return archive
    return replace(archive, limits=(*archive.limits, *_limits_for_uncovered_kinds(archive, default_limits)))


def with_default_listing(archive: Archive) -> Archive:
    """Return the archive with a lister: an archive with a CDX URL lists captures unless its entry limits that."""
    if archive.cdx is None or archive.lister is not None:
        return archive
    return replace(archive, lister=_DEFAULT_LISTINGS.get(archive.kind))


def _limits_for_uncovered_kinds(archive: Archive, default_limits: Sequence[RateLimit]) -> list[RateLimit]:
    """Return the default limits, each for what the archive can be asked and no limit of its own is for."""
    covered = {work for limit in archive.limits for work in limit.works}
    if archive.search is None:
        covered.add(RequestKind.SEARCH)
    rest = [(limit, tuple(work for work in limit.works if work not in covered)) for limit in default_limits]
    return [replace(limit, works=works) for limit, works in rest if works]


def parse_limit(fields: FieldReader) -> RateLimit:
    """Return a rate. Raises InputError."""
    fields.reject_unknown(("requests", "seconds", "works", "source"))
    return RateLimit(
        fields.integer("requests", 1, _MAX_COUNT),
        fields.number("seconds", 0.001, 366 * _DAY),
        _request_kinds(fields),
        _source(fields),
    )


def _parse_quota(fields: FieldReader) -> RateLimit:
    fields.reject_unknown(("requests", "works", "source"))
    return RateLimit(fields.integer("requests", 1, _MAX_COUNT), _DAY, _request_kinds(fields), _source(fields))


def _request_kinds(fields: FieldReader) -> tuple[RequestKind, ...]:
    return tuple(RequestKind(each) for each in fields.choices("works", tuple(RequestKind)))


def _parse_listing(fields: FieldReader) -> PrefixListing:
    fields.reject_unknown(("matches", "rows_per_page", "cap"))
    matches = fields.choices("matches", MATCH_TYPES)
    rows = _parse_sourced_number(fields.subtable("rows_per_page"))
    return PrefixListing(matches, rows, _parse_sourced_number(fields.subtable("cap")) if "cap" in fields else None)


def _parse_sourced_number(fields: FieldReader, *, share: bool = False) -> SourcedNumber:
    """Return a count, or a share between 0 and 1, with its source."""
    fields.reject_unknown(("value", "source"))
    value = fields.number("value", 0, 1) if share else fields.integer("value", 1, _MAX_COUNT)
    return SourcedNumber(float(value), _source(fields))


def _source(fields: FieldReader) -> str:
    return fields.text("source", "where the number is from, in words")


def _parse_replay(fields: FieldReader, name: str, _: Path) -> str:
    is_by_file = _FILE_PLACEHOLDERS[0] in str(fields.value(name))
    return fields.http_url(name, _FILE_PLACEHOLDERS if is_by_file else _PAGE_PLACEHOLDERS)


def _http_url(fields: FieldReader, name: str, _: Path) -> str:
    return fields.http_url(name)


def _media_types(fields: FieldReader, name: str, _: Path) -> tuple[str, ...]:
    return fields.media_types(name)


def _flag(fields: FieldReader, name: str, _: Path) -> bool:
    return fields.flag(name)


_FIELD_PARSERS: dict[str, Callable[[FieldReader, str, Path], object]] = {
    "id": lambda fields, name, _: fields.id(name),
    "name": lambda fields, name, _: fields.text(name),
    "kind": lambda fields, name, _: ArchiveKind(
        fields.choice(name, tuple(kind for kind in ArchiveKind if kind is not ArchiveKind.LIVE))
    ),
    "timemap": _http_url,
    "timegate": _http_url,
    "cdx": _http_url,
    "replay": _parse_replay,
    "search": lambda fields, name, _: fields.http_url(name, ("{terms}",)),
    "folder": lambda fields, name, folder: fields.path(name, folder),
    "deep": _flag,
    "canonical": _media_types,
    "migrated": _media_types,
    "lister": lambda fields, name, _: _parse_listing(fields.subtable(name)),
    "limits": lambda fields, name, _: tuple(parse_limit(each) for each in fields.subtables(name)),
    "quotas": lambda fields, name, _: tuple(_parse_quota(each) for each in fields.subtables(name)),
    "mementomap": lambda fields, name, folder: fields.path_or_url(name, folder),
    "filters": lambda fields, name, folder: fields.paths_or_urls(name, folder),
    "hit_rate": lambda fields, name, _: _parse_sourced_number(fields.subtable(name), share=True),
    "page_bytes": lambda fields, name, _: _parse_sourced_number(fields.subtable(name)),
    "enabled": _flag,
}
"""How each field of an `Archive` is read."""
