"""What lies below a prefix, by keys."""

import pytest

from unlost import uri
from unlost.archives.prefixes import read_prefix
from unlost.errors import UriError

FOLDER = "http://example.com/a/"
PAGES = {
    FOLDER: "prefix",
    "http://example.com/a": "prefix",
    "http://example.com/": "prefix",
    "http://example.com": "host",
    "https://www.Example.com": "host",
    "http://example.com:8080": "host",
    "*.example.com": "domain",
    "http://example.com/a?b=1": "prefix",
    "http://[::1]": "host",
}


@pytest.mark.parametrize(("prefix", "match"), PAGES.items())
def test_a_prefix_covers_itself(prefix: str, match: str) -> None:
    """The page at a prefix lies below it, and the kind of question is told by its form."""
    found = read_prefix(prefix)
    assert found.match == match
    assert found.covers(uri.key(prefix.removeprefix("*.")))
    assert list(found.ranges) == sorted(found.ranges)


@pytest.mark.parametrize(
    ("prefix", "inside", "outside"),
    [
        (FOLDER, ["http://example.com/a/b", "http://example.com/a/?x", FOLDER], ["http://example.com/ab"]),
        ("http://example.com/a", ["http://example.com/ab"], ["http://example.com/b", "http://example.com/"]),
        ("http://example.com", ["http://example.com:81/x", "http://www.example.com/"], ["http://a.example.com/"]),
        ("http://example.com:81", ["http://example.com:81/x"], ["http://example.com/x", "http://example.com:812/"]),
        (
            "*.example.com",
            ["http://a.b.example.com/", "http://example.com:81/"],
            ["http://examples.com/", "http://com/"],
        ),
    ],
)
def test_what_lies_below(prefix: str, inside: list[str], outside: list[str]) -> None:
    """Hosts are whole hosts, folders whole folders, and what only begins with the same letters is neither."""
    found = read_prefix(prefix)
    assert [page for page in inside if not found.covers(uri.key(page))] == []
    assert [page for page in outside if found.covers(uri.key(page))] == []
    assert not found.covers(None)


def test_what_is_no_prefix() -> None:
    """A text that is no address is refused."""
    with pytest.raises(UriError):
        read_prefix("*.")
