"""Tests of relative URLs between exported files."""

from urllib.parse import unquote, urljoin

from hypothesis import given
from hypothesis import strategies as st

from unlost.export import relative_to_page, relative_url

_names = st.sampled_from(
    ["a", "b", "a b", "x:y", "javascript:", "100%", "%41", "?", "#", "é", "~", "a&b", "..."]
) | st.text(st.characters(exclude_categories=["C"], exclude_characters="/\\"), min_size=1, max_size=5).filter(
    lambda name: name not in (".", "..")
)
_paths = st.lists(_names, min_size=1, max_size=4).map("/".join)


@given(_paths, _paths, st.sampled_from(["file:///home/me/site/", "http://lost.example/"]))
def test_relative_url_resolves_to_the_file(path: str, page: str, top: str) -> None:
    """The relative URL resolves to the file, on disk and on a server."""
    link = relative_to_page(relative_url(path), relative_url(page))
    found = urljoin(top + relative_url(page), link)
    assert link.isascii()
    assert link
    assert unquote(found) == top + path
