"""Look-ups in several archives at once agree with single look-ups."""

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mementomap.map_files import write_map
from tests.mementomap.strategies import KEYS, MAPS, PAGES, url
from tests.models import lookup
from tests.models import multi_lookup as model
from tests.models.mementomap import Lines
from unlost.errors import InputError, UsageError
from unlost.mementomap import (
    ArchiveHoldings,
    Filter,
    FilterOptions,
    HoldingsMatch,
    Map,
    MultiLookup,
    RoutingReason,
    build_filter,
)
from unlost.uri import key

DAY = datetime(2024, 3, 1, tzinfo=UTC)

_REASONS = {
    RoutingReason.UNCOVERED: {HoldingsMatch.UNCOVERED},
    RoutingReason.EXCLUDED: {HoldingsMatch.EXCLUDED},
    RoutingReason.FILTER: {HoldingsMatch.IN_FILTERS},
    RoutingReason.BOTH: {HoldingsMatch.IN_BOTH},
    RoutingReason.MAP: {HoldingsMatch.LISTED, HoldingsMatch.WILDCARD},
    RoutingReason.LISTED: {HoldingsMatch.LISTED_ONLY},
    RoutingReason.OLD_FILTER: {HoldingsMatch.WILDCARD_ONLY},
    RoutingReason.FILTERED: {HoldingsMatch.WILDCARD_ONLY, HoldingsMatch.NOT_IN_FILTERS},
}


def filter_of(folder: Path, name: str, *urls: str) -> Filter:
    """Return a filter of these pages."""
    url_list = folder / f"{name}.urls"
    url_list.write_text("".join(f"{url}\n" for url in urls))
    build_filter([url_list], folder / name, FilterOptions(bits=16, kind="urls", built_at="20240301000000"))
    return Filter.load(folder / name)


@settings(max_examples=60)
@given(st.lists(MAPS, min_size=1, max_size=3), st.lists(PAGES, min_size=1, max_size=4), st.lists(KEYS, max_size=6))
def test_multi_lookup_agrees_with_single_lookups(maps: list[Lines], listed: list[str], queried: list[str]) -> None:
    """For any maps and filters, in memory or in files, by URL and by key."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        held = filter_of(folder, "filter", *(url(each) for each in listed))
        pages = {key(url(each)).partition("?")[0] for each in listed}
        holdings = [ArchiveHoldings(None, [held], now=lambda: DAY)]
        expected: list[tuple[dict[str, list[str]] | None, set[str] | None]] = [(None, pages)]
        for number, lines in enumerate(maps):
            path = write_map(folder / f"{number}.ukvs", lines)
            for rows in (Map.load(path), Map.open(path)):
                holdings += [ArchiveHoldings(rows), ArchiveHoldings(rows, [held], now=lambda: DAY)]
                expected += [(lookup.rows(path.read_text()), None), (lookup.rows(path.read_text()), pages)]
        multi_lookup = MultiLookup(holdings)
        for page in [*listed, *queried]:
            results = multi_lookup.lookup_key(key(url(page)))
            for each, known, number in zip(holdings, expected, results, strict=True):
                assert HoldingsMatch(number).name == model.lookup_in_archive(*known, key(url(page))).upper().replace(
                    " ", "_"
                ), page
                single = each.lookup(url(page))
                assert each.lookup_key(key(url(page))) == single
                assert HoldingsMatch(number) in _REASONS[single.reason], (page, single)


def test_multi_lookup_reports_damaged_holdings(tmp_path: Path) -> None:
    """Unsorted maps and corrupt filters are reported as damaged; other archives return results."""
    (tmp_path / "valid.ukvs").write_text("com,example)/* 1\n")
    rows = "".join(f"com,a{number:05})/* 1\n" for number in range(3000))
    (tmp_path / "unsorted.ukvs").write_text("org,z)/* 1\n" + rows)
    filter_of(tmp_path, "f", *(f"http://example.com/{number}" for number in range(3000)))
    data = bytearray((tmp_path / "f").read_bytes())
    data[-100] ^= 1
    (tmp_path / "f").write_bytes(data)
    damaged = Filter.load(tmp_path / "f")
    holdings = [
        ArchiveHoldings(Map.open(tmp_path / "valid.ukvs")),
        ArchiveHoldings(Map.open(tmp_path / "unsorted.ukvs")),
        ArchiveHoldings(Map.open(tmp_path / "valid.ukvs"), [damaged]),
    ]
    assert list(MultiLookup(holdings).lookup_key("com,example)/x")) == [
        HoldingsMatch.WILDCARD,
        HoldingsMatch.DAMAGED,
        HoldingsMatch.DAMAGED,
    ]
    for each in holdings[1:]:
        with pytest.raises(InputError):
            each.lookup_key("com,example)/x")
    assert damaged.check()


def test_multi_lookup_with_mixed_rules_is_rejected(tmp_path: Path) -> None:
    """One key is used for all holdings; an empty list is rejected, too."""
    (tmp_path / "a.ukvs").write_text("com,example)/* 1\n")
    (tmp_path / "b.ukvs").write_text('!meta {"rules": "papers"}\ncom,example)/* 1\n')
    both = [ArchiveHoldings(Map.load(tmp_path / f"{name}.ukvs")) for name in "ab"]
    assert MultiLookup(both[1:]).rules == "papers"
    for invalid in (both, []):
        with pytest.raises(UsageError):
            MultiLookup(invalid)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_map_above_size_limit_is_rejected(suffix: str, tmp_path: Path) -> None:
    """The limit applies to the decompressed text and is checked before it is in memory."""
    from tests.mementomap.map_files import COMPRESSIONS

    text = b"".join(b"com,a%06d)/ 1\n" % number for number in range(20_000))
    path = tmp_path / f"a.ukvs{suffix}"
    path.write_bytes(COMPRESSIONS[suffix]([text]))
    assert Map.load(path, len(text)).lookup("http://a000007.com/").held
    for limit in (len(text) // 2, 10):
        with pytest.raises(InputError, match=f"a map of more than {limit} bytes"):
            Map.load(path, limit)


def test_loaded_filter_is_independent_of_file(tmp_path: Path) -> None:
    """Later changes of the file have no effect."""
    held = filter_of(tmp_path, "f", "http://example.com/a")
    (tmp_path / "f").write_bytes(b"")
    assert (held.lookup("http://example.com/a"), held.lookup_key("com,example)/b"), held.keys) == (True, False, 1)
    with pytest.raises(InputError, match="not a regular file"):
        Filter.load(tmp_path)
