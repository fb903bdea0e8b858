"""Links of real pages, compared with Python's parser."""

import pytest

from tests.html.real_pages import FILES, WARCS, bodies
from tests.models import pages as model
from unlost.html import LinkKind, scan_links

# warcio relies on the garbage collector to close its temporary files.
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.mark.parametrize("name", FILES)
def test_links_of_real_pages_agree_with_python_parser(name: str) -> None:
    """The counts equal the stored ones, and at most 0.1 % of the links found by Python's parser are missing."""
    counts = dict.fromkeys(LinkKind, 0)
    expected = missed = 0
    for number, (url, mime, body) in enumerate(bodies(WARCS / name)):
        page_links = scan_links(body, mime, url)
        assert (page_links.omitted, page_links.cut) == (0, False), url
        for link in page_links.links:
            counts[link.kind] += 1
        if mime.startswith("text/html") and number % 8 == 0:  # Python's parser is slow
            simple = {uri for uri, _ in model.page(body.decode("utf-8", "replace"), url) if is_plain(uri)}
            missing = simple - {link.uri for link in page_links.links}
            expected += len(simple)
            missed += len(missing)
    assert tuple(counts.values()) == FILES[name]
    assert missed <= expected / 1_000


def is_plain(uri: str) -> bool:
    """Return whether Python and browsers normalise a URL alike."""
    host, slash, _ = uri.partition("://")[2].partition("/")
    return (
        bool(slash)
        and host == host.lower()
        and uri.isascii()
        and not set(uri) & set(" \\\"'<>[]{}|^`\t\n\r")
        and "/." not in uri
    )
