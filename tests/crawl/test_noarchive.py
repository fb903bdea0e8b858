"""Detection of `noarchive`."""

import time

import pytest

from unlost.crawl import header_forbids_archiving, page_forbids_archiving

WITH_NOARCHIVE = [
    b'<meta name="robots" content="noarchive">',
    b"<META NAME=ROBOTS CONTENT=NONE>",
    b"<meta content='index, NOARCHIVE' name='Robots'/>",
    b'<meta\nname = "unlost"\ncontent = "nofollow noarchive">',
    '<meta name="robots" content="noarchive">'.encode("utf-16"),
    b'<!-- x --><p>y</p><meta name="robots" content="noarchive">',
    b'<meta charset=utf-8><meta name="robots" content="all"><meta name="robots" content="noarchive">',
]
WITHOUT_NOARCHIVE = [
    b"",
    b'<meta name="robots" content="noindex, nofollow">',
    b'<meta name="googlebot" content="noarchive">',
    b'<!-- <meta name="robots" content="noarchive"> -->',
    b'<script>\'<meta name="robots" content="noarchive">\'</script>',
    b'<meta name="description" content="noarchive">',
    b'<metaname="robots" content="noarchive">',
    b'<p>&lt;meta name="robots" content="noarchive"&gt;</p>',
    b'<meta name="robots" content="noarchived">',
]


@pytest.mark.parametrize("body", WITH_NOARCHIVE)
def test_page_with_noarchive_is_detected(body: bytes) -> None:
    """Any letter case, order and quotes, for all robots or for our product token."""
    assert page_forbids_archiving(body)


@pytest.mark.parametrize("body", WITHOUT_NOARCHIVE)
def test_page_without_noarchive_is_not_detected(body: bytes) -> None:
    """Tags for other robots, other directives, or inside comments and scripts."""
    assert not page_forbids_archiving(body)


@pytest.mark.parametrize(
    ("values", "forbids"),
    [
        ([], False),
        (["noarchive"], True),
        (["NOINDEX, NoArchive"], True),
        (["none"], True),
        (["noindex", "noarchive"], True),
        (["otherbot: noarchive"], False),
        (["unlost: noarchive"], True),
        (["otherbot: noindex, noarchive"], False),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST, noarchive"], True),
        (["max-snippet:20, noarchive"], True),
        (["noarchive2"], False),
    ],
)
def test_x_robots_tag_noarchive(values: list[str], forbids: bool) -> None:
    """A directive after a user agent applies to it alone."""
    assert header_forbids_archiving(values) is forbids


@pytest.mark.parametrize(
    "body",
    [
        b"<meta " * 100_000,
        b"<meta a" + b"a" * 500_000,
        b"<!--" * 100_000,
        b"<script" * 80_000,
        b"<meta " + b"a=" * 2_000 + b">",
        b"<meta " + b'a="' * 1_000,
    ],
)
def test_hostile_pages_are_parsed_quickly(body: bytes) -> None:
    """The amount of parsed text is bounded."""
    start = time.process_time()
    assert not page_forbids_archiving(body * max(1, 500_000 // len(body)))
    assert time.process_time() - start < 5
