"""URLs in scripts of pages and in script files."""

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
def test_urls_of_script_elements_are_found(body: bytes, expected: list[str]) -> None:
    """Each script element is read to its end as browsers see it, and nothing else."""
    urls = find_script_urls(body, "text/html", BASE, is_html=True)
    assert urls == [f"http://a.example/{path}" for path in expected]


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
def test_script_file_is_detected_by_type_or_name(mime: str | None, uri: str, *, is_read: bool) -> None:
    """Other files are not read."""
    urls = find_script_urls(b'{"a": "/1.png"}', mime, uri, is_html=False)
    assert urls == (["http://a.example/1.png"] if is_read else [])


def test_number_of_script_urls_is_limited() -> None:
    """The limit applies to a body, whether it has one script or many."""
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
def test_script_urls_of_hostile_page_are_found_in_linear_time(unit: bytes) -> None:
    """Four megabytes of repeated tokens are read within a second."""
    start = time.process_time()
    find_script_urls(unit * (4_000_000 // len(unit)), "text/html", BASE, is_html=True)
    assert time.process_time() - start < 1.0
