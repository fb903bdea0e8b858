"""Detects what a file contains, from its magic bytes, its name and its first lines.

Distinguishes indexes, URL lists, access logs and maps, and rejects known but unsupported formats with advice. Detection
fails closed: a URL list accepts any line as a URL, so a wrong guess would make a map that denies pages that are held.
A new index format is recognized here and parsed by `unlost.index.reader`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, get_args

from unlost.errors import InputError
from unlost.problems import Problems, unreadable_error
from unlost.text_lines import Line, read_lines

LineKind = Literal["index", "urls", "log", "map"]

_KINDS: tuple[LineKind, ...] = get_args(LineKind)

SAMPLED_LINES = 500
"""Maximum number of lines read to detect what a file contains."""

_SAMPLED_BYTES = 1 << 20  # limit in case of long lines
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some editors write it before the first line."""

# Magic bytes at the beginning of formats that are not supported, with advice.
_MAGIC = {
    b"PAR1": "a Parquet file: read it with `--engine spark`, or write its rows as CDXJ first",
    b"BZh": "compressed with bzip2: decompress it first (`bzip2 -d`), or compress it with gzip or zstd",
    b"\xfd7zXZ\0": "compressed with xz: decompress it first (`xz -d`), or compress it with gzip or zstd",
    b"\x04\x22\x4d\x18": "compressed with lz4: decompress it first (`lz4 -d`), or compress it with gzip or zstd",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive: unpack it first",
    b"SQLite format 3\0": "an SQLite database: export its rows as CDXJ or as a list of URLs first",
    b"\xff\xfe": "UTF-16 text: write it as UTF-8 first (`iconv -f UTF-16 -t UTF-8`)",
    b"\xfe\xff": "UTF-16 text: write it as UTF-8 first (`iconv -f UTF-16 -t UTF-8`)",
}
_MAGIC_BYTES = max(map(len, _MAGIC))

_ZIPNUM_ADVICE = "the block list of a ZipNum index: name it with the ending .idx, next to its .loc and its blocks"
_BARE_CR_ADVICE = "the lines end in bare CR: write them with LF first (`tr '\\r' '\\n'`)"

_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")  # control characters other than white space
_DATE = re.compile(rb"\d{1,14}|\d{17}|\d{4}-[-0-9:TtZz.,+]*")
_LOG = re.compile(rb"\[\d{1,2}/[A-Za-z]{3}/\d{4}:")
_FREQUENCY = re.compile(rb"(?=.)(\d{1,18}[+~-]?)?(/(\d{1,18}[+~-]?)?)?")
_ZIPNUM_LINE = re.compile(rb"[^\t ]+( \d+)?\t[^\t]+\t\d+\t\d+(\t\d+)?\s*")

_KIND_LABELS = {
    "index": "rows of an index",
    "urls": "URLs",
    "log": "lines of a log",
    "map": "rows of a map",
    "binary": "not text",
    "other": "others",
}


def reject_unsupported_formats(path: str | PathLike[str], name: str | None = None) -> None:
    """Raise InputError for a file in a known but unsupported format, with advice.

    Also raises InputError if the file cannot be read. `name` is the file's name for messages, if not its path.
    """
    label = name or fspath(path)
    if Path(label).suffix == ".summary":
        raise InputError(f"{label}: {_ZIPNUM_ADVICE}")
    try:
        with Path(path).open("rb") as file:
            head = file.read(_MAGIC_BYTES)
    except OSError as error:
        raise unreadable_error(label, error) from error
    for magic, advice in _MAGIC.items():
        if head.startswith(magic):
            raise InputError(f"{label}: {advice}")


def detect_line_kind(
    path: str | PathLike[str], name: str | None = None, *, unknown: LineKind | None = None
) -> LineKind:
    """Return what the lines of a text file (plain, gzip or zstd) are. An empty file counts as an index.

    A header decides; otherwise the majority of the first `SAMPLED_LINES` lines, never one line. Rows of CDX and CDXJ
    may be mixed. The reader counts other lines among them.

    Args:
        path: The file.
        name: Name for messages, if not the path.
        unknown: Result for lines of no known kind; None to raise InputError.

    Raises:
        InputError: The lines are of no known kind or mostly of different kinds, or there are index rows among URLs.
    """
    label = name or fspath(path)
    counts: Counter[str] = Counter()
    for number, text in enumerate(sample_lines(read_lines(path, Problems(), name=label, batch_lines=100))):
        if not number and b"\r" in text:
            raise InputError(f"{label}: {_BARE_CR_ADVICE}")
        if text.startswith(b"!fields "):
            return "map"
        if is_cdx_header(text):
            return "index"
        if text[:1] not in b"!@#":
            counts[classify_line(text)] += 1
    if counts["zipnum"]:
        raise InputError(f"{label}: {_ZIPNUM_ADVICE}")
    is_unknown = not sum(counts[kind] for kind in _KINDS) or counts["binary"] * 2 > counts.total()
    return unknown if unknown and is_unknown else _majority_kind(counts, label)


def detect_query_format(path: str | PathLike[str]) -> Literal["json", "log", "urls"]:
    """Return whether a file lists queries as JSON Lines, as an access log or as URLs.

    An empty file counts as URLs. Raises InputError if the file cannot be read, or is an index or a map, whose rows are
    not queries.
    """
    reject_unsupported_formats(path)
    lines = sample_lines(read_lines(path, Problems(), batch_lines=100))
    first = next((text for text in lines if not text.startswith(b"#")), b"")
    if not first or first.lstrip().startswith(b"{"):
        return "json" if first else "urls"
    kind = detect_line_kind(path, unknown="urls")
    if kind in ("index", "map") or first.startswith(b"!"):
        raise InputError(f"{fspath(path)}: {'an index' if kind == 'index' else 'a map'}, not a log or a list of URLs")
    return "log" if kind == "log" else "urls"


def is_table(path: str | PathLike[str]) -> bool:
    """Return whether most of the first lines of a text file have tab-separated columns. Raises InputError."""
    tabs = [b"\t" in text.strip() for text in sample_lines(read_lines(path, Problems(), batch_lines=100))]
    return sum(tabs) * 2 > len(tabs)


def sample_lines(lines: Iterable[Line]) -> Iterator[bytes]:
    """Yield the text of the first lines, without blank lines and the byte order mark."""
    remaining = _SAMPLED_BYTES
    for line in islice(lines, SAMPLED_LINES):
        text = line.text.removeprefix(BYTE_ORDER_MARK) if line.number == 1 else line.text
        if text.strip():
            yield text
        remaining -= len(text)
        if remaining < 0:
            return


def is_cdx_header(text: bytes) -> bool:
    """Return whether a line is a CDX header, valid or not."""
    return text[1:4] == b"CDX" and not text[:1].isalnum()


def has_json_column(text: bytes) -> bool:
    """Return whether the third or fourth field of a line begins with a brace, as in CDXJ of pywb or OpenWayback."""
    return any(column.startswith(b"{") for column in text.split(None, 4)[2:4])


def classify_line(text: bytes) -> str:  # noqa: PLR0911  one for each kind
    """Return what a line is: `index`, `urls`, `log`, `map`, `zipnum` (of a block list), `binary` or `other`.

    >>> classify_line(b'com,a)/ 2014 {"url": "http://a.com/"}'), classify_line(b"http://a.com/")
    ('index', 'urls')
    >>> classify_line(b"a b c")
    'other'
    """
    if _BINARY.search(text):
        return "binary"
    if _LOG.search(text[:1000]):
        return "log"
    if _ZIPNUM_LINE.fullmatch(text):
        return "zipnum"
    columns = text.split(None, 11)
    # Old indexes have URLs as keys, followed by a date.
    has_date = len(columns) > 2 and _DATE.fullmatch(columns[1]) is not None
    if has_date and (9 <= len(columns) <= 11 or has_json_column(text)):
        return "index"
    if b' {"' in text or text.lstrip().startswith(b"{"):
        return "other"
    if len(columns) == 1 or b"\t" in text or b"://" in columns[0]:
        return "urls"
    if len(columns) == 2 and _FREQUENCY.fullmatch(columns[1]):
        return "map"
    return "other"


def _majority_kind(counts: Counter[str], name: str) -> LineKind:
    """Return the kind of most lines. Raises InputError if it is ambiguous."""
    total = counts.total()
    best = max(_KINDS, key=lambda kind: counts[kind])
    if not total:
        return "index"
    if counts["binary"] * 2 > total:
        raise InputError(f"{name}: a binary file: expected CDX, CDXJ, WARC, a list of URLs, a log or a map")
    if not counts[best]:
        raise InputError(
            f"{name}: expected lines of CDX or CDXJ: a key, a date, and columns or an object; --input says what else "
            "it is"
        )
    if counts[best] * 2 < total or (best == "urls" and counts["index"]):
        summary = ", ".join(
            f"{counts[kind]} {_KIND_LABELS[kind]}" for kind in (*_KINDS, "binary", "other") if counts[kind]
        )
        raise InputError(f"{name}: lines of different kinds ({summary}): split the file, or give its kind with --input")
    return best
