"""SURTs and canonical forms, by example."""

import pickle
import time
from collections.abc import Callable

import pytest

from unlost import uri
from unlost.errors import ForeignSchemeError, UriError, UsageError

PAPERS_URI = "https://www.news.BBC.co.uk/images/Logo.png?width=200&height=80&rotate=90#top"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (PAPERS_URI, "uk,co,bbc,news)/images/logo.png?height=80&rotate=90&width=200"),
        ("http://www.example.com", "com,example)/"),
        ("example.com/A", "com,example)/a"),
        ("www.example.com:8080/A", "com,example:8080)/a"),
        ("//example.com/a", "com,example)/a"),
        ("  http://example.com/a\n", "com,example)/a"),
        ("http://user:secret@example.com/", "com,example)/"),
        ("https://example.com:443/", "com,example)/"),
        ("https://example.com:80/", "com,example:80)/"),
        ("http://www12.www.example.com/", "com,example)/"),
        ("http://www.com/", "com)/"),
        ("http://wwww.com/", "com,wwww)/"),
        ("http://example.com./", "com,example)/"),
        ("http://.exa..mple.com/", "com,mple,exa)/"),
        ("http://Bücher.de/ü", "de,xn--bcher-kva)/%c3%bc"),
        ("http://192.0.2.7/", "7,2,0,192)/"),
        ("http://0xC0.512.7/", "bad-host"),
        ("http://0300.0.0x207/", "7,2,0,192)/"),
        ("http://1.2.3.4../", "4,3,2,1)/"),
        ("http://[2001:DB8:0::1]:8080/a", "[2001:db8::1]:8080)/a"),
        ("http://localhost/", "localhost)/"),
        ("http://tel:81/", "tel:81)/"),
        ("http://a,b!.com/", "com,a%2cb%21)/"),
        ("http://example.com/a/*", "com,example)/a/*"),
        ("http://example.com/%FC", "com,example)/%fc"),
        ("http://example.com/%zz%", "com,example)/%25zz%25"),
    ],
)
def test_surts_by_wayback_rules(address: str, expected: str) -> None:
    """Hosts, ports, paths and queries under the default rules."""
    (result,) = uri.surt_many([address])
    assert (result.kind if isinstance(result, UriError) else result) == expected


def test_paper_rules_keep_the_case() -> None:
    """The papers' own example."""
    assert uri.surt(PAPERS_URI, "papers") == "uk,co,bbc,news)/images/Logo.png?height=80&rotate=90&width=200"


def test_non_utf8_bytes_equal_their_escaped_form() -> None:
    """A Latin-1 path is the same as its escaped form."""
    assert uri.surt(b"http://example.com/\xfc") == uri.surt("http://example.com/%FC")


def test_canonical_keeps_the_scheme() -> None:
    """A canonical URL can be fetched."""
    assert uri.canonical("HTTPS://Me@www.Example.com:443/a/../B/?c#d") == "https://example.com/b?c"
    assert uri.canonical("http://[::1]:81/") == "http://[::1]:81/"


@pytest.mark.parametrize(
    ("surt", "expected"),
    [
        ("uk,co,bbc)/a?b", "http://bbc.co.uk/a?b"),
        ("com,example:80)/", "https://example.com:80/"),
        ("com,example:443)/", "http://example.com:443/"),
        ("http://(com,example,)/A", "http://example.com/a"),
        ("4,3,2,1)/", "http://1.2.3.4/"),
        ("1.2.3.4)/", "http://1.2.3.4/"),
        ("2001:db8::1)/", "http://[2001:db8::1]/"),
        ("com,a%2cb)/*", "http://a,b.com/*"),
    ],
)
def test_unsurt_reads_all_spellings(surt: str, expected: str) -> None:
    """The URL has the same SURT."""
    assert uri.unsurt(surt) == expected


@pytest.mark.parametrize("address", ["http://example.com/", "com,example", "", "dns:a)b"])
def test_unsurt_rejects_urls(address: str) -> None:
    """A URL is not a SURT."""
    with pytest.raises(UriError) as caught:
        uri.unsurt(address)
    assert caught.value.kind == "not-surt"


@pytest.mark.parametrize(
    "address",
    [
        "dns:www.archive.org",
        "warcinfo:/x.warc.gz",
        "urn:uuid:1",
        "ftp://example.com/A",
        "mailto:Me@Example.com",
        "data:,A",
    ],
)
def test_foreign_schemes_are_recognised(address: str) -> None:
    """They have an error kind, and no SURT."""
    with pytest.raises(ForeignSchemeError) as caught:
        uri.surt(address)
    assert caught.value.scheme == uri.foreign_scheme(address) == address.partition(":")[0]
    assert isinstance(uri.key_many([address])[0], ForeignSchemeError)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("http://", "no-host"),
        ("http://./", "no-host"),
        ("/a/b", "no-host"),
        ("example.com:808080/", "bad-port"),
        ("http://a b/", "bad-host"),
        ("http://a\0b/", "bad-host"),
        (b"http://\xff/", "bad-host"),
        ("http://256.1.1.1/", "bad-host"),
        ("http://example.com:99999/", "bad-port"),
        ("http://example.com/" + "a" * uri.MAX_URI_BYTES, "too-long"),
        ("com,example)/" + "a" * uri.MAX_URI_BYTES, "too-long"),
    ],
)
def test_invalid_urls_are_rejected_by_kind(address: str | bytes, kind: str) -> None:
    """With one line."""
    with pytest.raises(UriError) as caught:
        uri.surt(address)
    assert caught.value.kind == kind
    assert "\n" not in str(caught.value)


def test_invalid_url_does_not_affect_a_batch() -> None:
    """Results have the length and order of the input."""
    good, bad, last = uri.surt_many(iter(["http://a.com/", "http://a b/", "http://c.com/"]))
    assert (good, last) == ("com,a)/", "com,c)/")
    assert isinstance(bad, UriError)


def test_deeply_nested_escapes_are_decoded() -> None:
    """In one pass, however deep."""
    nested = "http://a.com/%" + "25" * (uri.MAX_URI_BYTES // 2 - 20) + "41"
    assert uri.surt(nested) == "com,a)/a"


@pytest.mark.parametrize("surt", ["com,good%2f,evil)/", "com,good%40evil)/", "com,%1b[31mx)/", "com,%0ax)/"])
def test_unsurt_rejects_invalid_hosts(surt: str) -> None:
    """An escape must not produce another host."""
    with pytest.raises(UriError) as caught:
        uri.unsurt(surt)
    assert caught.value.kind == "bad-host"
    with pytest.raises(UriError):
        uri.SuffixList().registered_domain(surt)


_ID = "0123456789abcdef" * 2
SHAPES: dict[str, Callable[[int], str]] = {
    "dots before": lambda n: "http://" + "." * n + "com",
    "dots behind": lambda n: "http://com" + "." * n,
    "www": lambda n: "http://" + "www." * (n // 4) + "com",
    "labels": lambda n: "http://" + "a." * (n // 2) + "com",
    "escapes": lambda n: "http://a.com/%" + "25" * (n // 2) + "41",
    "up": lambda n: "http://a.com" + "/a/.." * (n // 5),
    "slashes": lambda n: "http://a.com" + "/" * n,
    "sid": lambda n: "http://a.com/?" + f"sid={_ID}&" * (n // 37),
    "nested sid": lambda n: "http://a.com/?" + "s" * (n // 37) + f"sid={_ID}&" + f"id={_ID}&" * (n // 37),
    "cfid pairs": lambda n: "http://a.com/?" + "cfid=1&cftoken=2&" * (n // 17),
    "cfid alone": lambda n: "http://a.com/?" + "cfid=" * (n // 5),
    "cfid tokens": lambda n: "http://a.com/?" + "cfid=1&" * (n // 14) + "cftoken=1&" * (n // 20),
    "asp": lambda n: "http://a.com/" + "(4hqa0555fwsecu455xqckv45)/" * (n // 27) + "x.aspx",
    "parameters": lambda n: "http://a.com/?" + "&".join(str(i) for i in range(n // 8)),
    "surt": lambda n: "com," + "www," * (n // 4) + "a)/",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_hostile_urls_take_linear_time(shape: str) -> None:
    """Ten times the length takes much less than a hundred times as long."""

    def seconds(length: int) -> float:
        address = SHAPES[shape](length)
        start = time.process_time()
        uri.surt_many([address])
        return time.process_time() - start

    short = min(seconds(100_000) for _ in range(3))
    assert min(seconds(1_000_000) for _ in range(2)) < 40 * max(short, 0.002)


@pytest.mark.parametrize("address", ["", "dns:a.com", "http://a b/"])
def test_errors_can_be_pickled(address: str) -> None:
    """Unchanged."""
    (error,) = uri.surt_many([address])
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  our own bytes
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_surrogate_escapes_are_read_as_bytes() -> None:
    """Of arguments and file names."""
    assert uri.surt_many(["http://a.com/\udcff", "http://b.com/"]) == ["com,a)/%ff", "com,b)/"]


def test_unknown_rule_sets_are_rejected() -> None:
    """The message has the known ones."""
    with pytest.raises(UsageError, match="nonsense: unknown rule set: expected one of wayback, papers"):
        uri.surt("http://a.com/", "nonsense")


def test_non_text_raises_type_error() -> None:
    """It is a programming error, not an invalid URL."""
    with pytest.raises(TypeError, match="expected str or bytes, not int"):
        uri.surt(7)  # type: ignore[arg-type]


def test_nested_session_ids_are_rejected() -> None:
    """Each removal creates the next one: after the 32nd the SURT would not be idempotent."""
    session = f"id={'0123456789abcdef' * 2}&"

    def nested(depth: int) -> str:
        return f"http://a.com/?{'%7' * depth}s{session}{f'3{session}' * depth}z"

    assert uri.surt(nested(30)) == uri.surt(uri.surt(nested(30))) == "com,a)/?z"
    for depth in (32, 40, 2_000):
        with pytest.raises(UriError) as raised:
            uri.surt(nested(depth))
        assert raised.value.kind == "nested"
