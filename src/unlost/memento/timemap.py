r"""TimeMaps (RFC 6690 link-format, RFC 7089): parsed, written, and as compact lists of mementos.

Archives write link-format with every flaw there can be. An entry begins at a `<` that is first on its line or follows
a comma, unless it is within a quoted value of a valid entry; so a bad entry is lost alone.

`Mementos` keeps millions of mementos, sorted by date and each once, without a Python object for each. URLs in it are
visible ASCII without `<`, `>` and `"`, so that no archive can inject entries, headers or lines.

>>> copies = Mementos([
...     Memento("20150210000001", "b", "http://b/2"),
...     Memento("20140210000001", "a", "http://a/1"),
...     Memento("20140210000001", "c", "https://a/1"),
... ])
>>> len(copies), copies[0].uri, copies.closest("20140101000000"), Mementos.unpacked(copies.packed()) == copies
(2, 'http://a/1', 0, True)
>>> copies[1:].first
Memento(datetime='20150210000001', archive='b', uri='http://b/2')
>>> Mementos([Memento("20140210000001", "a", "http://a/\n<b>é")])[0].uri
'http://a/%0A%3Cb%3E%C3%A9'
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from os import PathLike, fspath
from typing import NamedTuple
from urllib.parse import quote

from unlost import _core, dates
from unlost._core import Mementos, SeenMementos
from unlost.problems import Problem, Problems
from unlost.text_lines import read_lines

MEDIA_TYPE = "application/link-format"
MAX_FILE_BYTES = 1 << 28
"""A TimeMap is held in memory: of a file that has more text, the rest is left out. Two million copies need less."""
TIMEMAP_PROBLEM_KINDS = {
    "html": "expected link-format, found HTML or XML: an error page, most likely",
    "no-link": "expected an entry that begins with `<`, found other text",
    "bad-uri": "expected an address between `<` and `>`, without control characters",
    "bad-quote": "expected a value in a pair of quotes, then `;` or the next entry",
    "bad-parameter": "expected `;` and a name before `=`",
    "no-rel": "expected a `rel`, found none",
    "no-date": "expected a `datetime`, or 14 digits in the address, found neither",
    "too-long": "a line longer than unlost.text_lines.MAX_LINE_BYTES",
    "too-large": "a file or a list with more text than can be held: the rest was left out",
}
"""The kinds of problems, and what each means."""


class TimeMapEntry(NamedTuple):
    """One archived copy. A tuple, since lists of them are long and made for every answer.

    uri: its address (URI-M), as it stands; it may be relative. Bytes that are not UTF-8 are escaped.
    datetime: when it was captured, 14 digits, UTC.
    first, last: whether the list calls it so.
    dated_by_uri: the list gave no readable date; this one is from the address.
    """

    uri: str
    datetime: str
    first: bool = False
    last: bool = False
    is_dated_by_uri: bool = False


# What `Memento._make` does, without a Python frame for each: a third of its time.
_make_entry: Callable[[tuple[str, str, bool, bool, bool]], TimeMapEntry] = partial(tuple.__new__, TimeMapEntry)


@dataclass(frozen=True, slots=True)
class TimeMapLink:
    """A link to a TimeMap: another page of the list, the list in another format, or the list itself.

    type: its media type, if it is said.
    start, until: the first and last date that it covers (`from` and `until`), 14 digits, UTC; None if not said or
        not readable.
    """

    uri: str
    type: str | None = None
    start: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class LinkFormatTimeMap:
    """What a TimeMap tells. What it does not tell is None or empty.

    original: the address whose copies are listed (URI-R).
    itself: the list's link to itself.
    timegate: where to ask for the copy closest to a date.
    timemaps: other lists; those of the same type with other dates are further pages.
    mementos: in the order of the list, which need not be that of their dates, with duplicates.
    others: how many links had other relations, or said again what only the first can say.
    """

    original: str | None = None
    self_link: TimeMapLink | None = None
    timegate: str | None = None
    timemaps: tuple[TimeMapLink, ...] = ()
    mementos: tuple[TimeMapEntry, ...] = ()
    other_links: int = 0


def read_timemap(body: bytes, problems: Problems, name: str = "timemap") -> LinkFormatTimeMap:
    r"""Return what a link-format TimeMap tells, in time linear in its length. Raises nothing.

    Entries that cannot be read are left out and counted in `problems` under `name`, by the kinds of `KINDS`, with the
    line and byte at which the first of each kind begins. A readable `datetime` is believed; else 14 digits of the URI-M
    are taken.

    >>> problems = Problems()
    >>> body = b'<a.com>;rel=original,\n<w/20140210000001/a.com>; rel="memento", <x; rel="memento"'
    >>> read_timemap(body, problems).mementos
    (Memento(uri='w/20140210000001/a.com', datetime='20140210000001', ..., dated_by_uri=True),)
    >>> problems.counts
    {'bad-uri': 1}
    """
    original, itself, timegate, timemaps, mementos, others, faults = _core.read_timemap(body)
    for kind, times, offset in faults:
        line = body.count(b"\n", 0, offset) + 1
        problems.add(Problem(kind, name, line, offset, TIMEMAP_PROBLEM_KINDS[kind]), times)
    return LinkFormatTimeMap(
        original,
        TimeMapLink(*itself) if itself else None,
        timegate,
        tuple(starmap(TimeMapLink, timemaps)),
        tuple(map(_make_entry, zip(*mementos, strict=True))),
        others,
    )


def read_timemap_file(path: str | PathLike[str], problems: Problems) -> LinkFormatTimeMap:
    """Return what a file with a link-format TimeMap tells, plain, gzip or zstd, as `read_timemap` does.

    Memory is bounded by `MAX_FILE_BYTES`. Damaged files are read up to the damage, with the problems of
    `unlost.text_lines.read_lines`. Raises InputError if the file cannot be read at all.
    """
    name = fspath(path)
    body = bytearray()
    # Where lines were left out, from which byte of the body on, and how many bytes and lines are missing before it.
    gaps = [(0, 0, 0)]
    last = 0
    # Half a line may have many entries, and of half an entry the reader knows what to think.
    for line in read_lines(path, problems, include_cut_line=True):
        missing, missing_lines = gaps[-1][1:]
        between = line.offset - missing - len(body)
        if line.number > last + 1:
            missing, missing_lines = missing + between - 1, missing_lines + line.number - last - 1
            gaps.append((len(body) + 1, missing, missing_lines))
            between = 1
        if len(body) + between + len(line.text) > MAX_FILE_BYTES:
            problems.add(Problem("too-large", name, line.number, line.offset, TIMEMAP_PROBLEM_KINDS["too-large"]))
            break
        body += b"\r\n"[-between:] if between else b""
        body += line.text
        last = line.number
    found = Problems()
    timemap = read_timemap(bytes(body), found, name)
    for kind, first in found.first.items():
        _, missing, missing_lines = max(gap for gap in gaps if gap[0] <= first.offset)
        line_number = (first.line or 0) + missing_lines
        placed = Problem(kind, name, line_number, first.offset + missing, first.message)
        problems.add(placed, found.counts[kind])
    return timemap


def format_timemap(timemap: LinkFormatTimeMap) -> Iterator[str]:
    r"""Yield a TimeMap as link-format, an entry at a time: each ends with `,` and a newline, the last with neither.

    In the order that MemGator has: original, self, mementos, other lists, timegate. The mementos are written in their
    order, and the first and last of them called so by their place: sort them by date before. Raises DateError for a
    date that is none.

    >>> copies = (Memento("http://w/1", "20140210000001"), Memento("http://w/2", "20150210000001"))
    >>> print("".join(timemap_lines(TimeMap("http://a.com/", mementos=copies, timegate="http://w/g"))))
    <http://a.com/>; rel="original",
    <http://w/1>; rel="first memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT",
    <http://w/2>; rel="last memento"; datetime="Tue, 10 Feb 2015 00:00:01 GMT",
    <http://w/g>; rel="timegate"
    """
    before = ""
    for entry in _format_entries(timemap):
        yield before + entry
        before = ",\n"


def _format_entries(timemap: LinkFormatTimeMap) -> Iterator[str]:
    if timemap.original is not None:
        yield f'<{_escape_target(timemap.original)}>; rel="original"'
    if timemap.self_link:
        yield _format_link("self", timemap.self_link)
    final = len(timemap.mementos) - 1
    for place, memento in enumerate(timemap.mementos):
        rel = "first " * (place == 0) + "last " * (place == final) + "memento"
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


_TARGET_ESCAPES = {byte: f"%{byte:02X}" for byte in (*range(33), *b'<>"', 0x7F)}


def _escape_target(uri: str) -> str:
    """Escape what would end the address or the line, so that nobody can write entries of their own."""
    return uri.translate(_TARGET_ESCAPES)


__all__ = ["ArchiveTimeMap", "MementoTuple", "Mementos", "SeenMementos", "read_archive_timemap"]


class MementoTuple(NamedTuple):
    """One copy. datetime: 14 digits, UTC. archive: the id of the archive that listed it. uri: its address (URI-M)."""

    datetime: str
    archive: str
    uri: str


@dataclass(frozen=True, slots=True)
class ArchiveTimeMap:
    """What one TimeMap of an archive tells; what it does not tell is None or empty.

    mementos: with absolute addresses. The rest as in `unlost.memento.timemap.TimeMap`; links may be relative.
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
    """Return what a link-format TimeMap of an archive tells, in time linear in its length. Raises nothing.

    base: the address that links are relative to; it has a host. Reads as `unlost.memento.timemap.read_timemap` does,
    and counts in the same way what it leaves out: also copies whose address is not one of the web (`bad-uri`), and
    those beyond 128 MB of addresses (`too-large`).

    >>> problems = Problems()
    >>> body = b'<x>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT", <ftp://y/20140210000001/>; rel="memento"'
    >>> list(read_archive_timemap(body, "a", "http://a.org/map/", problems).mementos), problems.counts
    ([MementoTuple(datetime='20140210000001', archive='a', uri='http://a.org/map/x')], {'bad-uri': 1})
    """
    mementos, original, itself, timegate, timemaps, others, faults = _core.read_mementos(body, archive, base)
    for kind, times, offset in faults:
        line = body.count(b"\n", 0, offset) + 1
        problems.add(Problem(kind, name, line, offset, TIMEMAP_PROBLEM_KINDS[kind]), times)
    links = tuple(starmap(TimeMapLink, timemaps))
    return ArchiveTimeMap(mementos, original, TimeMapLink(*itself) if itself else None, timegate, links, others)
