"""Archive toolbars and rewritten links are removed from pages."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.html import remove_archive_toolbar

WAYBACK = "https://web.archive.org/web/20140102030405/http://a.example/"
PYWB = "http://127.0.0.1:8080/site/20140102030405mp_/http://a.example/"
ARCHIVE_TODAY = "https://archive.ph/20140102030405/http://a.example/"

PAGE = b'<!doctype html>\n<html><head><title>A\xe9</title></head>\n<body class=x>\n<a href="http://a.example/b">b</a></body></html>'

SCRIPTS = (
    b'<script src="//archive.org/includes/athena.js" type="text/javascript"></script>\n'
    b'<script type="text/javascript">window.addEventListener("DOMContentLoaded",function(){})</script>'
    b'<link rel="stylesheet" href="https://web-static.archive.org/_static/css/banner-styles.css" />\n'
    b"<!-- End Wayback Rewrite JS Include -->"
)
TOOLBAR = (
    b"<!-- BEGIN WAYBACK TOOLBAR INSERT -->\n<div id='wm-ipp-base'><a href='/web/'>x</a></div>\n"
    b"<!-- END WAYBACK TOOLBAR INSERT -->"
)
NOTES = (
    b"<!--\n     FILE ARCHIVED ON 03:04:05 Jan 02, 2014 AND RETRIEVED FROM THE\n"
    b"     INTERNET ARCHIVE ON 10:00:00 Nov 11, 2024.\n-->\n"
    b"<!--\nplayback timings (ms):\n  captures_list: 0.5\n-->"
)


def replay_page(page: bytes, prefix: bytes) -> bytes:
    """Return a page as an archive replays it, with rewritten links."""
    return page.replace(b'href="http', b'href="' + prefix + b"http")


def test_wayback_toolbar_and_links_are_removed() -> None:
    """Scripts, toolbar and comments are removed, links are restored, and all other bytes are unchanged."""
    page = replay_page(PAGE, b"/web/20140102030405/")
    page = page.replace(b"<head>", b"<head>" + SCRIPTS).replace(b"<body class=x>", b"<body class=x>" + TOOLBAR) + NOTES
    cleaned = remove_archive_toolbar(page, WAYBACK)
    assert cleaned.body == PAGE
    assert (cleaned.banners, cleaned.links) == (4, 1)


def test_early_wayback_script_is_removed() -> None:
    """Early captures have a script at the end."""
    script = (
        b'<SCRIPT language="Javascript">\n<!--\n\n// FILE ARCHIVED ON 20050102030405 AND RETRIEVED FROM THE\n'
        b"// INTERNET ARCHIVE ON 20060102030405.\nfunction x(){}\n-->\n</SCRIPT>\n"
    )
    assert remove_archive_toolbar(PAGE + script, WAYBACK).body == PAGE


def test_pywb_insert_is_removed() -> None:
    """Everything between pywb's comments is removed."""
    insert = (
        b"<!-- WB Insert -->\n<script>\n  wbinfo = {};\n</script>\n"
        b"<script src='http://127.0.0.1:8080/static/wombat.js'> </script>\n<!-- End WB Insert -->"
    )
    page = replay_page(PAGE, b"http://127.0.0.1:8080/site/20140102030405mp_/").replace(b"<head>", b"<head>" + insert)
    assert remove_archive_toolbar(page, PYWB).body == PAGE


def test_archive_today_header_is_removed() -> None:
    """The header element is removed with all nested elements."""
    header = b'<div id="HEADER" style="x"><div><form><div>search</div></form></div><div>saved from</div></div>'
    page = replay_page(PAGE, b"https://archive.ph/o/AbC12/").replace(b"<body class=x>", b"<body class=x>" + header)
    assert remove_archive_toolbar(page, ARCHIVE_TODAY).body == PAGE
    assert remove_archive_toolbar(page, WAYBACK).banners == 0


@pytest.mark.parametrize(
    ("rewritten", "original"),
    [
        (b"<img src=/web/20140102030405im_/http://a.example/c.gif>", b"<img src=http://a.example/c.gif>"),
        (b"<a href='//web.archive.org/web/2014/https://b.example/'>", b"<a href='https://b.example/'>"),
        (b"url(/web/20140102030405cs_/http://a.example/s.css)", b"url(http://a.example/s.css)"),
        (b'url("https://web.archive.org/web/20140102030405im_/http://a.example/c.gif")', b'url("http://a.example/c.gif")'),
        (b'srcset="/web/2014im_/http://a.example/1 1x, /web/2014im_/http://a.example/2 2x"',
         b'srcset="http://a.example/1 1x, http://a.example/2 2x"'),
        (b'href="/web/20140102030405/mailto:x@a.example"', b'href="mailto:x@a.example"'),
        # A link of the page to the archive: only the added prefix is removed.
        (
            b'href="/web/20140102030405/http://web.archive.org/web/2009/http://c.example/"',
            b'href="http://web.archive.org/web/2009/http://c.example/"',
        ),
    ],
)  # fmt: skip
def test_rewritten_link_is_restored(rewritten: bytes, original: bytes) -> None:
    """In attributes, srcset and style sheets, with and without the archive's host."""
    assert remove_archive_toolbar(rewritten, WAYBACK).body == original


@pytest.mark.parametrize(
    "body",
    [
        b'<a href="/web/2014/">the web in 2014</a>',
        b'<a href="/web/20140102030405/index.html">',
        b"<p>see /web/20140102030405/index for more",
        b'<a href="http://other.example/web/20140102030405/http://a.example/">',
        b"<!-- BEGIN WAYBACK TOOLBAR INSERT --> without an end",
        b"<!-- End Wayback Rewrite JS Include --><head>",
        b"<head><script>my own</script><!-- End Wayback Rewrite JS Include -->",
        b"<div id=HEADER>a header of the page's own</div>",
        b"",
        b"\xff\xfe<\x00h\x00",
    ],
)
def test_page_content_resembling_toolbar_is_preserved(body: bytes) -> None:
    """Content is removed only if it certainly comes from the archive."""
    assert (
        remove_archive_toolbar(body, WAYBACK)
        == remove_archive_toolbar(body, "http://x.example/")
        == type(remove_archive_toolbar(b"", ""))(body, 0, 0)
    )


@given(st.binary(max_size=400), st.sampled_from([WAYBACK, PYWB, ARCHIVE_TODAY, "", "http://["]))
def test_arbitrary_bytes_without_toolbar_are_unchanged(body: bytes, source: str) -> None:
    """A body without archive markers is returned unchanged."""
    assert remove_archive_toolbar(body, source).body == body


@given(st.lists(st.sampled_from([b"<p>text", TOOLBAR, b"<div id=x>", NOTES, b"</div>", b"<a href='/x'>"]), max_size=12))
def test_only_toolbar_insertions_are_removed(parts: list[bytes]) -> None:
    """All other parts remain in order."""
    left = b"\n".join(part for part in parts if part not in (TOOLBAR, NOTES))
    assert remove_archive_toolbar(b"\n".join(parts), WAYBACK).body.split() == left.split()


@pytest.mark.parametrize(
    "part",
    [
        b"<!-- BEGIN WAYBACK TOOLBAR INSERT -->",
        b"<!--FILE ARCHIVED ON ",
        b"<div id=HEADER><div>",
        b"<script><!--// FILE ARCHIVED ON ",
        b'"/web/2014/',
    ],
)
def test_toolbar_removal_from_hostile_page_takes_linear_time(part: bytes) -> None:
    """Megabytes of unclosed markers are processed within seconds."""
    start = time.process_time()
    for source in (WAYBACK, ARCHIVE_TODAY):
        remove_archive_toolbar(part * (2_000_000 // len(part)), source)
    assert time.process_time() - start < 5
