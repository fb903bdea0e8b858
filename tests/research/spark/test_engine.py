"""Work on a cluster of two machines, against the same on one: the same bytes, whatever is lost on the way."""

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
from tests.research.spark.dying import Dying
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
def test_maps_are_the_same(engine: SparkEngine, index: Path, tmp_path: Path, options: MapOptions) -> None:
    """A map of many files, sorted and not, is the same from a cluster, and so is what is said of their lines."""
    here = build_map(local_files(index), tmp_path / "here", options)
    there = maps.build_map(engine, [index], tmp_path / "there", options)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert (there.lines, there.counted, there.foreign) == (here.lines, here.counted, here.foreign)
    assert (there.filtered, there.problems.counts) == (here.filtered, here.problems.counts)
    assert here.problems.counts == {"bad-row": 1}


def test_maps_are_merged_and_compacted_the_same(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """Compacting in two steps, and merging with lines that speak for every part, give the same bytes."""
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


def test_profiles_are_the_same(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """Profiles of policies of all kinds are the same, also where keys are wider than a domain."""
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


class _Watched(SparkEngine):
    """An engine that knows in how many parts each result was. parts_made: of each stage that merged."""

    parts_made: list[int]

    def merge(
        self, stage: SparkStage, cut: Callable[[PartialRow], Iterator[PartialRow]], parts: int, work: PartTask
    ) -> SparkStage:
        """Do as the engine does."""
        merged = super().merge(stage, cut, parts, work)
        self.parts_made.append(len({row.part for row in merged.rows()}))
        return merged


def test_the_largest_host_of_a_profile_is_shared(engine: SparkEngine, tmp_path: Path) -> None:
    """Where one host is all there is, its profile is made in several parts, and is the same to the last port."""
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
    watched = _Watched(engine.session, engine.parts)
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


def test_filters_are_the_same(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """A filter is the same; so is one of nothing."""
    options = FilterOptions(bits=6, key="urir", status=frozenset({"200"}))
    here = build_filter(local_files(index), tmp_path / "here", options)
    there = filters.build_filter(engine, [index], tmp_path / "there", options)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert (there.keys, there.bytes, there.counted) == (here.keys, here.bytes, here.counted)
    nothing = FilterOptions(status=frozenset({"999"}))
    build_filter(local_files(index), tmp_path / "here", nothing)
    filters.build_filter(engine, [index], tmp_path / "there", nothing)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_parquet_is_read_by_its_columns(engine: SparkEngine, tmp_path: Path) -> None:
    """Rows of Common Crawl's columns make the map that their index would."""
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


def test_an_executor_that_is_killed_changes_nothing(
    engine: SparkEngine, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a lost machine had done is done again by others, and the map is the same."""
    mark = tmp_path / "killed"
    counting = maps.CountSplits
    monkeypatch.setattr(maps, "CountSplits", lambda *wanted: Dying(counting(*wanted), mark))
    maps.build_map(engine, [index], tmp_path / "there")
    build_map(local_files(index), tmp_path / "here")
    assert mark.exists()
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_executors_that_are_always_lost_are_told(
    engine: SparkEngine, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines that die whenever they try leave no map, and whoever asked hears of memory; the next one works."""
    counting = maps.CountSplits
    monkeypatch.setattr(maps, "CountSplits", lambda *wanted: Dying(counting(*wanted), None))
    with pytest.raises(ClusterError, match="memory"):
        maps.build_map(engine, [index / "odd.cdxj"], tmp_path / "there")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    maps.build_map(engine, [index / "odd.cdxj"], tmp_path / "there")
    build_map([index / "odd.cdxj"], tmp_path / "here")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_what_cannot_be_read_is_told_and_leaves_nothing(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """Files that are not there, not sorted as promised, or no lists of lines are errors with their names."""
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


def test_a_truncated_map_is_refused(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """By the size that its header declares; a map in parts is whole if all of its parts are there."""
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


def test_files_that_vanish_are_told(
    engine: SparkEngine, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is gone between the listing and the reading is an error, not a map without it."""
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


def test_a_master_that_is_not_there_is_told_at_once() -> None:
    """Nobody waits for a cluster that takes no connection."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    with pytest.raises(ClusterError, match="cannot be reached"), spark_session(f"spark://127.0.0.1:{port}"):
        pass
    for master in ("spark://nowhere", "nonsense", "http://host/"):
        with pytest.raises(UsageError, match="spark://host:7077"), spark_session(master):
            pass


def test_who_lacks_the_extra_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PySpark nothing else of unlost is touched, and one line says how to get it."""
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
def test_options_that_do_not_go_together_are_refused(
    tmp_path: Path, command: click.Command, options: list[str], message: str
) -> None:
    """Before any work, and before Spark is begun."""
    arguments = ["index.cdxj", "-o", str(tmp_path / "output"), *options]
    result = CliRunner().invoke(command, arguments, help_option_names=["-h", "--help"])
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)


def test_partial_input_is_refused_by_the_library(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """It would be ignored: Spark reads a damaged file whole or not at all."""
    with pytest.raises(UsageError, match="not supported"):
        maps.build_map(engine, [index], tmp_path / "map", MapOptions(allow_partial=True))
    with pytest.raises(UsageError, match="not supported"):
        filters.build_filter(engine, [index], tmp_path / "filter", FilterOptions(allow_partial=True))
    assert not list(tmp_path.iterdir())
