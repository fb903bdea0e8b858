"""Routing of pages to archives."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.aggregate.maps import (
    DAY,
    MemoryHoldings,
    archive,
    archive_with_hit_rate,
    filter_of_pages,
    map_of_rows,
    synthetic_index,
    write_filter,
    write_map,
)
from tests.aggregate.routers import PAGE, router, targets_of
from tests.mementomap.strategies import url as url_of
from unlost.aggregate import Evidence, RouteTarget, RoutingOptions
from unlost.errors import UriError, UsageError
from unlost.mementomap import ArchiveHoldings, Filter, FilterOptions, Map, MapOptions, build_filter, build_map
from unlost.uri import key, spellings


def test_archives_without_maps_are_queried() -> None:
    """If they are enabled."""
    found = router(
        [archive_with_hit_rate("a", 0.3), archive("off", enabled=False), archive_with_hit_rate("b", 0.0)]
    ).route(PAGE)
    assert (targets_of(found), found.passed_over) == ([("a", "learned"), ("b", "learned")], ())
    assert [choice.likelihood for choice in found.targets] == [0.3, 0.0]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("http://example.com/a", "routed"),
        ("https://WWW.example.com:443/A?session=7#x", "routed"),
        ("http://example.com/not/this", None),
        ("http://example.org/", None),
    ],
)
def test_maps_select_archives(page: str, expected: str | None, tmp_path: Path) -> None:
    """An archive is queried if its map covers the page or it has no map."""
    holdings_ = MemoryHoldings(
        {"a": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/* 2\ncom,example)/not/* 0\n"))}
    )
    found = router([archive("a"), archive("b")], holdings_).route(page)
    assert dict(targets_of(found)) == ({"a": expected} if expected else {}) | {"b": "learned"}
    assert found.passed_over == (() if expected else ("a",))


@pytest.mark.parametrize(
    ("page", "days", "evidence"),
    [
        ("http://example.com/a", 0, Evidence.BOTH),
        ("http://example.com/listed", 0, Evidence.LISTED_ONLY),
        ("http://example.com/new", 6, None),
        ("http://example.com/new", 8, Evidence.OLD_FILTER),
        ("http://example.org/", 8, None),
    ],
)
def test_old_filters_do_not_deny(page: str, days: int, evidence: Evidence | None, tmp_path: Path) -> None:
    """Where a wildcard covers a page; the maximum age is configurable."""
    text = "com,example)/* 2\ncom,example)/listed 1\n"
    parts = map_of_rows(tmp_path, text), [filter_of_pages(tmp_path, "http://example.com/a")]
    holdings = ArchiveHoldings(*parts, max_age=timedelta(days=7), now=lambda: DAY + timedelta(days=days))
    found = router([archive("a")], MemoryHoldings({"a": holdings})).route(page)
    assert [choice.evidence for choice in found.targets] == ([evidence] if evidence else [])
    assert found.passed_over == (() if evidence else ("a",))


def test_filters_without_maps_select_archives(tmp_path: Path) -> None:
    """By listed pages only."""
    router_ = router([archive("a")], MemoryHoldings({"a": ArchiveHoldings(None, [filter_of_pages(tmp_path, PAGE)])}))
    assert targets_of(router_.route(PAGE)) == [("a", "routed")]
    assert router_.route("http://example.com/b").passed_over == ("a",)


def test_broadcast_queries_all_enabled_archives(tmp_path: Path) -> None:
    """Regardless of maps and hit rates."""
    holdings_ = MemoryHoldings({"a": ArchiveHoldings(map_of_rows(tmp_path, "org,other)/* 2\n"))})
    archives = [archive("a"), archive_with_hit_rate("b", 0.01), archive("off", enabled=False)]
    found = router(archives, holdings_, min_hit_rate=0.5).route(PAGE, RoutingOptions(broadcast=True))
    assert (targets_of(found), found.passed_over) == ([("a", "broadcast"), ("b", "broadcast")], ())


def test_requested_archives_are_queried(tmp_path: Path) -> None:
    """Also if disabled or denied by the map; an unknown ID raises an error with the nearest one."""
    holdings_ = MemoryHoldings({"aa": ArchiveHoldings(map_of_rows(tmp_path, "org,other)/* 2\n"))})
    router_ = router([archive("aa"), archive("bb"), archive("off", enabled=False)], holdings_)
    found = router_.route(PAGE, RoutingOptions(archives=frozenset({"off", "AA"}), broadcast=True, top_k=1))
    assert (targets_of(found), found.passed_over) == ([("aa", "requested"), ("off", "requested")], ())
    with pytest.raises(UsageError, match=r"no archive `of` .*did you mean `off`\? There are aa, bb, off"):
        router_.route(PAGE, RoutingOptions(archives=frozenset({"aa", "of"})))
    with pytest.raises(UsageError, match="no archive is named"):
        router_.route(PAGE, RoutingOptions(archives=frozenset()))


@pytest.mark.parametrize(
    "options", [RoutingOptions(), RoutingOptions(broadcast=True), RoutingOptions(archives=frozenset({"a"}))]
)
@pytest.mark.parametrize("text", ["", "http://", "mailto:me@example.com", "http://a b.com:99999999/"])
def test_invalid_url_is_rejected(text: str, options: RoutingOptions) -> None:
    """Before routing."""
    with pytest.raises(UriError):
        router([archive("a")]).route(text, options)


def test_invalid_options_are_rejected() -> None:
    """The message says what is expected."""
    with pytest.raises(UsageError, match="top_k: expected"):
        router([archive("a")]).route(PAGE, RoutingOptions(top_k=0))
    wrong: list[dict[str, Any]] = [{"exploration_share": 1.5}, {"min_hit_rate": -0.1}]
    for options in wrong:
        with pytest.raises(UsageError, match="expected a share from 0 to 1"):
            router([archive("a")], **options)


def test_damaged_map_is_ignored(tmp_path: Path) -> None:
    """It is reported once, and the archive is queried as one without a map."""
    sound = map_of_rows(tmp_path, "com,example)/* 2\n", "sound")
    urls_of = filter_of_pages(tmp_path, *(f"http://example.com/{number}" for number in range(2_000)), name="f")
    data = bytearray(Path(urls_of.path).read_bytes())
    data[-50] ^= 1
    Path(urls_of.path).write_bytes(data)
    damaged = Filter.load(urls_of.path)
    holdings_ = MemoryHoldings({"a": ArchiveHoldings(sound), "b": ArchiveHoldings(sound, [damaged])})
    router_ = router([archive("a"), archive("b")], holdings_)
    for _ in range(3):
        assert targets_of(router_.route(PAGE)) == [("a", "routed"), ("b", "learned")]
    ((name, problem),) = holdings_.damaged
    assert (name, "f.filter" in problem) == ("b", True)


def test_maps_with_different_rules_use_their_own_keys(tmp_path: Path) -> None:
    """In addition to maps with the default rules."""
    usual = ArchiveHoldings(map_of_rows(tmp_path, "com,example)/a 2\n", "usual"))
    other = ArchiveHoldings(map_of_rows(tmp_path, f'!meta {{"rules": "papers"}}\n{key(PAGE, "papers")} 2\n', "papers"))
    router_ = router([archive("a"), archive("b")], MemoryHoldings({"a": usual, "b": other}))
    assert targets_of(router_.route(PAGE)) == [("a", "routed"), ("b", "routed")]
    assert router_.route("http://example.com/other").passed_over == ("a", "b")


def test_new_holdings_are_used_at_once(tmp_path: Path) -> None:
    """By the next request."""
    holdings_ = MemoryHoldings({"a": ArchiveHoldings(map_of_rows(tmp_path, "org,other)/* 2\n", "old"))})
    router_ = router([archive("a")], holdings_)
    assert targets_of(router_.route(PAGE)) == []
    holdings_.held = {"a": ArchiveHoldings(map_of_rows(tmp_path, "com,example)/* 2\n", "new"))}
    assert targets_of(router_.route(PAGE)) == [("a", "routed")]
    holdings_.held = {}
    assert targets_of(router_.route(PAGE)) == [("a", "learned")]


@pytest.fixture(scope="module")
def indexes_of_three_archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """Return indexes of three archives, with complete and compacted maps and filters, and the URLs of each."""
    folder = tmp_path_factory.mktemp("archived")
    urls_of = {}
    for seed, name in enumerate("abc"):
        index = folder / f"{name}.cdxj"
        urls_of[name] = synthetic_index(index, 3_000, seed)
        for weight in (None, 1.0, 0.1):
            write_map(index, folder / f"{name}.{weight}.ukvs", weight)
        write_filter(index, folder / f"{name}.filter")
    return folder, urls_of


def _spellings(address: str) -> list[str]:
    """Return other spellings of a URL."""
    own = key(address)
    texts = [address, address.replace("http://", "https://www.", 1), address + "#top", own, url_of(own)]
    return [*texts, *spellings(own)]


@pytest.mark.parametrize("weight", [None, 1.0, 0.1])
@pytest.mark.parametrize("with_filters", [False, True])
@pytest.mark.parametrize("days", [0, 400])
def test_every_indexed_page_is_routed_to_its_archive(
    weight: float | None, with_filters: bool, days: int, indexes_of_three_archives: tuple[Path, dict[str, list[str]]]
) -> None:
    """With complete and compacted maps, and any spelling of the URL."""
    folder, urls_of = indexes_of_three_archives
    holdings_ = MemoryHoldings()
    for name in urls_of:
        filters = [Filter.load(folder / f"{name}.filter")] if with_filters else []
        rows_ = Map.load(folder / f"{name}.{weight}.ukvs")
        holdings_.held[name] = ArchiveHoldings(rows_, filters, now=lambda: DAY + timedelta(days=days))
    router_ = router([archive(name) for name in urls_of], holdings_)
    passed_over = 0
    for name, addresses in urls_of.items():
        for number, address in enumerate(sorted(set(addresses))):
            for text in _spellings(address) if number % 20 == 0 else [address]:
                found = router_.route(text)
                assert (name, "routed") in targets_of(found), text
                passed_over += len(found.passed_over)
    assert passed_over > 1_000, "the maps say no to something, too"


@settings(max_examples=40)
@given(st.data())
def test_routing_loses_no_holder_found_by_broadcast(
    indexes_of_three_archives: tuple[Path, dict[str, list[str]]], data: st.DataObject
) -> None:
    """For all combinations of maps and filters."""
    folder, urls_of = indexes_of_three_archives
    kinds = data.draw(st.tuples(*(st.sampled_from(["map", "filter", "both", "none"]) for _ in urls_of)))
    holdings_ = MemoryHoldings()
    for name, kind in zip(urls_of, kinds, strict=True):
        rows_ = Map.load(folder / f"{name}.1.0.ukvs") if kind in ("map", "both") else None
        filters = [Filter.load(folder / f"{name}.filter")] if kind in ("filter", "both") else []
        if kind != "none":
            holdings_.held[name] = ArchiveHoldings(rows_, filters, now=lambda: DAY)
    router_ = router([archive(name) for name in urls_of], holdings_)
    have = {name: {key(address) for address in addresses} for name, addresses in urls_of.items()}
    for address in data.draw(
        st.lists(st.sampled_from([each for all_ in urls_of.values() for each in all_]), max_size=30)
    ):
        routed = {choice.archive.id for choice in router_.route(address).targets}
        broadcast = {choice.archive.id for choice in router_.route(address, RoutingOptions(broadcast=True)).targets}
        holders = {name for name in broadcast if key(address) in have[name]}
        assert holders
        assert holders <= routed


def test_each_archive_is_selected_or_passed_over_once(tmp_path: Path) -> None:
    """In the order of the registry."""
    holdings_ = MemoryHoldings({"b": ArchiveHoldings(map_of_rows(tmp_path, "org,other)/* 2\n"))})
    archives = [archive_with_hit_rate("c", 0.4), archive("b"), archive_with_hit_rate("a", 0.2)]
    router_ = router(archives, holdings_, exploration_share=0.5)
    for count in (None, 1, 2):
        for _ in range(20):
            found = router_.route(PAGE, RoutingOptions(top_k=count))
            names = [choice.archive.id for choice in found.targets]
            assert sorted([*names, *found.passed_over]) == ["a", "b", "c"]
            assert names == [each.id for each in archives if each.id in names]
            assert all(isinstance(choice, RouteTarget) and 0 <= choice.likelihood <= 1 for choice in found.targets)


def test_adding_a_map_to_an_exact_filter_costs_no_requests(tmp_path: Path) -> None:
    """Of a page that the map lists without its queries, only those that the filter has are routed."""
    urls = tmp_path / "urls"
    urls.write_text("http://a.com/x?q=1\n")
    build_filter([urls], tmp_path / "f", FilterOptions(bits=16, key="urir", kind="urls"))
    build_map([urls], tmp_path / "m", MapOptions(kind="urls"))
    exact, listed = Filter.load(tmp_path / "f"), Map.load(tmp_path / "m")
    for holdings in (ArchiveHoldings(None, [exact]), ArchiveHoldings(listed, [exact])):
        routes = router([archive("a")], MemoryHoldings({"a": holdings}), exploration_share=0.0)
        assert targets_of(routes.route("http://a.com/x?q=1")) == [("a", "routed")]
        assert targets_of(routes.route("http://a.com/x?q=2")) == []
        assert targets_of(routes.route("http://a.com/x")) == []
