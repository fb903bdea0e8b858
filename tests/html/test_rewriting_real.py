"""Real pages, and randomly damaged ones, are rewritten."""

import random

import pytest

from tests.html.real_pages import FILES, WARCS, bodies
from unlost.html import Link, LinkKind, extract_links, rewrite_links

# warcio relies on the garbage collector to close its temporary files.
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def assert_consistent(body: bytes, mime: str, url: str) -> None:
    """Compare callback links, extracted links and links after rewriting."""
    requested: list[Link] = []
    unchanged = rewrite_links(body, mime, url, None, lambda uri, use: requested.append(Link(uri, use)))
    assert unchanged.body == body
    if unchanged.charset is None or unchanged.is_truncated:
        return
    assert requested == extract_links(body, mime, url)
    new = [Link(f"http://new.example/{number}", link.kind) for number, link in enumerate(requested)]
    replacements: dict[tuple[str, LinkKind], str] = {
        (old.uri, old.kind): link.uri for old, link in zip(requested, new, strict=True)
    }
    result = rewrite_links(body, mime, url, None, lambda uri, use: replacements[uri, use])
    assert extract_links(result.body, mime, url, result.charset) == new
    assert result.skipped == 0


@pytest.mark.parametrize("name", FILES)
def test_real_pages_are_rewritten_consistently(name: str) -> None:
    """Pages are unchanged without replacements and have exactly the new links with them, also when damaged."""
    rng = random.Random(9)  # noqa: S311
    for url, mime, body in bodies(WARCS / name):
        assert_consistent(body, mime, url)
        damaged = bytearray(body[:50_000])
        for _ in range(len(damaged) // 200):
            damaged[rng.randrange(len(damaged))] = rng.choice(b"<>'\"=&/ \x00\x81\xff-!;#")
        assert_consistent(bytes(damaged), mime, url)
