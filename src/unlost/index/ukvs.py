"""UKVS (Unified Key Value Store), the format of MementoMaps: header lines that begin with `!`, then sorted rows.

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
"""Maximum nesting of JSON in headers and rows. Headers of maps have two levels."""
# Possessive quantifiers prevent backtracking, so matching is linear.
_JSON_TOKEN = re.compile(
    r'"(?:[^"\\]|\\(?:.|\Z))*+(?:"|\Z)|([A-Za-z_$@][\w$@.-]*+)(\s*+)(:?)|[\[\]{}]', re.DOTALL | re.ASCII
)

FrequencyBound = Literal["", "+", "-", "~"]
"""Precision of a number: exact, at least, at most, about."""
# 18 digits fit into 64 bits; no archive holds as many mementos.
_FREQUENCY = re.compile(r"([0-9]{1,18})?([+~-])?(?:/([0-9]{1,18})?([+~-])?)?", re.ASCII)

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
"""Kinds of problems, and how the line is treated. Rows are used where possible, because a map must not lose keys."""
ROW_BYTES_FIELD = "row_bytes"
"""Member of `!meta` with the total size of all rows in bytes, by which a truncated file is detected."""
_ROW_BYTES_WIDTH = 20  # digits. Fixed, because the number is known last, when the rows are already written
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_FIELD = re.compile(r"[^\x00-\x20\x7f\ud800-\udfff]+")

_EXPECTED_HEADERS = {
    b"context": "a list of addresses",
    b"id": "an object",
    b"fields": "an object with lists of names, `keys` and `values`",
    b"meta": "an object",
}


def parse_lenient_json(text: str) -> object:
    """Parse JSON whose member names may lack quotes, in linear time and with limited nesting. Raises ValueError.

    Headers in the MementoMap paper have such names.

    >>> parse_lenient_json('{uri: "http://a.com/{x: 1}", "keys": [true, 1.5]}')
    {'uri': 'http://a.com/{x: 1}', 'keys': [True, 1.5]}
    """
    pieces, end, depth = [], 0, 0
    for token in _JSON_TOKEN.finditer(text):
        token_text = token[0]
        depth += (token_text in ("[", "{")) - (token_text in ("]", "}"))
        if depth > MAX_JSON_DEPTH:
            raise ValueError(f"nested more than {MAX_JSON_DEPTH} deep")
        if token[3]:
            pieces += [text[end : token.start()], f'"{token[1]}":']
            end = token.end()
    pieces.append(text[end:])
    return json.loads("".join(pieces), parse_constant=_reject_constant, parse_float=_parse_finite)


def _parse_finite(text: str) -> float:
    """Return a float that can be written as JSON again. Raises ValueError for infinity."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number that is too large")
    return number


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


@dataclass(frozen=True, slots=True)
class Frequency:
    """A frequency: `[m][+-~][/[r][+-~]]`. Unknown numbers are None, with an empty bound.

    Attributes:
        mementos: Number of mementos (URI-Ms) held. 0 excludes the key from wider wildcards.
        mementos_bound: Precision of `mementos`.
        resources: Number of pages (URI-Rs). `0/20` means 20 pages that are known but not replayable.
        resources_bound: Precision of `resources`.
    """

    mementos: int | None = None
    mementos_bound: FrequencyBound = ""
    resources: int | None = None
    resources_bound: FrequencyBound = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a frequency. A bound without a number is dropped. Raises InputError.

        >>> Frequency.parse("2500~/900")
        Frequency(mementos=2500, mementos_bound='~', resources=900, resources_bound='')
        >>> Frequency.parse("/")
        Frequency(mementos=None, mementos_bound='', resources=None, resources_bound='')
        """
        match = _FREQUENCY.fullmatch(text)
        if not match or not text:
            raise InputError(f"expected a frequency such as 300+/20-, found `{text[:40]!a}`")
        mementos, mementos_bound, resources, resources_bound = match.groups()
        return cls(
            int(mementos) if mementos else None,
            cast("FrequencyBound", mementos_bound or "") if mementos else "",
            int(resources) if resources else None,
            cast("FrequencyBound", resources_bound or "") if resources else "",
        )

    def __str__(self) -> str:
        """Return the shortest text, such that `Frequency.parse(str(f)) == f`.

        >>> str(Frequency(300, "+", 20, "-")), str(Frequency(7)), str(Frequency(None, "", 5)), str(Frequency())
        ('300+/20-', '7', '/5', '/')
        """
        mementos = "" if self.mementos is None else f"{self.mementos}{self.mementos_bound}"
        resources = "" if self.resources is None else f"/{self.resources}{self.resources_bound}"
        return mementos + resources or "/"

    @property
    def is_exclusion(self) -> bool:
        """Whether the row says that nothing is held or known, without uncertainty.

        >>> [Frequency.parse(text).is_exclusion for text in ("0", "0-", "0/0", "0+", "0~", "0/20", "/", "1")]
        [True, True, True, False, False, False, False, False]
        """
        return self.mementos == 0 and self.mementos_bound in ("", "-") and not self.resources


@dataclass(frozen=True, slots=True)
class UkvsHeader:
    """Header of a UKVS file.

    Attributes:
        context: URLs of documentation.
        id: Identification of the archive, such as its `uri`.
        keys: Names of the key fields; the file is sorted by them in this order.
        values: Names of the value fields.
        meta: Other metadata; several `!meta` lines are combined.
    """

    context: tuple[str, ...] = ()
    id: Mapping[str, object] = field(default_factory=dict)
    keys: tuple[str, ...] = ("surt",)
    values: tuple[str, ...] = ("frequency",)
    meta: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UkvsRow:
    """One key, or combination of keys, with its values.

    Attributes:
        keys: Key fields, as many as the header names. Wildcards are not interpreted.
        values: Value fields, verbatim, in the order of the header; there may be fewer or more.
        frequency: Parsed value of the field `frequency`, unknown if it is invalid; None if the header has no such
            field.
        attributes: JSON object at the end of the line; None if there is none.
    """

    keys: tuple[str, ...]
    values: tuple[str, ...] = ()
    frequency: Frequency | None = None
    attributes: Mapping[str, object] | None = None


class UkvsReader:
    r"""Reads a UKVS file: `header` at once, the rows by iterating once, in bounded memory.

    Arguments are those of `unlost.text_lines.read_source_lines`; problems are of the kinds of `UKVS_PROBLEM_KINDS`.

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
        members: dict[str, object] = {}
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
                    members.update(value)
                else:
                    members[name.decode()] = value[name.decode()]
        return UkvsHeader(**members, meta=meta)  # type: ignore[arg-type]  # checked by _header_value

    def __iter__(self) -> Iterator[UkvsRow]:
        """Yield the remaining rows."""
        previous: bytes | None = None
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
            if previous is not None and key <= previous:
                kind = "duplicate-key" if key == previous else "unsorted"
                self._report(kind, line, "expected keys in the order of their bytes, each once")
            previous = key
            yield row
        self._check_row_bytes(end - start)

    def _check_row_bytes(self, actual: int) -> None:
        declared = self.header.meta.get(ROW_BYTES_FIELD)
        if isinstance(declared, int) and declared != actual and "truncated" not in self._problems.counts:
            self._problems.add(Problem("truncated", self._name, None, 0, _core.wrong_row_bytes(declared, actual)))

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
        parsed_frequency = None
        if frequency is not None:
            try:
                parsed_frequency = Frequency.parse(values[frequency] if frequency < len(values) else "")
            except InputError as error:
                self._report("bad-frequency", line, str(error))
                parsed_frequency = Frequency()
        return UkvsRow(keys, values, parsed_frequency, self._parse_attributes(line, attributes) if attributes else None)

    def _parse_attributes(self, line: Line, text: bytes) -> Mapping[str, object] | None:
        try:
            return _require_object(parse_lenient_json(text.decode()))
        except (ValueError, RecursionError) as error:
            self._report("bad-json", line, f"expected an object: {_shorten_error(error)}")
            return None


def _strip_byte_order_mark(line: Line) -> Line:
    """Remove the byte order mark that some editors write before the first line."""
    return line._replace(text=line.text.removeprefix(b"\xef\xbb\xbf")) if line.number == 1 else line


def _parse_header(name: bytes, text: bytes) -> dict[str, object]:
    """Return the header members in a line. Raises KeyError for an unknown name, ValueError for invalid JSON."""
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
        raise ValueError("not an object")  # noqa: TRY004  counted with other errors of the line
    return value


def _require_names(value: object) -> tuple[str, ...]:
    if not (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        raise ValueError("not a list of texts")
    return tuple(value)


def _shorten_error(error: Exception) -> str:
    return ascii(str(error))[1:-1][:80]


def write_ukvs(path: Path, header: UkvsHeader, rows: Iterable[UkvsRow]) -> None:
    """Write a UKVS file atomically, in strict JSON. Equal rows yield equal bytes.

    The frequency is written from `values`, not from `frequency`. Raises InputError, and writes nothing, if the keys are
    not sorted and unique, or if a field is empty, contains white space or begins with `!` or `{`.
    """
    with atomic_file(path) as file:
        file.write(format_header(header))
        previous = b""
        for row in rows:
            line = _format_row(row, len(header.keys))
            key = b" ".join(line.split(b" ", len(row.keys))[: len(row.keys)])
            if key <= previous:
                raise InputError(
                    f"expected keys in the order of their bytes, each once, found {ascii(row.keys[0])[:60]}"
                )
            previous = key
            file.write(line + b"\n")


def format_header(header: UkvsHeader) -> bytes:
    """Return the header lines, in strict JSON."""
    # In byte order, so that `LC_ALL=C sort --check` succeeds for the whole file.
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
    is_valid = all(_FIELD.fullmatch(text) and not text.startswith("{") for text in fields)
    if len(row.keys) != width or not is_valid or row.keys[0].startswith("!"):
        raise InputError(f"expected {width} keys, then values, without white space, found {ascii(fields)[:60]}")
    if row.attributes is not None:
        fields.append(_format_json(row.attributes))
    return " ".join(fields).encode()


def _format_json(value: object) -> str:
    return json.dumps(value, separators=(", ", ": "), allow_nan=False)
