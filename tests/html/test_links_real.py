"""Pages of real crawls, against Python's own parser."""

import pytest

from tests.html.crawled import FILES, WARCS, bodies
from tests.models import pages as model
from unlost.html import LinkKind, scan_links

# warcio leaves its temporary files to the garbage collector.
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.mark.parametrize("name", FILES)
def test_real_pages(name: str) -> None:
    """As many links as were counted once, none left out, and nearly all that Python's parser finds, too."""
    counts = dict.fromkeys(LinkKind, 0)
    expected = missed = 0
    for number, (address, mime, body) in enumerate(bodies(WARCS / name)):
        found = scan_links(body, mime, address)
        assert (found.omitted, found.cut) == (0, False), address
        for link in found.links:
            counts[link.kind] += 1
        if mime.startswith("text/html") and number % 8 == 0:  # Python's parser takes its time
            simple = {uri for uri, _ in model.page(body.decode("utf-8", "replace"), address) if is_plain(uri)}
            lost = simple - {link.uri for link in found.links}
            expected += len(simple)
            missed += len(lost)
    assert tuple(counts.values()) == FILES[name]
    assert missed <= expected / 1_000


def is_plain(uri: str) -> bool:
    """Whether an address is one that Python and browsers spell alike."""
    host, slash, _ = uri.partition("://")[2].partition("/")
    return (
        bool(slash)
        and host == host.lower()
        and uri.isascii()
        and not set(uri) & set(" \\\"'<>[]{}|^`\t\n\r")
        and "/." not in uri
    )
