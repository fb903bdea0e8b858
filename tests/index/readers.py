"""Every reader that takes a path, with lines that it reads and lines that it does not.

`python -m tests.index.readers NAME PATH` reads a file in a process of its own and prints how many records it has, its
problems by kind, and by how many KiB the process grew.
"""

import json
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike

from unlost import text_lines
from unlost.index import reader, ukvs
from unlost.logs import access, upstream
from unlost.memento import timemap
from unlost.problems import Problems

Reader = Callable[[str | PathLike[str], Problems], int]


@dataclass(frozen=True)
class Example:
    """A reader by what it reads.

    read: returns how many records a file has.
    first, second: one record each, a line with its end.
    nul, no_utf8: a line with a NUL, and one that is no UTF-8.
    problems: what these two are counted as; a line that is kept is counted as nothing.
    kept: how many of these two are records nevertheless.
    """

    read: Reader
    first: bytes
    second: bytes
    nul: bytes
    no_utf8: bytes
    problems: dict[str, int] = field(default_factory=dict)
    kept: int = 0


def _captures(path: str | PathLike[str], problems: Problems) -> int:
    return sum(1 for _ in reader.read_index_captures(path, problems))


def _mementos(path: str | PathLike[str], problems: Problems) -> int:
    return len(timemap.read_timemap_file(path, problems).mementos)


def _hits(path: str | PathLike[str], problems: Problems) -> int:
    return sum(1 for _ in access.read_access_log(path, problems, host="a.com"))


_CDX = b"com,a)/%b 20140210000001 http://a.com/ text/html 200 X - 7 a.warc\n"
_CDXJ = b'com,a)/%b 20140210000001 {"url": "http://a.com/"}\n'
_LOG = b'192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "GET /%b HTTP/1.0" 200 5\n'
_ANSWER = b'{"time":"2026-01-31T12:00:00Z","archive":"ia","uri":"http://a.com/%b","endpoint":"timemap","outcome":"hit",'
_ANSWER += b'"reason":"routed"}\n'
_MEMENTO = b'<http://w/20140210000001/a.com/%b>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT",\n'

EXAMPLES = {
    "cdx": Example(_captures, _CDX % b"a", _CDX % b"b", _CDX % b"\0", _CDX % b"\xff", {"binary": 1}, 1),
    "cdxj": Example(_captures, _CDXJ % b"a", _CDXJ % b"b", _CDXJ % b"\0", _CDXJ % b"\xff", {"binary": 1}, 1),
    "ukvs": Example(
        lambda path, problems: sum(1 for _ in ukvs.UkvsReader(path, problems)),
        b"com,a)/a 1\n",
        b"com,b)/b 1\n",
        b"com,b)/\0 1\n",
        b"com,b)/\xff 1\n",
        {"bad-row": 2},
    ),
    "url list": Example(
        lambda path, problems: sum(1 for _ in text_lines.read_urls(path, problems)),
        b"http://a.com/\n",
        b"http://b.com/\n",
        b"http://a.com/\0\n",
        b"http://a.com/\xff\n",
        {"bad-uri": 1},
        1,
    ),
    # Servers write such bytes as escapes; those that do not are read all the same.
    "access log": Example(_hits, _LOG % b"a", _LOG % b"b", _LOG % b"\0", _LOG % b"\xff", {}, 2),
    "upstream": Example(
        lambda path, problems: sum(1 for _ in upstream.read_upstream_log(path, problems)),
        _ANSWER % b"a",
        _ANSWER % b"b",
        _ANSWER % b"\0",
        _ANSWER % b"\xff",
        {"bad-json": 2},
    ),
    "link-format": Example(
        _mementos, _MEMENTO % b"a", _MEMENTO % b"b", _MEMENTO % b"\0", _MEMENTO % b"\xff", {"bad-uri": 1}, 1
    ),
}


def main(name: str, path: str) -> None:
    """Read a file and print what came of it."""
    problems = Problems()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = EXAMPLES[name].read(path, problems)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([count, problems.counts, grown]))


if __name__ == "__main__":
    main(*sys.argv[1:])
