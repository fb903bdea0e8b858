"""What must hold for every map, whatever it was made of, against the slow model."""

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mementomap import strategies
from tests.mementomap.files import body, read_map, write_index, write_map
from tests.mementomap.strategies import Row, captures
from tests.models import holdings as model
from tests.models.holdings import Lines
from unlost.errors import InputError, UriError
from unlost.mementomap import Compaction, Map, MapOptions, build_map, compact_map, merge_maps

# Some properties build a dozen maps for each example.
FEWER = settings(max_examples=settings().max_examples // 4)
TINY_MEMORY = 4096  # bytes: less than any of the indexes here need

FORMS = st.sampled_from(["cdxj", "cdx", "cdx with header"])
MODEL_COMPACTIONS = st.one_of(strategies.COMPACTIONS, strategies.ODD_COMPACTIONS)
ALL_MAPS = st.one_of(strategies.MAPS, strategies.YEARLY_MAPS)


@contextmanager
def folder() -> Iterator[Path]:
    """Give a folder of its own to each example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def compaction(how: model.Compaction) -> Compaction:
    """Return the compaction that the model's describes."""
    return Compaction(**asdict(how))


def weight(number: float) -> float | None:
    """Return a weight as options have it: none rolls nothing up."""
    return None if number == float("inf") else number


def options(how: model.Compaction, *, urir: bool, by_year: bool) -> MapOptions:
    """Return the options that build a compacted map."""
    hosts, paths = weight(how.host_weight), weight(how.path_weight)
    return MapOptions(host_weight=hosts, path_weight=paths, urir=urir, by_year=by_year)


def build(where: Path, rows: list[Row], chosen: MapOptions, form: str = "cdxj") -> Path:
    """Build a map of rows."""
    output = where / f"map{len(list(where.iterdir()))}.ukvs"
    index = write_index(where / f"{output.stem}.{form[:4]}", rows, form)
    build_map([index], output, chosen)
    return output


def assert_held(path: Path, keys: set[str]) -> None:
    """See that every key is held, by either form, by one look-up or many, by key or address."""
    asked = sorted(keys)
    for opened in (Map.open(path), Map.load(path)):
        for spelled in (asked, [strategies.url(key) for key in asked]):
            many = opened.lookup_many(spelled)
            assert [answer for answer in many if isinstance(answer, UriError) or not answer.held] == []
            assert [opened.lookup(key) for key in spelled[:5]] == many[:5]


# Building.


@given(strategies.ROWS, FORMS, st.booleans(), st.booleans(), strategies.COMPACTIONS)
def test_building_agrees_with_the_model(
    rows: list[Row], form: str, urir: bool, by_year: bool, how: model.Compaction
) -> None:
    """Line for line, with and without weights, and every key that went in is held."""
    expected = model.count(captures(rows), urir=urir, by_year=by_year)
    with folder() as where:
        assert body(build(where, rows, MapOptions(urir=urir, by_year=by_year), form)) == model.write(expected)
        compacted = build(where, rows, options(how, urir=urir, by_year=by_year), form)
        assert body(compacted) == model.write(model.compact(expected, how))
        assert_held(compacted, {key for key, _ in captures(rows)})


@FEWER
@given(strategies.ROWS, st.booleans(), st.booleans(), strategies.COMPACTIONS, st.randoms(use_true_random=False))
def test_building_depends_on_nothing_but_the_rows(
    rows: list[Row], urir: bool, by_year: bool, how: model.Compaction, random_: random.Random
) -> None:
    """Not on threads, memory, order, compression, or on how the rows are split over files: the same bytes."""
    fixed = options(how, urir=urir, by_year=by_year)
    shuffled = random_.sample(rows, len(rows))
    cut = len(rows) // 3
    in_order = sorted(rows, key=lambda row: (row.cdxj().split(b" ")[0], row.cdxj()))
    with folder() as where:

        def variant(name: str, parts: list[list[Row]], chosen: MapOptions = fixed) -> bytes:
            """Return the bytes of the map of some files."""
            inputs = [write_index(where / f"{n}-{name}", part) for n, part in enumerate(parts)]
            build_map(inputs, where / f"{name}.ukvs", chosen)
            return (where / f"{name}.ukvs").read_bytes()

        variants = {
            "one thread": variant("one", [rows], replace(fixed, threads=1)),
            "two threads": variant("two", [rows], replace(fixed, threads=2)),
            "five threads": variant("five", [rows], replace(fixed, threads=5)),
            "spilled": variant("spilled", [rows], replace(fixed, memory=TINY_MEMORY)),
            "spilled by two": variant("spilled2", [rows], replace(fixed, memory=TINY_MEMORY, threads=2)),
            "shuffled": variant("shuffled", [shuffled]),
            "sorted": variant("sorted", [in_order]),
            "sorted, as promised": variant("promised", [in_order], replace(fixed, sorted=True)),
            "gzip": variant("rows.gz", [rows]),
            "zstd": variant("rows.zst", [rows]),
            "split": variant("split", [rows[:cut], rows[cut:]]),
            "all at once": variant("all.gz", [shuffled[cut:], shuffled[:cut]], replace(fixed, memory=TINY_MEMORY)),
        }
        assert variants == dict.fromkeys(variants, variant("plain", [rows]))


@given(strategies.ROWS, st.sampled_from([{"200"}, {"200", "301"}, {"500"}]), st.sampled_from([set(), {"text/html"}]))
def test_filters_leave_rows_out(rows: list[Row], status: set[str], mime: set[str]) -> None:
    """A map with a filter is the map of the rows that pass it."""
    kept = [row for row in rows if row.status in status and (not mime or row.mime in mime)]
    with folder() as where:
        chosen = MapOptions(status=frozenset(status), mime=frozenset(mime))
        found = [line for line in body(build(where, rows, chosen)) if line != "* 0"]
        assert found == model.write(model.count(captures(kept)))


def test_robots_and_sitemaps_can_be_left_out(tmp_path: Path) -> None:
    """As the paper's study did; a page that is only called so is one."""
    keys = ["com,a)/", "com,a)/robots.txt", "com,a)/robots.txt.html", "com,a)/sitemap.xml"]
    rows = [Row(key, key, strategies.url(key), "20140101000000") for key in keys]
    chosen = MapOptions(exclude=frozenset({"robots", "sitemaps"}))
    assert body(build(tmp_path, rows, chosen)) == ["* 2", "com,a)/ 1", "com,a)/robots.txt.html 1"]


def test_a_promise_of_order_that_is_not_kept(tmp_path: Path) -> None:
    """It is refused, and nothing is left behind."""
    keys = ["com,b)/", "com,a)/", "com,c)/"]
    index = write_index(tmp_path / "a.cdxj", [Row(key, key, strategies.url(key), "20140101000000") for key in keys])
    with pytest.raises(InputError):
        build_map([index], tmp_path / "a.ukvs", MapOptions(sorted=True))
    assert [file.name for file in tmp_path.iterdir()] == ["a.cdxj"]


def test_every_line_of_a_list_is_an_address_or_counted(tmp_path: Path) -> None:
    """Also SURTs of hosts with a port, and what would be a header elsewhere; a list has but comments."""
    file, output = tmp_path / "list.txt", tmp_path / "a.ukvs"
    held = ["http://a.com/", "localhost:8080)/robots.txt", "com:443)/a", "@b.com/y"]
    file.write_text("\n".join(["# a list", *held, "!c.com/x"]))
    report = build_map([file], output)
    holdings = Map.open(output)
    assert all(holdings.lookup(address).held for address in held)
    assert report.counted + report.problems.total == len(held) + 1


def test_a_mark_before_the_columns(tmp_path: Path) -> None:
    """Some editors put one before the first line, which may be the header of a CDX."""
    file, output = tmp_path / "a.cdx", tmp_path / "a.ukvs"
    file.write_bytes(b"\xef\xbb\xbf CDX N b a\ncom,a)/ 20140101000000 http://a.com/\n")
    build_map([file], output)
    assert body(output) == ["* 1", "com,a)/ 1"]


# Compacting.


def test_what_stands_among_addresses_is_not_rolled_up(tmp_path: Path) -> None:
    """No name has a number as its top label: its wildcard would stand before an address that is not below it."""
    keys = ["9,0,0,0)/", *(f"9,0,0,0x{n:02})/" for n in range(30)), *(f"com,a,b{n:02})/" for n in range(30))]
    source, output = tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    source.write_text("".join(f"{key} 1\n" for key in keys))
    compact_map(source, output, Compaction(host_weight=0.1))
    assert len(body(output)) < len(keys)
    holdings = Map.open(output)
    assert all(holdings.lookup_key(key).held for key in keys)


@given(ALL_MAPS, MODEL_COMPACTIONS)
def test_compacting_agrees_with_the_model(lines: Lines, how: model.Compaction) -> None:
    """Line for line, also with wildcards, exclusions and doubtful frequencies in it."""
    with folder() as where:
        compact_map(write_map(where / "in.ukvs", lines), where / "out.ukvs", compaction(how))
        assert body(where / "out.ukvs") == model.write(model.compact(lines, how))


@given(ALL_MAPS, strategies.COMPACTIONS, strategies.COMPACTIONS)
def test_compacting_in_steps_equals_compacting_at_once(
    lines: Lines, one: model.Compaction, other: model.Compaction
) -> None:
    """First with the greater weights, then with the smaller ones."""
    hosts, paths = sorted([one.host_weight, other.host_weight]), sorted([one.path_weight, other.path_weight])
    weak, strong = Compaction(hosts[1], paths[1]), Compaction(hosts[0], paths[0])
    with folder() as where:
        source = write_map(where / "in.ukvs", lines)
        compact_map(source, where / "step.ukvs", weak)
        compact_map(where / "step.ukvs", where / "steps.ukvs", strong)
        compact_map(source, where / "once.ukvs", strong)
        assert body(where / "steps.ukvs") == body(where / "once.ukvs")
        compact_map(where / "once.ukvs", where / "again.ukvs", strong)
        assert body(where / "again.ukvs") == body(where / "once.ukvs")


# Merging.


@given(
    st.one_of(
        st.lists(strategies.MAPS, min_size=1, max_size=3), st.lists(strategies.YEARLY_MAPS, min_size=1, max_size=3)
    )
)
def test_merging_agrees_with_the_model(maps: list[Lines]) -> None:
    """Line for line, in any order."""
    with folder() as where:
        sources = [write_map(where / f"{n}.ukvs", lines) for n, lines in enumerate(maps)]
        merge_maps(sources, where / "out.ukvs")
        merge_maps(sources[::-1], where / "back.ukvs")
        assert body(where / "out.ukvs") == model.write(model.merge(maps))
        assert body(where / "back.ukvs") == body(where / "out.ukvs")


# Looking up.


@given(strategies.MAPS, st.lists(strategies.KEYS, max_size=10), st.booleans())
def test_looking_up_agrees_with_the_model(lines: Lines, others: list[str], rolled_up: bool) -> None:
    """The same line answers, with the same frequency, in both forms of the map."""
    keyed = model.by_key(lines | model.sums(lines))
    pages = {key for key, _ in lines if "*" not in key}
    asked = sorted({*others, *pages, *(page.rstrip("/") + "/below" for page in pages)})
    expected = [model.lookup(keyed, key, rolled_up=rolled_up) for key in asked]
    with folder() as where:
        path = write_map(where / "a.ukvs", lines | model.sums(lines), rolled_up=rolled_up)
        for opened in (Map.open(path), Map.load(path)):
            answers = opened.lookup_many(asked)
            assert [(a.key, a.held, a.matched) for a in answers if not isinstance(a, UriError)] == [
                (key.partition("?")[0], answer.held, answer.matched)
                for key, answer in zip(asked, expected, strict=True)
            ]
            assert [a.frequency and str(a.frequency) for a in answers if not isinstance(a, UriError)] == [
                answer.frequency and str(answer.frequency) for answer in expected
            ]


# Everything together.


@FEWER
@given(
    strategies.ROWS,
    strategies.ROWS,
    st.booleans(),
    st.booleans(),
    st.lists(st.one_of(MODEL_COMPACTIONS, st.just("merge")), min_size=1, max_size=4),
)
def test_no_false_negative_ever(
    rows: list[Row], more: list[Row], urir: bool, by_year: bool, chain: list[model.Compaction | str]
) -> None:
    """Every key that went in is held through any chain of compactions and merges, and no copy is lost."""
    keys = {key for key, _ in captures(rows)}
    chosen = MapOptions(urir=urir, by_year=by_year)
    with folder() as where:
        path, other = build(where, rows, chosen), build(where, more, chosen)
        copies = len(captures(rows))
        for n, step in enumerate(chain):
            output = where / f"step{n}.ukvs"
            if isinstance(step, str):
                merge_maps([path, other], output)
                keys |= {key for key, _ in captures(more)}
                copies += len(captures(more))
            else:
                compact_map(path, output, compaction(step))
            path = output
            assert_held(path, keys)
            lines = read_map(path)
            assert sum(f.mementos.value for (key, _), f in lines.items() if key == "*") == copies
            assert sum(f.mementos.value for (key, _), f in lines.items() if key != "*") == copies


def one_host(n: int) -> str:
    """Return the n-th key of a host: a fifth of them in one folder, the others around `/` in byte order."""
    return "com,a)/" + [f"s{n}", f"s{n - 1}-b", f"s{n - 2}/c", f"s{n - 3}?q", f"big/{n}"][n % 5]


def check_one_host(where: Path, size: int) -> None:
    """Build and compact the map of one host of many keys, in no order, and compare it with what it must be.

    The weight lets the root have all its children (two fifths of the keys) and `/big` not (a fifth): the cut-offs are
    0.49 and 0.18 of the keys.
    """
    keys = [one_host(n) for n in range(size)]
    random.Random(size).shuffle(keys)  # noqa: S311  for tests
    with (where / "a.cdxj").open("wb") as file:
        for key in keys:
            file.write(Row(key, key, strategies.url(key), "20140101000000").cdxj())
    baseline = model.count((key, "2014") for key in keys)
    folder_size = sum(key.startswith("com,a)/big/") for key, _ in baseline)
    rolled = {place: f for place, f in baseline.items() if not place[0].startswith("com,a)/big/")}
    rolled |= model.read([f"com,a)/big/* {folder_size}"])
    path_weight = size / 50
    build_map([where / "a.cdxj"], where / "plain.ukvs", MapOptions(memory=size * 40))
    build_map([where / "a.cdxj"], where / "once.ukvs", MapOptions(path_weight=path_weight))
    compact_map(where / "plain.ukvs", where / "steps.ukvs", Compaction(path_weight=path_weight))
    compact_map(where / "steps.ukvs", where / "all.ukvs", Compaction())
    assert body(where / "plain.ukvs") == model.write(baseline)
    assert body(where / "once.ukvs") == model.write(rolled)
    assert body(where / "steps.ukvs") == model.write(rolled)
    assert body(where / "all.ukvs") == [f"* {size}", f"com,a)/* {size}"]
    for name in ("plain", "once", "all"):
        assert_held(where / f"{name}.ukvs", set(keys))


def test_one_host_with_many_keys(tmp_path: Path) -> None:
    """30,000 keys of one host: more than any cut-off and any buffer of a host."""
    check_one_host(tmp_path, 30_000)


@pytest.mark.long
def test_one_host_with_a_million_keys(tmp_path: Path) -> None:
    """The same with a million."""
    check_one_host(tmp_path, 1_000_000)
