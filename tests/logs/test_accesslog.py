"""Access logs: every common shape of a line, and what is not kept."""

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


def read(
    body: str | bytes, host: str | None = None, *, archive: bool = False
) -> tuple[list[AccessLogEntry], dict[str, int]]:
    """Return the hits of a log and the problems."""
    problems = Problems()
    file = BytesIO(body.encode() if isinstance(body, str) else body)
    found = list(read_access_log(file, problems, "x", host=host, is_archive=archive))
    assert set(problems.counts) <= set(ACCESS_LOG_PROBLEM_KINDS)
    return found, problems.counts


def uris(requests: str, host: str | None = "a.com", *, archive: bool = False) -> list[str]:
    """Return the pages that requests, one a line, ask for; none may be a problem."""
    lines = [f'192.0.2.1 - - {WHEN} "{request}" 200 5' for request in requests.split("\n")]
    found, problems = read("\n".join(lines), host, archive=archive)
    assert problems == {}
    return [hit.uri for hit in found]


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
def test_shapes_of_lines(line: str) -> None:
    """Common, combined, with a virtual host, proxied, with more behind: one hit, its date in UTC."""
    assert read(line, "a.com") == ([AccessLogEntry("http://a.com/a", "20001010205536", 200, "GET", None, 2326)], {})


def test_nobody_is_kept() -> None:
    """Neither address nor user of the client is in a record or a message."""
    client = "192.0.2.77 - frank"
    lines = f'{client} {WHEN} "GET /a HTTP/1.0" 200 1\n{client} nonsense\n{client} {WHEN} "" 200 1\n'
    problems = Problems()
    found = list(read_access_log(BytesIO(lines.encode()), problems, "x", host="a.com"))
    assert problems.counts == {"bad-line": 1, "no-request": 1}
    kept = repr(found) + repr(problems)
    assert "192.0.2.77" not in kept
    assert "frank" not in kept


def test_requests_with_everything_in_them() -> None:
    """Spaces, escapes and raw quotes are part of the address, and none can end it."""
    assert uris("GET /a b HTTP/1.1") == ["http://a.com/a%20b"]
    assert uris(r"GET /\"q\"\x20\xc3\xbc\\ HTTP/1.1") == ['http://a.com/"q"%20ü\\']
    assert uris(r"GET /\xfc\n HTTP/1.1") == ["http://a.com/%FC%0A"]
    assert uris('GET /"raw" HTTP/1.1') == ['http://a.com/"raw"']
    assert uris("GET /end\\") == ["http://a.com/end\\"]
    assert uris("GET //b//c") == ["http://a.com//b//c"]


def test_hosts() -> None:
    """A whole address counts before the virtual host, that before the host that is given; a port tells the scheme."""
    line = f'b.com:%d 192.0.2.1 - - {WHEN} "GET /a HTTP/1.1" 200 5'
    assert [read(line % port, "c.com")[0][0].uri for port in (80, 443, 8080)] == [
        "http://b.com/a",
        "https://b.com/a",
        "http://b.com:8080/a",
    ]
    assert uris("GET https://d.com/a HTTP/1.1") == ["https://d.com/a"]
    assert uris("GET /a HTTP/1.1", "https://e.com/") == ["https://e.com/a"]
    assert read(f'192.0.2.1 - - {WHEN} "GET /a HTTP/1.1" 200 5') == ([], {"no-host": 1})


def test_logs_of_archives() -> None:
    """The page is the one whose copy was asked for; dates, modifiers and lost slashes do not matter."""
    asked = """GET /web/20010101000000/http://a.com/b?c=http://d/ HTTP/1.1
GET /web/20010101000000id_/http:/a.com/b?c=http://d/ HTTP/1.1
GET /web/2001*/HTTP://a.com/b?c=http://d/ HTTP/1.1
GET /all/sub/*/http://a.com/b?c=http://d/ HTTP/1.1
GET /web/http://a.com/b?c=http://d/ HTTP/1.1
GET http://archive.org/web/20010101000000im_/http://a.com/b?c=http://d/ HTTP/1.1
GET /web/20010101/a.com/b?c=http://d/ HTTP/1.1"""
    assert set(uris(asked.rpartition("\n")[0], None, archive=True)) == {"http://a.com/b?c=http://d/"}
    assert uris("GET /web/20010101/a.com/b HTTP/1.1", None, archive=True) == ["http://a.com/b"]
    other = f'192.0.2.1 - - {WHEN} "GET /style.css HTTP/1.1" 200 5'
    assert read(other, "archive.org", archive=True) == ([], {"not-replay": 1})


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
def test_bad_lines_are_counted_where_they_are(kind: str, line: str) -> None:
    """Each is lost alone, with its line and byte."""
    good = f'192.0.2.1 - - {WHEN} "GET /a HTTP/1.0" 304 -\n'
    problems = Problems()
    body = (good + line + "\n\n" + good).encode()
    found = list(read_access_log(BytesIO(body), problems, "a.log", host="a.com"))
    assert [(hit.status, hit.body_bytes) for hit in found] == [(304, 0)] * 2
    assert problems.counts == {kind: 1}
    assert (problems.first[kind].line, problems.first[kind].offset) == (2, len(good))


def test_a_status_that_is_not_said() -> None:
    """A dash or 000 is no status; without a size, it is not known."""
    found, _ = read(f'h - - {WHEN} "GET /a" - -\nh - - {WHEN} "GET /a" 000 7\nh - - {WHEN} "GET /a" 499', "a.com")
    assert [(hit.status, hit.body_bytes) for hit in found] == [(None, 0), (None, 7), (499, None)]


def test_a_line_of_100_megabytes_is_one_problem() -> None:
    """The lines around it are read."""
    problems = Problems()
    good = f'h - - {WHEN} "GET /a" 200 1'.encode()
    found = list(read_access_log(long_line(good + b"\n", b"\n" + good), problems, "x", host="a.com"))
    assert len(found) == 2
    assert problems.counts == {"too-long": 1}


@pytest.mark.parametrize(
    "unit", ["[", '"', '\\"', '" 200', " ", "/", "/1999", "/http:", "\\", "[1] ", "GET ", "HTTP/1.1 ", "a."]
)
@pytest.mark.parametrize("archive", [False, True])
def test_hostile_repetition_takes_linear_time(unit: str, archive: bool) -> None:
    """A megabyte of anything is read in a moment."""
    start = time.process_time()
    many = unit * (1_000_000 // len(unit))
    read(many + "\n" + f'h - - {WHEN} "GET /' + many + f'\nh - - {WHEN} "GET /{many}x" 200 5', "a.com", archive=archive)
    assert time.process_time() - start < 8


MOMENTS = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30)).map(lambda moment: moment.replace(microsecond=0))  # noqa: DTZ001
PATHS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"])).map(lambda text: "/" + text)
NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def test_a_path_of_nothing_but_slashes_takes_no_memory() -> None:
    """Some bytes for each, not a hundred."""
    line = f'192.0.2.1 - - {WHEN} "GET {"/" * (1 << 20)} HTTP/1.0" 200 5'.encode()
    tracemalloc.start()
    assert read(line, archive=True) == ([], {"not-replay": 1})
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


@given(
    MOMENTS,
    st.integers(-1439, 1439),
    PATHS,
    st.integers(1, 999),
    st.sampled_from(["GET", "HEAD", "POST"]),
    st.integers(0, 10**12),
)
def test_what_a_server_writes_is_read(
    moment: datetime, offset: int, path: str, status: int, method: str, sent: int
) -> None:
    """Whatever the path and the zone, a line written as Apache does is the hit that it stands for."""
    local = moment.replace(tzinfo=timezone(timedelta(minutes=offset)))
    sign, ahead = "-" if offset < 0 else "+", abs(offset)
    zone = f"{sign}{ahead // 60:02d}{ahead % 60:02d}"
    date = f"{local.day:02d}/{NAMES[local.month - 1]}/{local.year}:{local:%H:%M:%S} {zone}"
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    line = f'h - - [{date}] "{method} {escaped} HTTP/1.1" {status:03d} {sent} "-" "-"\n'
    expected = AccessLogEntry(f"http://a.com{path}", from_datetime(local.astimezone(UTC)), status, method, None, sent)
    assert read(line, "a.com") == ([expected], {})


@given(st.binary(), st.booleans())
def test_no_log_is_too_strange(body: bytes, archive: bool) -> None:
    """Any bytes are hits and problems; nothing is raised."""
    read(body, "a.com", archive=archive)
    read(f'h - - {WHEN} "GET /'.encode() + body + b'" 200 5', "a.com", archive=archive)
