"""The core agrees with a slow model, and has the invariants of docs/architecture.md."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.models import uri as model
from tests.uri import strategies
from unlost import uri
from unlost.errors import UriError

RULES = pytest.mark.parametrize("rules", uri.RULE_SETS)


@RULES
@given(strategies.uris())
@example(f"http://a.com/?ssid={strategies.ID}&id={strategies.ID}")
@example("http://a.com/x%3F/../y")
@example("http://a.com/a//../b")
@example("http://[::ffff:0:0]/")
@example("http://b\u00fccher..com")
@example("http://a.com/?cfid=1&z&a&cftoken=2")
@example("http://a.com/?%0Cfid=1&cftoken=2")
@example(f"http://a.com/?%4sid={strategies.ID}&1")
@example("http://com./")
def test_surt_agrees_with_the_model(rules: str, address: str) -> None:
    """For any valid URL."""
    assert uri.surt(address, rules) == model.surt(address, rules)
    assert uri.key(address, rules) == model.surt(address, rules, as_key=True)


@RULES
@given(strategies.uris())
@example("http://a.com:80/a%2Fb/../x?y")
@example("https://a.com:0/%2F/../x")
def test_alternative_keys_agree_with_the_model(rules: str, address: str) -> None:
    """Every combination of differences between tools, without the key of unlost, each once."""
    found = uri.alternative_keys(address, rules)
    assert len(found) == len(set(found))
    assert set(found) == model.alternative_keys(address, rules) - {uri.key(address, rules)}


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://straße.de/x", ["de,strasse)/x"]),
        ("http://xn--strae-oqa.de/x", ["de,strasse)/x"]),
        ("de,xn--strae-oqa)/x", ["de,strasse)/x"]),
        ("http://ς.gr/", ["gr,xn--4xa)/"]),
        ("http://bücher.de/", []),
        ("http://http://a.com/b", ["com,a)/b"]),
        ("http://256.1.1.1:80/", []),
        ("com,a:80)/x", ["com,a)/x"]),
        ("com,a:443)/x", ["com,a)/x"]),
        ("com,a:8080)/x", []),
    ],
)
def test_alternative_keys_by_example(address: str, expected: list[str]) -> None:
    """Cases outside the model: IDNA 2003, a repeated scheme, and ports in SURTs."""
    assert uri.alternative_keys(address) == expected


@RULES
@given(strategies.uris())
@example(f"http://a.com/?%3%Bsid={strategies.ID}&cfid")
@example(f"http://a.com/?b%2sid={strategies.ID}&6sid={strategies.ID}&x")
def test_surt_is_idempotent(rules: str, address: str) -> None:
    """As a SURT, and via `unsurt`."""
    surt = uri.surt(address, rules)
    assert uri.surt(surt, rules) == surt
    assert uri.surt(uri.unsurt(surt, rules), rules) == surt


@RULES
@given(strategies.uris())
def test_canonical_is_idempotent_and_keeps_the_surt(rules: str, address: str) -> None:
    """For any valid URL."""
    canonical = uri.canonical(address, rules)
    assert uri.canonical(canonical, rules) == canonical
    assert uri.surt(canonical, rules) == uri.surt(address, rules)


@given(st.lists(strategies.uris(), max_size=30))
def test_sorted_surts_keep_hosts_together(addresses: list[str]) -> None:
    """All SURTs of a host and port are contiguous in byte order."""

    def host(address: str) -> tuple[list[str], int | None]:
        scheme, name, port, _ = model.split(address)
        return model.host_labels(name), None if port == {"http": 80, "https": 443}[scheme] else port

    hosts = [found for found, _ in itertools.groupby(sorted(addresses, key=uri.surt), key=host)]
    assert len(hosts) == len({str(found) for found in hosts})


@given(strategies.uris())
def test_fast_path_agrees_with_the_parser(address: str) -> None:
    """An upper-case scheme does not take the fast path."""
    plain = "http://" + address.partition(":")[2].lstrip("/\\")
    for rules in uri.RULE_SETS:
        assert uri.surt(plain, rules) == uri.surt(plain.replace("http:", "HTTP:", 1), rules)


@RULES
@given(strategies.uris())
def test_all_spellings_have_the_same_key(rules: str, address: str) -> None:
    """Of keys in indexes."""
    key = uri.key(address, rules)
    assert "*" not in key
    spellings = uri.spellings(key)
    assert len(spellings) == len(set(spellings))
    assert {uri.row_key(spelling, address, rules) for spelling in spellings} == {key}
    if "]:" not in key:  # without brackets, as some indexes have it, a port cannot be told from the address
        assert {uri.key(spelling, rules) for spelling in spellings} == {key}


SUFFIXES = {"com", "uk", "co.uk", "io", "github.io", "localhost"}
LIST = uri.SuffixList("\n".join(["// ===BEGIN ICANN DOMAINS===", *sorted(SUFFIXES)]).encode())


@given(strategies.uris(), st.sampled_from([*uri.POLICIES, "H1P1", "H3Px", "H9P9"]))
def test_keys_agree_with_the_model(address: str, policy: str) -> None:
    """Under every policy."""
    whole = uri.key(address)
    expected = model.key(policy, whole, SUFFIXES)
    maker = uri.KeyPolicies([policy], suffixes=LIST)
    assert maker.keys(address) == [expected]
    assert maker.keys(whole) == [expected]


@given(strategies.uris())
def test_finer_keys_determine_coarser_keys(address: str) -> None:
    """So numbers of keys order as in the paper."""
    keys = dict(zip(uri.POLICIES, uri.KeyPolicies(uri.POLICIES).keys(address), strict=True))
    limits = ["DDom", "DSub", "DPth", "DQry", "DIni"]
    for coarse, fine in itertools.pairwise(limits):
        assert keys[fine].rstrip("/").startswith(keys[coarse].rstrip("/"))
    assert keys["URIR"].split("?")[0] == keys["HxPx"]


@given(st.one_of(st.text(), st.binary()))
def test_any_text_has_a_surt_or_is_rejected(text: str | bytes) -> None:
    """The SURT is printable ASCII, the error one line."""
    (surt,) = uri.surt_many([text])
    if isinstance(surt, UriError):
        assert str(surt).isprintable()
        return
    assert surt.isascii()
    assert surt.isprintable()
    assert " " not in surt
    assert uri.surt(surt) == surt
    assert uri.key(uri.key(text)) == uri.key(text)
