"""Captures below a prefix, selected by keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost import uri
from unlost.archives import PrefixQuery
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
    "*.example.com/": "domain",
    "http://example.com/a?b=1": "prefix",
    "http://[::1]": "host",
    "http://192.0.2.7": "host",
}


@pytest.mark.parametrize(("prefix", "match"), PAGES.items())
def test_prefix_covers_itself(prefix: str, match: str) -> None:
    """The page at a prefix is included, and the form of the prefix determines the match type."""
    results = PrefixQuery.parse(prefix)
    assert results.match == match
    assert results.covers(uri.key(prefix.removeprefix("*.")))
    assert list(results.ranges) == sorted(results.ranges)


@pytest.mark.parametrize(
    ("prefix", "inside", "outside"),
    [
        (FOLDER, ["http://example.com/a/b", "http://example.com/a/?x", FOLDER], ["http://example.com/ab"]),
        (FOLDER + "#top", ["http://example.com/a/b"], ["http://example.com/ab"]),
        (FOLDER + "?", ["http://example.com/a?x", FOLDER], ["http://example.com/a/b", "http://example.com/ab"]),
        ("http://example.com/a", ["http://example.com/ab"], ["http://example.com/b", "http://example.com/"]),
        ("http://example.com/a?b=1", ["http://example.com/a?b=12"], ["http://example.com/a", "http://example.com/a?c"]),
        (
            "http://example.com/a/?b=1",
            ["http://example.com/a?b=12"],
            ["http://example.com/a", "http://example.com/a/b"],
        ),
        ("http://example.com", ["http://example.com:81/x", "http://www.example.com/"], ["http://a.example.com/"]),
        ("http://example.com/", ["http://example.com/x"], ["http://example.com:81/x", "http://a.example.com/"]),
        ("http://example.com:81", ["http://example.com:81/x"], ["http://example.com/x", "http://example.com:812/"]),
        ("http://example.com:80", ["http://example.com/x"], ["http://example.com:81/x"]),
        (
            "*.example.com",
            ["http://a.b.example.com/", "http://example.com:81/", "http://a.example.com:81/"],
            ["http://examples.com/", "http://com/"],
        ),
        ("http://192.0.2.7", ["http://192.0.2.7:81/"], ["http://192.0.2.70/", "http://2.192.0.2/"]),
        ("http://[::1]", ["http://[::1]:81/x"], ["http://[::12]/"]),
    ],
)
def test_prefix_covers_only_whole_hosts_and_folders(prefix: str, inside: list[str], outside: list[str]) -> None:
    """Names that only begin with the same letters are excluded."""
    results = PrefixQuery.parse(prefix)
    assert [page for page in inside if not results.covers(uri.key(page))] == []
    assert [page for page in outside if results.covers(uri.key(page))] == []
    assert not results.covers(None)


HOSTS = ["a.com", "b.a.com", "ab.com", "c.b.a.com", "com", "192.0.2.7", "192.0.2.70", "[::1]", "[::12]"]
hosts = st.sampled_from(HOSTS)
ports = st.sampled_from(["", ":81", ":8", ":812"])
paths = st.lists(st.sampled_from(["a", "b", "ab", "a-b", "a%20"]), max_size=3).map("/".join)
queries = st.sampled_from(["", "?x=1", "?x=12", "?x=1&y=2", "?"])
slashes = st.sampled_from(["", "/"])
pages = st.builds("http://{}{}/{}{}{}".format, hosts, ports, paths, slashes, queries)
prefixes = (
    pages
    | st.builds("*.{}{}".format, hosts, slashes)
    | st.builds("{}{}{}".format, st.sampled_from(["", "http://", "https://www.", "http://u:p@"]), hosts, ports).filter(
        lambda text: "www.[" not in text and "www.1" not in text
    )
)


def is_below(prefix: str, page: str) -> bool:
    """Slow model of `list_prefix`, by the parts of two keys."""

    def parts(url: str) -> tuple[list[str], str, str, str]:
        position, _, tail = uri.key(url).partition(")")
        host, port = (
            (position[: position.index("]") + 1], position.partition("]:")[2])
            if "]" in position
            else position.split(":")
            if ":" in position
            else (position, "")
        )
        path, mark, query = tail.partition("?")
        return host.split(","), port, path, mark + query

    its_host, its_port, its_path, its_query = parts(page)
    if prefix.startswith("*."):
        host = parts(prefix.removeprefix("*."))[0]
        return its_host[: len(host)] == host
    host, port, path, query = parts(prefix)
    rest = prefix.partition("://")[2] or prefix
    if its_host != host:
        return False
    if "/" not in rest and "?" not in rest:
        return not port or its_port == port
    if its_port != port:
        return False
    if query or not rest.partition("?")[0].endswith("/") or path == "/":
        return (its_path + its_query).startswith(path + query)
    return its_path == path or (not rest.endswith("?") and its_path.startswith(path + "/"))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a prefix and a similar page."""
    host, port, path = draw(hosts), draw(ports), draw(paths)
    beginning, slash, query = draw(st.sampled_from(["", path[:1], path])), draw(slashes), draw(queries)
    page = f"http://{host}{port}/{path}{draw(slashes)}{draw(queries)}"
    return f"http://{host}{draw(st.just(port) | ports)}/{beginning}{slash}{query}", page


@given(st.tuples(prefixes, pages) | pairs())
def test_prefixes_match_the_reference_model(pair: tuple[str, str]) -> None:
    """For hosts, ports, IP addresses, folders, queries and any number of slashes."""
    prefix, page = pair
    assert PrefixQuery.parse(prefix).covers(uri.key(page)) == is_below(prefix, page)


@given(prefixes)
def test_ranges_are_ordered_and_disjoint(prefix: str) -> None:
    """An index can be read once from start to end."""
    edges = [edge for pair in PrefixQuery.parse(prefix).ranges for edge in pair]
    assert edges == sorted(edges)


@pytest.mark.parametrize("text", ["*.", "*./", "*.a.com/b", "*.a.com:81", "*.a.com?x", "*.u@a.com", "mailto:a@b.com"])
def test_invalid_prefix_is_rejected(text: str) -> None:
    """Text that is not a URL and domain prefixes with a path are rejected."""
    with pytest.raises(UriError):
        PrefixQuery.parse(text)


def test_host_query_is_adapted_to_a_prefix_query() -> None:
    """The results are still filtered by the original prefix."""
    host = PrefixQuery.parse("http://example.com").adapted_to(["exact", "prefix"])
    assert host is not None
    assert (host.match, host.url) == ("prefix", "http://example.com/")
    assert not host.covers("com,example,a)/")
    assert PrefixQuery.parse("*.example.com").adapted_to(["host", "prefix"]) is None
