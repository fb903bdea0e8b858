"""Inputs in an object store, read by Hadoop's client: the same bytes as local files, or an error.

The store is a server of the tests.
"""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import DataFrame

from tests.external.webhdfs import HdfsStore, run_webhdfs
from tests.research.spark.conftest import local_files
from unlost.errors import ClusterError, InputError, UnlostError
from unlost.mementomap import Compaction, MapOptions, ProfileHeader, build_map, build_profiles, compact_map, merge_maps
from unlost.problems import Problems
from unlost.research.spark import CheckpointRange, CheckpointStore, SparkEngine, maps, profiles
from unlost.research.spark import engine as spark_engine
from unlost.research.spark import maps as spark_maps

pytestmark = pytest.mark.spark


@pytest.fixture
def store(tmp_path: Path, index: Path) -> Iterator[HdfsStore]:
    """Return a store with a folder of indexes: some compressed, some in subfolders, with names to escape."""
    files = tmp_path / "store" / "cdx [a]" / "deep"
    files.mkdir(parents=True)
    for number, file in enumerate(local_files(index)):
        if number % 2:
            (files.parent / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        else:
            (files / file.name).write_bytes(file.read_bytes())
    with run_webhdfs(tmp_path / "store") as store:
        yield store


def _read(store: HdfsStore) -> set[str]:
    return {read.name.rpartition("/")[2] for read in store.reads}


@pytest.fixture
def folder(store: HdfsStore) -> str:
    """Return the URL of that folder, as a pattern."""
    return rf"{store.url}/cdx \[a\]"


def test_indexes_in_a_store_give_the_same_output(
    engine: SparkEngine, store: HdfsStore, folder: str, index: Path, tmp_path: Path
) -> None:
    """Subfolders, plain and gzip, large ones in several splits."""
    options = MapOptions(host_weight=1, path_weight=0.5)
    build_map(local_files(index), tmp_path / "here", options)
    report = maps.build_map(engine, [folder], tmp_path / "there", options)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert report.problems.counts == {"bad-row": 1}
    assert len(_read(store)) == len(local_files(index)) == 5
    assert any(read.offset > 0 for read in store.reads), "a large one is read in pieces"
    header = ProfileHeader("H3P1")
    build_profiles(local_files(index), {"H3P1": tmp_path / "here"}, header, Problems())
    profiles.build_profiles(
        engine, [f"{folder}/*.gz", f"{folder}/d*/*.cdxj"], {"H3P1": tmp_path / "there"}, header, Problems()
    )
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_maps_in_a_store_are_merged_and_compacted(
    engine: SparkEngine, store: HdfsStore, index: Path, tmp_path: Path
) -> None:
    """As local ones."""
    sources = [store.folder / f"{number}.ukvs" for number in range(2)]
    for number, source in enumerate(sources):
        build_map(local_files(index)[number::2], source)
    there = [f"{store.url}/{source.name}" for source in sources]
    merge_maps(sources, tmp_path / "here")
    spark_maps.merge_maps(engine, there, tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    compact_map(sources[0], tmp_path / "here", Compaction())
    maps.compact_map(engine, there[0], tmp_path / "there", Compaction())
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_parquet_in_a_store_is_read(engine: SparkEngine, store: HdfsStore, index: Path, tmp_path: Path) -> None:
    """From its end and with seeks; the map is that of its rows."""
    lines = (index / "part-1.cdxj").read_text().splitlines()[:500]
    rows = [(line.split(" ")[1], json.loads(line[line.index("{") :])) for line in lines]
    table = pa.table({"address": [row["url"] for _, row in rows], "day": [date for date, _ in rows]})
    (store.folder / "table" / "crawl=A").mkdir(parents=True)
    parquet.write_table(table, store.folder / "table" / "crawl=A" / "0.parquet", row_group_size=100)
    (tmp_path / "some.cdxj").write_text("".join(f"{line}\n" for line in lines))
    options, columns = MapOptions(by_year=True), {"url": "address", "date": "day"}
    build_map([tmp_path / "some.cdxj"], tmp_path / "here", options)
    maps.build_map(engine, [f"{store.url}/table"], tmp_path / "there", options, columns)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert any(read.offset > 0 for read in store.reads)


def _after_listing(monkeypatch: pytest.MonkeyPatch, event: Callable[[], object]) -> None:
    """Call a function after listing and before reading."""
    reading = spark_engine.read_inputs

    def read(*wanted: object) -> object:
        files = reading(*wanted)  # type: ignore[arg-type]
        event()
        return files

    monkeypatch.setattr(maps, "read_inputs", read)


def test_vanished_file_in_a_store_is_reported(
    engine: SparkEngine, store: HdfsStore, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No map without it is written."""
    _after_listing(monkeypatch, (store.folder / "cdx [a]" / "part-0.cdxj.gz").unlink)
    with pytest.raises(InputError, match=r"part-0\.cdxj\.gz: vanished"):
        maps.build_map(engine, [folder], tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_failing_store_leaves_no_output(
    engine: SparkEngine, store: HdfsStore, folder: str, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is reported, and the same call works when the store is back."""

    def break_soon() -> None:
        store.break_next = True

    with monkeypatch.context() as patched:
        _after_listing(patched, break_soon)
        with pytest.raises(UnlostError, match=r"/cdx.*(cannot be reached|cannot be read): "):
            maps.build_map(engine, [folder], tmp_path / "there")
    assert not store.break_next
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    with pytest.raises(ClusterError, match="cannot be reached"):
        maps.build_map(engine, [folder], tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    store.start()
    maps.build_map(engine, [folder], tmp_path / "there")
    build_map(local_files(index), tmp_path / "here")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_missing_files_in_a_store_are_reported(engine: SparkEngine, store: HdfsStore, tmp_path: Path) -> None:
    """A missing name, and an empty folder."""
    (store.folder / "empty").mkdir()
    for name, message in (("none.cdxj", "none.cdxj: cannot be read: no such file"), ("empty", "no files there")):
        with pytest.raises(InputError, match=message):
            maps.build_map(engine, [f"{store.url}/{name}"], tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.long  # test_checkpoints.py does the same in a folder
def test_checkpoint_in_a_store_is_resumed(
    engine: SparkEngine, store: HdfsStore, folder: str, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All machines can read it."""
    checkpointing = SparkEngine(engine.session, engine.parts, CheckpointStore(engine.session, f"{store.url}/kept"))

    def fail(*_: object, **__: object) -> None:
        raise ClusterError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(maps, "write_parts", fail)
        with pytest.raises(ClusterError, match="no memory"):
            maps.build_map(checkpointing, [folder], tmp_path / "there")
    assert len(list((store.folder / "kept").glob("unlost-*/_SUCCESS"))) == 1
    store.reads.clear()
    maps.build_map(checkpointing, [folder], tmp_path / "there")
    build_map(local_files(index), tmp_path / "here")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    heads = {read for read in store.reads if "/cdx" in read.name}
    assert {read.offset for read in heads} == {0}, "only the first lines of indexes are read"
    assert any(read.name.endswith(".parquet") for read in store.reads)
    assert checkpointing.checkpoints is not None
    checkpointing.checkpoints.delete()
    assert list((store.folder / "kept").iterdir()) == []


def test_checkpoint_ranges_limit_repeated_reads(
    engine: SparkEngine, store: HdfsStore, folder: str, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing store costs only the files that were being read."""
    checkpointing = SparkEngine(
        engine.session, engine.parts, CheckpointStore(engine.session, str(tmp_path / "kept"), range_bytes=1)
    )
    load, ranges = CheckpointStore.load_or_compute, []
    done: set[str] = set()

    def fail_after_two(self: CheckpointStore, frame: DataFrame, range_: CheckpointRange) -> DataFrame:
        found = load(self, frame, range_)
        ranges.append(range_)
        if len(ranges) == 2:
            done.update(name for name, times in Counter(read.name for read in store.reads).items() if times > 1)
            store.break_next = True
        return found

    with monkeypatch.context() as patched:
        patched.setattr(CheckpointStore, "load_or_compute", fail_after_two)
        with pytest.raises(UnlostError, match=r"/cdx.*(cannot be reached|cannot be read): "):
            maps.build_map(checkpointing, [folder], tmp_path / "there")
    assert len(ranges) == 2
    assert not (tmp_path / "there").exists()
    store.start()
    store.reads.clear()
    maps.build_map(checkpointing, [folder], tmp_path / "there")
    build_map(local_files(index), tmp_path / "here")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert 0 < len(done) < 5
    for name, times in Counter(read.name for read in store.reads).items():
        assert (times == 1) == (name in done), "only the first lines of files in a checkpoint are read"
    assert checkpointing.checkpoints is not None
    checkpointing.checkpoints.delete()
    assert list((tmp_path / "kept").iterdir()) == []
