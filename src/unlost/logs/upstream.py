"""Logs of upstream responses: the result of each request of an aggregator to an archive.

The log of unlost is JSON Lines with fixed fields (docs/formats.md). Exclusions for maps and hit rates for routing are
learned from it. Logs of MemGator are read as well.
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
"""Endpoint that was queried."""
UpstreamOutcome = Literal[
    "hit",  # at least one memento
    "miss",  # no mementos
    "timeout",  # incomplete at the deadline
    "refused",  # no connection: blocked, or the server is down
    "reset",  # the connection was closed before the end of the response
    "dns",  # name resolution failed
    "tls",  # TLS handshake failed
    "redirect",  # redirect loop, too many redirects, or a forbidden target
    "limited",  # 429, or another sign of rate limiting
    "http-4xx",  # other statuses of the class, except those that mean a miss
    "http-5xx",
    "malformed",  # the response could not be parsed
    "too-large",  # the response exceeded the size limit
]
"""Outcome of the request."""
RoutingReason = Literal[
    "routed",  # its map or filter says that it may hold the page
    "explored",  # its map or filter denies the page; queried anyway, to measure how often that is wrong
    "learned",  # it has no map; queried because of its hit rate
    "broadcast",  # all archives were queried
    "requested",  # the client named the archive
]
"""Reason why the archive was queried."""
UPSTREAM_LOG_PROBLEM_KINDS = {
    "too-long": "a line longer than unlost.text_lines.MAX_LINE_BYTES",
    "bad-json": "expected a JSON object",
    "missing-field": "a field that every answer has",
    "bad-field": "a value that the field cannot have",
}
"""Kinds of problems, with their messages. Each skips its line."""
_MAX_NUMBER = (
    2**53 - 1
)  # largest integer that JSON parsers with double precision represent exactly (RFC 8259, section 6)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)

_encode = json.JSONEncoder(separators=(",", ":")).encode
_REQUIRED_FIELDS = ("time", "archive", "uri", "endpoint", "outcome", "reason")

MemGatorEventKind = Literal["asked", "hit", "miss", "error", "sleep"]
"""A page was requested; an archive has mementos, has none, failed, or is dormant."""
_NOT_FOUND = 404

_REQUEST_LINE = re.compile(rb"Aggregating Mementos for (\S+)")
_RESPONSE_LINE = re.compile(
    rb"(\S+) => (?:(Success): (\d{1,18}) mementos|Response error: (\d{3})|(Network|Request|Response read) error|"
    rb"(Dormant) after)"
)
_LINE_PREFIXES = (b"INFO: ", b"ERROR: ", b"BENCHMARK: ")


@dataclass(frozen=True, slots=True)
class UpstreamLogEntry:
    """Result of one request to one archive.

    Attributes:
        time: When the response or the failure arrived: ISO 8601 in UTC, `2026-01-31T12:00:00.250Z`.
        archive: ID of the archive in the registry.
        uri: Requested page (URI-R).
        endpoint: Endpoint that was queried.
        outcome: Outcome of the request.
        reason: Why the archive was queried.
        key: Normalized key of the page; None if it has none.
        status: HTTP status; None if there was no response.
        mementos: Number of mementos listed; None if unknown, as for a TimeGate.
        first: Date of the earliest memento seen, 14 digits, UTC.
        last: Date of the latest memento seen, 14 digits, UTC.
        duration_ms: Milliseconds from the request to the end of the response.
        bytes: Size of the response body as transferred; None if it was not measured.
        from_cache: Whether a cached response was used instead of a request.
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
    """A binary file opened for writing, or an object with the same method."""

    def write(self, data: bytes, /) -> object:
        """Write all data."""
        ...


def read_upstream_log(file: TextSource, problems: Problems, name: str | None = None) -> Iterator[UpstreamLogEntry]:
    r"""Yield the entries of a log, in order, in bounded memory.

    Strict: a line with a missing or invalid field is skipped and counted in `problems`, by the kinds of
    `UPSTREAM_LOG_PROBLEM_KINDS`. Unknown fields of later versions are ignored. Arguments are those of
    `unlost.text_lines.read_source_lines`.

    >>> from io import BytesIO
    >>> line = UpstreamLogEntry("2026-01-31T12:00:00Z", "ia", "http://a.com/", "timemap", "hit", "routed", mementos=7)
    >>> problems = Problems()
    >>> list(read_upstream_log(BytesIO(format_log_entry(line) + b'{"time": "now"}\n'), problems, "x")) == [line]
    True
    >>> str(problems.first["missing-field"])
    'x:2 (byte 174): missing-field: expected `archive`'
    """
    label = source_name(file, name)
    for line in read_source_lines(file, problems, name):
        if not line.text.strip():
            continue
        entry = _parse_entry(line.text)
        if isinstance(entry, UpstreamLogEntry):
            yield entry
        else:
            problems.add(Problem(entry[0], label, line.number, line.offset, entry[1]))


def format_log_entry(entry: UpstreamLogEntry) -> bytes:
    """Return an entry as a line of the log, without fields that are None.

    Raises InputError for a value that `read_upstream_log` would reject.
    """
    values = {name: value for name, value in zip(_FIELD_NAMES, _field_values(entry), strict=True) if value is not None}
    error = _find_fault(values)
    if error:
        raise InputError(error[1])
    return _encode(values).encode() + b"\n"


def write_upstream_log(file: SupportsWrite, entries: Iterable[UpstreamLogEntry]) -> None:
    """Write entries to a log, each with one call, so that lines of several writers do not interleave."""
    for entry in entries:
        file.write(format_log_entry(entry))


def _parse_entry(text: bytes) -> UpstreamLogEntry | tuple[str, str]:
    """Return the entry in a line, or kind and message of its problem."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return "bad-json", UPSTREAM_LOG_PROBLEM_KINDS["bad-json"]
    if not isinstance(values, dict):
        return "bad-json", UPSTREAM_LOG_PROBLEM_KINDS["bad-json"]
    known_values = {name: values[name] for name in _FIELD_NAMES if values.get(name) is not None}
    return _find_fault(known_values) or UpstreamLogEntry(**known_values)


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


@lru_cache(maxsize=256)  # there are many responses per second
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
    # Lone surrogates cannot be encoded as UTF-8.
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


@dataclass(frozen=True, slots=True)
class MemGatorEvent:
    """An event in a MemGator log. `name` is the requested page or the archive's ID."""

    event: MemGatorEventKind
    name: str


def is_memgator_log(line: bytes) -> bool:
    """Return whether a line belongs to a MemGator log.

    >>> is_memgator_log(b"INFO: 2019/01/16 10:00:00.000001 ia => Success: 3 mementos")
    True
    """
    return line.startswith(_LINE_PREFIXES)


def read_memgator_log(file: TextSource, problems: Problems, name: str | None = None) -> Iterator[MemGatorEvent]:
    r"""Yield the events of a MemGator log, in order, in bounded memory; other lines are skipped.

    An empty TimeMap and a 404 are misses; any other status is an error. Arguments are those of
    `unlost.text_lines.read_source_lines`.

    >>> from io import BytesIO
    >>> log = b"INFO: x Aggregating Mementos for http://a.com/\nINFO: x ia => Response error: 404 Not Found\n"
    >>> [(each.event, each.name) for each in read_memgator_log(BytesIO(log), Problems(), "x")]
    [('asked', 'http://a.com/'), ('miss', 'ia')]
    """
    for line in read_source_lines(file, problems, name):
        request = _REQUEST_LINE.search(line.text)
        if request:
            yield MemGatorEvent("asked", request[1].decode("utf-8", "backslashreplace"))
            continue
        response = _RESPONSE_LINE.search(line.text)
        if response and not line.text.startswith(b"BENCHMARK: "):
            yield MemGatorEvent(_event_kind(response), response[1].decode("utf-8", "backslashreplace"))


def _event_kind(response: re.Match[bytes]) -> MemGatorEventKind:
    if response[6]:
        return "sleep"
    if response[2]:
        return "hit" if int(response[3]) else "miss"
    return "miss" if response[4] and int(response[4]) == _NOT_FOUND else "error"
