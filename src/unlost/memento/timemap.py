r"""TimeMaps (RFC 7089) in link-format (RFC 6690): parsed, written, and as compact lists of mementos.

Archives write link-format with all kinds of errors. An entry begins at a `<` that is first on its line or follows a
comma, unless it is within a quoted value of a valid entry. So an invalid entry does not affect others.

`Mementos` holds millions of distinct mementos, sorted by date, without a Python object for each. Its URLs are visible
ASCII without `<`, `>` and `"`, so that no archive can inject entries, headers or lines.

>>> mementos = Mementos([
...     MementoTuple("20150210000001", "b", "http://b/2"),
...     MementoTuple("20140210000001", "a", "http://a/1"),
...     MementoTuple("20140210000001", "c", "https://a/1"),
... ])
>>> len(mementos), mementos[0].uri, mementos.closest("20140101000000")
(2, 'http://a/1', 0)
>>> Mementos.unpack(mementos.pack()) == mementos
True
>>> mementos[1:].first
MementoTuple(datetime='20150210000001', archive='b', uri='http://b/2')
>>> Mementos([MementoTuple("20140210000001", "a", "http://a/\n<b>é")])[0].uri
'http://a/%0A%3Cb%3E%C3%A9'
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import NamedTuple
from urllib.parse import quote

from unlost import _core, dates
from unlost._core import MementoDedup, Mementos
from unlost.problems import Problem, Problems

__all__ = [
    "MEDIA_TYPE",
    "TIMEMAP_PROBLEM_KINDS",
    "ArchiveTimeMap",
    "LinkFormatTimeMap",
    "MementoDedup",
    "MementoTuple",
    "Mementos",
    "TimeMapEntry",
    "TimeMapLink",
    "format_timemap",
    "read_archive_timemap",
    "read_timemap",
]


MEDIA_TYPE = "application/link-format"
TIMEMAP_PROBLEM_KINDS = {
    "html": "expected link-format, found HTML or XML: an error page, most likely",
    "no-link": "expected an entry that begins with `<`, found other text",
    "bad-uri": "expected an address between `<` and `>`, without control characters",
    "bad-quote": "expected a value in a pair of quotes, then `;` or the next entry",
    "bad-parameter": "expected `;` and a name before `=`",
    "no-rel": "expected a `rel`, found none",
    "no-date": "expected a `datetime`, or 14 digits in the address, found neither",
    "too-long": "a line longer than unlost.text_lines.MAX_LINE_BYTES",
    "too-large": "more text than is read: the rest was left out",
}
"""Kinds of problems, with their messages."""

# White space and controls end a line or a target; `<`, `>` and `"` delimit targets and values.
_TARGET_ESCAPES = {byte: f"%{byte:02X}" for byte in (*range(33), *b'<>"', 0x7F)}


class TimeMapEntry(NamedTuple):
    """One memento of a TimeMap. A named tuple, which is faster to create than a dataclass, since TimeMaps are long.

    Attributes:
        uri: URL (URI-M), verbatim; it may be relative. Bytes that are not UTF-8 are escaped.
        datetime: Capture date, 14 digits, UTC.
        first: Whether its `rel` contains `first`.
        last: Whether its `rel` contains `last`.
        is_dated_by_uri: Whether the date was taken from the URL, because the TimeMap has no valid one.
    """

    uri: str
    datetime: str
    first: bool = False
    last: bool = False
    is_dated_by_uri: bool = False


# `TimeMapEntry._make` without a Python frame for each call, which takes a third of the time.
_make_entry: Callable[[tuple[str, str, bool, bool, bool]], TimeMapEntry] = partial(tuple.__new__, TimeMapEntry)


@dataclass(frozen=True, slots=True)
class TimeMapLink:
    """A link to a TimeMap: another page, another format, or the TimeMap itself.

    Attributes:
        uri: URL.
        type: Media type, if given.
        start: First date covered (`from`), 14 digits, UTC; None if missing or invalid.
        until: Last date covered (`until`), 14 digits, UTC; None if missing or invalid.
    """

    uri: str
    type: str | None = None
    start: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class LinkFormatTimeMap:
    """A parsed TimeMap. Missing attributes are None or empty.

    Attributes:
        original: Original URL (URI-R).
        self_link: Link to the TimeMap itself.
        timegate: URL of the TimeGate.
        timemaps: Links to other TimeMaps; those of the same type with other dates are further pages.
        mementos: Mementos in the order of the TimeMap, which may be unsorted and have duplicates.
        other_links: Number of links with other relations, and of repeated `original`, `self` and `timegate` links.
    """

    original: str | None = None
    self_link: TimeMapLink | None = None
    timegate: str | None = None
    timemaps: tuple[TimeMapLink, ...] = ()
    mementos: tuple[TimeMapEntry, ...] = ()
    other_links: int = 0


def read_timemap(body: bytes, problems: Problems, name: str = "timemap") -> LinkFormatTimeMap:
    r"""Parse a link-format TimeMap, in linear time. Never raises.

    Invalid entries are skipped and counted in `problems` under `name`, by the kinds of `TIMEMAP_PROBLEM_KINDS`, with
    the line and byte offset of the first of each kind. An entry without a valid `datetime` is dated by 14 digits in its
    URI-M.

    >>> problems = Problems()
    >>> body = b'<a.com>;rel=original,\n<w/20140210000001/a.com>; rel="memento", <x; rel="memento"'
    >>> read_timemap(body, problems).mementos
    (TimeMapEntry(uri='w/20140210000001/a.com', datetime='20140210000001', ..., is_dated_by_uri=True),)
    >>> problems.counts
    {'bad-uri': 1}
    """
    original, self_link, timegate, timemaps, mementos, other_links, errors = _core.read_timemap(body)
    for kind, count, offset in errors:
        line = body.count(b"\n", 0, offset) + 1
        problems.add(Problem(kind, name, line, offset, TIMEMAP_PROBLEM_KINDS[kind]), count)
    return LinkFormatTimeMap(
        original,
        TimeMapLink(*self_link) if self_link else None,
        timegate,
        tuple(starmap(TimeMapLink, timemaps)),
        tuple(map(_make_entry, zip(*mementos, strict=True))),
        other_links,
    )


def format_timemap(timemap: LinkFormatTimeMap) -> Iterator[str]:
    r"""Yield a TimeMap as link-format, one entry at a time, with `,` and a newline after all but the last.

    The order is that of MemGator: original, self, mementos, other TimeMaps, TimeGate.
    Mementos are written in the given order, and the first and last are marked by position, so they should be sorted by
    date. Raises DateError for an invalid date.

    >>> entries = (TimeMapEntry("http://w/1", "20140210000001"), TimeMapEntry("http://w/2", "20150210000001"))
    >>> print("".join(format_timemap(LinkFormatTimeMap("http://a.com/", mementos=entries, timegate="http://w/g"))))
    <http://a.com/>; rel="original",
    <http://w/1>; rel="first memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT",
    <http://w/2>; rel="last memento"; datetime="Tue, 10 Feb 2015 00:00:01 GMT",
    <http://w/g>; rel="timegate"
    """
    separator = ""
    for entry in _format_entries(timemap):
        yield separator + entry
        separator = ",\n"


def _format_entries(timemap: LinkFormatTimeMap) -> Iterator[str]:
    if timemap.original is not None:
        yield f'<{_escape_target(timemap.original)}>; rel="original"'
    if timemap.self_link:
        yield _format_link("self", timemap.self_link)
    last_index = len(timemap.mementos) - 1
    for index, memento in enumerate(timemap.mementos):
        rel = "first " * (index == 0) + "last " * (index == last_index) + "memento"
        yield f'<{_escape_target(memento.uri)}>; rel="{rel}"; datetime="{dates.to_http(memento.datetime)}"'
    for link in timemap.timemaps:
        yield _format_link("timemap", link)
    if timemap.timegate is not None:
        yield f'<{_escape_target(timemap.timegate)}>; rel="timegate"'


def _format_link(rel: str, link: TimeMapLink) -> str:
    entry = f'<{_escape_target(link.uri)}>; rel="{rel}"'
    if link.type is not None:
        entry += f'; type="{quote(link.type, safe="/+;=.- ")}"'
    if link.start is not None:
        entry += f'; from="{dates.to_http(link.start)}"'
    if link.until is not None:
        entry += f'; until="{dates.to_http(link.until)}"'
    return entry


def _escape_target(uri: str) -> str:
    """Escape characters that would end the URL or the line, so that no URL can inject entries."""
    return uri.translate(_TARGET_ESCAPES)


class MementoTuple(NamedTuple):
    """A memento in an archive.

    Attributes:
        datetime: Capture date, 14 digits, UTC.
        archive: ID of the archive.
        uri: URL (URI-M).
    """

    datetime: str
    archive: str
    uri: str


@dataclass(frozen=True, slots=True)
class ArchiveTimeMap:
    """A TimeMap of an archive, with compact mementos. Missing attributes are None or empty.

    `mementos` have absolute URLs. The other attributes are those of `LinkFormatTimeMap`; links may be relative.
    """

    mementos: Mementos
    original: str | None = None
    self_link: TimeMapLink | None = None
    timegate: str | None = None
    timemaps: tuple[TimeMapLink, ...] = ()
    other_links: int = 0


def read_archive_timemap(
    body: bytes, archive: str, base: str, problems: Problems, name: str = "timemap"
) -> ArchiveTimeMap:
    """Parse a link-format TimeMap of an archive, in linear time. Never raises.

    Invalid entries are treated as by `read_timemap`; so are mementos whose URLs are not web URLs (`bad-uri`), and those
    beyond 128 MB of URLs (`too-large`).

    Args:
        body: The TimeMap.
        archive: ID of the archive.
        base: Base of relative URLs; it must have a host.
        problems: Collects the invalid entries.
        name: Name of the TimeMap in problems.

    >>> problems = Problems()
    >>> body = b'<x>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT", <ftp://y/20140210000001/>; rel="memento"'
    >>> list(read_archive_timemap(body, "a", "http://a.org/map/", problems).mementos), problems.counts
    ([MementoTuple(datetime='20140210000001', archive='a', uri='http://a.org/map/x')], {'bad-uri': 1})
    """
    mementos, original, self_link, timegate, timemaps, other_links, errors = _core.read_mementos(body, archive, base)
    for kind, count, offset in errors:
        line = body.count(b"\n", 0, offset) + 1
        problems.add(Problem(kind, name, line, offset, TIMEMAP_PROBLEM_KINDS[kind]), count)
    links = tuple(starmap(TimeMapLink, timemaps))
    return ArchiveTimeMap(
        mementos, original, TimeMapLink(*self_link) if self_link else None, timegate, links, other_links
    )
