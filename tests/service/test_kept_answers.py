"""Rendered answers are kept in the bytes that there are for them."""

from unlost.aggregate.found import Found
from unlost.aggregate.mementos import Mementos
from unlost.aggregate.wish import Wish
from unlost.service.answers import Header
from unlost.service.kept_answers import KeptAnswers


def test_headers_count_like_bodies() -> None:
    """A redirect is a short body with long links."""
    kept = KeptAnswers(1 << 20)
    rendered = 0

    def render() -> tuple[bytes, list[Header]]:
        nonlocal rendered
        rendered += 1
        return b"short", [(b"link", b"x" * 8_000)]

    for number in [*range(500), 499, 0]:
        kept.rendered(Found(f"http://a/{number}", Mementos(), (), (), 1.0, 2.0), Wish(), "to", "http://b", render)
    assert rendered == 501  # the last one was kept, the first was not
