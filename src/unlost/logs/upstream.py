"""Logs of upstream responses: what each archive returned when an aggregator queried it.

The log of unlost is JSON Lines with fixed fields (docs/formats.md). Maps learn misses from it, routing learns hit
rates. Logs of MemGator are read too.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter
from typing import Literal, Protocol, get_args

from unlost.dates import from_iso, pad
from unlost.errors import DateError, InputError
from unlost.problems import Problem, Problems
from unlost.text_lines import TextSource, read_source_lines, source_name

UpstreamEndpoint = Literal["timemap", "timegate"]
"""What was asked."""
UpstreamOutcome = Literal[
    "hit",  # it holds at least one copy
    "miss",  # it answered that it holds none
    "timeout",  # nothing, or not everything, before the deadline
    "refused",  # no connection: a block, or a server that is down
    "reset",  # the connection ended before the answer did
    "dns",  # its name was not found
    "tls",  # no secure connection
    "redirect",  # redirected in a circle, too often, or to where it must not
    "limited",  # 429, or another way to say: less
    "http-4xx",  # any other status of the class, but for those that mean a miss
    "http-5xx",
    "malformed",  # an answer that could not be read
    "too-large",  # an answer past the cap
]
"""What came of it."""
RoutingReason = Literal[
    "routed",  # its map or filter says that it may hold the page
    "explored",  # its map or filter says no, and it was asked nevertheless, to know how often that is wrong
    "learned",  # it has no map; its hit rate made it worth asking
    "broadcast",  # all were asked
    "requested",  # whoever asked named it
]
"""Why it was asked."""
UPSTREAM_LOG_PROBLEM_KINDS = {
    "too-long": "a line longer than unlost.text_lines.MAX_LINE_BYTES",
    "bad-json": "expected a JSON object",
    "missing-field": "a field that every answer has",
    "bad-field": "a value that the field cannot have",
}
"""The kinds of problems, and what each means. All of them lose their line."""
_MAX_NUMBER = 2**53 - 1  # what every reader of JSON keeps exactly
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class UpstreamLogEntry:
    """One answer of one archive.

    time: when the answer, or the failure, was there: ISO 8601 in UTC, `2026-01-31T12:00:00.250Z`.
    archive: its id in the registry.
    uri: the page that was asked for (URI-R).
    endpoint, outcome, reason: as listed above.
    key: the page's normal key; None if it has none.
    status: the HTTP status; None if there was no response.
    mementos: how many copies were listed; None if the answer does not tell, as that of a TimeGate.
    first, last: the dates of the earliest and the latest copy seen, 14 digits, UTC.
    duration_ms: from asking to the end of the answer, in milliseconds.
    bytes: of the body, as it came over the network; None if nobody counted.
    from_cache: it was not asked now: the answer is one that was kept.
    """

    time: str
    archive: str
    uri: str
    endpoint: UpstreamEndpoint
    outcome: UpstreamOutcome
    reason: RoutingReason
    key: str | None = None
    status: int | None = None
    mementos: int | None = None
    first: str | None = None
    last: str | None = None
    duration_ms: float = 0.0
    bytes: int | None = None
    from_cache: bool = False


class SupportsWrite(Protocol):
    """A file opened for writing bytes, or anything like it."""

    def write(self, data: bytes, /) -> object:
        """Write all of it."""
        ...


def read_upstream_log(file: TextSource, problems: Problems, name: str | None = None) -> Iterator[UpstreamLogEntry]:
    r"""Yield the answers of a log, in its order and in bounded memory.

    Strict: a line with a field that is missing or has a value that it cannot have is left out and counted in
    `problems` under `name`, by the kinds of `KINDS`. Fields of later versions are ignored. file, name and what is
    raised: as `unlost.text_lines.lines_of` has them.

    >>> from io import BytesIO
    >>> line = UpstreamLogEntry("2026-01-31T12:00:00Z", "ia", "http://a.com/", "timemap", "hit", "routed", mementos=7)
    >>> problems = Problems()
    >>> list(read_upstream_log(BytesIO(format_log_entry(line) + b'{"time": "now"}\n'), problems, "x")) == [line]
    True
    >>> str(problems.first["missing-field"])
    'x:2 (byte 174): missing-field: expected `archive`'
    """
    called = source_name(file, name)
    for line in read_source_lines(file, problems, name):
        if not line.text.strip():
            continue
        found = _parse_entry(line.text)
        if isinstance(found, UpstreamLogEntry):
            yield found
        else:
            problems.add(Problem(found[0], called, line.number, line.offset, found[1]))


def format_log_entry(entry: UpstreamLogEntry) -> bytes:
    """Return an answer as a line of the log, with its end. Fields that are None are left out.

    Raises InputError for a value that would not be read back.
    """
    values = {name: value for name, value in zip(_FIELD_NAMES, _field_values(entry), strict=True) if value is not None}
    fault = _find_fault(values)
    if fault:
        raise InputError(fault[1])
    return _encode(values).encode() + b"\n"


def write_upstream_log(file: SupportsWrite, entries: Iterable[UpstreamLogEntry]) -> None:
    """Write answers to a log, each with one call, so that lines of several writers to one file do not mix."""
    for answer in entries:
        file.write(format_log_entry(answer))


def _parse_entry(text: bytes) -> UpstreamLogEntry | tuple[str, str]:
    """Return what a line tells, or kind and message of its problem."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return "bad-json", UPSTREAM_LOG_PROBLEM_KINDS["bad-json"]
    if not isinstance(values, dict):
        return "bad-json", UPSTREAM_LOG_PROBLEM_KINDS["bad-json"]
    known = {name: values[name] for name in _FIELD_NAMES if values.get(name) is not None}
    return _find_fault(known) or UpstreamLogEntry(**known)


def _find_fault(values: dict[str, object]) -> tuple[str, str] | None:
    for name in _REQUIRED_FIELDS:
        if name not in values:
            return "missing-field", f"expected `{name}`"
    for name, value in values.items():
        expected, is_sound = _FIELD_RULES[name]
        if not is_sound(value):
            return "bad-field", f"expected {expected} as `{name}`"
    return None


def _is_time(value: object) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None and _is_second(value[:19])


@lru_cache(maxsize=256)  # answers come many a second
def _is_second(value: str) -> bool:
    try:
        from_iso(f"{value}Z")
    except DateError:
        return False
    return True


def _is_date(value: object) -> bool:
    try:
        return isinstance(value, str) and len(value) == 14 and pad(value) == value
    except DateError:
        return False


def _is_text(value: object) -> bool:
    # A lone surrogate cannot be written as UTF-8 by whoever reads this.
    return isinstance(value, str) and value != "" and (value.isascii() or not re.search("[\ud800-\udfff]", value))


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_NUMBER


def _is_status(value: object) -> bool:
    return type(value) is int and 100 <= value <= 999


def _is_duration(value: object) -> bool:
    return type(value) in {int, float} and 0 <= value <= _MAX_NUMBER  # type: ignore[operator]  # a number


def _one_of(names: tuple[str, ...]) -> tuple[str, Callable[[object], bool]]:
    return "one of " + ", ".join(names), lambda value: isinstance(value, str) and value in names


_FIELD_RULES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "time": ("a time in UTC such as 2026-01-31T12:00:00.250Z", _is_time),
    "archive": ("a text", _is_text),
    "uri": ("a text", _is_text),
    "endpoint": _one_of(get_args(UpstreamEndpoint)),
    "outcome": _one_of(get_args(UpstreamOutcome)),
    "reason": _one_of(get_args(RoutingReason)),
    "key": ("a text", _is_text),
    "status": ("a number from 100 to 999", _is_status),
    "mementos": ("a count", _is_count),
    "first": ("14 digits", _is_date),
    "last": ("14 digits", _is_date),
    "duration_ms": ("milliseconds", _is_duration),
    "bytes": ("a count", _is_count),
    "from_cache": ("true or false", lambda value: isinstance(value, bool)),
}
_FIELD_NAMES = tuple(each.name for each in fields(UpstreamLogEntry))
_field_values = attrgetter(*_FIELD_NAMES)
_encode = json.JSONEncoder(separators=(",", ":")).encode
_REQUIRED_FIELDS = ("time", "archive", "uri", "endpoint", "outcome", "reason")


MemGatorEventKind = Literal["asked", "hit", "miss", "error", "sleep"]
"""A page was asked for; an archive has it, has it not, failed, or is left alone for a while."""
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class MemGatorEvent:
    """One line that tells something. name: the page that was asked for, or the archive's id."""

    event: MemGatorEventKind
    name: str


_REQUEST_LINE = re.compile(rb"Aggregating Mementos for (\S+)")
_RESPONSE_LINE = re.compile(
    rb"(\S+) => (?:(Success): (\d{1,18}) mementos|Response error: (\d{3})|(Network|Request|Response read) error|"
    rb"(Dormant) after)"
)
_LINE_PREFIXES = (b"INFO: ", b"ERROR: ", b"BENCHMARK: ")


def is_memgator_log(line: bytes) -> bool:
    """Return whether a line is one of such a log.

    >>> is_memgator_log(b"INFO: 2019/01/16 10:00:00.000001 ia => Success: 3 mementos")
    True
    """
    return line.startswith(_LINE_PREFIXES)


def read_memgator_log(file: TextSource, problems: Problems, name: str | None = None) -> Iterator[MemGatorEvent]:
    r"""Yield what a log tells, in its order and in bounded memory; lines that tell nothing of this are passed over.

    A list without mementos is a miss, and so is 404; any other status is an error. file, name, problems and what is
    raised: as `unlost.text_lines.lines_of` has them.

    >>> from io import BytesIO
    >>> log = b"INFO: x Aggregating Mementos for http://a.com/\nINFO: x ia => Response error: 404 Not Found\n"
    >>> [(each.event, each.name) for each in read_memgator_log(BytesIO(log), Problems(), "x")]
    [('asked', 'http://a.com/'), ('miss', 'ia')]
    """
    for line in read_source_lines(file, problems, name):
        asked = _REQUEST_LINE.search(line.text)
        if asked:
            yield MemGatorEvent("asked", asked[1].decode("utf-8", "backslashreplace"))
            continue
        answer = _RESPONSE_LINE.search(line.text)
        if answer and not line.text.startswith(b"BENCHMARK: "):
            yield MemGatorEvent(_event_kind(answer), answer[1].decode("utf-8", "backslashreplace"))


def _event_kind(answer: re.Match[bytes]) -> MemGatorEventKind:
    if answer[6]:
        return "sleep"
    if answer[2]:
        return "hit" if int(answer[3]) else "miss"
    return "miss" if answer[4] and int(answer[4]) == _NOT_FOUND else "error"
