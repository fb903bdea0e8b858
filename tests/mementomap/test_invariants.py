"""Properties of all maps, compared with the Python model."""

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
from tests.mementomap.map_files import body, read_map, write_index, write_map
from tests.mementomap.strategies import Row, captures
from tests.models import mementomap as model
from tests.models.mementomap import Lines
from unlost.errors import InputError, UriError
from unlost.mementomap import Compaction, Map, MapOptions, build_map, compact_map, merge_maps

# Some properties build a dozen maps per example.
FEWER = settings(max_examples=settings().max_examples // 4)
TINY_MEMORY = 4096  # bytes: less than any index here requires

FORMS = st.sampled_from(["cdxj", "cdx", "cdx with header"])
MODEL_COMPACTIONS = st.one_of(strategies.COMPACTIONS, strategies.CUSTOM_COMPACTIONS)
ALL_MAPS = st.one_of(strategies.MAPS, strategies.YEARLY_MAPS)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Provide a temporary folder per example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def to_compaction(how: model.Compaction) -> Compaction:
    """Return the compaction described by the model's."""
    return Compaction(**asdict(how))


def to_weight(number: float) -> float | None:
    """Return a weight as in options; None disables roll-ups."""
    return None if number == float("inf") else number


def to_options(how: model.Compaction, *, urir: bool, by_year: bool) -> MapOptions:
    """Return the options that build a compacted map."""
    hosts, paths = to_weight(how.host_weight), to_weight(how.path_weight)
    return MapOptions(host_weight=hosts, path_weight=paths, urir=urir, by_year=by_year)


def build_test_map(folder: Path, rows: list[Row], chosen: MapOptions, form: str = "cdxj") -> Path:
    """Build a map of rows."""
    output = folder / f"map{len(list(folder.iterdir()))}.ukvs"
    index = write_index(folder / f"{output.stem}.{form[:4]}", rows, form)
    build_map([index], output, chosen)
    return output


def assert_all_held(path: Path, keys: set[str]) -> None:
    """Check that every key is held in file and memory, by single and batch look-ups, by key and URL."""
    queried = sorted(keys)
    for opened in (Map.open(path), Map.load(path)):
        for inputs in (queried, [strategies.url(key) for key in queried]):
            many = opened.lookup_many(inputs)
            assert [result for result in many if isinstance(result, UriError) or not result.held] == []
            assert [opened.lookup(key) for key in inputs[:5]] == many[:5]


# Build.


@given(strategies.ROWS, FORMS, st.booleans(), st.booleans(), strategies.COMPACTIONS)
def test_map_build_agrees_with_model(
    rows: list[Row], form: str, urir: bool, by_year: bool, how: model.Compaction
) -> None:
    """All lines agree, with and without weights, and every input key is held."""
    expected = model.count(captures(rows), urir=urir, by_year=by_year)
    with temporary_folder() as folder:
        assert body(build_test_map(folder, rows, MapOptions(urir=urir, by_year=by_year), form)) == model.write(expected)
        compacted = build_test_map(folder, rows, to_options(how, urir=urir, by_year=by_year), form)
        assert body(compacted) == model.write(model.compact(expected, how))
        assert_all_held(compacted, {key for key, _ in captures(rows)})


@FEWER
@given(strategies.ROWS, st.booleans(), st.booleans(), strategies.COMPACTIONS, st.randoms(use_true_random=False))
def test_map_bytes_are_independent_of_processing(
    rows: list[Row], urir: bool, by_year: bool, how: model.Compaction, random_: random.Random
) -> None:
    """Threads, memory, order, compression and distribution over files do not affect the bytes."""
    fixed = to_options(how, urir=urir, by_year=by_year)
    shuffled = random_.sample(rows, len(rows))
    cut = len(rows) // 3
    in_order = sorted(rows, key=lambda row: (row.cdxj().split(b" ")[0], row.cdxj()))
    with temporary_folder() as folder:

        def variant(name: str, parts: list[list[Row]], chosen: MapOptions = fixed) -> bytes:
            """Return the bytes of the map of some files."""
            inputs = [write_index(folder / f"{n}-{name}", part) for n, part in enumerate(parts)]
            build_map(inputs, folder / f"{name}.ukvs", chosen)
            return (folder / f"{name}.ukvs").read_bytes()

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
def test_map_with_row_filter_equals_map_of_matching_rows(rows: list[Row], status: set[str], mime: set[str]) -> None:
    """Rows are filtered by status and media type."""
    matching = [row for row in rows if row.status in status and (not mime or row.mime in mime)]
    with temporary_folder() as folder:
        chosen = MapOptions(status=frozenset(status), mime=frozenset(mime))
        lines = [line for line in body(build_test_map(folder, rows, chosen)) if line != "* 0"]
        assert lines == model.write(model.count(captures(matching)))


def test_exclude_option_omits_robots_and_sitemaps(tmp_path: Path) -> None:
    """Pages with similar names are counted."""
    keys = ["com,a)/", "com,a)/robots.txt", "com,a)/robots.txt.html", "com,a)/sitemap.xml"]
    rows = [Row(key, key, strategies.url(key), "20140101000000") for key in keys]
    chosen = MapOptions(exclude=frozenset({"robots", "sitemaps"}))
    assert body(build_test_map(tmp_path, rows, chosen)) == ["* 2", "com,a)/ 1", "com,a)/robots.txt.html 1"]


def test_unsorted_input_with_sorted_option_is_rejected(tmp_path: Path) -> None:
    """No output is written."""
    keys = ["com,b)/", "com,a)/", "com,c)/"]
    index = write_index(tmp_path / "a.cdxj", [Row(key, key, strategies.url(key), "20140101000000") for key in keys])
    with pytest.raises(InputError):
        build_map([index], tmp_path / "a.ukvs", MapOptions(sorted=True))
    assert [file.name for file in tmp_path.iterdir()] == ["a.cdxj"]


def test_map_of_url_list_counts_every_line(tmp_path: Path) -> None:
    """SURTs with a port are URLs; header-like lines are counted as problems."""
    file, output = tmp_path / "list.txt", tmp_path / "a.ukvs"
    held = ["http://a.com/", "localhost:8080)/robots.txt", "com:443)/a", "@b.com/y"]
    file.write_text("\n".join(["# a list", *held, "!c.com/x"]))
    report = build_map([file], output)
    holdings = Map.open(output)
    assert all(holdings.lookup(url).held for url in held)
    assert report.counted + report.problems.total == len(held) + 1


def test_map_of_cdx_with_byte_order_mark_is_built(tmp_path: Path) -> None:
    """A byte order mark precedes the CDX header."""
    file, output = tmp_path / "a.cdx", tmp_path / "a.ukvs"
    file.write_bytes(b"\xef\xbb\xbf CDX N b a\ncom,a)/ 20140101000000 http://a.com/\n")
    build_map([file], output)
    assert body(output) == ["* 1", "com,a)/ 1"]


# Compaction.


def test_host_with_numeric_top_label_is_not_rolled_up(tmp_path: Path) -> None:
    """The wildcard of such a host would sort before unrelated IP addresses."""
    keys = ["9,0,0,0)/", *(f"9,0,0,0x{n:02})/" for n in range(30)), *(f"com,a,b{n:02})/" for n in range(30))]
    source, output = tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    source.write_text("".join(f"{key} 1\n" for key in keys))
    compact_map(source, output, Compaction(host_weight=0.1))
    assert len(body(output)) < len(keys)
    holdings = Map.open(output)
    assert all(holdings.lookup_key(key).held for key in keys)


@given(ALL_MAPS, MODEL_COMPACTIONS)
def test_compaction_agrees_with_model(lines: Lines, how: model.Compaction) -> None:
    """All lines agree, including wildcards, exclusions and uncertain frequencies."""
    with temporary_folder() as folder:
        compact_map(write_map(folder / "in.ukvs", lines), folder / "out.ukvs", to_compaction(how))
        assert body(folder / "out.ukvs") == model.write(model.compact(lines, how))


@given(ALL_MAPS, strategies.COMPACTIONS, strategies.COMPACTIONS)
def test_compaction_in_steps_equals_compaction_at_once(
    lines: Lines, one: model.Compaction, other: model.Compaction
) -> None:
    """Greater weights are applied first, then smaller ones."""
    hosts, paths = sorted([one.host_weight, other.host_weight]), sorted([one.path_weight, other.path_weight])
    weak, strong = Compaction(hosts[1], paths[1]), Compaction(hosts[0], paths[0])
    with temporary_folder() as folder:
        source = write_map(folder / "in.ukvs", lines)
        compact_map(source, folder / "step.ukvs", weak)
        compact_map(folder / "step.ukvs", folder / "steps.ukvs", strong)
        compact_map(source, folder / "once.ukvs", strong)
        assert body(folder / "steps.ukvs") == body(folder / "once.ukvs")
        compact_map(folder / "once.ukvs", folder / "again.ukvs", strong)
        assert body(folder / "again.ukvs") == body(folder / "once.ukvs")


# Merge.


@given(
    st.one_of(
        st.lists(strategies.MAPS, min_size=1, max_size=3), st.lists(strategies.YEARLY_MAPS, min_size=1, max_size=3)
    )
)
def test_merge_agrees_with_model(maps: list[Lines]) -> None:
    """All lines agree in any order."""
    with temporary_folder() as folder:
        sources = [write_map(folder / f"{n}.ukvs", lines) for n, lines in enumerate(maps)]
        merge_maps(sources, folder / "out.ukvs")
        merge_maps(sources[::-1], folder / "back.ukvs")
        assert body(folder / "out.ukvs") == model.write(model.merge(maps))
        assert body(folder / "back.ukvs") == body(folder / "out.ukvs")


# Look-up.


@given(strategies.MAPS, st.lists(strategies.KEYS, max_size=10), st.booleans())
def test_map_lookup_agrees_with_model(lines: Lines, others: list[str], rolled_up: bool) -> None:
    """The same line matches, with the same frequency, in file and memory."""
    keyed = model.by_key(lines | model.sums(lines))
    pages = {key for key, _ in lines if "*" not in key}
    queried = sorted({*others, *pages, *(page.rstrip("/") + "/below" for page in pages)})
    expected = [model.lookup(keyed, key, rolled_up=rolled_up) for key in queried]
    with temporary_folder() as folder:
        path = write_map(folder / "a.ukvs", lines | model.sums(lines), rolled_up=rolled_up)
        for opened in (Map.open(path), Map.load(path)):
            results = opened.lookup_many(queried)
            assert [(a.key, a.held, a.matched) for a in results if not isinstance(a, UriError)] == [
                (key.partition("?")[0], result.held, result.matched)
                for key, result in zip(queried, expected, strict=True)
            ]
            assert [a.frequency and str(a.frequency) for a in results if not isinstance(a, UriError)] == [
                result.frequency and str(result.frequency) for result in expected
            ]


# All operations.


@FEWER
@given(
    strategies.ROWS,
    strategies.ROWS,
    st.booleans(),
    st.booleans(),
    st.lists(st.one_of(MODEL_COMPACTIONS, st.just("merge")), min_size=1, max_size=4),
)
def test_map_has_no_false_negatives_after_any_operations(
    rows: list[Row], more: list[Row], urir: bool, by_year: bool, chain: list[model.Compaction | str]
) -> None:
    """Every input key is held after any chain of compactions and merges, and totals are preserved."""
    keys = {key for key, _ in captures(rows)}
    chosen = MapOptions(urir=urir, by_year=by_year)
    with temporary_folder() as folder:
        path, other = build_test_map(folder, rows, chosen), build_test_map(folder, more, chosen)
        total = len(captures(rows))
        for n, step in enumerate(chain):
            output = folder / f"step{n}.ukvs"
            if isinstance(step, str):
                merge_maps([path, other], output)
                keys |= {key for key, _ in captures(more)}
                total += len(captures(more))
            else:
                compact_map(path, output, to_compaction(step))
            path = output
            assert_all_held(path, keys)
            lines = read_map(path)
            assert sum(f.mementos.value for (key, _), f in lines.items() if key == "*") == total
            assert sum(f.mementos.value for (key, _), f in lines.items() if key != "*") == total


def one_host_key(n: int) -> str:
    """Return the n-th key of a host: a fifth of them in one folder, the others around `/` in byte order."""
    return "com,a)/" + [f"s{n}", f"s{n - 1}-b", f"s{n - 2}/c", f"s{n - 3}?q", f"big/{n}"][n % 5]


def check_one_host(folder: Path, size: int) -> None:
    """Build and compact the map of one host with many unsorted keys and compare it with the expected rows.

    With this weight the root keeps its children (two fifths of the keys), but `/big` does not (one fifth): the cut-offs
    are 0.49 and 0.18 of the keys.
    """
    keys = [one_host_key(n) for n in range(size)]
    random.Random(size).shuffle(keys)  # noqa: S311  for tests
    with (folder / "a.cdxj").open("wb") as file:
        for key in keys:
            file.write(Row(key, key, strategies.url(key), "20140101000000").cdxj())
    baseline = model.count((key, "2014") for key in keys)
    folder_size = sum(key.startswith("com,a)/big/") for key, _ in baseline)
    rolled = {place: f for place, f in baseline.items() if not place[0].startswith("com,a)/big/")}
    rolled |= model.read([f"com,a)/big/* {folder_size}"])
    path_weight = size / 50
    build_map([folder / "a.cdxj"], folder / "plain.ukvs", MapOptions(memory=size * 40))
    build_map([folder / "a.cdxj"], folder / "once.ukvs", MapOptions(path_weight=path_weight))
    compact_map(folder / "plain.ukvs", folder / "steps.ukvs", Compaction(path_weight=path_weight))
    compact_map(folder / "steps.ukvs", folder / "all.ukvs", Compaction())
    assert body(folder / "plain.ukvs") == model.write(baseline)
    assert body(folder / "once.ukvs") == model.write(rolled)
    assert body(folder / "steps.ukvs") == model.write(rolled)
    assert body(folder / "all.ukvs") == [f"* {size}", f"com,a)/* {size}"]
    for name in ("plain", "once", "all"):
        assert_all_held(folder / f"{name}.ukvs", set(keys))


def test_map_of_host_with_30_000_keys_is_built(tmp_path: Path) -> None:
    """The number of keys exceeds all cut-offs and buffers."""
    check_one_host(tmp_path, 30_000)


@pytest.mark.long
def test_map_of_host_with_million_keys_is_built(tmp_path: Path) -> None:
    """The number of keys exceeds all cut-offs and buffers."""
    check_one_host(tmp_path, 1_000_000)
