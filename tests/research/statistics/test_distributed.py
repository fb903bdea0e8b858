"""Statistics counted by several machines equal those of one."""

import random
from dataclasses import replace
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mementomap.strategies import KEYS, YEARS, Row, url
from unlost import _core
from unlost.errors import InputError, UnsortedError
from unlost.research import IndexCounts, count_index, exact_counts, merge_counts
from unlost.text_lines import MAX_LINE_BYTES
from unlost.uri import DEFAULT_RULES

_CAPTURES = st.lists(
    st.builds(
        lambda key, year, month: Row(key, key, url(key), f"{year}{month:02}01000000", "200"),
        KEYS,
        st.sampled_from(YEARS),
        st.integers(1, 12),
    ),
    min_size=1,
    max_size=60,
)


def _part(memory: int | None = None) -> "_core.StatisticsPart":
    return _core.StatisticsPart(rules=DEFAULT_RULES, line_limit=MAX_LINE_BYTES, memory=memory)


def _host(line: bytes) -> bytes:
    return line.split(b")", 1)[0]


@given(rows=_CAPTURES, machines=st.integers(1, 4), seed=st.integers(0, 99))
def test_distributed_statistics_equal_those_of_one_machine(
    rows: list[Row], machines: int, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However rows are distributed and hosts are merged."""
    folder = tmp_path_factory.mktemp("together")
    lines = [row.cdxj() for row in rows]
    (folder / "whole.cdxj").write_bytes(b"".join(sorted(lines)))
    whole, _ = count_index([folder / "whole.cdxj"])
    random.Random(seed).shuffle(lines)  # noqa: S311
    found: list[IndexCounts] = []
    runs: list[bytes] = []
    for machine in range(machines):
        mine = lines[machine::machines]
        if not mine:
            continue
        (folder / "mine.cdxj").write_bytes(b"".join(mine))
        part = _part()
        part.add_file(folder / "mine.cdxj", _core.Progress())
        found.append(exact_counts(part.write(folder / "runs")))
        runs += (folder / "runs").read_bytes().splitlines(keepends=True)
    hosts: list[bytes] = []
    for machine in range(machines):
        part = _part()
        part.add_runs(b"".join(run for run in runs if crc32(_host(run)) % machines == machine))
        found.append(exact_counts(part.count_paths(folder / "hosts")))
        hosts += (folder / "hosts").read_bytes().splitlines(keepends=True)
    tree = _core.StatisticsHosts()
    tree.add_hosts(b"".join(sorted(hosts)))
    found.append(exact_counts(tree.finish()))
    merged = replace(merge_counts(found), files=1, lines=len(rows))
    assert merged.sorted_by_name().to_json() == whole.to_json()


def test_invalid_partial_results_are_rejected() -> None:
    """Runs without counts or with an invalid month, unsorted hosts, a second finish."""
    for wrong in (b"com,a)/ 1 1\n", b"com,a)/ 1 1 60000\n"):
        with pytest.raises(InputError, match="three numbers"):
            _part().add_runs(wrong)
    tree = _core.StatisticsHosts()
    tree.add_hosts(b"com,b) 1 1 1\n")
    with pytest.raises(UnsortedError):
        tree.add_hosts(b"com,a) 1 1 1\n")
    tree.finish()
    with pytest.raises(ValueError, match="given already"):
        tree.finish()
