"""Routing decisions from the map and filters of an archive."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mementomap.strategies import KEYS, url
from unlost.errors import InputError, UriError, UsageError
from unlost.mementomap import (
    ArchiveHoldings,
    Filter,
    FilterOptions,
    Map,
    MapOptions,
    RoutingDecision,
    RoutingReason,
    build_filter,
    build_map,
)
from unlost.uri import key

DAY = datetime(2024, 3, 1, tzinfo=UTC)
PAGES = ("http://example.com/a?b=1", "http://example.com/b", "http://other.org/")
ROWS = "com,example)/* 2\ncom,example)/listed 1\ncom,example)/not/* 0\norg,other)/ 1\n"


def write_filter(
    folder: Path, pages: tuple[str, ...] = PAGES, built_at: str | None = "20240301", **options: str
) -> Filter:
    """Build a filter of these pages."""
    listed, output = folder / "urls", folder / f"{len(list(folder.iterdir()))}.filter"
    listed.write_text("".join(f"{page}\n" for page in pages))
    date = built_at and f"{built_at:0<14}"
    build_filter([listed], output, FilterOptions(bits=16, built_at=date, kind="urls", **options))  # type: ignore[arg-type]
    return Filter.open(output)


def write_map(folder: Path, rows: str = ROWS) -> Map:
    """Write a map of these rows."""
    path = folder / "a.ukvs"
    path.write_text(rows)
    return Map.open(path)


@pytest.mark.parametrize(
    ("page", "days", "decision", "reason"),
    [
        ("http://example.com/a", 0, RoutingDecision.HELD, RoutingReason.BOTH),
        ("http://example.com/a", 1000, RoutingDecision.HELD, RoutingReason.BOTH),
        ("http://example.com/new", 6, RoutingDecision.NOT_HELD, RoutingReason.FILTERED),
        ("http://example.com/new", 8, RoutingDecision.PERHAPS_NEWER, RoutingReason.OLD_FILTER),
        ("http://example.com/listed", 0, RoutingDecision.PERHAPS_NEWER, RoutingReason.LISTED),
        ("http://example.com/not/this", 1000, RoutingDecision.NOT_HELD, RoutingReason.EXCLUDED),
        ("http://unknown.net/", 1000, RoutingDecision.NOT_HELD, RoutingReason.UNCOVERED),
    ],
)
def test_routing_decision_of_map_and_filter(
    page: str, days: int, decision: RoutingDecision, reason: RoutingReason, tmp_path: Path
) -> None:
    """For current and outdated filters."""
    holdings = ArchiveHoldings(write_map(tmp_path), [write_filter(tmp_path)], now=lambda: DAY + timedelta(days))
    result = holdings.lookup(page)
    assert (result.decision, result.reason) == (decision, reason)
    assert result.should_query == (decision is not RoutingDecision.NOT_HELD)
    assert result.map_result == holdings.map.lookup(page)  # type: ignore[union-attr]
    assert holdings.lookup_many([page]) == [result]


def test_filter_age_is_from_build_date_or_last_capture(tmp_path: Path) -> None:
    """A filter without both is outdated."""
    index = tmp_path / "a.cdxj"
    index.write_text('com,example)/a 20240228000000 {"url": "http://example.com/a"}\n')
    dated = tmp_path / "dated.filter"
    build_filter([index], dated)
    rows = write_map(tmp_path)
    for filters, days, decision in (
        ([Filter.open(dated)], 4, RoutingDecision.NOT_HELD),
        ([Filter.open(dated)], 6, RoutingDecision.PERHAPS_NEWER),
        ([write_filter(tmp_path, built_at=None)], 0, RoutingDecision.PERHAPS_NEWER),
        ([Filter.open(dated), write_filter(tmp_path, built_at=None)], 0, RoutingDecision.PERHAPS_NEWER),
    ):
        holdings = ArchiveHoldings(rows, filters, now=lambda days=days: DAY + timedelta(days))  # type: ignore[misc]
        assert holdings.lookup("http://example.com/new").decision is decision


@pytest.mark.parametrize("date", ["20140231000000", "00000101000000", "99981231000000"])
def test_invalid_capture_date_does_not_set_filter_age(date: str, tmp_path: Path) -> None:
    """The filter still holds its pages."""
    index, output = tmp_path / "a.cdxj", tmp_path / "a.filter"
    index.write_text(f'com,example)/a {date} {{"url": "http://example.com/a"}}\n')
    build_filter([index], output)
    holdings = ArchiveHoldings(write_map(tmp_path), [Filter.open(output)], now=lambda: DAY)
    assert holdings.lookup("http://example.com/a").decision is RoutingDecision.HELD
    assert holdings.lookup("http://example.com/new").decision is RoutingDecision.PERHAPS_NEWER


def test_maximum_filter_age_may_be_unlimited(tmp_path: Path) -> None:
    """An age before all dates is accepted."""
    filters = [write_filter(tmp_path)]
    holdings = ArchiveHoldings(write_map(tmp_path), filters, max_age=timedelta.max, now=lambda: DAY + timedelta(9000))
    assert holdings.lookup("http://example.com/new").decision is RoutingDecision.NOT_HELD


def test_page_in_any_filter_is_held(tmp_path: Path) -> None:
    """Filters may cover parts of an archive, with or without queries."""
    one, other = write_filter(tmp_path, PAGES[:1], key="urir"), write_filter(tmp_path, PAGES[1:])
    for filters in ([one, other], [other, one]):
        holdings = ArchiveHoldings(write_map(tmp_path), filters, now=lambda: DAY)
        results = holdings.lookup_many([*PAGES, "http://example.com/a"])
        assert [result.decision for result in results if not isinstance(result, UriError)] == [
            *[RoutingDecision.HELD] * 3,
            RoutingDecision.NOT_HELD,
        ]


def test_holdings_of_only_map_or_only_filters_decide(tmp_path: Path) -> None:
    """The available source decides."""
    rows, pages = write_map(tmp_path), write_filter(tmp_path)
    queries = ["http://example.com/a", "http://example.com/new?x", "http://", "http://unknown.net/"]
    results = ArchiveHoldings(rows).lookup_many(queries)
    assert [getattr(result, "reason", None) for result in results] == [
        RoutingReason.MAP,
        RoutingReason.MAP,
        None,
        RoutingReason.UNCOVERED,
    ]
    results = ArchiveHoldings(None, [pages]).lookup_many(queries)
    assert [getattr(result, "reason", None) for result in results] == [
        RoutingReason.FILTER,
        RoutingReason.FILTERED,
        None,
        RoutingReason.FILTERED,
    ]
    assert [getattr(result, "key", None) for result in results] == [
        "com,example)/a",
        "com,example)/new",
        None,
        "net,unknown)/",
    ]
    assert isinstance(results[2], UriError)
    with pytest.raises(UriError):
        ArchiveHoldings(rows, [pages]).lookup("http://")
    with pytest.raises(UsageError, match="neither a map nor a filter"):
        ArchiveHoldings(None)


def test_map_and_filter_with_different_rules_are_rejected(tmp_path: Path) -> None:
    """Their keys do not match."""
    rows = write_map(tmp_path, '!meta {"rules": "papers"}\n' + ROWS)
    with pytest.raises(InputError, match=r"filter: made by other rules \(wayback\) than .*a.ukvs \(papers\)"):
        ArchiveHoldings(rows, [write_filter(tmp_path)])


@given(st.data())
def test_routing_has_no_false_negatives(data: st.DataObject) -> None:
    """For any weights, bits and age."""
    held = data.draw(st.lists(KEYS, min_size=1, max_size=20))
    with TemporaryDirectory() as folder:
        assert_no_false_negatives(data, held, Path(folder))


def assert_no_false_negatives(data: st.DataObject, held: list[str], folder: Path) -> None:
    """Build a map and a filter of these keys and look them up."""
    index = folder / "a.cdxj"
    index.write_text("".join(f'{key} 20240101000000 {{"url": {json.dumps(url(key))}}}\n' for key in sorted(held)))
    weight = data.draw(st.sampled_from([None, 0.0, 0.1, 1.0]))
    build_map([index], folder / "a.ukvs", MapOptions(host_weight=weight, path_weight=weight))
    build_filter([index], folder / "a.filter", FilterOptions(bits=data.draw(st.integers(1, 16))))
    days = data.draw(st.integers(0, 100))
    rows, pages = Map.open(folder / "a.ukvs"), Filter.open(folder / "a.filter")
    holdings = ArchiveHoldings(rows, [pages], now=lambda: DAY + timedelta(days))
    for result in holdings.lookup_many(held):
        assert not isinstance(result, UriError)
        assert result.decision is RoutingDecision.HELD


@pytest.mark.parametrize(
    ("page", "is_held"),
    [("http://a.com/x?q=1", True), ("http://a.com/x?q=2", False), ("http://a.com/x", False), ("http://a.com/z", False)],
)
@pytest.mark.parametrize("days", [0, 1000])
def test_map_adds_no_requests_to_url_filter(page: str, is_held: bool, days: int, tmp_path: Path) -> None:
    """The map lists a page for any query; the filter of full URLs decides."""
    listed = tmp_path / "urls"
    listed.write_text("http://a.com/x?q=1\nhttp://a.com/y\n")
    build_filter([listed], tmp_path / "f", FilterOptions(bits=16, key="urir", built_at="20240301000000", kind="urls"))
    build_map([listed], tmp_path / "m", MapOptions(built_at="20240301001500", kind="urls"))
    exact, now = Filter.open(tmp_path / "f"), lambda: DAY + timedelta(days)
    filter_only, both = (
        ArchiveHoldings(None, [exact], now=now),
        ArchiveHoldings(Map.open(tmp_path / "m"), [exact], now=now),
    )
    assert filter_only.lookup(page).should_query == both.lookup(page).should_query == is_held
    assert both.lookup_key(key(page)) == both.lookup(page)


def test_newer_map_overrides_url_filter_for_new_pages(tmp_path: Path) -> None:
    """A listed page may have been captured after the filter was built."""
    listed = tmp_path / "urls"
    listed.write_text("http://a.com/x?q=1\n")
    build_filter([listed], tmp_path / "f", FilterOptions(bits=16, key="urir", built_at="20240301000000", kind="urls"))
    listed.write_text("http://a.com/x?q=1\nhttp://a.com/new\n")
    build_map([listed], tmp_path / "m", MapOptions(built_at="20240303000000", kind="urls"))
    holdings = ArchiveHoldings(Map.open(tmp_path / "m"), [Filter.open(tmp_path / "f")], now=lambda: DAY)
    assert holdings.lookup("http://a.com/new").decision is RoutingDecision.PERHAPS_NEWER


@pytest.mark.parametrize(("days", "decision"), [(6, RoutingDecision.NOT_HELD), (8, RoutingDecision.PERHAPS_NEWER)])
def test_outdated_url_filter_does_not_exclude_later_captures(
    days: int, decision: RoutingDecision, tmp_path: Path
) -> None:
    """A wildcard covers pages captured after both were built."""
    listed = tmp_path / "urls"
    listed.write_text("".join(f"http://a.com/{n}\n" for n in range(50)))
    build_filter([listed], tmp_path / "f", FilterOptions(bits=16, key="urir", built_at="20240301000000", kind="urls"))
    build_map([listed], tmp_path / "m", MapOptions(built_at="20240301000000", kind="urls", path_weight=0))
    rows = Map.open(tmp_path / "m")
    assert rows.lookup("http://a.com/new").matched == "com,a)/*"
    holdings = ArchiveHoldings(rows, [Filter.open(tmp_path / "f")], now=lambda: DAY + timedelta(days))
    assert holdings.has_deciding_filters
    assert holdings.lookup("http://a.com/new").decision is decision
    assert holdings.lookup("http://a.com/7").decision is RoutingDecision.HELD
