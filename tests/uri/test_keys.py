"""URI-Keys, by example."""

import pytest

from tests.uri.test_surt import PAPERS_URI
from unlost import uri
from unlost.errors import ForeignSchemeError, SuffixListError, UsageError


def keys(address: str, policies: str, suffixes: uri.SuffixList | None = None) -> list[str]:
    """Return the keys under these policies."""
    return uri.KeyPolicies(policies.split(), suffixes=suffixes).keys(address)


def test_there_are_23_policies() -> None:
    """17 HmPn, five DLim and URIR."""
    families = [sum(name[0] == letter for name in uri.POLICIES) for letter in "HDU"]
    assert families == [17, 5, 1]
    assert all(uri.policy_name(name.lower()) == name for name in uri.POLICIES)


def test_keys_of_the_papers_example() -> None:
    """As printed."""
    maker = uri.KeyPolicies(["H1P0", "H3P0", "HxP1", "DDom", "DPth", "DIni", "URIR"], "papers")
    assert maker.keys(PAPERS_URI) == [
        "uk)/",
        "uk,co,bbc)/",
        "uk,co,bbc,news)/images",
        "uk,co,bbc)/",
        "uk,co,bbc)/1/2",
        "uk,co,bbc)/1/2/3/i",
        "uk,co,bbc,news)/images/Logo.png?height=80&rotate=90&width=200",
    ]


def test_path_requires_all_host_segments() -> None:
    """`uk,co)/images` is not a key."""
    assert keys("http://bbc.co.uk/images", "H2P1 H3P1") == ["uk,co)/", "uk,co,bbc)/images"]


def test_ports_in_hmpn_and_dlim_keys() -> None:
    """In HmPn if all host segments are included, never in DLim."""
    assert keys("http://a.example.com:81/b", "H2P1 H3P1 HxPx DSub URIR") == [
        "com,example)/",
        "com,example,a:81)/b",
        "com,example,a:81)/b",
        "com,example)/1",
        "com,example,a:81)/b",
    ]


def test_ip_address_is_one_label() -> None:
    """A part of an IP address is not a key."""
    assert keys("http://192.0.2.7:81/a", "H1P0 H1P1 DIni") == [
        "7,2,0,192:81)/",
        "7,2,0,192:81)/a",
        "7,2,0,192)/0/1/0/a",
    ]
    assert keys("http://[::1]/", "H1P0 DIni") == ["[::1])/", "[::1])/0/0/0/-"]


def test_keys_of_a_surt_equal_those_of_its_url() -> None:
    """In any spelling of the SURT."""
    policies = " ".join(uri.POLICIES)
    expected = keys("http://www.a.example.com/b/c?d", policies)
    for spelling in ["com,example,a)/b/c?d", "com,example,a,www)/B/c/?d", "http://(com,example,a,)/b/c?d"]:
        assert keys(spelling, policies) == expected


def test_asterisk_in_a_url_is_not_a_wildcard() -> None:
    """A page `*` is not a wildcard for its folder."""
    assert keys("http://a.com/b/*", "HxPx URIR") == ["com,a)/b/%2a", "com,a)/b/%2a"]
    assert keys("http://*.a.com/", "HxPx") == ["com,a,%2a)/"]


def test_suffix_section_determines_the_registered_domain() -> None:
    """A blog is a registered domain of the private section only."""
    address = "http://www.me.blogspot.com/"
    assert keys(address, "DDom") == ["com,blogspot,me)/"]
    assert keys(address, "DDom", uri.SuffixList(section="icann")) == ["com,blogspot)/"]


def test_custom_suffix_list() -> None:
    """It determines registered domains."""
    newer = uri.SuffixList(b"// ===BEGIN ICANN DOMAINS===\ncom\nexample.com\n")
    assert keys("http://a.b.example.com/", "DDom", newer) == ["com,example,b)/"]
    assert newer.registered_domain("http://a.b.example.com:81/x") == "b.example.com"


@pytest.mark.parametrize("text", [b"", b"com\norg\n", b"\xff\xfe\x00", b"// ===BEGIN ICANN DOMAINS===\na..b\n"])
def test_invalid_suffix_list_is_rejected(text: bytes) -> None:
    """With InputError."""
    with pytest.raises(SuffixListError, match="not a Public Suffix List"):
        uri.SuffixList(text)


@pytest.mark.parametrize("name", ["", "H", "H0P0", "H1", "P1", "H1P", "HxP-1", "H\uff11P0", "all", "H1P99999"])
def test_unknown_policies_are_rejected(name: str) -> None:
    """The message lists valid ones."""
    with pytest.raises(UsageError, match="unknown policy: expected HmPn"):
        uri.policy_name(name)


def test_unknown_sections_are_rejected() -> None:
    """The message has the valid ones."""
    with pytest.raises(UsageError, match="expected all or icann"):
        uri.SuffixList(section="private")


@pytest.mark.parametrize(
    ("key", "address", "expected"),
    [
        ("com,example)/a/", "http://www.example.com/A/", "com,example)/a"),
        ("com,example)", "http://example.com", "com,example)/"),
        ("1.2.3.4)/", "http://1.2.3.4/", "4,3,2,1)/"),
        ("-", "http://example.com/b", "com,example)/b"),
        ("", "http://example.com/b", "com,example)/b"),
        ("example.com/a", "http://example.com/a", "com,example)/a"),
        ("com,example)/a%20b/%7E", "http://example.com/a b/~", "com,example)/a%20b/~"),
    ],
)
def test_index_key_equals_the_key_of_its_url(key: str, address: str, expected: str) -> None:
    """The key column of an index is normalised to the key that look-ups of the URL use."""
    assert uri.row_key(key, address) == uri.key(address) == expected


def test_dns_rows_have_no_key() -> None:
    """The URL has the scheme, even if the key looks like that of a host."""
    with pytest.raises(ForeignSchemeError):
        uri.row_key("org,archive,www)", "dns:www.archive.org")


@pytest.mark.parametrize(
    ("key", "address", "expected"),
    [
        ("com,a):8080/x", "http://a.com:8080/x", "com,a:8080)/x"),
        ("com,a:80)/x", "http://a.com:80/x", "com,a)/x"),
        ("com,a:443)/x", "https://a.com/x", "com,a)/x"),
        ("com,a:80)/x", "https://a.com:80/x", "com,a:80)/x"),
        ("170.245.7.15)/", "http://www.170.245.7.15/", "15,7,245,170)/"),
        ("15,7,245,170,www)/", "http://www.170.245.7.15/", "15,7,245,170)/"),
        ("gr,xn--4xa)/", "http://ς.gr/", "gr,xn--3xa)/"),
        ("de,xn--strae-oqa)/", "http://straße.de/", "de,xn--strae-oqa)/"),
        ("com,a)/a%2fb/../x", "http://a.com/a%2Fb/../x", "com,a)/x"),
        ("com\\x,a)/", "http://a.com\\x", "com,a)/x"),
    ],
)
def test_url_overrides_disputed_keys(key: str, address: str, expected: str) -> None:
    """So that a look-up of the URL finds the row."""
    assert uri.row_key(key, address) == uri.key(address) == expected


@pytest.mark.parametrize(
    ("key", "address", "expected"),
    [
        ("com,a:80)/x", "", "com,a:80)/x"),  # a row without a URL
        ("1,1,1,256)/", "http://256.1.1.1/", "1,1,1,256)/"),  # a URL that has no key
        ("com,a)/b", "http://a.com/c", "com,a)/b"),  # a plain key
    ],
)
def test_key_column_is_used_without_a_valid_url(key: str, address: str, expected: str) -> None:
    """Also if the key is undisputed."""
    assert uri.row_key(key, address) == expected


def test_outbackcdx_port_spelling() -> None:
    """After the closing parenthesis."""
    assert "com,a):8080/x" in uri.spellings("com,a:8080)/x")
    assert "1.2.3.4):81/x/" in uri.spellings("4,3,2,1:81)/x")
