"""All readers that take a path, each with valid and invalid lines.

`python -m tests.index.line_readers NAME PATH` reads a file in its own process and prints the number of records, the
problems by kind, and the memory growth in KiB.
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
from unlost.problems import Problems

Reader = Callable[[str | PathLike[str], Problems], int]


@dataclass(frozen=True)
class ReaderExample:
    """A reader with sample lines.

    read: returns the number of records in a file.
    first, second: one record each, as a line with its end.
    nul, invalid_utf8: a line with a NUL, and one with invalid UTF-8.
    problems: the expected problem counts of these two lines.
    readable: how many of these two lines are read as records.
    """

    read: Reader
    first: bytes
    second: bytes
    nul: bytes
    invalid_utf8: bytes
    problems: dict[str, int] = field(default_factory=dict)
    readable: int = 0


def _captures(path: str | PathLike[str], problems: Problems) -> int:
    return sum(1 for _ in reader.read_index_captures(path, problems))


def _hits(path: str | PathLike[str], problems: Problems) -> int:
    return sum(1 for _ in access.read_access_log(path, problems, host="a.com"))


_CDX = b"com,a)/%b 20140210000001 http://a.com/ text/html 200 X - 7 a.warc\n"
_CDXJ = b'com,a)/%b 20140210000001 {"url": "http://a.com/"}\n'
_LOG = b'192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "GET /%b HTTP/1.0" 200 5\n'
_UPSTREAM = (
    b'{"time":"2026-01-31T12:00:00Z","archive":"ia","uri":"http://a.com/%b","endpoint":"timemap","outcome":"hit",'
)
_UPSTREAM += b'"reason":"routed"}\n'

EXAMPLES = {
    "cdx": ReaderExample(_captures, _CDX % b"a", _CDX % b"b", _CDX % b"\0", _CDX % b"\xff", {"binary": 1}, 1),
    "cdxj": ReaderExample(_captures, _CDXJ % b"a", _CDXJ % b"b", _CDXJ % b"\0", _CDXJ % b"\xff", {"binary": 1}, 1),
    "ukvs": ReaderExample(
        lambda path, problems: sum(1 for _ in ukvs.UkvsReader(path, problems)),
        b"com,a)/a 1\n",
        b"com,b)/b 1\n",
        b"com,b)/\0 1\n",
        b"com,b)/\xff 1\n",
        {"bad-row": 2},
    ),
    "url list": ReaderExample(
        lambda path, problems: sum(1 for _ in text_lines.read_urls(path, problems)),
        b"http://a.com/\n",
        b"http://b.com/\n",
        b"http://a.com/\0\n",
        b"http://a.com/\xff\n",
        {"bad-uri": 1},
        1,
    ),
    # Servers usually escape such bytes; unescaped ones are read too.
    "access log": ReaderExample(_hits, _LOG % b"a", _LOG % b"b", _LOG % b"\0", _LOG % b"\xff", {}, 2),
    "upstream": ReaderExample(
        lambda path, problems: sum(1 for _ in upstream.read_upstream_log(path, problems)),
        _UPSTREAM % b"a",
        _UPSTREAM % b"b",
        _UPSTREAM % b"\0",
        _UPSTREAM % b"\xff",
        {"bad-json": 2},
    ),
}


def main(name: str, path: str) -> None:
    """Read a file and print the result as JSON."""
    problems = Problems()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = EXAMPLES[name].read(path, problems)
    growth_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([count, problems.counts, growth_kib]))


if __name__ == "__main__":
    main(*sys.argv[1:])
