"""Budgets: maps that fit, deny nothing, and lose as little as the slow model says is possible."""

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
from tests.mementomap.files import body, read_map, write_map
from tests.models import budget as slow
from tests.models import holdings as model
from tests.models.holdings import Lines
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
def folder() -> Iterator[Path]:
    """Give a folder of its own to each example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def width(lines: Lines) -> int:
    """Return how many key fields a map has."""
    return max(1 + bool(extra) for _, extra in lines)


def scale(path: Path, fields: int = 1, queries: Path | None = None) -> _core.RollupPlanner:
    """Weigh a map in lines, with nothing protected."""
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


def is_free(node: slow.Weighed) -> bool:
    """Whether a node may be rolled up: no top-level domain, address or node of the last level."""
    if not node.wildcard:
        return False
    if node.is_host:
        return 1 < len(model.host_labels(node.wildcard.removesuffix(",*"))) < 8
    return node.wildcard.partition(")")[2].count("/") < 9


def lower_hull(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the corners of the lower left hull."""
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
def test_the_choice_is_the_best_there_is(lines: Lines) -> None:
    """At every corner of the hull of what is possible, exactly; between them never worse than at the one below."""
    with folder() as where:
        weighed = scale(write_map(where / "a.ukvs", lines), width(lines))
        possible = slow.all_sizes(lines, {}, is_free, slow.Prior(), (8, 9))
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
def test_questions_count_where_they_miss(lines: Lines, asked: dict[str, int]) -> None:
    """At the deepest node above the page; those for pages that are lines of the map are hits, and say nothing."""
    how = model.Compaction()
    missed = {key: count for key, count in asked.items() if (key, "") not in lines}
    at: dict[str, int] = {}
    for key, count in missed.items():
        wildcard = slow.deepest(lines, key, how)
        at[wildcard] = at.get(wildcard, 0) + count
    with folder() as where:
        questions = write_map(where / "q.ukvs", model.read(f"{key} {count}" for key, count in asked.items()))
        weighed = scale(write_map(where / "a.ukvs", lines), queries=questions)
        assert (weighed.missed_queries, weighed.hit_queries) == (
            sum(missed.values()),
            sum(asked.values()) - sum(missed.values()),
        )
        possible = slow.all_sizes(lines, at, is_free, slow.Prior(), (8, 9))
        for cost, loss in lower_hull(list(possible.items())):
            assert weighed.evaluate(cost)[1] == pytest.approx(loss, abs=EPSILON)


@FEWER
@given(ALL_MAPS, st.floats(0, 1), st.booleans(), st.booleans())
def test_no_page_is_denied_and_the_size_is_kept(lines: Lines, part: float, in_bytes: bool, protects: bool) -> None:
    """Whatever the budget, what the map held is held, and no more lines or bytes are written than allowed."""
    with folder() as where:
        path, output = write_map(where / "a.ukvs", lines), where / "b.ukvs"
        most = compressed_size(path) + 200 if in_bytes else len(lines)
        budget = MapBudget(int(part * most), "bytes" if in_bytes else "lines")
        try:
            report = compact_to_budget(path, output, budget, BudgetOptions(protect_suffixes=protects))
        except UsageError as error:
            is_told = "smallest possible" in str(error)
            assert is_told
            assert not output.exists()
            return
        after = model.by_key(read_map(output))
        for (key, _), frequency in lines.items():
            if frequency.is_held and key != model.TOTAL:
                assert model.holds(after, key), key
        written = compressed_size(output) if in_bytes else len([one for one in body(output) if one[:2] != "* "])
        assert report.size == written <= budget.size


@FEWER
@given(strategies.MAPS, st.integers(1, 60), strategies.COMPACTIONS)
def test_chains_with_other_ways_deny_nothing(lines: Lines, size: int, how: model.Compaction) -> None:
    """Budgets before and behind compaction by weights and merging."""
    held = {key for (key, _), frequency in lines.items() if frequency.is_held and not key.endswith("*")}
    with folder() as where:
        path = write_map(where / "0.ukvs", lines)
        compact_map(path, where / "1.ukvs", Compaction(how.host_weight, how.path_weight))
        smallest = int(scale(where / "1.ukvs").smallest[0])
        compact_to_budget(where / "1.ukvs", where / "2.ukvs", MapBudget(max(size, smallest), "lines"), FREE)
        merge_maps([where / "2.ukvs", path], where / "3.ukvs")
        smallest = int(scale(where / "3.ukvs").smallest[0])
        compact_to_budget(where / "3.ukvs", where / "4.ukvs", MapBudget(smallest, "lines"), FREE)
        compact_map(where / "4.ukvs", where / "5.ukvs", Compaction(0, 0))
        # Exclusions of the map may deny what its own wildcards hold, before and behind.
        first = Map.load(path)
        asked = [key for key in sorted(held) if first.lookup(key).held]
        for name in ("2", "3", "4", "5"):
            assert all(answer.held for answer in Map.load(where / f"{name}.ukvs").lookup_keys_many(asked)), name


@FEWER
@given(ALL_MAPS, st.floats(0.3, 1), st.booleans())
def test_the_result_depends_on_nothing_else(lines: Lines, part: float, in_bytes: bool) -> None:
    """Not on memory, and not on compression of the source."""
    with folder() as where:
        path = write_map(where / "a.ukvs", lines)
        packed = where / "a.ukvs.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        size = int(part * (compressed_size(path) + 200)) if in_bytes else int(part * len(lines)) + 1
        budget = MapBudget(size, "bytes" if in_bytes else "lines")
        results = []
        for source, memory in ((path, None), (path, 1024), (packed, None)):
            try:
                compact_to_budget(source, where / "b.ukvs", budget, BudgetOptions(memory=memory))
                results.append((where / "b.ukvs").read_bytes())
            except UsageError as error:
                results.append(str(error).encode())
        assert len(set(results)) == 1


def urls(path: Path, addresses: list[str]) -> Path:
    """Write a list of addresses."""
    path.write_text("".join(f"{one}\n" for one in addresses))
    return path


def a_map(where: Path, addresses: list[str]) -> Path:
    """Build a map of addresses."""
    build_map([urls(where / "held.txt", addresses)], where / "held.ukvs", MapOptions(kind="urls"))
    return where / "held.ukvs"


def keys(path: Path) -> list[str]:
    """Return the keys of a map's lines without its total."""
    return [line.split(" ")[0] for line in body(path) if not line.startswith("* ")]


def test_what_was_asked_for_is_written_out(tmp_path: Path) -> None:
    """Of two folders alike, the one that is asked for what it lacks keeps its pages; rubbish is counted."""
    held = [f"http://a.com/{folder}/{n}" for folder in ("x", "y") for n in range(10)]
    source = a_map(tmp_path, held)
    for asked, kept in (("x", "y"), ("y", "x")):
        log = urls(tmp_path / "log.txt", [f"http://a.com/{asked}/no{n}" for n in range(1000)] + ["http:// /", held[0]])
        report = compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(11, "lines"), BudgetOptions(queries=[log]))
        assert f"com,a)/{kept}/*" in keys(tmp_path / "b.ukvs")
        assert len(keys(tmp_path / "b.ukvs")) == 11
        assert (report.query_count, report.miss_count, report.query_report.problems.total) == (1001, 1000, 1)


def test_logs_of_every_kind_teach_the_same(tmp_path: Path) -> None:
    """A list, an access log and a log of upstream answers."""
    source = a_map(tmp_path, [f"http://a.com/{folder}/{n}" for folder in ("x", "y") for n in range(10)])
    pages = [f"http://a.com/x/no{n}" for n in range(50)]
    plain, log, upstream = tmp_path / "a.txt", tmp_path / "a.log", tmp_path / "a.jsonl"
    urls(plain, pages)
    log.write_text("".join(f'192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET {url} HTTP/1.0" 404 5\n' for url in pages))
    fields = '"archive":"a","endpoint":"timemap","outcome":"miss","reason":"broadcast"'
    upstream.write_text(
        "".join(f'{{"time":"2026-01-31T12:00:00Z","uri":"{url}",{fields}}}\n' for url in pages) + "{}\n"
    )
    found = []
    for file in (plain, log, upstream):
        report = compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(11, "lines"), BudgetOptions(queries=[file]))
        found.append((report.query_count, (tmp_path / "b.ukvs").read_bytes()))
    assert len(set(found)) == 1
    assert report.query_report.problems.counts == {"missing-field": 1}


def test_public_suffixes_are_protected(tmp_path: Path) -> None:
    """`uk,co` is rolled up only if that is asked for, `uk` never."""
    source = a_map(tmp_path, [f"http://{name}.co.uk/{n}" for name in "abcd" for n in range(3)])
    with pytest.raises(UsageError, match="the smallest possible is 4 lines"):
        compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(3, "lines"))
    compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(4, "lines"))
    assert keys(tmp_path / "b.ukvs") == [f"uk,co,{name})/*" for name in "abcd"]
    compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(1, "lines"), FREE)
    assert keys(tmp_path / "b.ukvs") == ["uk,co,*"]
    with pytest.raises(UsageError, match="the smallest possible is 1 lines"):
        compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(0, "lines"), FREE)


def test_what_must_be_rolled_up_is(tmp_path: Path) -> None:
    """A forced roll-up is there however large the budget, and the header says what was asked for."""
    source = a_map(tmp_path, [f"http://a.com/{folder}/{n}" for folder in ("x", "y") for n in range(3)])
    options = BudgetOptions(rollup=("com,a)/x/*",))
    compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(10**6, "bytes"), options)
    assert keys(tmp_path / "b.ukvs") == ["com,a)/x/*", "com,a)/y/0", "com,a)/y/1", "com,a)/y/2"]
    assert '"budget": "1000000B"' in (tmp_path / "b.ukvs").read_text()
    with pytest.raises(UsageError):
        BudgetOptions(rollup=("*",))


def test_larger_budgets_of_bytes_lose_less(tmp_path: Path) -> None:
    """Over a made-up map, and nearly all of each budget is used."""
    held = [f"http://{h}.example{d}.com/{p % 7}/{p}" for d in range(30) for h in "ab" for p in range(d * 2)]
    source = a_map(tmp_path, held)
    whole = compressed_size(source)
    before = math.inf
    for part in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        report = compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(int(whole * part), "bytes"))
        assert 0.9 * whole * part <= report.size <= whole * part
        assert report.expected_error_rate <= before
        before = report.expected_error_rate


@pytest.mark.parametrize("text", ["", "x", "1.5", "100k", "50 megabytes", "-3", "1e6", "5MBit", "²", "9" * 30])
def test_what_is_no_budget(text: str) -> None:
    """Is told from one, with examples."""
    with pytest.raises(UsageError, match="50MB"):
        MapBudget.parse(text)


def test_questions_that_are_none(tmp_path: Path) -> None:
    """An empty log teaches nothing, and is told so."""
    source = a_map(tmp_path, ["http://a.com/"])
    empty = urls(tmp_path / "empty.txt", [])
    with pytest.raises(InputError, match="no question in it"):
        compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(1, "lines"), BudgetOptions(queries=[empty]))
    assert not (tmp_path / "b.ukvs").exists()


# Dividing.


def test_bytes_are_divided_where_they_do_most() -> None:
    """A filter once the map is as small as it gets; none if it does not fit; the map takes what is left."""
    assert choose_filter_bits(1000, 10_000, 900, lambda size: 1 - size / 1e6) == 0
    assert choose_filter_bits(estimate_filter_bytes(10_000, 8) + 900, 10_000, 900, lambda _: 1.0) == 8
    assert choose_filter_bits(10**9, 10_000, 900, lambda size: 0.0 if size > 10**6 else 1.0) == 0
    assert choose_filter_bits(10**9, 10_000, 900, lambda _: 1.0) == 16


@given(st.integers(1000, 10**7), st.integers(1, 10**6), st.floats(0.1, 10))
def test_no_other_division_is_better(budget: int, count: int, steepness: float) -> None:
    """Compared with every number of bits."""

    def loss_at(size: float) -> float:
        return math.exp(-steepness * size / 10**6)

    best = choose_filter_bits(budget, count, 500, loss_at)
    wrong = {
        bits: loss_at(budget - estimate_filter_bytes(count, bits)) / 2**bits
        for bits in range(17)
        if not bits or budget - estimate_filter_bytes(count, bits) >= 500
    }
    assert wrong[best] == min(wrong.values())


def test_a_filter_needs_bytes_and_pages(tmp_path: Path) -> None:
    """Not lines, and not a map that has forgotten its pages."""
    source = a_map(tmp_path, [f"http://a.com/{n}" for n in range(100)])
    options = BudgetOptions(with_filter=tmp_path / "a.filter")
    with pytest.raises(UsageError, match="a filter has no lines"):
        compact_to_budget(source, tmp_path / "b.ukvs", MapBudget(50, "lines"), options)
    compact_map(source, tmp_path / "c.ukvs", Compaction(0, 0))
    with pytest.raises(InputError, match="has wildcards"):
        compact_to_budget(tmp_path / "c.ukvs", tmp_path / "b.ukvs", MapBudget(10**6, "bytes"), options)
    assert not (tmp_path / "b.ukvs").exists()


def test_a_filter_that_leaves_too_little_is_made_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How small a map can be is estimated when bytes are divided; where that was wrong, the filter gives way."""
    source = a_map(tmp_path, [f"http://a{host}.com/{n}" for host in range(20) for n in range(10)])
    output, beside = tmp_path / "b.ukvs", tmp_path / "a.filter"
    monkeypatch.setattr("unlost.mementomap.budget.choose_filter_bits", lambda *_: 16)
    report = compact_to_budget(source, output, MapBudget(700, "bytes"), BudgetOptions(with_filter=beside))
    assert 0 < report.filter_bits < 16
    assert report.filter_bytes == beside.stat().st_size
    assert compressed_size(output) + report.filter_bytes <= 700
    assert Map.open(output).header.meta["filter_bits"] == report.filter_bits


def test_questions_and_filters_go_by_the_rules_of_the_map(tmp_path: Path) -> None:
    """Whichever those are, also where no header tells that it is a map; unknown ones are refused by name."""
    urls, source, output = tmp_path / "urls", tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    urls.write_text("".join(f"http://a.com/{n}/\n" for n in range(2000)))
    build_map([urls], source, MapOptions(kind="urls", rules="papers"))
    options = BudgetOptions(with_filter=tmp_path / "a.filter", queries=[urls])
    assert compact_to_budget(source, output, MapBudget(3000, "bytes"), options).filter_bits
    held = Filter.open(tmp_path / "a.filter", rules="papers")
    assert all(held.lookup(f"http://a.com/{n}/") for n in range(2000))
    source.write_text("".join(f'com,a)/{n} 1 {{"a": 1}}\n' for n in range(1000, 3000)))
    assert compact_to_budget(source, output, MapBudget(3000, "bytes"), options).filter_bits
    assert Filter.open(tmp_path / "a.filter").lookup("http://a.com/2999")
    source.write_text('!meta {"rules": "others"}\ncom,a)/ 1\n')
    for unknown in (options, BudgetOptions(queries=[urls])):
        with pytest.raises(InputError, match="made by unknown rules, 'others'"):
            compact_to_budget(source, output, MapBudget(3000, "bytes"), unknown)


@pytest.mark.parametrize("rows", ["com,a)/ 1\ncom,a+b)/ 1\ncom,a,b)/ 1\n", "com,)/ 1\ncom,* 1\ncom,,a)/ 1\n"])
def test_hosts_without_a_place_in_the_tree_are_refused(rows: str, tmp_path: Path) -> None:
    """What was rolled up of them stood in the wrong order, where look-ups missed it; `map build` mends the map."""
    source, output = tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    source.write_text('!fields {"keys": ["surt"], "values": ["frequency"]}\n' + rows)
    with pytest.raises(InputError, match=r"a\.ukvs: the host of com,.* is not as keys have it"):
        compact_map(source, output, Compaction(0, 0))
    with pytest.raises(InputError, match=r"a\.ukvs: the host of com,.* is not as keys have it"):
        compact_to_budget(source, output, MapBudget(2, "lines"))
    build_map([source], tmp_path / "c.ukvs")
    compact_map(tmp_path / "c.ukvs", output, Compaction(0, 0))
