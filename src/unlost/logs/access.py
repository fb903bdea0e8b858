"""Access logs of web servers and archives: which pages were requested, when, and with which result.

Common and combined log format, with or without a leading virtual host. Client addresses and user names never leave
this module.
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
"""The kinds of problems, and what each means. All of them lose their line."""


@dataclass(frozen=True, slots=True)
class AccessLogEntry:
    """One request for a page.

    uri: of the page, with scheme and host; white space, control characters and what is not UTF-8 are escaped.
    datetime: when it was asked for, 14 digits, UTC.
    status: what was answered; None if it is not said.
    method: in upper case.
    mime: None, since these logs do not tell; here so that hits and captures can be counted alike.
    sent: bytes of the body that were sent; None if it is not said.
    """

    uri: str
    datetime: str
    status: int | None
    method: str
    mime: str | None = None
    body_bytes: int | None = None


_MONTHS = {name: number for number, name in enumerate(b"jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_DATE = re.compile(rb"\[([^\[\]]{1,40})\] \"")
_TIMESTAMP = re.compile(rb"(\d{1,2})/([A-Za-z]{3})/(\d{4}):(\d\d):(\d\d):(\d\d)(?: ([+-])(\d\d):?(\d\d))?")
_STATUS_AND_BYTES = rb"\" (\d{3}|-)(?: (\d{1,18}|-))?(?= |$)"
# A quote inside the request is escaped, or at least not followed by what looks like a status.
_REQUEST = re.compile(rb"((?:[^\"\\]|\\.|\"(?! (?:\d{3}|-)(?: |$)))*+)" + _STATUS_AND_BYTES)
# Servers that escape nothing may have a backslash before the quote that ends the request.
_UNESCAPED_REQUEST = re.compile(rb"(.*?)" + _STATUS_AND_BYTES)
_METHOD = re.compile(rb"[A-Za-z][A-Za-z_-]{0,31}")
_PROTOCOL = re.compile(rb"HTTP/\d(?:\.\d)?", re.IGNORECASE)
_HOST = re.compile(rb"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?")
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_ESCAPE_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"v": b"\v", b"f": b"\f"}
# A date, perhaps cut, perhaps with `*` or a modifier such as `id_`; or none. Proxies make one slash of two.
_REPLAY = re.compile(
    rb"(?:[a-z]+://[^/]*)?/(?:.*?/)??(?:(?:\d{4,14}\*?|\*)(?:[a-z]{2}_)?/)?(https?):/+(.+)", re.IGNORECASE | re.DOTALL
)
_BARE_REPLAY = re.compile(
    rb"(?:[a-z]+://[^/]*)?(?:/[^/]*)?/\d{4,14}(?:[a-z]{2}_)?/+([^/]*\..+)", re.IGNORECASE | re.DOTALL
)


def read_access_log(
    file: TextSource, problems: Problems, name: str | None = None, *, host: str | None = None, is_archive: bool = False
) -> Iterator[AccessLogEntry]:
    r"""Yield the requests of a log, in its order and in bounded memory.

    host: whose log it is, for logs that have only paths and no virtual host: `example.com`, or with `https://` in
    front. archive: it is the log of an archive; the page is the one whose copy was asked for, as in
    `/web/20010101000000id_/http://example.com/`. What cannot be read is counted in `problems` under `name`, by the
    kinds of `KINDS`. file, name and what is raised: as `unlost.text_lines.lines_of` has them.

    >>> from io import BytesIO
    >>> log = BytesIO(b'192.0.2.1 - ann [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326 "-" "Mozilla"\n')
    >>> list(read_access_log(log, Problems(), "access.log", host="example.com"))
    [AccessLogEntry(uri='http://example.com/a', datetime='20001010205536', status=200, method='GET', mime=None, body_bytes=2326)]
    """
    base = None if host is None else (host if "://" in host else f"http://{host}").rstrip("/").encode()
    called = source_name(file, name)
    for line in read_source_lines(file, problems, name):
        if not line.text.strip():
            continue
        found = _parse_line(line, base, archive=is_archive)
        if isinstance(found, AccessLogEntry):
            yield found
        else:
            problems.add(Problem(found, called, line.number, line.offset, ACCESS_LOG_PROBLEM_KINDS[found]))


def _parse_line(line: Line, base: bytes | None, *, archive: bool) -> AccessLogEntry | str:
    """Return what a line tells, or the kind of its problem."""
    date = _DATE.search(line.text)
    if not date:
        return "bad-line"
    answer = _REQUEST.match(line.text, date.end()) or _UNESCAPED_REQUEST.match(line.text, date.end())
    if not answer:
        return "bad-line"
    moment = _parse_date(date[1])
    if moment is None:
        return "bad-date"
    host = _parse_virtual_host(line.text[: date.start()]) or base
    asked = _parse_request(_ESCAPE.sub(_unescape, answer[1]).strip(b" "), host, archive=archive)
    if isinstance(asked, str):
        return asked
    method, page = asked
    status = int(answer[2]) if answer[2] != b"-" else 0
    sent = None if answer[3] is None else 0 if answer[3] == b"-" else int(answer[3])
    return AccessLogEntry(_escape_url(page), moment, status or None, method.decode(), None, sent)


def _parse_request(request: bytes, host: bytes | None, *, archive: bool) -> tuple[bytes, bytes] | str:
    """Return method and page, or the kind of the problem. Targets may have spaces in them, protocols be missing."""
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
    found = _TIMESTAMP.fullmatch(text)
    if not found or found[2].lower() not in _MONTHS:
        return None
    try:
        offset = timedelta(hours=int(found[8] or 0), minutes=int(found[9] or 0))
        zone = timezone(-offset if found[7] == b"-" else offset) if offset else UTC
        day, clock = (int(found[3]), _MONTHS[found[2].lower()], int(found[1])), (int(found[4]), int(found[5]))
        # A leap second is a second that datetime does not know: the one before it stands for it.
        second = 59 if found[6] == b"60" else int(found[6])
        return from_datetime(datetime(*day, *clock, second, tzinfo=zone))
    except (ValueError, OverflowError):
        return None


def _unescape(escape: re.Match[bytes]) -> bytes:
    return bytes([int(escape[1], 16)]) if escape[1] else _ESCAPE_LETTERS.get(escape[2], escape[2])


def _parse_virtual_host(before: bytes) -> bytes | None:
    """Return scheme and host if a line begins with a virtual host, which then stands before client and identity.

    The identity is a dash nearly always, and tells whether it is the second field or the third; a user's name may have
    spaces in it.
    """
    fields = before.split(None, 3)
    if len(fields) < 4 or fields[1] == b"-" or fields[2] != b"-":
        return None
    found = _HOST.fullmatch(fields[0])
    if not found:
        return None
    port = int(found[2] or 80)
    if port == 443:
        return b"https://" + found[1]
    return b"http://" + found[1] + (b"" if port == 80 else b":%d" % port)


def _absolute_url(target: bytes, base: bytes | None) -> bytes | str:
    if re.match(rb"https?://[^/]", target, re.IGNORECASE):
        return target
    if not target.startswith(b"/"):
        return "bad-request"
    return "no-host" if base is None else base + target


def _replayed_url(target: bytes) -> bytes | str:
    found = _REPLAY.fullmatch(target)
    if found:
        return found[1].lower() + b"://" + found[2]
    bare = _BARE_REPLAY.fullmatch(target)
    return b"http://" + bare[1] if bare else "not-replay"


def _escape_url(uri: bytes) -> str:
    """Return an address as text in one piece: nothing in it can end a line or a field."""
    try:
        uri.decode()
        kept = 0x7F
    except UnicodeDecodeError:
        kept = 0x100
    pieces = (bytes([byte]) if byte > 0x20 and (byte < 0x7F or byte > kept) else b"%%%02X" % byte for byte in uri)
    return b"".join(pieces).decode()
