"""Loads the registry: the shipped TOML, a user's own that replaces or extends it, or MemGator's archives.json."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from errno import ENOENT
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from unlost.errors import InputError, UsageError
from unlost.problems import unreadable_error, unreadable_error_for_errno
from unlost.registry.fields import FieldReader, describe_value, entry_fields, suggest_name, truncate_text
from unlost.registry.models import Archive, ArchiveKind, PrefixListing, RateLimit, RequestKind, SourcedNumber

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


_MEMGATOR_FIELDS = ("id", "name", "timemap", "timegate", "probability", "ignore")


def parse_memgator(
    entries: object, file: Path, known: dict[str, dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what each entry says, as fields of an `Archive`, and notes on what was passed over. Raises InputError.

    known: entries of our own by id. Where one is at the same host, it says the rest: kind, limits, types. The list has
        called archives by other ids over the years, so the host decides.
    """
    if not isinstance(entries, list):
        raise InputError(f"{file}: expected a list of archives, as MemGator has it, found {describe_value(entries)}")
    found = []
    unknown: dict[str, str] = {}
    for number, each in enumerate(entries, 1):
        fields = entry_fields(each, number, file)
        found.append(_parse_memgator_entry(fields, file, known))
        unknown |= {name: fields.place for name in fields.names() if name not in (*_MEMGATOR_FIELDS, *unknown)}
    return found, [
        f"{place}: {truncate_text(name)}: no field of MemGator's: passed over" for name, place in unknown.items()
    ]


def _parse_memgator_entry(fields: FieldReader, file: Path, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    name = fields.id()
    # Only the name is not a must: MemGator prints it and does nothing else with it.
    read: dict[str, Any] = {"id": name, "name": fields.text("name") if "name" in fields else name}
    # One without a TimeMap is asked by its TimeGate.
    for each in ("timemap", "timegate"):
        if each in fields or (each == "timemap" and "timegate" not in fields):
            read[each] = fields.http_url(each)
    if "probability" in fields and (share := fields.number("probability", 0, 1)):
        read["hit_rate"] = SourcedNumber(share, f"`probability` in {file.name}")
    read["enabled"] = not ("ignore" in fields and fields.flag("ignore"))
    return {"kind": ArchiveKind.MEMENTO, **_matching_entry(read, known), **read}


def _matching_entry(read: dict[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return our own entry of the archive at the same host; nothing if there is none, or more than one."""
    name = "timemap" if "timemap" in read else "timegate"
    host = urlsplit(read[name]).netloc.lower()
    found = [each for each in known.values() if urlsplit(each.get(name, "")).netloc.lower() == host]
    return found[0] if len(found) == 1 else {}


_MAX_BYTES = 1 << 18  # ours has a twentieth of it
_MAX_DOTS = 200  # in a line: the time that a key of a.b.c takes to be read grows with the square of its parts
_SHIPPED_NAME = Path("archives.toml")  # as messages call it
_JSON = re.compile(rb"\{|\[\s*[\]{]")  # what begins so is no TOML


@dataclass(frozen=True, slots=True)
class Registry:
    """The archives that can be asked, in the order of their file.

    notes: sentences on what the file says and was passed over.
    """

    archives: tuple[Archive, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Archive]:
        """Return all archives, also those that are off."""
        return iter(self.archives)

    def get(self, name: str) -> Archive:
        """Return the archive with an id, in whatever case. Raises UsageError, which lists those that there are."""
        for archive in self.archives:
            if archive.id == name.lower():
                return archive
        ids = [archive.id for archive in self.archives]
        hint = suggest_name(name.lower(), ids) or "."
        raise UsageError(f"no archive `{name[:100]}` in the registry{hint} There are {', '.join(ids)}")

    def only(self, names: Iterable[str] = ()) -> tuple[Archive, ...]:
        """Return the archives with these ids, also those that are off; without any ids, those that are on.

        In the order of the registry, each once. Raises UsageError, which lists those that there are.
        """
        wanted = {self.get(name).id for name in names}
        return tuple(archive for archive in self.archives if (archive.id in wanted if wanted else archive.enabled))


def load_registry(path: Path | None = None) -> Registry:
    """Return the registry in a file, or the one that is shipped. Raises InputError.

    The file is told by its content: a TOML of ours, which replaces the shipped one unless it says
    `extends = "default"`, or MemGator's JSON.

    >>> load_registry().get("arquivo.pt").name
    'Portuguese Web Archive'
    """
    shipped = _load_shipped()
    if path is None:
        return shipped.build_registry(shipped.default_limits or ())
    data = _read_file(path)
    if _JSON.match(data.lstrip()):
        entries, notes = parse_memgator(_parse_json(data, path), path, shipped.by_id())
        return _RegistryFile(path, entries, notes).build_registry(shipped.default_limits or ())
    own = _parse_toml(data, path)
    limits = shipped.default_limits if own.default_limits is None else own.default_limits
    return (own.extended_from(shipped) if own.extends else own).build_registry(limits or ())


@dataclass(frozen=True, slots=True)
class _RegistryFile:
    """What a file says, before anything is filled in.

    default_limits: None if it says nothing of them.
    """

    path: Path
    entries: list[dict[str, Any]]
    notes: list[str]
    default_limits: tuple[RateLimit, ...] | None = None
    extends: bool = False

    def __post_init__(self) -> None:
        """Raise InputError for an id that is there twice."""
        seen: set[str] = set()
        for each in self.entries:
            if each["id"] in seen:
                raise InputError(f"{self.path}: archive `{each['id']}`: id: there twice: expected each once")
            seen.add(each["id"])

    def by_id(self) -> dict[str, dict[str, Any]]:
        """Return the entries by id, in order."""
        return {each["id"]: each for each in self.entries}

    def extended_from(self, base: "_RegistryFile") -> "_RegistryFile":
        """Return the entries of a base, changed field by field where this file has the same id, then the new ones."""
        merged = base.by_id()
        for each in self.entries:
            merged[each["id"]] = merged.get(each["id"], {}) | each
        return _RegistryFile(self.path, list(merged.values()), self.notes)

    def build_registry(self, default_limits: tuple[RateLimit, ...]) -> Registry:
        """Return the archives, whole. Raises InputError."""
        if not self.entries:
            raise InputError(f"{self.path}: no archive in it: expected at least one")
        archives = [
            build_archive(each, f"{self.path}: archive `{each['id']}`", default_limits) for each in self.entries
        ]
        return Registry(tuple(archives), tuple(self.notes))


@cache
def _load_shipped() -> _RegistryFile:
    file = _parse_toml(files("unlost.registry").joinpath(_SHIPPED_NAME.name).read_bytes(), _SHIPPED_NAME)
    return replace(file, default_limits=tuple(replace(each, is_default=True) for each in file.default_limits or ()))


def without_default_limits(archive: Archive) -> Archive:
    """Return the archive with those limits only that it is registered with.

    For the aggregator, which adapts the number of requests at once to how the archive copes.
    """
    own = tuple(limit for limit in archive.limits if not limit.is_default)
    return archive if len(own) == len(archive.limits) else replace(archive, limits=own)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise unreadable_error(path, error) from error
    except ValueError as error:  # a NUL in a name
        raise unreadable_error_for_errno(path, ENOENT) from error
    if len(data) > _MAX_BYTES:
        raise InputError(f"{path}: more than {_MAX_BYTES} bytes: not a registry of archives")
    return data.removeprefix(b"\xef\xbb\xbf")


def _parse_toml(data: bytes, path: Path) -> _RegistryFile:
    import tomllib  # noqa: PLC0415  start-up

    if any(line.count(b".") > _MAX_DOTS for line in data.splitlines()):
        raise InputError(f"{path}: a line with more than {_MAX_DOTS} dots: not a registry of archives")
    try:
        table = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: neither TOML nor MemGator's JSON: it is no text in UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: neither TOML nor MemGator's JSON: {str(error)[:200]}") from error
    fields = FieldReader(table, str(path))
    fields.reject_unknown(("extends", "archive", "default_limits"))
    if "extends" in fields:
        fields.choice("extends", ("default",))
    limits = None
    if "default_limits" in fields:
        limits = tuple(parse_limit(each) for each in fields.subtables("default_limits"))
    tables = table.get("archive", [])
    if not isinstance(tables, list):
        raise InputError(
            f"{path}: archive: expected tables that begin with [[archive]], found {describe_value(tables)}"
        )
    entries = [parse_entry(entry_fields(each, number, path), path.parent) for number, each in enumerate(tables, 1)]
    return _RegistryFile(path, entries, [], limits, "extends" in fields)


def _parse_json(data: bytes, path: Path) -> object:
    import json  # noqa: PLC0415

    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {str(error)[:200]}") from error
