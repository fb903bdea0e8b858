"""Headers of lost pages in WARCs: whatever they hold, they are headers there, and true of the body."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.warc import MAX_HEADER_BYTES, format_http_head, parse_http_head

Headers = list[tuple[str, str]]


def lines(
    headers: Headers, status: int | None = 200, mime: str | None = None, redirect: str | None = None
) -> list[str]:
    """Return the lines of a head."""
    return format_http_head(status, headers, 5, mime, redirect)[0].decode("latin-1").split("\r\n")


@given(st.lists(st.tuples(st.text(), st.text(st.characters(exclude_categories=()))), max_size=5), st.none() | st.text())
def test_nothing_adds_a_header(headers: Headers, redirect: str | None) -> None:
    """Each header is one line at most, and the head ends at its first empty line."""
    head, left_out = format_http_head(301, headers, 5, None, redirect)
    assert head.endswith(b"\r\n\r\n")
    assert head.index(b"\r\n\r\n") == len(head) - 4
    has_location = any(name.lower() == "location" for name, _ in headers)
    ours = 3 + bool(redirect and not has_location)  # the first line, the length, the empty line, perhaps a Location
    assert head.count(b"\n") == head.count(b"\r") == len(headers) - left_out + ours


@pytest.mark.parametrize("name", ["Content-Encoding", "transfer-encoding", "CONTENT-LENGTH", "Content-MD5", "Digest"])
def test_what_would_lie_about_the_body_has_another_name(name: str) -> None:
    """The body is kept without codings, and there is one length, the true one."""
    assert lines([(name, "x"), (name, "y")])[1:] == [
        f"X-Archive-Orig-{name}: x",
        f"X-Archive-Orig-{name}: y",
        "Content-Length: 5",
        "",
        "",
    ]


@pytest.mark.parametrize("name", ["", " ", "A b", "A:", "A\r\nB", "é", "A\0", "(a)"])
def test_a_name_that_no_header_can_have_is_left_out(name: str) -> None:
    """It is counted."""
    head, left_out = format_http_head(200, [(name, "x"), ("B", "y")], 5, None, None)
    assert (parse_http_head(head), left_out) == ((("B", "y"),), 1)


def test_one_endless_header_costs_itself() -> None:
    """What is small is kept, also behind it; all together have a limit."""
    headers = [("A", "x" * MAX_HEADER_BYTES), ("Content-Type", "text/html")]
    head, left_out = format_http_head(200, headers, 5, None, None)
    assert (parse_http_head(head), left_out) == ((("Content-Type", "text/html"),), 1)
    head, left_out = format_http_head(200, [("A", "x" * 100)] * 10_000, 5, "text/html", "http://lost.example/" * 10_000)
    assert len(head) < 3 * MAX_HEADER_BYTES
    assert left_out == 10_000 - len(parse_http_head(head))
    assert parse_http_head(head)[0] == ("A", "x" * 100)


def test_what_the_index_knows_stands_in_for_what_headers_do_not_tell() -> None:
    """A redirect leads somewhere, and a page has its type; what came is not changed."""
    head = lines([("A", "b")], 301, "text/html", "http://lost.example/\r\nB: c")
    assert head[1:5] == ["A: b", "Content-Length: 5", "Content-Type: text/html", "Location: http://lost.example/ B: c"]
    head = lines([("location", "/b"), ("content-type", "a/b")], 301, "text/html", "http://lost.example/")
    assert head[1:] == ["location: /b", "content-type: a/b", "Content-Length: 5", "", ""]


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (200, "HTTP/1.1 200 OK"),
        (404, "HTTP/1.1 404 Not Found"),
        (799, "HTTP/1.1 799 Unknown"),
        (None, "HTTP/1.1 200 OK"),
        (0, "HTTP/1.1 200 OK"),
        (1000, "HTTP/1.1 200 OK"),
        (-200, "HTTP/1.1 200 OK"),
    ],
)
def test_the_first_line_is_one_that_every_tool_reads(status: int | None, line: str) -> None:
    """Three digits and a word."""
    assert lines([], status)[0] == line
