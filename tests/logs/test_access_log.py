"""Access logs: common line formats, and personal data that is not stored."""

import time
import tracemalloc
from datetime import UTC, datetime, timedelta, timezone
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.index.generated_file import long_line
from unlost.dates import from_datetime
from unlost.logs import ACCESS_LOG_PROBLEM_KINDS, AccessLogEntry, read_access_log
from unlost.problems import Problems

WHEN = "[10/Oct/2000:13:55:36 -0700]"


def read_log(
    body: str | bytes, host: str | None = None, *, archive: bool = False
) -> tuple[list[AccessLogEntry], dict[str, int]]:
    """Return the hits of a log and the problem counts."""
    problems = Problems()
    file = BytesIO(body.encode() if isinstance(body, str) else body)
    hits = list(read_access_log(file, problems, "x", host=host, is_archive=archive))
    assert set(problems.counts) <= set(ACCESS_LOG_PROBLEM_KINDS)
    return hits, problems.counts


def requested_uris(requests: str, host: str | None = "a.com", *, archive: bool = False) -> list[str]:
    """Return the pages of requests, one per line; none may be a problem."""
    lines = [f'192.0.2.1 - - {WHEN} "{request}" 200 5' for request in requests.split("\n")]
    hits, problems = read_log("\n".join(lines), host, archive=archive)
    assert problems == {}
    return [hit.uri for hit in hits]


@pytest.mark.parametrize(
    "line",
    [
        f'192.0.2.1 - frank {WHEN} "GET /a HTTP/1.0" 200 2326',
        f'2001:db8::1 - - {WHEN} "GET /a HTTP/1.0" 200 2326 "http://b/\\"" "Mozilla/4.08 [en] (Win98; I ;Nav)"',
        f'a.com:80 192.0.2.1 - frank {WHEN} "GET /a HTTP/1.1" 200 2326 "-" "-"',
        f'a.com 192.0.2.1 - frank miller {WHEN} "get /a HTTP/2" 200 2326 "-" "-" 0.003 "10.0.0.1" 2.5',
        f'192.0.2.1 - frank van miller {WHEN} "GET http://a.com/a HTTP/1.1" 200 2326',
        f'192.0.2.1 ident [frank] {WHEN} "GET   /a" 200 2326\r\n',
        '192.0.2.1 - - [10/Oct/2000:20:55:36] "GET /a HTTP/1.0" 200 2326 " 404 1',
    ],
)
def test_log_line_in_common_formats_is_parsed(line: str) -> None:
    """Common, combined, virtual host, proxied and extended formats yield the same hit, with its date in UTC."""
    assert read_log(line, "a.com") == ([AccessLogEntry("http://a.com/a", "20001010205536", 200, "GET", None, 2326)], {})


def test_client_identity_is_not_stored() -> None:
    """Neither the client's address nor its user name is in a record or a message."""
    client = "192.0.2.77 - frank"
    lines = f'{client} {WHEN} "GET /a HTTP/1.0" 200 1\n{client} nonsense\n{client} {WHEN} "" 200 1\n'
    problems = Problems()
    hits = list(read_access_log(BytesIO(lines.encode()), problems, "x", host="a.com"))
    assert problems.counts == {"bad-line": 1, "no-request": 1}
    output = repr(hits) + repr(problems)
    assert "192.0.2.77" not in output
    assert "frank" not in output


def test_request_with_escapes_and_quotes_is_parsed() -> None:
    """Spaces, escapes and raw quotes belong to the URL."""
    assert requested_uris("GET /a b HTTP/1.1") == ["http://a.com/a%20b"]
    assert requested_uris(r"GET /\"q\"\x20\xc3\xbc\\ HTTP/1.1") == ['http://a.com/"q"%20ü\\']
    assert requested_uris(r"GET /\xfc\n HTTP/1.1") == ["http://a.com/%FC%0A"]
    assert requested_uris('GET /"raw" HTTP/1.1') == ['http://a.com/"raw"']
    assert requested_uris("GET /end\\") == ["http://a.com/end\\"]
    assert requested_uris("GET //b//c") == ["http://a.com//b//c"]


def test_request_host_precedence_is_respected() -> None:
    """An absolute URL precedes the virtual host, which precedes the given host; the port determines the scheme."""
    line = f'b.com:%d 192.0.2.1 - - {WHEN} "GET /a HTTP/1.1" 200 5'
    assert [read_log(line % port, "c.com")[0][0].uri for port in (80, 443, 8080)] == [
        "http://b.com/a",
        "https://b.com/a",
        "http://b.com:8080/a",
    ]
    assert requested_uris("GET https://d.com/a HTTP/1.1") == ["https://d.com/a"]
    assert requested_uris("GET /a HTTP/1.1", "https://e.com/") == ["https://e.com/a"]
    assert read_log(f'192.0.2.1 - - {WHEN} "GET /a HTTP/1.1" 200 5') == ([], {"no-host": 1})


def test_archive_log_yields_original_urls() -> None:
    """The page is the one whose memento was requested, for any date, modifier or collapsed slashes."""
    requests = """GET /web/20010101000000/http://a.com/b?c=http://d/ HTTP/1.1
GET /web/20010101000000id_/http:/a.com/b?c=http://d/ HTTP/1.1
GET /web/2001*/HTTP://a.com/b?c=http://d/ HTTP/1.1
GET /all/sub/*/http://a.com/b?c=http://d/ HTTP/1.1
GET /web/http://a.com/b?c=http://d/ HTTP/1.1
GET http://archive.org/web/20010101000000im_/http://a.com/b?c=http://d/ HTTP/1.1
GET /web/20010101/a.com/b?c=http://d/ HTTP/1.1"""
    assert set(requested_uris(requests.rpartition("\n")[0], None, archive=True)) == {"http://a.com/b?c=http://d/"}
    assert requested_uris("GET /web/20010101/a.com/b HTTP/1.1", None, archive=True) == ["http://a.com/b"]
    other = f'192.0.2.1 - - {WHEN} "GET /style.css HTTP/1.1" 200 5'
    assert read_log(other, "archive.org", archive=True) == ([], {"not-replay": 1})


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("bad-line", "nonsense"),
        ("bad-line", "\0" * 50),
        ("bad-line", f'192.0.2.1 - - {WHEN} "GET /cut'),
        ("bad-line", f'192.0.2.1 - - {WHEN} "GET /a" 2000 5'),
        ("bad-date", '192.0.2.1 - - [31/Feb/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 5'),
        ("bad-date", '192.0.2.1 - - [10/Okt/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 5'),
        ("bad-date", '192.0.2.1 - - [10/Oct/2000:13:55:36 +2500] "GET /a HTTP/1.0" 200 5'),
        ("no-request", f'192.0.2.1 - - {WHEN} "-" 408 -'),
        ("bad-request", f'192.0.2.1 - - {WHEN} "hello" 400 5'),
        ("bad-request", f'192.0.2.1 - - {WHEN} "\\x16\\x03\\x01\\x00" 400 5'),
        ("bad-request", f'192.0.2.1 - - {WHEN} "GET a HTTP/1.1" 400 5'),
        ("no-page", f'192.0.2.1 - - {WHEN} "CONNECT b.com:443 HTTP/1.1" 200 5'),
        ("no-page", f'192.0.2.1 - - {WHEN} "OPTIONS * HTTP/1.0" 200 5'),
    ],
)
def test_invalid_log_line_is_counted_with_position(kind: str, line: str) -> None:
    """Each invalid line affects only itself."""
    good = f'192.0.2.1 - - {WHEN} "GET /a HTTP/1.0" 304 -\n'
    problems = Problems()
    body = (good + line + "\n\n" + good).encode()
    hits = list(read_access_log(BytesIO(body), problems, "a.log", host="a.com"))
    assert [(hit.status, hit.body_bytes) for hit in hits] == [(304, 0)] * 2
    assert problems.counts == {kind: 1}
    assert (problems.first[kind].line, problems.first[kind].offset) == (2, len(good))


def test_missing_status_in_log_is_none() -> None:
    """A dash or 000 is no status; a missing size is unknown."""
    hits, _ = read_log(f'h - - {WHEN} "GET /a" - -\nh - - {WHEN} "GET /a" 000 7\nh - - {WHEN} "GET /a" 499', "a.com")
    assert [(hit.status, hit.body_bytes) for hit in hits] == [(None, 0), (None, 7), (499, None)]


def test_log_line_of_100_megabytes_is_skipped() -> None:
    """Adjacent lines are read."""
    problems = Problems()
    good = f'h - - {WHEN} "GET /a" 200 1'.encode()
    hits = list(read_access_log(long_line(good + b"\n", b"\n" + good), problems, "x", host="a.com"))
    assert len(hits) == 2
    assert problems.counts == {"too-long": 1}


@pytest.mark.parametrize(
    "unit", ["[", '"', '\\"', '" 200', " ", "/", "/1999", "/http:", "\\", "[1] ", "GET ", "HTTP/1.1 ", "a."]
)
@pytest.mark.parametrize("archive", [False, True])
def test_hostile_log_line_is_parsed_in_linear_time(unit: str, archive: bool) -> None:
    """A megabyte of repeated tokens is parsed within seconds."""
    start = time.process_time()
    many = unit * (1_000_000 // len(unit))
    read_log(
        many + "\n" + f'h - - {WHEN} "GET /' + many + f'\nh - - {WHEN} "GET /{many}x" 200 5', "a.com", archive=archive
    )
    assert time.process_time() - start < 8


DATETIMES = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30)).map(lambda date: date.replace(microsecond=0))  # noqa: DTZ001
PATHS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"])).map(lambda text: "/" + text)
NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def test_path_of_slashes_is_parsed_in_bounded_memory() -> None:
    """Each slash needs a few bytes, not a hundred."""
    line = f'192.0.2.1 - - {WHEN} "GET {"/" * (1 << 20)} HTTP/1.0" 200 5'.encode()
    tracemalloc.start()
    assert read_log(line, archive=True) == ([], {"not-replay": 1})
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


@given(
    DATETIMES,
    st.integers(-1439, 1439),
    PATHS,
    st.integers(1, 999),
    st.sampled_from(["GET", "HEAD", "POST"]),
    st.integers(0, 10**12),
)
def test_log_line_as_written_by_apache_is_parsed(
    date: datetime, offset: int, path: str, status: int, method: str, sent: int
) -> None:
    """For any path and time zone, the line yields the original request."""
    local = date.replace(tzinfo=timezone(timedelta(minutes=offset)))
    sign, ahead = "-" if offset < 0 else "+", abs(offset)
    zone = f"{sign}{ahead // 60:02d}{ahead % 60:02d}"
    stamp = f"{local.day:02d}/{NAMES[local.month - 1]}/{local.year}:{local:%H:%M:%S} {zone}"
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    line = f'h - - [{stamp}] "{method} {escaped} HTTP/1.1" {status:03d} {sent} "-" "-"\n'
    expected = AccessLogEntry(f"http://a.com{path}", from_datetime(local.astimezone(UTC)), status, method, None, sent)
    assert read_log(line, "a.com") == ([expected], {})


@given(st.binary(), st.booleans())
def test_arbitrary_bytes_as_log_raise_no_exception(body: bytes, archive: bool) -> None:
    """Arbitrary bytes yield hits and problems."""
    read_log(body, "a.com", archive=archive)
    read_log(f'h - - {WHEN} "GET /'.encode() + body + b'" 200 5', "a.com", archive=archive)
