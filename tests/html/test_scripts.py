"""What the scripts of a page, and files of scripts, may ask for."""

import time

import pytest

from unlost.html import MAX_SCRIPT_URLS, find_script_urls

BASE = "http://a.example/d/"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<script>a('/1.png')</script><p>'/2.png'</p><SCRIPT type=x>b('/3.png')</Script >", ["1.png", "3.png"]),
        (b"<script src='/s.js'></script><scripted>'/1.png'</scripted>", []),
        (b"<script>a('/1.png');a('/1.png')</script><script>'/1.png'</script>", ["1.png"]),
        (b"<script>a('</script>/1.png')<script>a('/2.png')</script>", ["2.png"]),
        (b"<script>a('/1.png')", []),
        (b"<script", []),
        (b"", []),
    ],
)
def test_scripts_between_tags_are_read(body: bytes, expected: list[str]) -> None:
    """All of them, each until its end as browsers see it; nothing that stands outside of them."""
    found = find_script_urls(body, "text/html", BASE, is_html=True)
    assert found == [f"http://a.example/{path}" for path in expected]


@pytest.mark.parametrize(
    ("mime", "uri", "is_read"),
    [
        ("text/javascript; charset=x", BASE, True),
        ("application/json", BASE, True),
        ("application/ld+json", BASE, True),
        (None, "http://a.example/s.js?v=2", True),
        ("text/plain", "http://a.example/s.mjs", True),
        ("text/css", "http://a.example/s.css", False),
        ("image/gif", BASE, False),
        (None, BASE, False),
    ],
)
def test_files_of_scripts_are_read(mime: str | None, uri: str, *, is_read: bool) -> None:
    """By their type or by their name; no other files."""
    found = find_script_urls(b'{"a": "/1.png"}', mime, uri, is_html=False)
    assert found == (["http://a.example/1.png"] if is_read else [])


def test_there_is_an_end_of_them() -> None:
    """So many of one body, whether of one script or of many."""
    many = b"".join(b"<script>'/%d.png'</script>" % number for number in range(MAX_SCRIPT_URLS + 1000))
    assert len(find_script_urls(many, "text/html", BASE, is_html=True)) == MAX_SCRIPT_URLS
    one = b",".join(b"'/%d.png'" % number for number in range(MAX_SCRIPT_URLS + 1000))
    assert len(find_script_urls(b"<script>%s</script>" % one, "text/html", BASE, is_html=True)) == MAX_SCRIPT_URLS


@pytest.mark.parametrize(
    "unit",
    [
        b"<script",
        b"<script>",
        b"<script>'",
        b"<script></script",
        b"</script>",
        b"'/a.png",
        b"<p onclick='location=",
        b"<script>location='",
        b"location=' ",
        b"<p data-x=/a.png data-y='[\"/b.png\"]'>",
    ],
)
def test_hostile_pages_take_little_time(unit: bytes) -> None:
    """Time grows with the length of a page, whatever is in it."""
    start = time.process_time()
    find_script_urls(unit * (4_000_000 // len(unit)), "text/html", BASE, is_html=True)
    assert time.process_time() - start < 1.0
