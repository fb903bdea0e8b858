"""Access logs of web servers and archives: requested pages, dates and statuses.

Reads the Common and Combined Log Format, with or without a leading virtual host. Client IP addresses and user names
never leave this module.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from unlost.dates import from_datetime
from unlost.problems import Problem, Problems
from unlost.text_lines import Line, TextSource, read_source_lines, source_name

ACCESS_LOG_PROBLEM_KINDS = {
    "too-long": "a line longer than unlost.text_lines.MAX_LINE_BYTES",
    "bad-line": 'expected `client identity user [date] "request" status bytes`',
    "bad-date": "expected a date such as [10/Oct/2000:13:55:36 -0700]",
    "no-request": "expected a request, found none: a connection that was closed, most likely",
    "bad-request": "expected a request such as `GET /path HTTP/1.1`",
    "no-page": "a request for no page: CONNECT, or `*`",
    "no-host": "a path without host: say which host the log is of",
    "not-replay": "a request to an archive for something else than a copy of a page",
}
"""Kinds of problems, with their messages. Each skips its line."""

_MONTHS = {name: number for number, name in enumerate(b"jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_DATE = re.compile(rb"\[([^\[\]]{1,40})\] \"")
_TIMESTAMP = re.compile(rb"(\d{1,2})/([A-Za-z]{3})/(\d{4}):(\d\d):(\d\d):(\d\d)(?: ([+-])(\d\d):?(\d\d))?")
_STATUS_AND_BYTES = rb"\" (\d{3}|-)(?: (\d{1,18}|-))?(?= |$)"
# A quote inside the request is escaped (Apache, nginx), or at least not followed by a status.
_REQUEST = re.compile(rb"((?:[^\"\\]|\\.|\"(?! (?:\d{3}|-)(?: |$)))*+)" + _STATUS_AND_BYTES)
# Servers that escape nothing may write a backslash before the closing quote of the request.
_UNESCAPED_REQUEST = re.compile(rb"(.*?)" + _STATUS_AND_BYTES)
_METHOD = re.compile(rb"[A-Za-z][A-Za-z_-]{0,31}")
_PROTOCOL = re.compile(rb"HTTP/\d(?:\.\d)?", re.IGNORECASE)
_HOST = re.compile(rb"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?")
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_ESCAPE_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"v": b"\v", b"f": b"\f"}
# An optional date, possibly truncated or with `*` or a modifier such as `id_`, then a URL. Proxies may merge the two
# slashes of its scheme.
_REPLAY = re.compile(
    rb"(?:[a-z]+://[^/]*)?/(?:.*?/)??(?:(?:\d{4,14}\*?|\*)(?:[a-z]{2}_)?/)?(https?):/+(.+)", re.IGNORECASE | re.DOTALL
)
# The same without a scheme; then the date is required.
_BARE_REPLAY = re.compile(
    rb"(?:[a-z]+://[^/]*)?(?:/[^/]*)?/\d{4,14}(?:[a-z]{2}_)?/+([^/]*\..+)", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class AccessLogEntry:
    """A request for a page.

    Attributes:
        uri: URL with scheme and host; white space, control characters and bytes that are not UTF-8 are escaped.
        datetime: Date of the request, 14 digits, UTC.
        status: HTTP status; None if it is missing.
        method: HTTP method in upper case.
        mime: Always None, because these logs have no media type. Present so that requests can be counted as captures
            are.
        body_bytes: Size of the response body; None if it is missing.
    """

    uri: str
    datetime: str
    status: int | None
    method: str
    mime: str | None = None
    body_bytes: int | None = None


def read_access_log(
    file: TextSource, problems: Problems, name: str | None = None, *, host: str | None = None, is_archive: bool = False
) -> Iterator[AccessLogEntry]:
    r"""Yield the requests of a log, in order, in bounded memory.

    Args:
        file: The log; see `unlost.text_lines.read_source_lines`.
        problems: Collects the invalid lines, by the kinds of `ACCESS_LOG_PROBLEM_KINDS`.
        name: Name of the log in problems.
        host: Host of a log that has only paths: `example.com`, or with `https://` in front.
        is_archive: The log is that of an archive: the page is the URI-R of the requested memento, as in
            `/web/20010101000000id_/http://example.com/`.

    >>> from io import BytesIO
    >>> log = BytesIO(b'192.0.2.1 - ann [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326 "-" "Mozilla"\n')
    >>> entry = next(read_access_log(log, Problems(), "access.log", host="example.com"))
    >>> entry.uri, entry.datetime, entry.status, entry.method, entry.body_bytes
    ('http://example.com/a', '20001010205536', 200, 'GET', 2326)
    """
    base = None if host is None else (host if "://" in host else f"http://{host}").rstrip("/").encode()
    label = source_name(file, name)
    for line in read_source_lines(file, problems, name):
        if not line.text.strip():
            continue
        entry = _parse_line(line, base, archive=is_archive)
        if isinstance(entry, AccessLogEntry):
            yield entry
        else:
            problems.add(Problem(entry, label, line.number, line.offset, ACCESS_LOG_PROBLEM_KINDS[entry]))


def _parse_line(line: Line, base: bytes | None, *, archive: bool) -> AccessLogEntry | str:
    """Return the request, or the kind of problem that its line has."""
    date = _DATE.search(line.text)
    if not date:
        return "bad-line"
    match = _REQUEST.match(line.text, date.end()) or _UNESCAPED_REQUEST.match(line.text, date.end())
    if not match:
        return "bad-line"
    timestamp = _parse_date(date[1])
    if timestamp is None:
        return "bad-date"
    host = _parse_virtual_host(line.text[: date.start()]) or base
    request = _parse_request(_ESCAPE.sub(_unescape, match[1]).strip(b" "), host, archive=archive)
    if isinstance(request, str):
        return request
    method, page = request
    status = int(match[2]) if match[2] != b"-" else 0
    body_bytes = None if match[3] is None else 0 if match[3] == b"-" else int(match[3])
    return AccessLogEntry(_escape_url(page), timestamp, status or None, method.decode(), None, body_bytes)


def _parse_request(request: bytes, host: bytes | None, *, archive: bool) -> tuple[bytes, bytes] | str:
    """Return method and page, or the kind of problem.

    Targets may contain spaces, and the protocol may be missing (HTTP/0.9).
    """
    if request in (b"", b"-"):
        return "no-request"
    method, _, target = request.partition(b" ")
    before, _, protocol = target.rpartition(b" ")
    target = (before if _PROTOCOL.fullmatch(protocol) else target).strip(b" ")
    if not target or not _METHOD.fullmatch(method):
        return "bad-request"
    method = method.upper()
    if method == b"CONNECT" or target == b"*":
        return "no-page"
    page = _replayed_url(target) if archive else _absolute_url(target, host)
    return page if isinstance(page, str) else (method, page)


def _parse_date(text: bytes) -> str | None:
    match = _TIMESTAMP.fullmatch(text)
    if not match or match[2].lower() not in _MONTHS:
        return None
    try:
        offset = timedelta(hours=int(match[8] or 0), minutes=int(match[9] or 0))
        zone = timezone(-offset if match[7] == b"-" else offset) if offset else UTC
        day, clock = (int(match[3]), _MONTHS[match[2].lower()], int(match[1])), (int(match[4]), int(match[5]))
        # datetime does not support leap seconds; use the second before.
        second = 59 if match[6] == b"60" else int(match[6])
        return from_datetime(datetime(*day, *clock, second, tzinfo=zone))
    except (ValueError, OverflowError):
        return None


def _unescape(escape: re.Match[bytes]) -> bytes:
    return bytes([int(escape[1], 16)]) if escape[1] else _ESCAPE_LETTERS.get(escape[2], escape[2])


def _parse_virtual_host(before: bytes) -> bytes | None:
    """Return scheme and host if the line begins with a virtual host, followed by client and identity.

    The identity is nearly always a dash, which shows whether it is the second or the third field; a user name may
    contain spaces.
    """
    fields = before.split(None, 3)
    if len(fields) < 4 or fields[1] == b"-" or fields[2] != b"-":
        return None
    match = _HOST.fullmatch(fields[0])
    if not match:
        return None
    port = int(match[2] or 80)
    if port == 443:
        return b"https://" + match[1]
    return b"http://" + match[1] + (b"" if port == 80 else b":%d" % port)


def _absolute_url(target: bytes, base: bytes | None) -> bytes | str:
    if re.match(rb"https?://[^/]", target, re.IGNORECASE):
        return target
    if not target.startswith(b"/"):
        return "bad-request"
    return "no-host" if base is None else base + target


def _replayed_url(target: bytes) -> bytes | str:
    match = _REPLAY.fullmatch(target)
    if match:
        return match[1].lower() + b"://" + match[2]
    bare = _BARE_REPLAY.fullmatch(target)
    return b"http://" + bare[1] if bare else "not-replay"


def _escape_url(uri: bytes) -> str:
    """Return a URL as text without characters that could end a line or a field."""
    try:
        uri.decode()
        highest_escaped = 0x7F
    except UnicodeDecodeError:
        highest_escaped = 0x100
    pieces = (
        bytes([byte]) if byte > 0x20 and (byte < 0x7F or byte > highest_escaped) else b"%%%02X" % byte for byte in uri
    )
    return b"".join(pieces).decode()
