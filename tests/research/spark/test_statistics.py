"""Statistics of a cluster, against those of one machine."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.research.spark.conftest import local_files
from tests.research.spark.dying import Dying
from unlost.errors import InputError
from unlost.research import IndexCountOptions, IndexMetrics, count_index, index_metrics_to_json, render_index_page
from unlost.research.spark import SparkEngine, statistics

pytestmark = pytest.mark.spark


@pytest.fixture
def in_order(index: Path, tmp_path: Path) -> Path:
    """Give the rows of all indexes in one file, in order, for one machine."""
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
def test_statistics_are_the_same(engine: SparkEngine, index: Path, in_order: Path, options: IndexCountOptions) -> None:
    """Of files in no order, a cluster tells exactly what one machine tells of all rows in order, to the last table."""
    here, of_lines = count_index([in_order], options)
    there, report = statistics.count_index(engine, [index], options)
    files = local_files(index)
    # What is about files is about those that were read.
    assert there.files == len(files)
    assert there.text_bytes == sum(file.stat().st_size for file in files)
    headers = there.lines - here.lines
    assert headers == sum(line[:1] in b"!@" for file in files for line in file.read_bytes().splitlines())
    told = index_metrics_to_json(IndexMetrics(there))
    expected = index_metrics_to_json(IndexMetrics(here))
    about_files = {"files", "lines", "text_bytes", "alpha"}
    assert {name: told[name] for name in told if name not in about_files} == {
        name: expected[name] for name in expected if name not in about_files
    }
    assert (report.counted, report.problems.counts) == (of_lines.counted, of_lines.problems.counts)
    assert here.uris > 1000
    assert here.domains == there.domains


def test_statistics_of_one_file_are_the_same_to_the_last_byte(engine: SparkEngine, in_order: Path) -> None:
    """Of a file in order, read in several pieces, nothing at all differs: not the page, not the order of anything."""
    here, there = count_index([in_order])[0], statistics.count_index(engine, [in_order])[0]
    assert there.to_json() == here.to_json()
    assert render_index_page(IndexMetrics(there), "a") == render_index_page(IndexMetrics(here), "a")


@pytest.mark.long  # test_engine.py kills one that builds a map
def test_an_executor_that_is_killed_changes_no_number(
    engine: SparkEngine, index: Path, in_order: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a lost machine had counted is counted again, once."""
    mark = tmp_path / "killed"
    counting = statistics.CountIndexRows
    monkeypatch.setattr(statistics, "CountIndexRows", lambda options: Dying(counting(options), mark))
    there, _ = statistics.count_index(engine, [index])
    here, _ = count_index([in_order])
    assert mark.exists()
    assert (there.captures, there.uris, there.levels) == (here.captures, here.uris, here.levels)


def test_rows_of_parquet_have_their_sizes(engine: SparkEngine, tmp_path: Path) -> None:
    """Lengths of records are added up where a column is named for them; empty ones are not known."""
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


def test_what_has_no_statistics_is_told(engine: SparkEngine, tmp_path: Path) -> None:
    """A map has neither dates nor types; nothing at all has no numbers, which is no error."""
    (tmp_path / "a.ukvs").write_bytes(b'!fields {"keys": ["surt"], "values": ["frequency"]}\ncom,a)/ 1\n')
    with pytest.raises(InputError, match=r"a\.ukvs: a map, not an index"):
        statistics.count_index(engine, [tmp_path / "a.ukvs"])
    (tmp_path / "empty.cdxj").touch()
    found, _ = statistics.count_index(engine, [tmp_path / "empty.cdxj"])
    assert (found.files, found.lines, found.captures, found.uris) == (1, 0, 0, 0)
