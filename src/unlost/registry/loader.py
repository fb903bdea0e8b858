"""Loads the registry: the shipped TOML, a user's file that replaces or extends it, or MemGator's archives.json.

Files for unlost are validated strictly: an unknown field is an error, because a misspelled limit would be no limit.
Unknown fields of MemGator's list, which MemGator ignores, are only reported.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from errno import ENOENT
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from unlost.errors import InputError, UsageError
from unlost.problems import unreadable_error, unreadable_error_for_errno
from unlost.registry.models import Archive, ArchiveKind, PrefixListing, RateLimit, RequestKind, SourcedNumber

_MAX_TEXT = 1_000  # characters of a name, a source or a URL
_MAX_SOURCES = 100  # files or URLs in a list
_MAX_EXCERPT = 60  # characters of a value quoted in a message
_TYPE_NAMES: dict[type, str] = {dict: "a table", list: "a list", type(None): "nothing"}
_ID = re.compile(r"[a-z0-9][a-z0-9._:-]{0,99}", re.ASCII)
_MEDIA_TYPE = re.compile(r"\*|[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)", re.ASCII)
_BRACES = re.compile(r"\{[^{}]*\}|[{}]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

LOCAL_KINDS = frozenset({ArchiveKind.FILES, ArchiveKind.HAR, ArchiveKind.CHROMIUM, ArchiveKind.FIREFOX})
"""The kinds of archives that are directories on this machine."""
MATCH_TYPES = ("exact", "prefix", "host", "domain")
# Listings of archives whose entry has a CDX URL but no `lister`.
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
_FILE_PLACEHOLDERS = ("{filename}",)  # Common Crawl's captures are ranges of WARC files, which its index names
_DAY_SECONDS = 86_400
_MAX_COUNT = 10**9  # for any count in the file
_MEMGATOR_FIELDS = ("id", "name", "timemap", "timegate", "probability", "ignore")
_MAX_BYTES = 1 << 18  # of a file; about 20 times the size of the shipped one
_MAX_DOTS = 200  # of a line, because the time to parse a dotted key grows with the square of its parts
_SHIPPED_NAME = Path("archives.toml")  # in messages
_JSON = re.compile(rb"\{|\[\s*[\]{]")  # a TOML file cannot begin like this


class FieldReader:
    """Reads and validates the fields of a table.

    All methods that return a value raise InputError for an invalid one, with the table, the field, and the expected and
    the actual value.

    Attributes:
        place: Name of the table in messages: the file, and the archive in it.
    """

    def __init__(self, table: Mapping[str, Any], place: str) -> None:
        self._table = table
        self.place = place

    def __contains__(self, name: str) -> bool:
        """Return whether the field exists."""
        return name in self._table

    def names(self) -> list[str]:
        """Return the names of all fields, in order."""
        return list(self._table)

    def reject_unknown(self, known: Collection[str]) -> None:
        """Raise InputError for a field whose name is not in `known`."""
        for name in self._table:
            if name not in known:
                hint = suggest_name(name, known) or f": expected one of {', '.join(known)}"
                raise InputError(f"{self.place}: {truncate_text(name)}: no such field{hint}")

    def fail(self, name: str, expected: str) -> NoReturn:
        """Raise InputError with the expected and the actual value."""
        actual = describe_value(self._table[name]) if name in self._table else "nothing"
        raise InputError(f"{self.place}: {name}: expected {expected}, found {actual}")

    def value(self, name: str) -> object:
        """Return the unchecked value; None if the field does not exist."""
        return self._table.get(name)

    def text(self, name: str, expected: str = "a line of text") -> str:
        """Return a line of text that is not empty, without surrounding white space."""
        value = self._table.get(name)
        if not isinstance(value, str) or not is_printable_line(value):
            self.fail(name, expected)
        return value.strip()

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        value = self._table.get(name)
        if not isinstance(value, bool):
            self.fail(name, "true or false")
        return value

    def choice(self, name: str, known: Collection[str]) -> str:
        """Return a string that is in `known`."""
        value = self._table.get(name)
        if not isinstance(value, str) or value not in known:
            self.fail(name, f"one of {', '.join(known)}")
        return value

    def choices(self, name: str, known: Collection[str]) -> tuple[str, ...]:
        """Return one or more strings that are in `known`, without duplicates."""
        values = self._table.get(name)
        expected = f"a list of one or more of {', '.join(known)}, none twice"
        if not isinstance(values, list) or not values:
            self.fail(name, expected)
        if any(not isinstance(value, str) or value not in known for value in values) or len(set(values)) < len(values):
            self.fail(name, expected)
        return tuple(values)

    def integer(self, name: str, lowest: int, highest: int) -> int:
        """Return an integer in a range, both ends included."""
        value = self._table.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            self.fail(name, f"a whole number from {lowest} to {highest}")
        return value

    def number(self, name: str, lowest: float, highest: float) -> float:
        """Return a number in a range, both ends included."""
        value = self._table.get(name)
        # Compared before the conversion, which fails for integers of more than 308 digits. NaN is never in the range.
        if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value <= highest:
            self.fail(name, f"a number from {lowest:g} to {highest:g}")
        return float(value)

    def subtable(self, name: str) -> "FieldReader":
        """Return the table in a field."""
        value = self._table.get(name)
        if not isinstance(value, dict):
            self.fail(name, "a table")
        return FieldReader(value, f"{self.place}: {name}")

    def subtables(self, name: str) -> list["FieldReader"]:
        """Return the tables in a list, which may be empty. Messages number them from 1."""
        value = self._table.get(name)
        if not isinstance(value, list) or any(not isinstance(each, dict) for each in value):
            self.fail(name, "a list of tables")
        return [FieldReader(each, f"{self.place}: {name} {number}") for number, each in enumerate(value, 1)]

    def id(self, name: str = "id") -> str:
        """Return an archive ID."""
        value = self._table.get(name)
        if not isinstance(value, str) or not _ID.fullmatch(value):
            self.fail(name, "lower-case letters, digits and . _ : - (such as `web.archive.org`)")
        return value

    def media_types(self, name: str) -> tuple[str, ...]:
        """Return patterns of media types, such as `*`, `image/*` or `text/html`. The list may be empty."""
        values = self._table.get(name)
        if not isinstance(values, list) or any(
            not isinstance(value, str) or not _MEDIA_TYPE.fullmatch(value) or len(value) > _MAX_TEXT for value in values
        ):
            self.fail(name, "a list of media types in lower case, such as `text/html`, `image/*` or `*`")
        return tuple(values)

    def http_url(self, name: str, parts: Collection[str] = ()) -> str:
        """Return an HTTP(S) URL that contains each of these placeholders, such as `{uri}`, and no others."""
        value = self._table.get(name)
        expected = "an http or https address" + (f" with {' and '.join(parts)} in it" if parts else "")
        if not isinstance(value, str) or not is_http_url(_BRACES.sub("x", value)):
            self.fail(name, expected)
        host = urlsplit(value).netloc
        if set(_BRACES.findall(value)) != set(parts) or "{" in host:
            self.fail(name, expected + ("" if parts else " without braces: the page's own is put behind it"))
        return value

    def path(self, name: str, folder: Path) -> str:
        """Return a path. It is relative to the directory of the registry file; `~` is expanded."""
        text = self.text(name, "the path of a file or folder")
        if _SCHEME.match(text):
            self.fail(name, "the path of a file or folder")
        try:
            return str(folder / Path(text).expanduser())
        except RuntimeError:  # `~name` of an unknown user
            self.fail(name, "the path of a file or folder")

    def path_or_url(self, name: str, folder: Path) -> str:
        """Return a path as `path` does, or an HTTP(S) URL."""
        value = self._table.get(name)
        if isinstance(value, str) and _SCHEME.match(value):
            return self.http_url(name)
        return self.path(name, folder)

    def paths_or_urls(self, name: str, folder: Path) -> tuple[str, ...]:
        """Return a list of paths or URLs without duplicates, which may be empty."""
        values = self._table.get(name)
        if not isinstance(values, list) or len(values) > _MAX_SOURCES:
            self.fail(name, f"a list of at most {_MAX_SOURCES} files or addresses")
        sources = [FieldReader({name: value}, self.place).path_or_url(name, folder) for value in values]
        if len(set(sources)) < len(sources):
            self.fail(name, "a list of files or addresses, none twice")
        return tuple(sources)


def entry_fields(table: object, number: int, file: Path) -> FieldReader:
    """Return a reader for the table of one archive. Messages name its ID, or its number if it has none."""
    if not isinstance(table, dict):
        raise InputError(f"{file}: archive {number}: expected a table, found {describe_value(table)}")
    name = table.get("id")
    return FieldReader(
        table, f"{file}: archive " + (f"`{truncate_text(name)}`" if isinstance(name, str) and name else str(number))
    )


def is_http_url(text: str) -> bool:
    """Return whether a text is an HTTP(S) URL with a host, and without userinfo, fragment or white space.

    >>> is_http_url("https://example.com:8080/web/"), is_http_url("ftp://example.com/"), is_http_url("http://")
    (True, False, False)
    """
    if not is_printable_line(text) or not text.isascii() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    has_host = bool(parts.hostname) and port != 0 and "@" not in parts.netloc
    return parts.scheme in ("http", "https") and has_host and not parts.fragment


def is_printable_line(text: str) -> bool:
    """Return whether a text is a printable line, not empty and of limited length."""
    return bool(text.strip()) and len(text) <= _MAX_TEXT and text.isprintable()


def suggest_name(name: str, known: Collection[str]) -> str:
    """Return a hint with the known name that a misspelled one resembles; empty if it resembles none.

    >>> suggest_name("timmap", ["timemap", "timegate"]), suggest_name("size", ["timemap"])
    (': did you mean `timemap`?', '')
    """
    close = get_close_matches(name[:_MAX_EXCERPT], known, 1)
    return f": did you mean `{close[0]}`?" if close else ""


def describe_value(value: object) -> str:
    """Return a short description of any value, for messages.

    >>> describe_value({"a": 1}), describe_value("ftp://a/"), describe_value(7)
    ('a table', '`ftp://a/`', '7')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"`{truncate_text(value)}`"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 10**_MAX_EXCERPT):
        return str(value)
    if isinstance(value, int):
        return "a number of very many digits"
    return _TYPE_NAMES.get(type(value), "a date or a time")  # the other types of TOML


def truncate_text(text: str) -> str:
    """Return the beginning of a text, for messages."""
    return text if len(text) <= _MAX_EXCERPT else text[:_MAX_EXCERPT] + "…"


@dataclass(frozen=True, slots=True)
class Registry:
    """The archives that can be queried, in the order of their file.

    Attributes:
        archives: All archives, also disabled ones.
        notes: Warnings about ignored fields of the file.
    """

    archives: tuple[Archive, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Archive]:
        """Iterate over all archives, also disabled ones."""
        return iter(self.archives)

    def get(self, name: str) -> Archive:
        """Return the archive with an ID, ignoring case.

        Raises:
            UsageError: There is no such archive; the message lists all IDs.
        """
        for archive in self.archives:
            if archive.id == name.lower():
                return archive
        ids = [archive.id for archive in self.archives]
        hint = suggest_name(name.lower(), ids) or "."
        raise UsageError(f"no archive `{name[:100]}` in the registry{hint} There are {', '.join(ids)}")

    def only(self, names: Iterable[str] = ()) -> tuple[Archive, ...]:
        """Return the archives with these IDs, also disabled ones; without IDs, all enabled archives.

        Returns:
            The archives in the order of the registry, without duplicates.

        Raises:
            UsageError: There is no archive with one of the IDs; the message lists all IDs.
        """
        ids = {self.get(name).id for name in names}
        return tuple(archive for archive in self.archives if (archive.id in ids if ids else archive.enabled))


def load_registry(path: Path | None = None) -> Registry:
    """Load a registry file, or the shipped one. Raises InputError.

    The format is detected by content: TOML, which replaces the shipped registry unless it has `extends = "default"`, or
    MemGator's JSON.

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


def without_default_limits(archive: Archive) -> Archive:
    """Return the archive with only the limits of its own entry, without the default limits of the registry.

    For the aggregator, which sends one request per page that a user opens, and adapts the number of concurrent requests
    to how the archive responds. Default limits are meant for long work such as a recovery.
    """
    own = tuple(limit for limit in archive.limits if not limit.is_default)
    return archive if len(own) == len(archive.limits) else replace(archive, limits=own)


def parse_entry(fields: FieldReader, folder: Path) -> dict[str, Any]:
    """Return the fields of an `Archive` that an entry sets. Raises InputError.

    Args:
        fields: The entry.
        folder: Directory of the registry file, for relative paths.
    """
    fields.reject_unknown(tuple(_FIELD_PARSERS))
    return {"id": fields.id()} | {name: _FIELD_PARSERS[name](fields, name, folder) for name in fields.names()}


def build_archive(values: dict[str, Any], place: str, default_limits: Sequence[RateLimit]) -> Archive:
    """Return the archive with these field values, and with limits for every kind of request. Raises InputError.

    An entry with a CDX URL and without `lister` gets the default listing of its kind. An entry without `limits` gets
    the default limits, and one with limits gets the default limits for kinds of requests that its own do not cover, so
    that a forgotten limit costs time and not a block. An empty list means no limits, for one's own servers.
    """
    for name in ("name", "kind"):
        if name not in values:
            raise InputError(f"{place}: {name}: missing")
    kind: ArchiveKind = values["kind"]
    missing = [name for name in _REQUIRED_FIELDS[kind] if name not in values]
    if missing and not (kind is ArchiveKind.MEMENTO and len(missing) == 1):  # a TimeMap or a TimeGate is enough
        alternative = ", or a timegate" if kind is ArchiveKind.MEMENTO else ""
        raise InputError(f"{place}: {missing[0]}: missing: an archive of the kind {kind} needs it{alternative}")
    for name in _REMOTE_FIELDS if kind in LOCAL_KINDS else ("folder",):
        if name in values:
            raise InputError(f"{place}: {name}: an archive of the kind {kind} has none")
    placeholders = _FILE_PLACEHOLDERS if kind is ArchiveKind.COMMON_CRAWL else _PAGE_PLACEHOLDERS
    if any(each not in values.get("replay", " ".join(placeholders)) for each in placeholders):
        raise InputError(
            f"{place}: replay: expected {' and '.join(placeholders)} in it, for an archive of the kind {kind}"
        )
    both = set(values.get("canonical", ())) & set(values.get("migrated", ()))
    if both:
        raise InputError(f"{place}: migrated: `{min(both)}` is canonical, too: expected one or the other")
    archive = with_default_listing(Archive(**values))
    if kind in LOCAL_KINDS or values.get("limits") == ():
        return archive
    return replace(archive, limits=(*archive.limits, *_limits_for_uncovered_kinds(archive, default_limits)))


def with_default_listing(archive: Archive) -> Archive:
    """Return the archive with the default listing of its kind if it has a CDX URL and its entry sets no `lister`."""
    if archive.cdx is None or archive.lister is not None:
        return archive
    return replace(archive, lister=_DEFAULT_LISTINGS.get(archive.kind))


def _limits_for_uncovered_kinds(archive: Archive, default_limits: Sequence[RateLimit]) -> list[RateLimit]:
    """Return the default limits for the kinds of requests that the archive supports and its own limits do not cover."""
    covered = {kind for limit in archive.limits for kind in limit.works}
    if archive.search is None:
        covered.add(RequestKind.SEARCH)
    uncovered = [(limit, tuple(kind for kind in limit.works if kind not in covered)) for limit in default_limits]
    return [replace(limit, works=kinds) for limit, kinds in uncovered if kinds]


def parse_limit(fields: FieldReader) -> RateLimit:
    """Parse a rate limit. Raises InputError."""
    fields.reject_unknown(("requests", "seconds", "works", "source"))
    return RateLimit(
        fields.integer("requests", 1, _MAX_COUNT),
        fields.number("seconds", 0.001, 366 * _DAY_SECONDS),
        _request_kinds(fields),
        _source(fields),
    )


def _parse_quota(fields: FieldReader) -> RateLimit:
    fields.reject_unknown(("requests", "works", "source"))
    return RateLimit(fields.integer("requests", 1, _MAX_COUNT), _DAY_SECONDS, _request_kinds(fields), _source(fields))


def _request_kinds(fields: FieldReader) -> tuple[RequestKind, ...]:
    return tuple(RequestKind(each) for each in fields.choices("works", tuple(RequestKind)))


def _parse_listing(fields: FieldReader) -> PrefixListing:
    fields.reject_unknown(("matches", "rows_per_page", "cap"))
    matches = fields.choices("matches", MATCH_TYPES)
    rows = _parse_sourced_number(fields.subtable("rows_per_page"))
    return PrefixListing(matches, rows, _parse_sourced_number(fields.subtable("cap")) if "cap" in fields else None)


def _parse_sourced_number(fields: FieldReader, *, share: bool = False) -> SourcedNumber:
    """Parse a count, or a share between 0 and 1, with its source."""
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
"""The parser of each field of an `Archive`."""


def parse_memgator(
    entries: object, file: Path, known: dict[str, dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Parse MemGator's list of archives. Raises InputError.

    Args:
        entries: The parsed JSON.
        file: Its file, for messages.
        known: The entries of the shipped registry, by ID. An entry for the same host supplies the other fields: kind,
            limits, media types. The host is compared because MemGator has changed its IDs over the years.

    Returns:
        The fields of each `Archive`, and warnings about ignored fields.
    """
    if not isinstance(entries, list):
        raise InputError(f"{file}: expected a list of archives, as MemGator has it, found {describe_value(entries)}")
    archives = []
    unknown: dict[str, str] = {}
    for number, each in enumerate(entries, 1):
        fields = entry_fields(each, number, file)
        archives.append(_parse_memgator_entry(fields, file, known))
        unknown |= {name: fields.place for name in fields.names() if name not in (*_MEMGATOR_FIELDS, *unknown)}
    return archives, [
        f"{place}: {truncate_text(name)}: no field of MemGator's: passed over" for name, place in unknown.items()
    ]


def _parse_memgator_entry(fields: FieldReader, file: Path, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    name = fields.id()
    # The name may be missing, since MemGator only prints it.
    values: dict[str, Any] = {"id": name, "name": fields.text("name") if "name" in fields else name}
    # An archive without a TimeMap is queried through its TimeGate.
    for each in ("timemap", "timegate"):
        if each in fields or (each == "timemap" and "timegate" not in fields):
            values[each] = fields.http_url(each)
    if "probability" in fields and (share := fields.number("probability", 0, 1)):
        values["hit_rate"] = SourcedNumber(share, f"`probability` in {file.name}")
    values["enabled"] = not ("ignore" in fields and fields.flag("ignore"))
    return {"kind": ArchiveKind.MEMENTO, **_matching_entry(values, known), **values}


def _matching_entry(values: dict[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the known entry for the same host; empty if there is none or more than one."""
    name = "timemap" if "timemap" in values else "timegate"
    host = urlsplit(values[name]).netloc.lower()
    matches = [each for each in known.values() if urlsplit(each.get(name, "")).netloc.lower() == host]
    return matches[0] if len(matches) == 1 else {}


@dataclass(frozen=True, slots=True)
class _RegistryFile:
    """The parsed content of a file, before defaults are applied.

    Attributes:
        default_limits: None if the file does not set them.
    """

    path: Path
    entries: list[dict[str, Any]]
    notes: list[str]
    default_limits: tuple[RateLimit, ...] | None = None
    extends: bool = False

    def __post_init__(self) -> None:
        """Raise InputError for a duplicate ID."""
        seen: set[str] = set()
        for each in self.entries:
            if each["id"] in seen:
                raise InputError(f"{self.path}: archive `{each['id']}`: id: there twice: expected each once")
            seen.add(each["id"])

    def by_id(self) -> dict[str, dict[str, Any]]:
        """Return the entries by ID, in the order of the file."""
        return {each["id"]: each for each in self.entries}

    def extended_from(self, base: "_RegistryFile") -> "_RegistryFile":
        """Return the entries of a base, each updated with the fields that this file sets, and then the new entries."""
        merged = base.by_id()
        for each in self.entries:
            merged[each["id"]] = merged.get(each["id"], {}) | each
        return _RegistryFile(self.path, list(merged.values()), self.notes)

    def build_registry(self, default_limits: tuple[RateLimit, ...]) -> Registry:
        """Return the archives with defaults applied. Raises InputError."""
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
