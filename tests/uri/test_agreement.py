"""Agreement with `surt`, which made the keys of most indexes, on 1.2 million real URLs."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests import real_data
from tests.external import surt as reference
from tests.uri import hostile
from unlost import uri
from unlost.errors import UriError

# The kinds of difference that docs/formats.md explains, each with how to recognise it in the URL.
KINDS = {
    "escaped question mark": re.compile(r"[^?]*%(25)*3f", re.IGNORECASE),
    "backslash": re.compile(r"[^?]*(\\|%(25)*5c)", re.IGNORECASE),
    "dots at the root": re.compile(r"https?://[^/]*/(\.\.|%2e%2e)", re.IGNORECASE),
    "www twice": re.compile(r"https?://www\d*\.www\d*\.", re.IGNORECASE),
    "scheme twice": re.compile(r"https?://https?:", re.IGNORECASE),
    "no host": re.compile(r"https?://\[[^:]*\]", re.IGNORECASE),
}

# Further kinds, which only hostile URLs show.
HOSTILE_KINDS = {
    "parent of an escaped slash": re.compile(r"[^?]*%2f.*(\.\.|%2e)", re.IGNORECASE),
    "IDNA 2003": re.compile(r"https?://(straße|faß|ς)\.", re.IGNORECASE),
    "IPv6": re.compile(r"https?://\[::"),
    "IPv4 in hexadecimal": re.compile(r"https?://0x7f\.1"),
    "invalid hosts": re.compile(r"https?://(1\.2\.3\.4\.5|256\.1\.1\.1|a%20b|xn--a\.|a\u200db)"),
    "port 0": re.compile(r"https?://[^/]*:0/"),
    "punctuation in labels": re.compile(r"https?://a[,()!b]+\.com"),
}
LOST = ("invalid hosts", "punctuation in labels", "no host")


@pytest.fixture(scope="module", params=[10, pytest.param(1, marks=pytest.mark.long)], ids=["every tenth", "all"])
def urls(request: pytest.FixtureRequest) -> list[str]:
    """Return every nth of the real URLs."""
    return real_data.urls()[:: request.param]


@pytest.fixture(scope="module")
def surts_of_surt(urls: list[str]) -> list[str]:
    """Return the results of `surt`."""
    return reference.compute_surts(urls)[0]


def documented_rows() -> list[list[str]]:
    """Return the rows of the tables below "Agreement with `surt`" in docs/formats.md, cell by cell."""
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    section = page.split("### Agreement with `surt`")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return [row for row in rows if row[0] != "kind" and not row[0].startswith("---")]


@pytest.mark.real_data
def test_wayback_agrees_with_surt(urls: list[str], surts_of_surt: list[str]) -> None:
    """At least 99.9 % are equal; the others are of the kinds and numbers in docs/formats.md."""
    ours = uri.surt_many(urls)
    different = [(url, our, their) for url, our, their in zip(urls, ours, surts_of_surt, strict=True) if our != their]
    assert len(urls) > 110_000
    assert 1 - len(different) / len(urls) >= 0.999
    kinds: Counter[str] = Counter()
    for url, our, their in different:
        found = [kind for kind, pattern in KINDS.items() if pattern.match(url)]
        assert found, (url, our, their)
        kinds[found[0]] += 1
    counts = Counter({row[0]: int(row[1]) for row in documented_rows() if row[1].isdigit()})
    assert kinds <= counts
    if len(urls) > 1_100_000:
        assert kinds == counts


def test_documented_differences_are_real() -> None:
    """Each example in docs/formats.md has the documented results of `surt` and unlost."""
    examples = [row[-4:-1] for row in documented_rows() if all(re.fullmatch("`[^`]*`", cell) for cell in row[-4:-2])]
    addresses, surts_of_surt, ours = (list(column) for column in zip(*examples, strict=True))
    assert len(examples) >= 10
    assert [
        f"`{surt}`" for surt in reference.compute_surts([address.strip("`") for address in addresses])[0]
    ] == surts_of_surt
    found = uri.surt_many(address.strip("`") for address in addresses)
    assert ["refused" if isinstance(surt, UriError) else f"`{surt}`" for surt in found] == ours


@pytest.mark.real_data
def test_pages_indexed_by_surt_are_found(urls: list[str], surts_of_surt: list[str]) -> None:
    """Every row of an index with keys of `surt` is found by its URL, except for URLs without a host."""
    lost = [
        url
        for url, our, their in zip(urls, uri.key_many(urls), surts_of_surt, strict=True)
        if isinstance(our, UriError) or uri.row_key(their, url) not in (our, *uri.alternative_keys(url))
    ]
    assert [url for url in lost if not KINDS["no host"].match(url)] == []
    assert len(lost) < 30


def test_every_difference_on_hostile_urls_is_documented() -> None:
    """With its kind, in docs/formats.md."""
    surts_of_surt = reference.compute_surts(hostile.URLS)[0]
    kinds = {**HOSTILE_KINDS, **KINDS}
    named = {row[0] for row in documented_rows()}
    assert set(kinds) <= named
    for url, our, their in zip(hostile.URLS, uri.surt_many(hostile.URLS), surts_of_surt, strict=True):
        if our != their:
            found = [kind for kind, pattern in kinds.items() if pattern.match(url)]
            assert found, (url, our, their)


def test_hostile_pages_indexed_by_surt_are_found() -> None:
    """By their key or an alternative key, except for the kinds that docs/formats.md marks as lost."""
    lost = set()
    for url, their in zip(hostile.URLS, reference.compute_surts(hostile.URLS)[0], strict=True):
        (our,) = uri.key_many([url])
        if isinstance(our, UriError) or uri.row_key(their, url) not in (our, *uri.alternative_keys(url)):
            kinds = {**HOSTILE_KINDS, **KINDS}
            found = [kind for kind in LOST if kinds[kind].match(url)]
            assert found, (url, our, their)
            lost.add(found[0])
    assert lost == set(LOST)
