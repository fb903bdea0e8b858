"""Statistics of a cluster, compared with those of one machine."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.research.spark.conftest import local_files
from tests.research.spark.killing_tasks import KillingTask
from unlost.errors import InputError
from unlost.research import IndexCountOptions, IndexMetrics, count_index, index_metrics_to_json, render_index_page
from unlost.research.spark import SparkEngine, statistics

pytestmark = pytest.mark.spark


@pytest.fixture
def sorted_index(index: Path, tmp_path: Path) -> Path:
    """Return the rows of all indexes in one sorted file."""
    lines = [line for file in local_files(index) for line in file.read_bytes().splitlines(keepends=True)]
    whole = tmp_path / "whole.cdxj"
    whole.write_bytes(b"".join(sorted(line for line in lines if line[:1] not in b"!@")))
    return whole


@pytest.mark.parametrize(
    "options",
    [
        IndexCountOptions(),
        IndexCountOptions(status=frozenset({"200"}), mime=frozenset({"text/html"}), exclude=frozenset({"robots"})),
    ],
    ids=["all", "study"],
)
def test_statistics_of_unsorted_files_equal_sorted_ones(
    engine: SparkEngine, index: Path, sorted_index: Path, options: IndexCountOptions
) -> None:
    """All tables."""
    here, of_lines = count_index([sorted_index], options)
    there, report = statistics.count_index(engine, [index], options)
    files = local_files(index)
    # What is about files is about those that were read.
    assert there.files == len(files)
    assert there.text_bytes == sum(file.stat().st_size for file in files)
    headers = there.lines - here.lines
    assert headers == sum(line[:1] in b"!@" for file in files for line in file.read_bytes().splitlines())
    result = index_metrics_to_json(IndexMetrics(there))
    expected = index_metrics_to_json(IndexMetrics(here))
    about_files = {"files", "lines", "text_bytes", "alpha"}
    assert {name: result[name] for name in result if name not in about_files} == {
        name: expected[name] for name in expected if name not in about_files
    }
    assert (report.counted, report.problems.counts) == (of_lines.counted, of_lines.problems.counts)
    assert here.uris > 1000
    assert here.domains == there.domains


def test_statistics_of_one_file_equal_local_ones(engine: SparkEngine, sorted_index: Path) -> None:
    """Byte for byte, JSON and page, read in several splits."""
    here, there = count_index([sorted_index])[0], statistics.count_index(engine, [sorted_index])[0]
    assert there.to_json() == here.to_json()
    assert render_index_page(IndexMetrics(there), "a") == render_index_page(IndexMetrics(here), "a")


@pytest.mark.long  # test_engine.py kills one that builds a map
def test_killed_executor_does_not_change_statistics(
    engine: SparkEngine, index: Path, sorted_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are counted once."""
    mark = tmp_path / "killed"
    counting = statistics.CountIndexRows
    monkeypatch.setattr(statistics, "CountIndexRows", lambda options: KillingTask(counting(options), mark))
    there, _ = statistics.count_index(engine, [index])
    here, _ = count_index([sorted_index])
    assert mark.exists()
    assert (there.captures, there.uris, there.levels) == (here.captures, here.uris, here.levels)


def test_parquet_lengths_are_added_up(engine: SparkEngine, tmp_path: Path) -> None:
    """From the named column; null is unknown."""
    table = pa.table(
        {
            "address": ["http://b.example/", "http://a.example/x?q", "http://a.example/x"],
            "day": ["20200102000000", "20210102000000", "20220102000000"],
            "size": pa.array([100, None, 300], pa.int32()),
        }
    )
    parquet.write_table(table, tmp_path / "part.parquet")
    columns = {"url": "address", "date": "day", "length": "size"}
    found, report = statistics.count_index(engine, [tmp_path], columns=columns)
    assert (found.captures, found.uris, found.pages, found.hosts) == (3, 3, 2, 2)
    assert (found.record_bytes, found.sized) == (400, 2)
    assert (found.first, found.last) == ("20200102000000", "20220102000000")
    assert (found.foreign, report.lines) == ({}, 3)


def test_map_has_no_statistics(engine: SparkEngine, tmp_path: Path) -> None:
    """It has neither dates nor types. An empty index has zeros."""
    (tmp_path / "a.ukvs").write_bytes(b'!fields {"keys": ["surt"], "values": ["frequency"]}\ncom,a)/ 1\n')
    with pytest.raises(InputError, match=r"a\.ukvs: a map, not an index"):
        statistics.count_index(engine, [tmp_path / "a.ukvs"])
    (tmp_path / "empty.cdxj").touch()
    found, _ = statistics.count_index(engine, [tmp_path / "empty.cdxj"])
    assert (found.files, found.lines, found.captures, found.uris) == (1, 0, 0, 0)
