"""UKVS, the file format of MementoMaps: headers that begin with `!`, then sorted keys with their values.

!fields {"keys": ["surt"], "values": ["frequency"]}
com,* 10000+
org,arxiv)/* 2500~/900 {"note": "single-line JSON"}
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self, cast

from unlost import _core
from unlost.atomic import atomic_file
from unlost.errors import InputError
from unlost.problems import Problem, Problems
from unlost.text_lines import Line, TextSource, read_source_lines, source_name

MAX_JSON_DEPTH = 32
"""Deeper nesting is refused. Headers of maps have two levels."""
# Each alternative matches whatever follows its first character, and none gives back: so it is linear.
_JSON_TOKEN = re.compile(
    r'"(?:[^"\\]|\\(?:.|\Z))*+(?:"|\Z)|([A-Za-z_$@][\w$@.-]*+)(\s*+)(:?)|[\[\]{}]', re.DOTALL | re.ASCII
)


def parse_lenient_json(text: str) -> object:
    """Return the value of a JSON text whose member names may lack quotes. Linear in time, limited in depth.

    Raises ValueError.

    >>> parse_lenient_json('{uri: "http://a.com/{x: 1}", "keys": [true, 1.5]}')
    {'uri': 'http://a.com/{x: 1}', 'keys': [True, 1.5]}
    """
    pieces, end, depth = [], 0, 0
    for token in _JSON_TOKEN.finditer(text):
        found = token[0]
        depth += (found in ("[", "{")) - (found in ("]", "}"))
        if depth > MAX_JSON_DEPTH:
            raise ValueError(f"nested more than {MAX_JSON_DEPTH} deep")
        if token[3]:
            pieces += [text[end : token.start()], f'"{token[1]}":']
            end = token.end()
    pieces.append(text[end:])
    return json.loads("".join(pieces), parse_constant=_reject_constant, parse_float=_parse_finite)


def _parse_finite(text: str) -> float:
    """Return a number that can be written again, which one past all numbers cannot."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number that is too large")
    return number


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


FrequencyBound = Literal["", "+", "-", "~"]
"""How sure a number is: exact, at least, at most, about."""
# 18 digits fit 64 bits, and are more than all archives together hold.
_FREQUENCY = re.compile(r"([0-9]{1,18})?([+~-])?(?:/([0-9]{1,18})?([+~-])?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Frequency:
    """A frequency: `[m][+-~][/[r][+-~]]`. What is not known is None, and then its bound is exact.

    mementos: how many copies (URI-Ms) are held. 0 says that none is, even where something wider says otherwise.
    resources: of how many pages (URI-Rs). `0/20` means 20 pages that are known but cannot be shown.
    """

    mementos: int | None = None
    mementos_bound: FrequencyBound = ""
    resources: int | None = None
    resources_bound: FrequencyBound = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the frequency that a text stands for. A bound without a number says nothing, and is dropped.

        Raises InputError.

        >>> Frequency.parse("2500~/900")
        Frequency(mementos=2500, mementos_bound='~', resources=900, resources_bound='')
        >>> Frequency.parse("/")
        Frequency(mementos=None, mementos_bound='', resources=None, resources_bound='')
        """
        found = _FREQUENCY.fullmatch(text)
        if not found or not text:
            raise InputError(f"expected a frequency such as 300+/20-, found `{text[:40]!a}`")
        mementos, mementos_bound, resources, resources_bound = found.groups()
        return cls(
            int(mementos) if mementos else None,
            cast("FrequencyBound", mementos_bound or "") if mementos else "",
            int(resources) if resources else None,
            cast("FrequencyBound", resources_bound or "") if resources else "",
        )

    def __str__(self) -> str:
        """Return its shortest text: `Frequency.parse(str(f)) == f`.

        >>> str(Frequency(300, "+", 20, "-")), str(Frequency(7)), str(Frequency(None, "", 5)), str(Frequency())
        ('300+/20-', '7', '/5', '/')
        """
        copies = "" if self.mementos is None else f"{self.mementos}{self.mementos_bound}"
        pages = "" if self.resources is None else f"/{self.resources}{self.resources_bound}"
        return copies + pages or "/"

    @property
    def is_exclusion(self) -> bool:
        """Whether it says for sure that nothing is held or known.

        >>> [Frequency.parse(text).is_exclusion for text in ("0", "0-", "0/0", "0+", "0~", "0/20", "/", "1")]
        [True, True, True, False, False, False, False, False]
        """
        return self.mementos == 0 and self.mementos_bound in ("", "-") and not self.resources


UKVS_PROBLEM_KINDS = {
    "too-long": "a line longer than unlost.text_lines.MAX_LINE_BYTES; skipped",
    "bad-header": "a `!` line whose JSON cannot be read or is not what its name asks for; skipped",
    "unknown-header": "a `!` line of another name than context, id, fields and meta; skipped",
    "late-header": "a `!` line behind the first row; skipped",
    "bad-row": "fewer fields than there are keys, control characters, or not UTF-8; skipped",
    "bad-frequency": "a frequency that is missing or cannot be read; the row is kept, with one that is unknown",
    "bad-json": "JSON at the end of a row that cannot be read; the row is kept without it",
    "unsorted": "a key that should stand before the one above it; the row is kept",
    "duplicate-key": "the key of the row above; the row is kept",
    "truncated": "more or fewer bytes of rows than the header declares, or a compressed file that ends early",
}
"""The kinds of problems, and what becomes of the line. Rows are kept where they can be: a map must not lose keys."""
ROW_BYTES_FIELD = "row_bytes"
"""The member of `!meta` that says how many bytes all rows have together, so that a truncated file is recognized."""
_ROW_BYTES_WIDTH = 20  # digits: the number is known last, and its place must not depend on it
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_FIELD = re.compile(r"[^\x00-\x20\x7f\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class UkvsHeader:
    """What stands above the rows.

    context: addresses of what explains the file.
    id: what identifies the archive, such as its `uri`.
    keys, values: the names of a row's fields; the first of the keys is what the file is sorted by first.
    meta: everything else that is said about the file; of several `!meta` lines, all together.
    """

    context: tuple[str, ...] = ()
    id: Mapping[str, object] = field(default_factory=dict)
    keys: tuple[str, ...] = ("surt",)
    values: tuple[str, ...] = ("frequency",)
    meta: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UkvsRow:
    """One key, or one combination of keys, with what is known about it.

    keys: as many as the header names. Their wildcards are not interpreted here.
    values: as they stand, in the order of the header; there may be fewer or more.
    frequency: the value of that name; None if the header names none. Unknown if it could not be read.
    attributes: the object at the end of the line; None if there is none.
    """

    keys: tuple[str, ...]
    values: tuple[str, ...] = ()
    frequency: Frequency | None = None
    attributes: Mapping[str, object] | None = None


class UkvsReader:
    r"""A UKVS file being read: `header` at once, then the rows by iterating, once, in bounded memory.

    UkvsReader(file, problems, name, on_read): what cannot be read is counted in `problems` under `name`, by the kinds
    of `KINDS`. file, name, on_read and what is raised: as `unlost.text_lines.lines_of` has them.

    >>> from io import BytesIO
    >>> reader = UkvsReader(BytesIO(b'!meta {name: "Example"}\ncom,* 10000+\n'), Problems(), "a.ukvs")
    >>> reader.header.meta, [(row.keys, str(row.frequency)) for row in reader]
    ({'name': 'Example'}, [(('com,*',), '10000+')])
    """

    def __init__(
        self,
        file: TextSource,
        problems: Problems,
        name: str | None = None,
        on_read: Callable[[int], object] | None = None,
    ) -> None:
        self._problems = problems
        self._name = source_name(file, name)
        lines = read_source_lines(file, problems, name, on_read)
        self._lines = (line for line in map(_strip_byte_order_mark, lines) if line.text.strip())
        self._first: Line | None = None
        self.header = self._read_header()

    def _report(self, kind: str, line: Line, message: str) -> None:
        self._problems.add(Problem(kind, self._name, line.number, line.offset, message))

    def _read_header(self) -> UkvsHeader:
        found: dict[str, object] = {}
        meta: dict[str, object] = {}
        for line in self._lines:
            if not line.text.startswith(b"!"):
                self._first = line
                break
            name, _, text = line.text[1:].strip().partition(b" ")
            try:
                value = _parse_header(name, text)
            except KeyError:
                self._report("unknown-header", line, "expected !context, !id, !fields or !meta")
            except (ValueError, RecursionError) as error:
                self._report("bad-header", line, f"expected {_EXPECTED_HEADERS[name]}: {_shorten_error(error)}")
            else:
                if name == b"meta":
                    meta.update(value)
                elif name == b"fields":
                    found.update(value)
                else:
                    found[name.decode()] = value[name.decode()]
        return UkvsHeader(**found, meta=meta)  # type: ignore[arg-type]  # checked by _header_value

    def __iter__(self) -> Iterator[UkvsRow]:
        """Yield the rows that have not been read yet."""
        last: bytes | None = None
        start = end = self._first.offset if self._first else 0
        frequency = self.header.values.index("frequency") if "frequency" in self.header.values else None
        while line := self._first or next(self._lines, None):
            self._first = None
            end = line.offset + len(line.text) + 1
            if line.text.startswith(b"!"):
                self._report("late-header", line, "expected headers above all rows")
                continue
            fields, brace, attributes = line.text.strip().partition(b" {")
            columns = fields.split()
            row = self._parse_row(line, columns, frequency, brace + attributes)
            if not row:
                continue
            key = b" ".join(columns[: len(self.header.keys)])
            if last is not None and key <= last:
                kind = "duplicate-key" if key == last else "unsorted"
                self._report(kind, line, "expected keys in the order of their bytes, each once")
            last = key
            yield row
        self._check_row_bytes(end - start)

    def _check_row_bytes(self, found: int) -> None:
        declared = self.header.meta.get(ROW_BYTES_FIELD)
        if isinstance(declared, int) and declared != found and "truncated" not in self._problems.counts:
            self._problems.add(Problem("truncated", self._name, None, 0, _core.wrong_row_bytes(declared, found)))

    def _parse_row(self, line: Line, columns: list[bytes], frequency: int | None, attributes: bytes) -> UkvsRow | None:
        width = len(self.header.keys)
        if len(columns) < width or _CONTROL.search(line.text):
            self._report("bad-row", line, f"expected {width} keys, then values, without control characters")
            return None
        try:
            texts = tuple(column.decode() for column in columns)
        except UnicodeDecodeError:
            self._report("bad-row", line, "expected UTF-8")
            return None
        keys, values = texts[:width], texts[width:]
        held = None
        if frequency is not None:
            try:
                held = Frequency.parse(values[frequency] if frequency < len(values) else "")
            except InputError as error:
                self._report("bad-frequency", line, str(error))
                held = Frequency()
        return UkvsRow(keys, values, held, self._parse_attributes(line, attributes) if attributes else None)

    def _parse_attributes(self, line: Line, text: bytes) -> Mapping[str, object] | None:
        try:
            return _require_object(parse_lenient_json(text.decode()))
        except (ValueError, RecursionError) as error:
            self._report("bad-json", line, f"expected an object: {_shorten_error(error)}")
            return None


def _strip_byte_order_mark(line: Line) -> Line:
    """Return a line without the byte-order mark that some editors put before the first."""
    return line._replace(text=line.text.removeprefix(b"\xef\xbb\xbf")) if line.number == 1 else line


_EXPECTED_HEADERS = {
    b"context": "a list of addresses",
    b"id": "an object",
    b"fields": "an object with lists of names, `keys` and `values`",
    b"meta": "an object",
}


def _parse_header(name: bytes, text: bytes) -> dict[str, object]:
    """Return the parts of a header that a line gives. Raises KeyError for an unknown name, ValueError for bad JSON."""
    if name not in _EXPECTED_HEADERS:
        raise KeyError(name)
    value = parse_lenient_json(text.decode())
    if name == b"context":
        return {"context": _require_names([value] if isinstance(value, str) else value)}
    if name == b"id":
        return {"id": {"uri": value} if isinstance(value, str) else _require_object(value)}
    if name == b"meta":
        return _require_object(value)
    fields = _require_object(value)
    keys, values = _require_names(fields.get("keys")), _require_names(fields.get("values", []))
    if not keys:
        raise ValueError("no keys")
    return {"keys": keys, "values": values}


def _require_object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004  counted with other faults of the line
    return value


def _require_names(value: object) -> tuple[str, ...]:
    if not (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        raise ValueError("not a list of texts")
    return tuple(value)


def _shorten_error(error: Exception) -> str:
    return ascii(str(error))[1:-1][:80]


def write_ukvs(path: Path, header: UkvsHeader, rows: Iterable[UkvsRow]) -> None:
    """Write a UKVS file, with strict JSON; it appears once it is complete, and the same rows make the same bytes.

    The frequency is written from `values`, not from `frequency`. Raises InputError, and leaves nothing, if the keys are
    not in the order of their bytes, each once, or if a field is empty, has white space in it or begins as something
    else does (`!`, `{`).
    """
    with atomic_file(path) as file:
        file.write(format_header(header))
        last = b""
        for row in rows:
            line = _format_row(row, len(header.keys))
            key = b" ".join(line.split(b" ", len(row.keys))[: len(row.keys)])
            if key <= last:
                raise InputError(
                    f"expected keys in the order of their bytes, each once, found {ascii(row.keys[0])[:60]}"
                )
            last = key
            file.write(line + b"\n")


def format_header(header: UkvsHeader) -> bytes:
    """Return the lines that stand above the rows, in strict JSON."""
    # In the order of their bytes too, so that `LC_ALL=C sort --check` holds for the whole file.
    fields = {"keys": header.keys, "values": header.values}
    parts = {"context": header.context, "fields": fields, "id": header.id}
    lines = [f"!{name} {_format_json(value)}\n" for name, value in parts.items()]
    return "".join([*lines, f"!meta {_format_meta(header.meta)}\n"]).encode()


def _format_meta(meta: Mapping[str, object]) -> str:
    """Return `!meta` as JSON, with the size of the rows last, right-aligned in a field of fixed width."""
    row_bytes = meta.get(ROW_BYTES_FIELD)
    if not isinstance(row_bytes, int):
        return _format_json(meta)
    others = {name: value for name, value in meta.items() if name != ROW_BYTES_FIELD}
    end = f"{row_bytes}}}"
    return f"{_format_json({**others, ROW_BYTES_FIELD: row_bytes}).removesuffix(end)}{end:>{_ROW_BYTES_WIDTH + 1}}"


def _format_row(row: UkvsRow, width: int) -> bytes:
    fields = [*row.keys, *row.values]
    sound = all(_FIELD.fullmatch(text) and not text.startswith("{") for text in fields)
    if len(row.keys) != width or not sound or row.keys[0].startswith("!"):
        raise InputError(f"expected {width} keys, then values, without white space, found {ascii(fields)[:60]}")
    if row.attributes is not None:
        fields.append(_format_json(row.attributes))
    return " ".join(fields).encode()


def _format_json(value: object) -> str:
    return json.dumps(value, separators=(", ", ": "), allow_nan=False)
