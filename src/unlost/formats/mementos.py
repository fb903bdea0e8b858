r"""The copies of a page that archives list: by date, each once, without a Python object for each.

Addresses are kept in visible ASCII without `<`, `>` and `"`: everything else in them is escaped when it comes in, so
that no archive can write entries, headers or lines of its own into what is made of them.

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

from dataclasses import dataclass
from itertools import starmap
from typing import NamedTuple

from unlost import _core
from unlost._core import Mementos, SeenMementos
from unlost.formats.linkformat import TIMEMAP_PROBLEM_KINDS, TimeMapLink
from unlost.formats.problems import Problem, Problems

__all__ = ["ArchiveTimeMap", "MementoTuple", "Mementos", "SeenMementos", "read_archive_timemap"]


class MementoTuple(NamedTuple):
    """One copy. datetime: 14 digits, UTC. archive: the id of the archive that listed it. uri: its address (URI-M)."""

    datetime: str
    archive: str
    uri: str


@dataclass(frozen=True, slots=True)
class ArchiveTimeMap:
    """What one TimeMap of an archive tells; what it does not tell is None or empty.

    mementos: with absolute addresses. The rest as in `unlost.formats.linkformat.TimeMap`; links may be relative.
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

    base: the address that links are relative to; it has a host. Reads as `unlost.formats.linkformat.read_timemap` does,
    and counts in the same way what it leaves out: also copies whose address is not one of the web (`bad-uri`), and
    those beyond 128 MB of addresses (`too-large`).

    >>> problems = Problems()
    >>> body = b'<x>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT", <ftp://y/20140210000001/>; rel="memento"'
    >>> list(read_mementos(body, "a", "http://a.org/map/", problems).mementos), problems.counts
    ([Memento(datetime='20140210000001', archive='a', uri='http://a.org/map/x')], {'bad-uri': 1})
    """
    mementos, original, itself, timegate, timemaps, others, faults = _core.read_mementos(body, archive, base)
    for kind, times, offset in faults:
        line = body.count(b"\n", 0, offset) + 1
        problems.add(Problem(kind, name, line, offset, TIMEMAP_PROBLEM_KINDS[kind]), times)
    links = tuple(starmap(TimeMapLink, timemaps))
    return ArchiveTimeMap(mementos, original, TimeMapLink(*itself) if itself else None, timegate, links, others)
