"""HTTP headers written to WARCs are valid and consistent with the body."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.warc import MAX_HEADER_BYTES, format_http_head, parse_http_head

Headers = list[tuple[str, str]]


def head_lines(
    headers: Headers, status: int | None = 200, mime: str | None = None, redirect: str | None = None
) -> list[str]:
    """Return the lines of an HTTP head."""
    return format_http_head(status, headers, 5, mime, redirect)[0].decode("latin-1").split("\r\n")


@given(st.lists(st.tuples(st.text(), st.text(st.characters(exclude_categories=()))), max_size=5), st.none() | st.text())
def test_header_values_cannot_inject_headers(headers: Headers, redirect: str | None) -> None:
    """Each header is at most one line, and the head ends at its first empty line."""
    head, left_out = format_http_head(301, headers, 5, None, redirect)
    assert head.endswith(b"\r\n\r\n")
    assert head.index(b"\r\n\r\n") == len(head) - 4
    has_location = any(name.lower() == "location" for name, _ in headers)
    expected = 3 + bool(
        redirect and not has_location
    )  # the status line, Content-Length, the empty line, perhaps Location
    assert head.count(b"\n") == head.count(b"\r") == len(headers) - left_out + expected


@pytest.mark.parametrize("name", ["Content-Encoding", "transfer-encoding", "CONTENT-LENGTH", "Content-MD5", "Digest"])
def test_headers_describing_encoded_body_are_renamed(name: str) -> None:
    """The stored body is decoded, so the original header gets a prefix, and Content-Length is computed."""
    assert head_lines([(name, "x"), (name, "y")])[1:] == [
        f"X-Archive-Orig-{name}: x",
        f"X-Archive-Orig-{name}: y",
        "Content-Length: 5",
        "",
        "",
    ]


@pytest.mark.parametrize("name", ["", " ", "A b", "A:", "A\r\nB", "é", "A\0", "(a)"])
def test_header_with_invalid_name_is_omitted_and_counted(name: str) -> None:
    """Names must be tokens."""
    head, left_out = format_http_head(200, [(name, "x"), ("B", "y")], 5, None, None)
    assert (parse_http_head(head), left_out) == ((("B", "y"),), 1)


def test_oversized_header_is_omitted() -> None:
    """Small headers are written, also after a large one; the head as a whole is limited."""
    headers = [("A", "x" * MAX_HEADER_BYTES), ("Content-Type", "text/html")]
    head, left_out = format_http_head(200, headers, 5, None, None)
    assert (parse_http_head(head), left_out) == ((("Content-Type", "text/html"),), 1)
    head, left_out = format_http_head(200, [("A", "x" * 100)] * 10_000, 5, "text/html", "http://lost.example/" * 10_000)
    assert len(head) < 3 * MAX_HEADER_BYTES
    assert left_out == 10_000 - len(parse_http_head(head))
    assert parse_http_head(head)[0] == ("A", "x" * 100)


def test_missing_headers_are_filled_from_index() -> None:
    """Location and Content-Type come from the index only if the response has none."""
    head = head_lines([("A", "b")], 301, "text/html", "http://lost.example/\r\nB: c")
    assert head[1:5] == ["A: b", "Content-Length: 5", "Content-Type: text/html", "Location: http://lost.example/ B: c"]
    head = head_lines([("location", "/b"), ("content-type", "a/b")], 301, "text/html", "http://lost.example/")
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
def test_status_line_has_three_digit_status_and_reason(status: int | None, line: str) -> None:
    """An invalid status is written as 200."""
    assert head_lines([], status)[0] == line
