"""Budget compaction: maps fit, have no false negatives, and lose as little as the Python model allows."""

import gzip
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mementomap import strategies
from tests.mementomap.map_files import body, read_map, write_map
from tests.models import budget as slow
from tests.models import mementomap as model
from tests.models.mementomap import Lines
from unlost import _core
from unlost.errors import InputError, UsageError
from unlost.mementomap import (
    BudgetOptions,
    Compaction,
    Filter,
    Map,
    MapBudget,
    MapOptions,
    MissPrior,
    build_map,
    choose_filter_bits,
    compact_map,
    compact_to_budget,
    compressed_size,
    estimate_filter_bytes,
    merge_maps,
)

FEWER = settings(max_examples=settings().max_examples // 4)
ALL_MAPS = st.one_of(strategies.MAPS, strategies.YEARLY_MAPS)
FREE = BudgetOptions(protect_suffixes=False)
EPSILON = 1e-9


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Provide a temporary folder per example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def key_field_count(lines: Lines) -> int:
    """Return the number of key fields of a map."""
    return max(1 + bool(extra) for _, extra in lines)


def weigh_map(path: Path, fields: int = 1, queries: Path | None = None) -> _core.RollupPlanner:
    """Weigh a map in lines, without protected nodes."""
    prior = MissPrior()
    return _core.RollupPlanner(
        path,
        fields,
        1 << 20,
        queries=queries,
        by_compressed_size=False,
        depths=(8, 9),
        protect_suffixes=False,
        forced_keys=[],
        prior=(prior.page_discount, prior.host_discount, prior.host, prior.unknown_host_rate, prior.strength),
        memory=None,
        progress=_core.Progress(),
    )


def can_roll_up(node: slow.WeightedNode) -> bool:
    """Return whether a node may be rolled up: not a top-level domain, an IP address or a node of the last level."""
    if not node.wildcard:
        return False
    if node.is_host:
        return 1 < len(model.host_labels(node.wildcard.removesuffix(",*"))) < 8
    return node.wildcard.partition(")")[2].count("/") < 9


def lower_hull(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the corners of the lower left convex hull."""
    hull: list[tuple[int, float]] = []
    for cost, loss in sorted(points):
        if hull and loss >= hull[-1][1] - EPSILON:
            continue
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (cost - hull[-2][0]) >= (loss - hull[-2][1]) * (
            hull[-1][0] - hull[-2][0]
        ):
            hull.pop()
        hull.append((cost, loss))
    return hull


@FEWER
@given(ALL_MAPS)
def test_budget_choice_is_optimal(lines: Lines) -> None:
    """The loss is minimal at every corner of the hull, and never larger than at the next lower corner in between."""
    with temporary_folder() as folder:
        weighed = weigh_map(write_map(folder / "a.ukvs", lines), key_field_count(lines))
        possible = slow.all_sizes(lines, {}, can_roll_up, slow.Prior(), (8, 9))
        assert weighed.smallest[0] == min(possible)
        hull = lower_hull(list(possible.items()))
        for cost, loss in hull:
            assert weighed.evaluate(cost)[1] == pytest.approx(loss, abs=EPSILON)
        before = math.inf
        for limit in range(min(possible), max(possible) + 2):
            used, loss = weighed.evaluate(limit)
            best = min(other for size, other in possible.items() if size <= limit)
            corner = min(other for size, other in hull if size <= limit)
            assert used <= limit
            assert best - EPSILON <= loss <= min(corner, before) + EPSILON
            before = loss


@FEWER
@given(strategies.MAPS, st.dictionaries(strategies.PAGES, st.integers(1, 300), min_size=1, max_size=12))
def test_missed_queries_count_at_deepest_node(lines: Lines, queries: dict[str, int]) -> None:
    """A missed query counts at the deepest node above the page; queries of listed pages are hits."""
    how = model.Compaction()
    missed = {key: count for key, count in queries.items() if (key, "") not in lines}
    at: dict[str, int] = {}
    for key, count in missed.items():
        wildcard = slow.deepest(lines, key, how)
        at[wildcard] = at.get(wildcard, 0) + count
    with temporary_folder() as folder:
        query_map = write_map(folder / "q.ukvs", model.read(f"{key} {count}" for key, count in queries.items()))
        weighed = weigh_map(write_map(folder / "a.ukvs", lines), queries=query_map)
        assert (weighed.missed_queries, weighed.hit_queries) == (
            sum(missed.values()),
            sum(queries.values()) - sum(missed.values()),
        )
        possible = slow.all_sizes(lines, at, can_roll_up, slow.Prior(), (8, 9))
        for cost, loss in lower_hull(list(possible.items())):
            assert weighed.evaluate(cost)[1] == pytest.approx(loss, abs=EPSILON)


@FEWER
@given(ALL_MAPS, st.floats(0, 1), st.booleans(), st.booleans())
def test_budget_is_met_without_false_negatives(lines: Lines, part: float, in_bytes: bool, protects: bool) -> None:
    """For any budget, every held page remains held and the size limit is met."""
    with temporary_folder() as folder:
        path, output = write_map(folder / "a.ukvs", lines), folder / "b.ukvs"
        most = compressed_size(path) + 200 if in_bytes else len(lines)
        budget = MapBudget(int(part * most), "bytes" if in_bytes else "lines")
        try:
            report = compact_to_budget(path, output, budget, BudgetOptions(protect_suffixes=protects))
        except UsageError as error:
            names_minimum = "smallest possible" in str(error)
            assert names_minimum
            assert not output.exists()
            return
        after = model.by_key(read_map(output))
        for (key, _), frequency in lines.items():
            if frequency.is_held and key != model.TOTAL:
                assert model.holds(after, key), key
        written = compressed_size(output) if in_bytes else len([line for line in body(output) if line[:2] != "* "])
        assert report.size == written <= budget.size


@FEWER
@given(strategies.MAPS, st.integers(1, 60), strategies.COMPACTIONS)
def test_budget_before_and_after_other_operations_has_no_false_negatives(
    lines: Lines, size: int, how: model.Compaction
) -> None:
    """Budgets are combined with compaction by weights and merging."""
    held = {key for (key, _), frequency in lines.items() if frequency.is_held and not key.endswith("*")}
    with temporary_folder() as folder:
        path = write_map(folder / "0.ukvs", lines)
        compact_map(path, folder / "1.ukvs", Compaction(how.host_weight, how.path_weight))
        smallest = int(weigh_map(folder / "1.ukvs").smallest[0])
        compact_to_budget(folder / "1.ukvs", folder / "2.ukvs", MapBudget(max(size, smallest), "lines"), FREE)
        merge_maps([folder / "2.ukvs", path], folder / "3.ukvs")
        smallest = int(weigh_map(folder / "3.ukvs").smallest[0])
        compact_to_budget(folder / "3.ukvs", folder / "4.ukvs", MapBudget(smallest, "lines"), FREE)
        compact_map(folder / "4.ukvs", folder / "5.ukvs", Compaction(0, 0))
        # Exclusions of the map may exclude pages that its wildcards hold, before and after.
        first = Map.load(path)
        queried = [key for key in sorted(held) if first.lookup(key).held]
        for name in ("2", "3", "4", "5"):
            assert all(result.held for result in Map.load(folder / f"{name}.ukvs").lookup_keys_many(queried)), name


@FEWER
@given(ALL_MAPS, st.floats(0.3, 1), st.booleans())
def test_budget_result_is_independent_of_memory_and_compression(lines: Lines, part: float, in_bytes: bool) -> None:
    """Memory and compression of the source do not affect the result."""
    with temporary_folder() as folder:
        path = write_map(folder / "a.ukvs", lines)
        compressed = folder / "a.ukvs.gz"
        compressed.write_bytes(gzip.compress(path.read_bytes()))
        size = int(part * (compressed_size(path) + 200)) if in_bytes else int(part * len(lines)) + 1
        budget = MapBudget(size, "bytes" if in_bytes else "lines")
        results = []
        for source, memory in ((path, None), (path, 1024), (compressed, None)):
            try:
                compact_to_budget(source, folder / "b.ukvs", budget, BudgetOptions(memory=memory))
                results.append((folder / "b.ukvs").read_bytes())
            except UsageError as error:
                results.append(str(error).encode())
        assert len(set(results)) == 1


def write_urls(path: Path, listed: list[str]) -> Path:
    """Write a list of URLs."""
    path.write_text("".join(f"{url}\n" for url in listed))
    return path


def build_map_of(folder: Path, listed: list[str]) -> Path:
    """Build a map of URLs."""
    build_map([write_urls(folder / "held.txt", listed)], folder / "held.ukvs", MapOptions(kind="urls"))
    return folder / "held.ukvs"


def row_keys(path: Path) -> list[str]:
    """Return the keys of a map's lines without its total."""
    return [line.split(" ")[0] for line in body(path) if not line.startswith("* ")]


def test_queried_folder_is_not_rolled_up(tmp_path: Path) -> None:
    """Of two equal folders, the one with missed queries keeps its pages; invalid queries are counted."""
    held = [f"http://a.com/{folder}/{n}" for folder in ("x", "y") for n in range(10)]
    source = build_map_of(tmp_path, held)
    for queried, rolled_up in (("x", "y"), ("y", "x")):
        log = write_urls(
            tmp_path / "log.txt", [f"http://a.com/{queried}/no{n}" for n in range(1000)] + ["http:// /", held[0]]
        )
        report = compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(11, "lines"), BudgetOptions(queries=[log]))
        assert f"com,a)/{rolled_up}/*" in row_keys(tmp_path / "b.ukvs")
        assert len(row_keys(tmp_path / "b.ukvs")) == 11
        assert (report.query_count, report.miss_count, report.query_report.problems.total) == (1001, 1000, 1)


def test_all_query_formats_yield_same_budget_map(tmp_path: Path) -> None:
    """A URL list, an access log and a log of upstream responses yield the same map."""
    source = build_map_of(tmp_path, [f"http://a.com/{folder}/{n}" for folder in ("x", "y") for n in range(10)])
    pages = [f"http://a.com/x/no{n}" for n in range(50)]
    plain, log, upstream = tmp_path / "a.txt", tmp_path / "a.log", tmp_path / "a.jsonl"
    write_urls(plain, pages)
    log.write_text("".join(f'192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET {url} HTTP/1.0" 404 5\n' for url in pages))
    fields = '"archive":"a","endpoint":"timemap","outcome":"miss","reason":"broadcast"'
    upstream.write_text(
        "".join(f'{{"time":"2026-01-31T12:00:00Z","uri":"{url}",{fields}}}\n' for url in pages) + "{}\n"
    )
    results = []
    for file in (plain, log, upstream):
        report = compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(11, "lines"), BudgetOptions(queries=[file]))
        results.append((report.query_count, (tmp_path / "b.ukvs").read_bytes()))
    assert len(set(results)) == 1
    assert report.query_report.problems.counts == {"missing-field": 1}


def test_public_suffix_is_protected_from_roll_up(tmp_path: Path) -> None:
    """`uk,co` is rolled up only on request, `uk` never."""
    source = build_map_of(tmp_path, [f"http://{name}.co.uk/{n}" for name in "abcd" for n in range(3)])
    with pytest.raises(UsageError, match="the smallest possible is 4 lines"):
        compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(3, "lines"))
    compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(4, "lines"))
    assert row_keys(tmp_path / "b.ukvs") == [f"uk,co,{name})/*" for name in "abcd"]
    compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(1, "lines"), FREE)
    assert row_keys(tmp_path / "b.ukvs") == ["uk,co,*"]
    with pytest.raises(UsageError, match="the smallest possible is 1 lines"):
        compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(0, "lines"), FREE)


def test_forced_roll_up_is_applied_within_budget(tmp_path: Path) -> None:
    """A forced roll-up is applied for any budget, and the header records the budget."""
    source = build_map_of(tmp_path, [f"http://a.com/{folder}/{n}" for folder in ("x", "y") for n in range(3)])
    options = BudgetOptions(rollup=("com,a)/x/*",))
    compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(10**6, "bytes"), options)
    assert row_keys(tmp_path / "b.ukvs") == ["com,a)/x/*", "com,a)/y/0", "com,a)/y/1", "com,a)/y/2"]
    assert '"budget": "1000000B"' in (tmp_path / "b.ukvs").read_text()
    with pytest.raises(UsageError):
        BudgetOptions(rollup=("*",))


def test_larger_byte_budget_has_lower_error_rate(tmp_path: Path) -> None:
    """Each result uses at least 90 % of its budget."""
    held = [f"http://{h}.example{d}.com/{p % 7}/{p}" for d in range(30) for h in "ab" for p in range(d * 2)]
    source = build_map_of(tmp_path, held)
    whole = compressed_size(source)
    before = math.inf
    for part in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        report = compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(int(whole * part), "bytes"))
        assert 0.9 * whole * part <= report.size <= whole * part
        assert report.expected_error_rate <= before
        before = report.expected_error_rate


@pytest.mark.parametrize("text", ["", "x", "1.5", "100k", "50 megabytes", "-3", "1e6", "5MBit", "²", "9" * 30])
def test_invalid_budget_is_rejected(text: str) -> None:
    """The message contains an example."""
    with pytest.raises(UsageError, match="50MB"):
        MapBudget.parse(text)


def test_empty_query_log_is_rejected(tmp_path: Path) -> None:
    """An empty log raises an error."""
    source = build_map_of(tmp_path, ["http://a.com/"])
    empty = write_urls(tmp_path / "empty.txt", [])
    with pytest.raises(InputError, match="no question in it"):
        compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(1, "lines"), BudgetOptions(queries=[empty]))
    assert not (tmp_path / "b.ukvs").exists()


# Division of the budget between map and filter.


def test_budget_is_divided_between_map_and_filter() -> None:
    """The filter is added once the map is minimal, and omitted if it does not fit."""
    assert choose_filter_bits(1000, 10_000, 900, lambda size: 1 - size / 1e6) == 0
    assert choose_filter_bits(estimate_filter_bytes(10_000, 8) + 900, 10_000, 900, lambda _: 1.0) == 8
    assert choose_filter_bits(10**9, 10_000, 900, lambda size: 0.0 if size > 10**6 else 1.0) == 0
    assert choose_filter_bits(10**9, 10_000, 900, lambda _: 1.0) == 16


@given(st.integers(1000, 10**7), st.integers(1, 10**6), st.floats(0.1, 10))
def test_chosen_filter_bits_minimize_loss(budget: int, count: int, steepness: float) -> None:
    """All other numbers of bits have at least the same loss."""

    def loss_at(size: float) -> float:
        return math.exp(-steepness * size / 10**6)

    best = choose_filter_bits(budget, count, 500, loss_at)
    losses = {
        bits: loss_at(budget - estimate_filter_bytes(count, bits)) / 2**bits
        for bits in range(17)
        if not bits or budget - estimate_filter_bytes(count, bits) >= 500
    }
    assert losses[best] == min(losses.values())


def test_budget_with_filter_requires_bytes_and_pages(tmp_path: Path) -> None:
    """A budget in lines and a map with wildcards are rejected."""
    source = build_map_of(tmp_path, [f"http://a.com/{n}" for n in range(100)])
    options = BudgetOptions(with_filter=tmp_path / "a.filter")
    with pytest.raises(UsageError, match="a filter has no lines"):
        compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(50, "lines"), options)
    compact_map(source, tmp_path / "c.ukvs", Compaction(0, 0))
    with pytest.raises(InputError, match="has wildcards"):
        compact_to_budget(tmp_path / "c.ukvs", tmp_path / "b.ukvs", MapBudget(10**6, "bytes"), options)
    assert not (tmp_path / "b.ukvs").exists()


def test_filter_is_reduced_if_map_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The map's minimal size is estimated; if the estimate was too low, the filter is reduced."""
    source = build_map_of(tmp_path, [f"http://a{host}.com/{n}" for host in range(20) for n in range(10)])
    output, filter_path = tmp_path / "b.ukvs", tmp_path / "a.filter"
    monkeypatch.setattr("unlost.mementomap.budget.choose_filter_bits", lambda *_: 16)
    report = compact_to_budget(source, output, MapBudget(700, "bytes"), BudgetOptions(with_filter=filter_path))
    assert 0 < report.filter_bits < 16
    assert report.filter_bytes == filter_path.stat().st_size
    assert compressed_size(output) + report.filter_bytes <= 700
    assert Map.open(output).header.meta["filter_bits"] == report.filter_bits


def test_queries_and_filter_use_rules_of_map(tmp_path: Path) -> None:
    """The map's rules apply, also in files without a header; unknown rules are rejected."""
    write_urls, source, output = tmp_path / "urls", tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    write_urls.write_text("".join(f"http://a.com/{n}/\n" for n in range(2000)))
    build_map([write_urls], source, MapOptions(kind="urls", rules="papers"))
    options = BudgetOptions(with_filter=tmp_path / "a.filter", queries=[write_urls])
    assert compact_to_budget(source, output, MapBudget(3000, "bytes"), options).filter_bits
    held = Filter.open(tmp_path / "a.filter", rules="papers")
    assert all(held.lookup(f"http://a.com/{n}/") for n in range(2000))
    source.write_text("".join(f'com,a)/{n} 1 {{"a": 1}}\n' for n in range(1000, 3000)))
    assert compact_to_budget(source, output, MapBudget(3000, "bytes"), options).filter_bits
    assert Filter.open(tmp_path / "a.filter").lookup("http://a.com/2999")
    source.write_text('!meta {"rules": "others"}\ncom,a)/ 1\n')
    for with_unknown_rules in (options, BudgetOptions(queries=[write_urls])):
        with pytest.raises(InputError, match="made by unknown rules, 'others'"):
            compact_to_budget(source, output, MapBudget(3000, "bytes"), with_unknown_rules)


@pytest.mark.parametrize("rows", ["com,a)/ 1\ncom,a+b)/ 1\ncom,a,b)/ 1\n", "com,)/ 1\ncom,* 1\ncom,,a)/ 1\n"])
def test_non_canonical_host_in_map_is_rejected(rows: str, tmp_path: Path) -> None:
    """Rolled-up rows of such hosts would be out of order; `map build` repairs the map."""
    source, output = tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    source.write_text('!fields {"keys": ["surt"], "values": ["frequency"]}\n' + rows)
    with pytest.raises(InputError, match=r"a\.ukvs: the host of com,.* is not as keys have it"):
        compact_map(source, output, Compaction(0, 0))
    with pytest.raises(InputError, match=r"a\.ukvs: the host of com,.* is not as keys have it"):
        compact_to_budget(source, output, MapBudget(2, "lines"))
    build_map([source], tmp_path / "c.ukvs")
    compact_map(tmp_path / "c.ukvs", output, Compaction(0, 0))
