"""Pages of real crawls, rewritten, and what was changed in them at random."""

import random

import pytest

from tests.html.crawled import FILES, WARCS, bodies
from unlost.html import Link, LinkKind, extract_links, rewrite_links

# warcio leaves its temporary files to the garbage collector.
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def check(body: bytes, mime: str, address: str) -> None:
    """Compare what is asked for and what is found afterwards with what `links` finds; back again it is as it was."""
    asked: list[Link] = []
    same = rewrite_links(body, mime, address, None, lambda uri, use: asked.append(Link(uri, use)))
    assert same.body == body
    if same.charset is None or same.is_truncated:
        return
    assert asked == extract_links(body, mime, address)
    new = [Link(f"http://new.example/{number}", link.kind) for number, link in enumerate(asked)]
    answers: dict[tuple[str, LinkKind], str] = {
        (old.uri, old.kind): link.uri for old, link in zip(asked, new, strict=True)
    }
    done = rewrite_links(body, mime, address, None, lambda uri, use: answers[uri, use])
    assert extract_links(done.body, mime, address, done.charset) == new
    assert done.skipped == 0


@pytest.mark.parametrize("name", FILES)
def test_real_pages(name: str) -> None:
    """Pages stay as they are without an answer, and have the new links and no others with them; so do broken ones."""
    dice = random.Random(9)  # noqa: S311
    for address, mime, body in bodies(WARCS / name):
        check(body, mime, address)
        broken = bytearray(body[:50_000])
        for _ in range(len(broken) // 200):
            broken[dice.randrange(len(broken))] = dice.choice(b"<>'\"=&/ \x00\x81\xff-!;#")
        check(bytes(broken), mime, address)
