"""A cluster of two machines produces the same bytes as one, whatever fails."""

import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from tests.research.spark.conftest import local_files
from tests.research.spark.killing_tasks import KillingTask
from unlost.cli import build
from unlost.cli import filter as filter_command
from unlost.errors import ClusterError, InputError, UsageError
from unlost.mementomap import (
    Compaction,
    FilterOptions,
    MapOptions,
    ProfileHeader,
    build_filter,
    build_map,
    build_profiles,
    compact_map,
    merge_maps,
)
from unlost.problems import Problems
from unlost.research.spark import (
    COMMON_CRAWL_COLUMNS,
    PartialRow,
    PartTask,
    SparkEngine,
    SparkStage,
    filters,
    maps,
    profiles,
    spark_session,
)
from unlost.research.spark import engine as spark_engine
from unlost.research.spark import maps as spark_maps

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "options",
    [
        MapOptions(name="An archive"),
        MapOptions(by_year=True, status=frozenset({"200"}), host_weight=0.5),
        MapOptions(urir=True, host_weight=1, path_weight=0.5, exclude=frozenset({"robots"})),
    ],
    ids=["plain", "year", "compacted"],
)
def test_map_equals_local_map(engine: SparkEngine, index: Path, tmp_path: Path, options: MapOptions) -> None:
    """Of sorted and unsorted files, and so do the counts."""
    here = build_map(local_files(index), tmp_path / "here", options)
    there = maps.build_map(engine, [index], tmp_path / "there", options)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert (there.lines, there.counted, there.foreign) == (here.lines, here.counted, here.foreign)
    assert (there.filtered, there.problems.counts) == (here.filtered, here.problems.counts)
    assert here.problems.counts == {"bad-row": 1}


def test_merge_and_compact_equal_local_output(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """In two steps, and with wildcards that cover every partition."""
    files = local_files(index)
    build_map(files[:3], tmp_path / "a.ukvs", MapOptions(name="A"))
    build_map(files[3:], tmp_path / "b.ukvs", MapOptions(name="B", host_weight=0.5, path_weight=0.5))
    wide = b'!fields {"keys": ["surt"], "values": ["frequency"]}\n* 12\ncom,* 7+\norg,* 5\npt,zz)/x/* 0\n'
    (tmp_path / "wide.ukvs").write_bytes(wide)
    excluding = b'!fields {"keys": ["surt"], "values": ["frequency"]}\ncom,zzz)/* 0\nnet,* 0\nnet,zzz)/* 0\n'
    (tmp_path / "excluding.ukvs").write_bytes(excluding)
    for how in (Compaction(), Compaction(0.5, 0.25, rollup=("com,*",))):
        compact_map(tmp_path / "a.ukvs", tmp_path / "here", how)
        maps.compact_map(engine, tmp_path / "a.ukvs", tmp_path / "there", how)
        assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    sources = [tmp_path / name for name in ("a.ukvs", "b.ukvs", "wide.ukvs", "excluding.ukvs")]
    here = merge_maps(sources, tmp_path / "here")
    there = spark_maps.merge_maps(engine, sources, tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert (there.merged, there.dropped) == (here.merged, here.dropped)
    assert here.dropped > 0


def test_profiles_equal_local_profiles(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """Of all kinds of policies, also with keys wider than a domain."""
    policies = ("H1P0", "H3P1", "DSub", "URIR")
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
    outputs = [{policy: tmp_path / place / policy for policy in policies} for place in ("here", "there")]
    header = ProfileHeader("H1P0", "An archive")
    problems = Problems(), Problems()
    here = build_profiles(local_files(index), outputs[0], header, problems[0])
    there = profiles.build_profiles(engine, [index], outputs[1], header, problems[1])
    for policy in policies:
        assert outputs[1][policy].read_bytes() == outputs[0][policy].read_bytes(), policy
    assert (there, problems[1].counts) == (here, problems[0].counts)


class _RecordingEngine(SparkEngine):
    """An engine that records the number of partitions of each merged stage."""

    parts_made: list[int]

    def merge(
        self, stage: SparkStage, cut: Callable[[PartialRow], Iterator[PartialRow]], parts: int, work: PartTask
    ) -> SparkStage:
        """Merge and record."""
        merged = super().merge(stage, cut, parts, work)
        self.parts_made.append(len({row.part for row in merged.rows()}))
        return merged


def test_largest_host_of_a_profile_is_partitioned(engine: SparkEngine, tmp_path: Path) -> None:
    """The profile is the same, also its ports."""
    folder = tmp_path / "index"
    folder.mkdir()
    for part in range(4):
        lines = [
            f'uk,co,big{port})/{page % 7}/{page % 90}/{page} 2020 {{"url": "http://big.co.uk{port}/{page % 7}/'
            f'{page % 90}/{page}?q={part}"}}\n'
            for page in range(part, 6000, 3)
            for port in ("", ":81", ":8080")[: 1 + page % 3]
        ]
        (folder / f"{part}.cdxj").write_text("".join(lines))
    watched = _RecordingEngine(engine.session, engine.parts)
    watched.parts_made = []
    policies = ("H1P0", "H2P0", "HxP2", "HxPx", "DDom", "DPth", "DIni", "URIR")
    outputs = [{policy: tmp_path / f"{place}-{policy}" for policy in policies} for place in ("here", "there")]
    header = ProfileHeader("H1P0")
    here = build_profiles(local_files(folder), outputs[0], header, Problems())
    assert profiles.build_profiles(watched, [folder], outputs[1], header, Problems()) == here
    for policy in policies:
        assert outputs[1][policy].read_bytes() == outputs[0][policy].read_bytes(), policy
    assert b'"ports": {"81": ' in outputs[1]["DDom"].read_bytes()
    assert watched.parts_made == [5]


def test_filter_equals_local_filter(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """Also an empty one."""
    options = FilterOptions(bits=6, key="urir", status=frozenset({"200"}))
    here = build_filter(local_files(index), tmp_path / "here", options)
    there = filters.build_filter(engine, [index], tmp_path / "there", options)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert (there.keys, there.bytes, there.counted) == (here.keys, here.bytes, here.counted)
    nothing = FilterOptions(status=frozenset({"999"}))
    build_filter(local_files(index), tmp_path / "here", nothing)
    filters.build_filter(engine, [index], tmp_path / "there", nothing)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_parquet_columns_are_read(engine: SparkEngine, tmp_path: Path) -> None:
    """Rows of Common Crawl give the map of their index."""
    rows = [
        ("com,example)/a", "http://example.com/a", "2024-01-02T03:04:05", "text/html", 200),
        ("com,example)/b?q=1", "https://example.com/b?q=1", "2023-01-02T03:04:05", None, 404),
        ("org,example)/", "http://example.org/", "2024-01-02T03:04:05", "image/png", 200),
    ]
    table = pa.table(
        {
            "url_surtkey": [row[0] for row in rows],
            "url": [row[1] for row in rows],
            "fetch_time": pa.array([row[2] for row in rows]).cast(pa.timestamp("ms")),
            "content_mime_type": [row[3] for row in rows],
            "fetch_status": pa.array([row[4] for row in rows], pa.int16()),
            "warc_record_length": pa.array([100, None, 300], pa.int32()),
        }
    )
    parquet.write_table(table, tmp_path / "part.parquet")
    report = maps.build_map(
        engine, [tmp_path / "part.parquet"], tmp_path / "m", MapOptions(by_year=True), COMMON_CRAWL_COLUMNS
    )
    lines = (tmp_path / "m").read_text().splitlines()
    assert [line for line in lines if not line.startswith("!")] == [
        "* 2023 1",
        "* 2024 2",
        "com,example)/a 2024 1",
        "com,example)/b 2023 1",
        "org,example)/ 2024 1",
    ]
    assert (report.lines, report.counted) == (3, 3)
    maps.build_map(engine, [tmp_path / "part.parquet"], tmp_path / "m", columns={"url": "url"})
    (tmp_path / "list").write_text("".join(f"{row[1]}\n" for row in rows))
    build_map([tmp_path / "list"], tmp_path / "here")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "here").read_bytes(), "with url alone it is a list"
    with pytest.raises(InputError, match="nosuch"):
        maps.build_map(engine, [tmp_path / "part.parquet"], tmp_path / "n", columns={"url": "nosuch"})
    assert not (tmp_path / "n").exists()


def test_killed_executor_does_not_change_the_map(
    engine: SparkEngine, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its work is repeated by others."""
    mark = tmp_path / "killed"
    counting = maps.CountSplits
    monkeypatch.setattr(maps, "CountSplits", lambda *wanted: KillingTask(counting(*wanted), mark))
    maps.build_map(engine, [index], tmp_path / "there")
    build_map(local_files(index), tmp_path / "here")
    assert mark.exists()
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_repeatedly_killed_executors_are_reported(
    engine: SparkEngine, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a hint at memory, and no map; the next build works."""
    counting = maps.CountSplits
    monkeypatch.setattr(maps, "CountSplits", lambda *wanted: KillingTask(counting(*wanted), None))
    with pytest.raises(ClusterError, match="memory"):
        maps.build_map(engine, [index / "odd.cdxj"], tmp_path / "there")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    maps.build_map(engine, [index / "odd.cdxj"], tmp_path / "there")
    build_map([index / "odd.cdxj"], tmp_path / "here")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_unreadable_inputs_are_rejected(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """Missing, unsorted or unknown files: errors with their names, and no output."""
    output = tmp_path / "map"
    build = partial(maps.build_map, engine)
    with pytest.raises(InputError, match=r"nothing\.cdxj.*no such file"):
        build([tmp_path / "nothing.cdxj"], output)
    with pytest.raises(InputError, match=r"part-[02]\.cdxj"):
        build([index], output, MapOptions(sorted=True))
    (tmp_path / "x.warc").write_bytes(b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n")
    with pytest.raises(InputError, match=r"x\.warc.*unlost index"):
        build([tmp_path / "x.warc"], output)
    (tmp_path / "unsorted.ukvs").write_bytes(b'!fields {"keys": ["surt"], "values": ["frequency"]}\nb)/ 1\na)/ 1\n')
    with pytest.raises(InputError, match=r"unsorted\.ukvs"):
        maps.compact_map(engine, tmp_path / "unsorted.ukvs", output)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["unsorted.ukvs", "x.warc"]


def test_truncated_map_is_rejected(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """By the size in its header; a map in partitions is complete if all are there."""
    whole, cut, output = tmp_path / "whole.ukvs", tmp_path / "cut.ukvs", tmp_path / "output"
    build_map(local_files(index), whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(lines[:-1]))
    commands: list[Callable[[], object]] = [
        lambda: maps.build_map(engine, [cut], output),
        lambda: maps.compact_map(engine, cut, output),
        lambda: spark_maps.merge_maps(engine, [whole, cut], output),
    ]
    for command in commands:
        with pytest.raises(InputError, match=r"cut\.ukvs: truncated: the header declares"):
            command()
        assert not output.exists()
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "0").write_bytes(b"".join(lines[:-3]))
    (parts / "1").write_bytes(b"".join(lines[-3:]))
    compact_map(whole, tmp_path / "expected")
    maps.compact_map(engine, parts, output)
    assert output.read_bytes() == (tmp_path / "expected").read_bytes()


def test_vanished_file_is_reported(
    engine: SparkEngine, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is removed between listing and reading is an error."""
    going = tmp_path / "going.cdxj"
    going.write_bytes((index / "part-1.cdxj").read_bytes())
    reading = spark_engine.read_inputs

    def read_then_lose(*wanted: object) -> object:
        files = reading(*wanted)  # type: ignore[arg-type]
        going.unlink()
        return files

    monkeypatch.setattr(maps, "read_inputs", read_then_lose)
    with pytest.raises(InputError, match=r"going\.cdxj: vanished"):
        maps.build_map(engine, [going], tmp_path / "map")
    assert list(tmp_path.iterdir()) == []


def test_unreachable_master_is_reported_at_once() -> None:
    """Also an invalid URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    with pytest.raises(ClusterError, match="cannot be reached"), spark_session(f"spark://127.0.0.1:{port}"):
        pass
    for master in ("spark://nowhere", "nonsense", "http://host/"):
        with pytest.raises(UsageError, match="spark://host:7077"), spark_session(master):
            pass


def test_missing_pyspark_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(UsageError, match=r"pip install 'unlost\[spark\]'"), spark_session("local[1]"):
        pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--master", "local[1]"], "only with --engine spark"),
        (["--keep", "x"], "only with --engine spark"),
        (["--engine", "spark"], "needs --master"),
        (["--engine", "spark", "--master", "local[1]", "--spark-conf", "memory=1g"], "expected a setting"),
        (["--columns", "common-crawl"], "only --engine spark"),
        (["--engine", "spark", "--master", "local[1]", "--columns", "key=a"], "no url"),
        (["--engine", "spark", "--master", "local[1]", "--columns", "key=a,url=b"], "no date"),
        (["--engine", "spark", "--master", "local[1]", "--allow-partial"], "--allow-partial is not supported"),
    ],
)
@pytest.mark.parametrize("command", [build, filter_command.build], ids=["map", "filter"])
def test_invalid_combinations_of_options_are_rejected(
    tmp_path: Path, command: click.Command, options: list[str], message: str
) -> None:
    """Before Spark starts."""
    arguments = ["index.cdxj", "-o", str(tmp_path / "output"), *options]
    result = CliRunner().invoke(command, arguments, help_option_names=["-h", "--help"])
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)


def test_allow_partial_is_rejected(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """Spark reads a damaged file completely or not at all."""
    with pytest.raises(UsageError, match="not supported"):
        maps.build_map(engine, [index], tmp_path / "map", MapOptions(allow_partial=True))
    with pytest.raises(UsageError, match="not supported"):
        filters.build_filter(engine, [index], tmp_path / "filter", FilterOptions(allow_partial=True))
    assert not list(tmp_path.iterdir())
