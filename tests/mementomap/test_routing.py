"""What map and filters of an archive say together."""

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


def write_filter(folder: Path, pages: tuple[str, ...] = PAGES, made: str | None = "20240301", **options: str) -> Filter:
    """Make a filter of these pages."""
    listed, output = folder / "urls", folder / f"{len(list(folder.iterdir()))}.filter"
    listed.write_text("".join(f"{page}\n" for page in pages))
    date = made and f"{made:0<14}"
    build_filter([listed], output, FilterOptions(bits=16, built_at=date, kind="urls", **options))  # type: ignore[arg-type]
    return Filter.open(output)


def write_map(folder: Path, rows: str = ROWS) -> Map:
    """Make a map of these rows."""
    path = folder / "a.ukvs"
    path.write_text(rows)
    return Map.open(path)


@pytest.mark.parametrize(
    ("page", "days", "verdict", "reason"),
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
def test_each_case(page: str, days: int, verdict: RoutingDecision, reason: RoutingReason, tmp_path: Path) -> None:
    """The map and the filter, young or old."""
    holdings = ArchiveHoldings(write_map(tmp_path), [write_filter(tmp_path)], now=lambda: DAY + timedelta(days))
    ruling = holdings.lookup(page)
    assert (ruling.decision, ruling.reason) == (verdict, reason)
    assert ruling.should_query == (verdict is not RoutingDecision.NOT_HELD)
    assert ruling.map_result == holdings.map.lookup(page)  # type: ignore[union-attr]
    assert holdings.lookup_many([page]) == [ruling]


def test_a_filter_is_as_old_as_its_last_capture_unless_it_says_when_it_was_made(tmp_path: Path) -> None:
    """And too old if it says neither."""
    index = tmp_path / "a.cdxj"
    index.write_text('com,example)/a 20240228000000 {"url": "http://example.com/a"}\n')
    dated = tmp_path / "dated.filter"
    build_filter([index], dated)
    rows = write_map(tmp_path)
    for filters, days, verdict in (
        ([Filter.open(dated)], 4, RoutingDecision.NOT_HELD),
        ([Filter.open(dated)], 6, RoutingDecision.PERHAPS_NEWER),
        ([write_filter(tmp_path, made=None)], 0, RoutingDecision.PERHAPS_NEWER),
        ([Filter.open(dated), write_filter(tmp_path, made=None)], 0, RoutingDecision.PERHAPS_NEWER),
    ):
        holdings = ArchiveHoldings(rows, filters, now=lambda days=days: DAY + timedelta(days))  # type: ignore[misc]
        assert holdings.lookup("http://example.com/new").decision is verdict


@pytest.mark.parametrize("date", ["20140231000000", "00000101000000", "99981231000000"])
def test_captures_of_days_that_never_were_do_not_keep_a_filter_young(date: str, tmp_path: Path) -> None:
    """Nor do they make it useless: what it has is held."""
    index, output = tmp_path / "a.cdxj", tmp_path / "a.filter"
    index.write_text(f'com,example)/a {date} {{"url": "http://example.com/a"}}\n')
    build_filter([index], output)
    holdings = ArchiveHoldings(write_map(tmp_path), [Filter.open(output)], now=lambda: DAY)
    assert holdings.lookup("http://example.com/a").decision is RoutingDecision.HELD
    assert holdings.lookup("http://example.com/new").decision is RoutingDecision.PERHAPS_NEWER


def test_any_age_may_be_allowed(tmp_path: Path) -> None:
    """Also one that reaches back before all dates."""
    filters = [write_filter(tmp_path)]
    holdings = ArchiveHoldings(write_map(tmp_path), filters, max_age=timedelta.max, now=lambda: DAY + timedelta(9000))
    assert holdings.lookup("http://example.com/new").decision is RoutingDecision.NOT_HELD


def test_a_page_that_any_filter_has_is_held(tmp_path: Path) -> None:
    """They may be of parts of an archive, with queries or without."""
    one, other = write_filter(tmp_path, PAGES[:1], key="urir"), write_filter(tmp_path, PAGES[1:])
    for filters in ([one, other], [other, one]):
        holdings = ArchiveHoldings(write_map(tmp_path), filters, now=lambda: DAY)
        found = holdings.lookup_many([*PAGES, "http://example.com/a"])
        assert [ruling.decision for ruling in found if not isinstance(ruling, UriError)] == [
            *[RoutingDecision.HELD] * 3,
            RoutingDecision.NOT_HELD,
        ]


def test_a_map_or_filters_alone(tmp_path: Path) -> None:
    """What there is answers."""
    rows, pages = write_map(tmp_path), write_filter(tmp_path)
    asked = ["http://example.com/a", "http://example.com/new?x", "http://", "http://unknown.net/"]
    alone = ArchiveHoldings(rows).lookup_many(asked)
    assert [getattr(ruling, "reason", None) for ruling in alone] == [
        RoutingReason.MAP,
        RoutingReason.MAP,
        None,
        RoutingReason.UNCOVERED,
    ]
    alone = ArchiveHoldings(None, [pages]).lookup_many(asked)
    assert [getattr(ruling, "reason", None) for ruling in alone] == [
        RoutingReason.FILTER,
        RoutingReason.FILTERED,
        None,
        RoutingReason.FILTERED,
    ]
    assert [getattr(ruling, "key", None) for ruling in alone] == [
        "com,example)/a",
        "com,example)/new",
        None,
        "net,unknown)/",
    ]
    assert isinstance(alone[2], UriError)
    with pytest.raises(UriError):
        ArchiveHoldings(rows, [pages]).lookup("http://")
    with pytest.raises(UsageError, match="neither a map nor a filter"):
        ArchiveHoldings(None)


def test_other_rules_are_refused(tmp_path: Path) -> None:
    """Their keys would not meet."""
    rows = write_map(tmp_path, '!meta {"rules": "papers"}\n' + ROWS)
    with pytest.raises(InputError, match=r"filter: made by other rules \(wayback\) than .*a.ukvs \(papers\)"):
        ArchiveHoldings(rows, [write_filter(tmp_path)])


@given(st.data())
def test_nothing_that_is_held_is_denied(data: st.DataObject) -> None:
    """Whatever the weights, the bits, and the age."""
    held = data.draw(st.lists(KEYS, min_size=1, max_size=20))
    with TemporaryDirectory() as folder:
        deny_nothing(data, held, Path(folder))


def deny_nothing(data: st.DataObject, held: list[str], folder: Path) -> None:
    """Make a map and a filter of these keys, and ask for them."""
    index = folder / "a.cdxj"
    index.write_text("".join(f'{key} 20240101000000 {{"url": {json.dumps(url(key))}}}\n' for key in sorted(held)))
    weight = data.draw(st.sampled_from([None, 0.0, 0.1, 1.0]))
    build_map([index], folder / "a.ukvs", MapOptions(host_weight=weight, path_weight=weight))
    build_filter([index], folder / "a.filter", FilterOptions(bits=data.draw(st.integers(1, 16))))
    days = data.draw(st.integers(0, 100))
    rows, pages = Map.open(folder / "a.ukvs"), Filter.open(folder / "a.filter")
    holdings = ArchiveHoldings(rows, [pages], now=lambda: DAY + timedelta(days))
    for ruling in holdings.lookup_many(held):
        assert not isinstance(ruling, UriError)
        assert ruling.decision is RoutingDecision.HELD


@pytest.mark.parametrize(
    ("page", "is_held"),
    [("http://a.com/x?q=1", True), ("http://a.com/x?q=2", False), ("http://a.com/x", False), ("http://a.com/z", False)],
)
@pytest.mark.parametrize("days", [0, 1000])
def test_a_map_of_pages_costs_no_requests_beside_an_exact_filter(
    page: str, is_held: bool, days: int, tmp_path: Path
) -> None:
    """The map lists a page whatever its queries are; the filter of whole URLs knows which of them are held."""
    listed = tmp_path / "urls"
    listed.write_text("http://a.com/x?q=1\nhttp://a.com/y\n")
    build_filter([listed], tmp_path / "f", FilterOptions(bits=16, key="urir", built_at="20240301000000", kind="urls"))
    build_map([listed], tmp_path / "m", MapOptions(built_at="20240301001500", kind="urls"))
    exact, now = Filter.open(tmp_path / "f"), lambda: DAY + timedelta(days)
    alone, both = ArchiveHoldings(None, [exact], now=now), ArchiveHoldings(Map.open(tmp_path / "m"), [exact], now=now)
    assert alone.lookup(page).should_query == both.lookup(page).should_query == is_held
    assert both.lookup_key(key(page)) == both.lookup(page)


def test_a_map_that_is_newer_than_an_exact_filter_speaks_for_what_is_new(tmp_path: Path) -> None:
    """A page that it lists may have been captured since the filter was made."""
    listed = tmp_path / "urls"
    listed.write_text("http://a.com/x?q=1\n")
    build_filter([listed], tmp_path / "f", FilterOptions(bits=16, key="urir", built_at="20240301000000", kind="urls"))
    listed.write_text("http://a.com/x?q=1\nhttp://a.com/new\n")
    build_map([listed], tmp_path / "m", MapOptions(built_at="20240303000000", kind="urls"))
    holdings = ArchiveHoldings(Map.open(tmp_path / "m"), [Filter.open(tmp_path / "f")], now=lambda: DAY)
    assert holdings.lookup("http://a.com/new").decision is RoutingDecision.PERHAPS_NEWER


@pytest.mark.parametrize(("days", "verdict"), [(6, RoutingDecision.NOT_HELD), (8, RoutingDecision.PERHAPS_NEWER)])
def test_an_old_exact_filter_of_the_day_of_its_map_denies_no_later_capture(
    days: int, verdict: RoutingDecision, tmp_path: Path
) -> None:
    """A wildcard covers pages that are captured after both were made: the map alone finds them."""
    listed = tmp_path / "urls"
    listed.write_text("".join(f"http://a.com/{n}\n" for n in range(50)))
    build_filter([listed], tmp_path / "f", FilterOptions(bits=16, key="urir", built_at="20240301000000", kind="urls"))
    build_map([listed], tmp_path / "m", MapOptions(built_at="20240301000000", kind="urls", path_weight=0))
    rows = Map.open(tmp_path / "m")
    assert rows.lookup("http://a.com/new").matched == "com,a)/*"
    holdings = ArchiveHoldings(rows, [Filter.open(tmp_path / "f")], now=lambda: DAY + timedelta(days))
    assert holdings.has_deciding_filters
    assert holdings.lookup("http://a.com/new").decision is verdict
    assert holdings.lookup("http://a.com/7").decision is RoutingDecision.HELD
