"""Exclusions learned from misses: which pages they exclude and when they expire."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mementomap import strategies
from tests.mementomap.map_files import body, write_index, write_map
from tests.mementomap.strategies import Row, captures
from tests.models import mementomap as model
from tests.models.mementomap import Lines
from unlost.errors import InputError, UsageError
from unlost.logs import UpstreamLogEntry, write_upstream_log
from unlost.mementomap import (
    Compaction,
    ExclusionOptions,
    ExclusionReport,
    Map,
    MapOptions,
    build_map,
    check_map,
    compact_map,
    exclude_map,
    merge_maps,
)

FEWER = settings(max_examples=settings().max_examples // 4)
TODAY = date(2026, 11, 16)
LATER = '{"expires": "2026-12-16"}'
OPTIONS = ExclusionOptions(today=TODAY)
HEADER = '!fields {"keys": ["surt"], "values": ["frequency"]}\n'


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Provide a temporary folder per example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def strip_query(key: str) -> str:
    """Return a key without its query."""
    return key.partition("?")[0]


def held_keys(path: Path, keys: set[str]) -> set[str]:
    """Return the keys that a map holds."""
    queried = sorted(keys)
    return {key for key, result in zip(queried, Map.open(path).lookup_keys_many(queried), strict=True) if result.held}


def rows_after_misses(tmp_path: Path, text: str, misses: list[str], index: list[str] | None = None) -> list[str]:
    """Return the rows of a map after these pages were missed."""
    source, log, held_file = tmp_path / "in.ukvs", tmp_path / "misses.txt", tmp_path / "held.txt"
    source.write_text(HEADER + text)
    log.write_text("".join(f"{uri}\n" for uri in misses))
    held_file.write_text("".join(f"{uri}\n" for uri in index or []))
    exclude_map(source, tmp_path / "out.ukvs", OPTIONS, [log], [held_file] if index is not None else [])
    return body(tmp_path / "out.ukvs")


# Properties.


@FEWER
@given(
    strategies.ROWS,
    strategies.ROWS,
    st.lists(strategies.KEYS, max_size=30),
    strategies.COMPACTIONS,
    strategies.COMPACTIONS,
    st.integers(1, 3),
    st.sampled_from([10, 10_000]),
)
def test_exclusion_with_index_has_no_false_negatives(
    rows: list[Row],
    more: list[Row],
    requested: list[str],
    before: model.Compaction,
    after: model.Compaction,
    pages: int,
    memory: int,
) -> None:
    """For any log and any compacted map, pages of the index remain held, also after compaction and merging."""
    keys = {key for key, _ in captures(rows)}
    others = {key for key, _ in captures(more)}
    # Held pages, pages below them, and others.
    missed = [*keys, *requested, *(f"{strip_query(key).rstrip('/')}/below" for key in keys), *others]
    options = ExclusionOptions(today=TODAY, pages=pages, memory=memory)
    with temporary_folder() as folder:
        index, other_index = write_index(folder / "a.cdxj", rows), write_index(folder / "b.cdxj", more)
        log = folder / "misses.txt"
        log.write_text("".join(f"{strategies.url(key)}\n" for key in missed))
        weights = MapOptions(host_weight=before.host_weight, path_weight=before.path_weight)
        build_map([index], folder / "a.ukvs", weights)
        build_map([other_index], folder / "b.ukvs", weights)
        first, total = folder / "first.ukvs", body(folder / "a.ukvs")[0]
        exclude_map(folder / "a.ukvs", first, options, [log], [index])
        assert held_keys(first, keys) == keys
        assert body(first)[0] == total
        assert check_map(first).problems.counts == {}
        weights_after = Compaction(after.host_weight, after.path_weight)
        compact_map(first, folder / "smaller.ukvs", weights_after)
        assert held_keys(folder / "smaller.ukvs", keys) == keys
        merge_maps([first, folder / "b.ukvs"], folder / "both.ukvs")
        assert held_keys(folder / "both.ukvs", keys | others) == keys | others
        compact_map(folder / "both.ukvs", folder / "smaller.ukvs", weights_after)
        assert held_keys(folder / "smaller.ukvs", keys | others) == keys | others
        exclude_map(folder / "smaller.ukvs", folder / "last.ukvs", options, [log], [index, other_index])
        assert held_keys(folder / "last.ukvs", keys | others) == keys | others
        # Pages that are new in the index.
        exclude_map(first, folder / "grown.ukvs", options, [], [other_index])
        assert held_keys(folder / "grown.ukvs", others) == held_keys(folder / "a.ukvs", others)


@FEWER
@given(strategies.ROWS, st.lists(strategies.KEYS, max_size=30), strategies.COMPACTIONS, st.booleans())
def test_exclusion_without_index_respects_rows_and_accurate_log(
    rows: list[Row], requested: list[str], how: model.Compaction, is_true: bool
) -> None:
    """Listed pages are never excluded; with an accurate log, no held page is."""
    keys = {strip_query(key) for key, _ in captures(rows)}
    missed = [key for key in requested if strip_query(key) not in keys] if is_true else [*requested, *keys]
    with temporary_folder() as folder:
        index, log = write_index(folder / "a.cdxj", rows), folder / "misses.txt"
        log.write_text("".join(f"{strategies.url(key)}\n" for key in missed))
        build_map([index], folder / "a.ukvs")
        if is_true:
            compact_map(folder / "a.ukvs", folder / "a.ukvs", Compaction(how.host_weight, how.path_weight))
        exclude_map(folder / "a.ukvs", folder / "b.ukvs", OPTIONS, [log])
        assert held_keys(folder / "b.ukvs", keys) == keys
        without_query = {key for key in missed if "?" not in key} - keys
        assert held_keys(folder / "b.ukvs", without_query) == set()


@FEWER
@given(strategies.MAPS, st.lists(strategies.PAGES, min_size=1, max_size=20), st.lists(strategies.PAGES, max_size=20))
def test_exclusion_without_index_excludes_exactly_missed_pages(
    lines: Lines, missed: list[str], others: list[str]
) -> None:
    """Every missed page without a row is excluded, and no other page."""
    rows = {key for (key, _), frequency in lines.items() if not frequency.is_exclusion}
    with temporary_folder() as folder:
        source, log, output = write_map(folder / "a.ukvs", lines), folder / "misses.txt", folder / "b.ukvs"
        log.write_text("".join(f"{strategies.url(key)}\n" for key in missed))
        exclude_map(source, output, OPTIONS, [log])
        queried = {*missed, *others, *(key for key in rows if "*" not in key)}
        denied = {key for key in missed if key not in rows}
        assert held_keys(output, queried) == held_keys(source, queried) - denied
        # A second run adds nothing; on the expiry day the original rows are restored.
        exclude_map(output, folder / "c.ukvs", OPTIONS, [log])
        assert body(folder / "c.ukvs") == body(output)
        exclude_map(output, folder / "d.ukvs", ExclusionOptions(today=TODAY + timedelta(days=30)))
        assert body(folder / "d.ukvs") == body(source)


# Examples.


def test_redundant_exclusion_is_not_added(tmp_path: Path) -> None:
    """Pages with a row, uncovered pages and excluded pages get no row."""
    text = "* 9\ncom,a)/* 5\ncom,a)/b 4\ncom,a)/c/* 0\n"
    pages = ["http://a.com/b", "http://b.com/", "http://a.com/c/d", "http://a.com/e", "http://www.A.com:80/e/"]
    assert rows_after_misses(tmp_path, text, pages) == [
        "* 9", "com,a)/* 5", "com,a)/b 4", "com,a)/c/* 0", f"com,a)/e 0 {LATER}"
    ]  # fmt: skip


def test_missed_query_excludes_page_only_with_index(tmp_path: Path) -> None:
    """Keys have no query, so a miss of `/a?b=1` would exclude `/a?b=2`."""
    assert rows_after_misses(tmp_path, "com,a)/* 5\n", ["http://a.com/b?c=1"]) == ["com,a)/* 5"]
    assert rows_after_misses(tmp_path, "com,a)/* 5\n", ["http://a.com/b?c=1"], ["http://a.com/x"]) == [
        "com,a)/* 5", f"com,a)/b 0 {LATER}"
    ]  # fmt: skip
    assert rows_after_misses(tmp_path, "com,a)/* 5\n", ["http://a.com/b?c=1"], ["http://a.com/b?c=2"]) == ["com,a)/* 5"]


def test_subtree_is_excluded_only_with_index(tmp_path: Path) -> None:
    """The shallowest subtree with enough misses and no held page is excluded, its own page separately."""
    pages = [f"http://a.com/{path}" for path in ("b", "b/1", "b/2", "b/c/3", "d/1", "d/2", "e/1", "e/2", "e/3")]
    text = "com,a)/* 5\n"
    assert rows_after_misses(tmp_path, text, pages, ["http://a.com/e/f/g", "http://a.com/bb"]) == [
        "com,a)/* 5",
        f"com,a)/b 0 {LATER}",
        f"com,a)/b/* 0 {LATER}",
        *(f"com,a)/{path} 0 {LATER}" for path in ("d/1", "d/2", "e/1", "e/2", "e/3")),
    ]
    assert len(rows_after_misses(tmp_path, text, pages)) == len(pages) + 1
    # A whole host covered only by a domain wildcard, except subtrees with rows.
    assert rows_after_misses(tmp_path, "com,* 5\ncom,a)/e/* 2\n", pages, []) == [
        "com,* 5", f"com,a)/* 0 {LATER}", "com,a)/e/* 2", *(f"com,a)/e/{n} 0 {LATER}" for n in (1, 2, 3))
    ]  # fmt: skip


def test_wildcard_of_index_map_prevents_exclusion(tmp_path: Path) -> None:
    """The pages covered by a wildcard are unknown and may be held."""
    source, log, index = tmp_path / "a.ukvs", tmp_path / "misses.txt", tmp_path / "index.ukvs"
    source.write_text(HEADER + "com,* 5\ncom,b)/x/* 0 " + LATER + "\n")
    log.write_text("".join(f"http://{host}.com/x/{n}\n" for host in "ab" for n in range(4)))
    index.write_text(HEADER + "com,b)/* 3\n")
    report = exclude_map(source, tmp_path / "b.ukvs", OPTIONS, [log], [index])
    assert body(tmp_path / "b.ukvs") == ["com,* 5", f"com,a)/* 0 {LATER}"]
    assert (report.outweighed, report.held, report.wildcards) == (1, 4, 1)


def test_exclusion_expires_on_its_date(tmp_path: Path) -> None:
    """A page missed again is renewed, a found page is removed, an exclusion without a date remains."""
    source, log, output = tmp_path / "a.ukvs", tmp_path / "log.ndjson", tmp_path / "b.ukvs"
    rows = ["over 0 {expires: '2026-11-16'}".replace("'", '"'), 'renewed 0 {"expires": "2026-11-17"}']
    rows += ['found 0 {"expires": "2026-11-17"}', "forever 0", 'later 0 {"expires": "2027-12-31"}']
    rows += ['held 7 {"expires": "2020-01-01"}']
    source.write_text(HEADER + "com,a)/* 5\n" + "".join(sorted(f"com,a)/{row}\n" for row in rows)))
    outcomes = {"renewed": "miss", "found": "hit", "forever": "miss", "later": "miss"}
    with log.open("wb") as file:
        results = [
            UpstreamLogEntry("2026-11-15T12:00:00Z", "ia", f"http://a.com/{name}", "timemap", outcome, "routed")  # type: ignore[arg-type]
            for name, outcome in outcomes.items()
        ]
        write_upstream_log(file, results)
    report = exclude_map(source, output, OPTIONS, [log])
    assert (report.expired, report.renewed, report.outweighed, report.added) == (1, 1, 1, 0)
    assert body(output) == [
        "com,a)/* 5",
        "com,a)/forever 0",
        'com,a)/held 7 {"expires": "2020-01-01"}',
        'com,a)/later 0 {"expires": "2027-12-31"}',
        f"com,a)/renewed 0 {LATER}",
    ]


def test_only_recent_misses_of_archive_are_counted(tmp_path: Path) -> None:
    """Failures, other archives, old entries and pages that were also found are ignored."""
    source, log = tmp_path / "a.ukvs", tmp_path / "log.ndjson"
    source.write_text(HEADER + "com,a)/* 5\n")
    entries = [
        ("2026-11-15", "ia", "miss", "missed"),
        ("2026-11-15", "ia", "timeout", "late"),
        ("2026-11-15", "ia", "http-5xx", "broken"),
        ("2026-11-15", "uk", "miss", "elsewhere"),
        ("2026-10-01", "ia", "miss", "old"),
        ("2026-11-14", "ia", "miss", "both"),
        ("2026-10-01", "ia", "hit", "both?q"),
    ]
    with log.open("wb") as file:
        write_upstream_log(
            file,
            [
                UpstreamLogEntry(f"{day}T12:00:00Z", archive, f"http://a.com/{name}", "timemap", outcome, "routed")  # type: ignore[arg-type]
                for day, archive, outcome, name in entries
            ],
        )
        file.write(b'{"garbage": 1}\nnot even JSON\n')
    with pytest.raises(UsageError, match="several archives, 'ia' and 'uk': say by --archive"):
        exclude_map(source, tmp_path / "b.ukvs", OPTIONS, [log])
    options = ExclusionOptions(today=TODAY, archive="ia")
    report = exclude_map(source, tmp_path / "b.ukvs", options, [log])
    assert body(tmp_path / "b.ukvs") == ["com,a)/* 5", f"com,a)/missed 0 {LATER}"]
    assert (report.read, report.unsaid, report.old, report.missed) == (7, 3, 1, 1)
    assert report.problems.counts == {"missing-field": 1, "bad-json": 1}


@pytest.mark.parametrize("replay", [False, True])
def test_access_log_status_404_is_a_miss(tmp_path: Path, replay: bool) -> None:
    """404 is a miss, a successful response is a hit, other statuses and methods are ignored."""
    source, log = tmp_path / "a.ukvs", tmp_path / "access.log"
    source.write_text(HEADER + "com,a)/* 5\n")
    line = '192.0.2.1 - - [15/Nov/2026:13:55:36 +0000] "{} {}http://a.com/{} HTTP/1.0" {} 5\n'
    entries = [("GET", "missed", 404), ("HEAD", "head", 404), ("POST", "post", 404), ("GET", "gone", 503)]
    entries += [("GET", "both", 404), ("GET", "both", 200)]
    before = "/web/2014/" if replay else ""
    log.write_text("".join(line.format(method, before, name, code) for method, name, code in entries) + "garbage\n")
    report = exclude_map(source, tmp_path / "b.ukvs", ExclusionOptions(today=TODAY, replay=replay), [log])
    assert body(tmp_path / "b.ukvs") == ["com,a)/* 5", f"com,a)/head 0 {LATER}", f"com,a)/missed 0 {LATER}"]
    assert report.problems.counts == {"bad-line": 1}


def test_merged_exclusion_has_earliest_expiry(tmp_path: Path) -> None:
    """An overridden exclusion leaves no expiry date."""
    texts = [
        'com,a)/ 0 {"expires": "2027-02-01"}\ncom,b)/ 0\ncom,c)/ 0 {"expires": "2027-02-01"}\n',
        'com,a)/ 0 {"expires": "2026-12-01"}\ncom,b)/ 0 {"expires": "2026-12-01"}\ncom,c)/ 4\n',
    ]
    files = [tmp_path / "a.ukvs", tmp_path / "b.ukvs"]
    for file, text in zip(files, texts, strict=True):
        file.write_text(HEADER + text)
    for order in (files, files[::-1]):
        merge_maps(order, tmp_path / "c.ukvs")
        ends = '{"expires": "2026-12-01"}'
        assert body(tmp_path / "c.ukvs") == ["* 4", f"com,a)/ 0 {ends}", f"com,b)/ 0 {ends}", "com,c)/ 4"]


def test_map_check_counts_expired_exclusions(tmp_path: Path) -> None:
    """Expiry is checked only if the date is given."""
    file = tmp_path / "a.ukvs"
    file.write_text(HEADER + f'com,a)/* 5\ncom,a)/b 0 {LATER}\ncom,a)/c 0 {{"expires": "some day"}}\n')
    checked = check_map(file)
    assert (checked.expiring, checked.first_expiry, checked.problems.counts) == (1, date(2026, 12, 16), {})
    assert check_map(file, date(2026, 12, 15)).problems.counts == {}
    assert check_map(file, date(2026, 12, 16)).problems.counts == {"expired": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("com,b)/ 1\ncom,a)/ 1\n", "line 3: its key belongs before the one above it"),
        ("com,a)/ 1\ncom,a)/ 1\n", "or is the same"),
    ],
)
def test_exclusion_of_unsorted_map_is_rejected(tmp_path: Path, text: str, message: str) -> None:
    """No output is written."""
    source = tmp_path / "a.ukvs"
    source.write_text(HEADER + text)
    with pytest.raises(InputError, match=message):
        exclude_map(source, tmp_path / "b.ukvs", OPTIONS)
    assert list(tmp_path.iterdir()) == [source]


def test_exclusion_of_yearly_map_is_rejected(tmp_path: Path) -> None:
    """A miss has no year."""
    source = tmp_path / "a.ukvs"
    source.write_text('!fields {"keys": ["surt", "datetime"], "values": ["frequency"]}\ncom,a)/ 2014 5\n')
    with pytest.raises(InputError, match="has the key fields surt, datetime"):
        exclude_map(source, tmp_path / "b.ukvs", OPTIONS)


@pytest.mark.parametrize("expires", [0, TODAY, 10**9])
def test_invalid_exclusion_expiry_is_rejected(expires: date | int) -> None:
    """Past dates and dates beyond the calendar are invalid."""
    with pytest.raises(UsageError):
        ExclusionOptions(today=TODAY, expires=expires).expiry_date()


def test_map_with_only_expired_exclusions_becomes_empty(tmp_path: Path) -> None:
    """The result has no rows and is a valid map."""
    source = tmp_path / "a.ukvs"
    source.write_text(HEADER + 'com,a)/b 0 {"expires": "2020-01-01"}\n')
    assert exclude_map(source, tmp_path / "b.ukvs", OPTIONS) == ExclusionReport(expired=1)
    assert body(tmp_path / "b.ukvs") == []
