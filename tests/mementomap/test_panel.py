"""Several archives asked at once: the same as each by itself."""

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mementomap.files import write_map
from tests.mementomap.strategies import KEYS, MAPS, PAGES, url
from tests.models import lookup
from tests.models import panel as model
from tests.models.holdings import Lines
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


def of_pages(folder: Path, name: str, *addresses: str) -> Filter:
    """Return a filter of these pages."""
    listed = folder / f"{name}.urls"
    listed.write_text("".join(f"{address}\n" for address in addresses))
    build_filter([listed], folder / name, FilterOptions(bits=16, kind="urls", built_at="20240301000000"))
    return Filter.load(folder / name)


@settings(max_examples=60)
@given(st.lists(MAPS, min_size=1, max_size=3), st.lists(PAGES, min_size=1, max_size=4), st.lists(KEYS, max_size=6))
def test_a_panel_says_what_each_archive_says(maps: list[Lines], listed: list[str], asked: list[str]) -> None:
    """Whatever the maps and filters are, in memory or in their files, by address and by key."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        held = of_pages(folder, "filter", *(url(each) for each in listed))
        pages = {key(url(each)).partition("?")[0] for each in listed}
        holdings = [ArchiveHoldings(None, [held], now=lambda: DAY)]
        expected: list[tuple[dict[str, list[str]] | None, set[str] | None]] = [(None, pages)]
        for number, lines in enumerate(maps):
            path = write_map(folder / f"{number}.ukvs", lines)
            for rows in (Map.load(path), Map.open(path)):
                holdings += [ArchiveHoldings(rows), ArchiveHoldings(rows, [held], now=lambda: DAY)]
                expected += [(lookup.rows(path.read_text()), None), (lookup.rows(path.read_text()), pages)]
        panel = MultiLookup(holdings)
        for page in [*listed, *asked]:
            found = panel.lookup_key(key(url(page)))
            for each, known, number in zip(holdings, expected, found, strict=True):
                assert HoldingsMatch(number).name == model.finding(*known, key(url(page))).upper().replace(" ", "_"), (
                    page
                )
                ruling = each.lookup(url(page))
                assert each.lookup_key(key(url(page))) == ruling
                assert HoldingsMatch(number) in _REASONS[ruling.reason], (page, ruling)


def test_a_damaged_part_says_so_instead_of_no(tmp_path: Path) -> None:
    """Of a map whose rows are not sorted and of a filter with a flipped bit; the others answer."""
    (tmp_path / "sound.ukvs").write_text("com,example)/* 1\n")
    rows = "".join(f"com,a{number:05})/* 1\n" for number in range(3000))
    (tmp_path / "odd.ukvs").write_text("org,z)/* 1\n" + rows)
    of_pages(tmp_path, "f", *(f"http://example.com/{number}" for number in range(3000)))
    data = bytearray((tmp_path / "f").read_bytes())
    data[-100] ^= 1
    (tmp_path / "f").write_bytes(data)
    damaged = Filter.load(tmp_path / "f")
    holdings = [
        ArchiveHoldings(Map.open(tmp_path / "sound.ukvs")),
        ArchiveHoldings(Map.open(tmp_path / "odd.ukvs")),
        ArchiveHoldings(Map.open(tmp_path / "sound.ukvs"), [damaged]),
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


def test_only_holdings_of_the_same_rules_are_asked_together(tmp_path: Path) -> None:
    """One key serves all of them; and there must be somebody."""
    (tmp_path / "a.ukvs").write_text("com,example)/* 1\n")
    (tmp_path / "b.ukvs").write_text('!meta {"rules": "papers"}\ncom,example)/* 1\n')
    both = [ArchiveHoldings(Map.load(tmp_path / f"{name}.ukvs")) for name in "ab"]
    assert MultiLookup(both[1:]).rules == "papers"
    for wrong in (both, []):
        with pytest.raises(UsageError):
            MultiLookup(wrong)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_map_larger_than_wanted_is_refused(suffix: str, tmp_path: Path) -> None:
    """By its text, however small its file is, and before it is in memory."""
    from tests.mementomap.files import COMPRESSIONS

    text = b"".join(b"com,a%06d)/ 1\n" % number for number in range(20_000))
    path = tmp_path / f"a.ukvs{suffix}"
    path.write_bytes(COMPRESSIONS[suffix]([text]))
    assert Map.load(path, len(text)).lookup("http://a000007.com/").held
    for limit in (len(text) // 2, 10):
        with pytest.raises(InputError, match=f"a map of more than {limit} bytes"):
            Map.load(path, limit)


def test_a_filter_in_memory_is_the_one_that_was_read(tmp_path: Path) -> None:
    """Whatever becomes of its file."""
    held = of_pages(tmp_path, "f", "http://example.com/a")
    (tmp_path / "f").write_bytes(b"")
    assert (held.lookup("http://example.com/a"), held.lookup_key("com,example)/b"), held.keys) == (True, False, 1)
    with pytest.raises(InputError, match="not a regular file"):
        Filter.load(tmp_path)
