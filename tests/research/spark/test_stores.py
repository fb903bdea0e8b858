"""Work on what lies in a store beyond a network, read by Hadoop's own client: the same bytes, or an error, nothing.

The store is a server of the tests, since none of the real ones can be had here.
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

from tests.neighbours.webhdfs import Store, storing
from tests.research.spark.conftest import local_files
from unlost.errors import ClusterError, InputError, UnlostError
from unlost.mementomap import Compaction, MapOptions, ProfileHeader, build_map, build_profiles, compact_map, merge_maps
from unlost.problems import Problems
from unlost.research.spark import CheckpointRange, CheckpointStore, SparkEngine, maps, profiles
from unlost.research.spark import engine as spark_engine
from unlost.research.spark import maps as spark_maps

pytestmark = pytest.mark.spark


@pytest.fixture
def store(tmp_path: Path, index: Path) -> Iterator[Store]:
    """Give a store with a folder of indexes: some compressed, some in folders of it, with names that need care."""
    files = tmp_path / "store" / "cdx [a]" / "deep"
    files.mkdir(parents=True)
    for number, file in enumerate(local_files(index)):
        if number % 2:
            (files.parent / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        else:
            (files / file.name).write_bytes(file.read_bytes())
    with storing(tmp_path / "store") as store:
        yield store


def _read(store: Store) -> set[str]:
    return {read.name.rpartition("/")[2] for read in store.reads}


@pytest.fixture
def folder(store: Store) -> str:
    """Give the address of that folder, as patterns have it."""
    return rf"{store.address}/cdx \[a\]"


def test_indexes_of_a_store_make_the_same(
    engine: SparkEngine, store: Store, folder: str, index: Path, tmp_path: Path
) -> None:
    """A folder with folders, gzip and plain, some files in several pieces, makes what its files make here."""
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


def test_maps_of_a_store_are_merged_and_compacted(
    engine: SparkEngine, store: Store, index: Path, tmp_path: Path
) -> None:
    """What lies there is no index only."""
    sources = [store.folder / f"{number}.ukvs" for number in range(2)]
    for number, source in enumerate(sources):
        build_map(local_files(index)[number::2], source)
    there = [f"{store.address}/{source.name}" for source in sources]
    merge_maps(sources, tmp_path / "here")
    spark_maps.merge_maps(engine, there, tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    compact_map(sources[0], tmp_path / "here", Compaction())
    maps.compact_map(engine, there[0], tmp_path / "there", Compaction())
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_a_table_of_a_store_is_read_by_its_columns(
    engine: SparkEngine, store: Store, index: Path, tmp_path: Path
) -> None:
    """Parquet, which is read from its end and in places, makes the map of the lines that its rows were."""
    lines = (index / "part-1.cdxj").read_text().splitlines()[:500]
    rows = [(line.split(" ")[1], json.loads(line[line.index("{") :])) for line in lines]
    table = pa.table({"address": [row["url"] for _, row in rows], "day": [date for date, _ in rows]})
    (store.folder / "table" / "crawl=A").mkdir(parents=True)
    parquet.write_table(table, store.folder / "table" / "crawl=A" / "0.parquet", row_group_size=100)
    (tmp_path / "some.cdxj").write_text("".join(f"{line}\n" for line in lines))
    options, columns = MapOptions(by_year=True), {"url": "address", "date": "day"}
    build_map([tmp_path / "some.cdxj"], tmp_path / "here", options)
    maps.build_map(engine, [f"{store.address}/table"], tmp_path / "there", options, columns)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert any(read.offset > 0 for read in store.reads)


def _after_listing(monkeypatch: pytest.MonkeyPatch, event: Callable[[], object]) -> None:
    """Have something happen when it is known what there is, and nothing of it was counted."""
    reading = spark_engine.read_inputs

    def read(*wanted: object) -> object:
        files = reading(*wanted)  # type: ignore[arg-type]
        event()
        return files

    monkeypatch.setattr(maps, "read_inputs", read)


def test_a_file_of_a_store_that_vanishes_is_named(
    engine: SparkEngine, store: Store, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error, not a map without it."""
    _after_listing(monkeypatch, (store.folder / "cdx [a]" / "part-0.cdxj.gz").unlink)
    with pytest.raises(InputError, match=r"part-0\.cdxj\.gz: vanished"):
        maps.build_map(engine, [folder], tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_store_that_goes_away_midway_leaves_nothing(
    engine: SparkEngine, store: Store, folder: str, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a file is none: it is told, nothing is written, and when the store is back the same call makes the map."""

    def break_soon() -> None:
        store.is_breaking = True

    with monkeypatch.context() as patched:
        _after_listing(patched, break_soon)
        with pytest.raises(UnlostError, match=r"/cdx.*(cannot be reached|cannot be read): "):
            maps.build_map(engine, [folder], tmp_path / "there")
    assert not store.is_breaking
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    with pytest.raises(ClusterError, match="cannot be reached"):
        maps.build_map(engine, [folder], tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    store.start()
    maps.build_map(engine, [folder], tmp_path / "there")
    build_map(local_files(index), tmp_path / "here")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_what_is_not_in_a_store_is_told(engine: SparkEngine, store: Store, tmp_path: Path) -> None:
    """A name that is not there, and a folder with nothing in it."""
    (store.folder / "empty").mkdir()
    for name, message in (("none.cdxj", "none.cdxj: cannot be read: no such file"), ("empty", "no files there")):
        with pytest.raises(InputError, match=message):
            maps.build_map(engine, [f"{store.address}/{name}"], tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.long  # test_keeping.py does the same in a folder
def test_what_was_read_is_kept_in_a_store(
    engine: SparkEngine, store: Store, folder: str, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All machines reach it: the same command goes on behind what was read."""
    keeping = SparkEngine(engine.session, engine.parts, CheckpointStore(engine.session, f"{store.address}/kept"))

    def gives_up(*_: object, **__: object) -> None:
        raise ClusterError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(maps, "write_parts", gives_up)
        with pytest.raises(ClusterError, match="no memory"):
            maps.build_map(keeping, [folder], tmp_path / "there")
    assert len(list((store.folder / "kept").glob("unlost-*/_SUCCESS"))) == 1
    store.reads.clear()
    maps.build_map(keeping, [folder], tmp_path / "there")
    build_map(local_files(index), tmp_path / "here")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    heads = {read for read in store.reads if "/cdx" in read.name}
    assert {read.offset for read in heads} == {0}, "of indexes only the first lines were looked at"
    assert any(read.name.endswith(".parquet") for read in store.reads)
    assert keeping.checkpoints is not None
    keeping.checkpoints.delete()
    assert list((store.folder / "kept").iterdir()) == []


def test_reading_goes_on_behind_the_files_that_were_read(
    engine: SparkEngine, store: Store, folder: str, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that breaks in the middle costs what was read of the files that were being read, not the others."""
    keeping = SparkEngine(
        engine.session, engine.parts, CheckpointStore(engine.session, str(tmp_path / "kept"), range_bytes=1)
    )
    keep, legs = CheckpointStore.load_or_compute, []
    done: set[str] = set()

    def then_break(self: CheckpointStore, frame: DataFrame, leg: CheckpointRange) -> DataFrame:
        found = keep(self, frame, leg)
        legs.append(leg)
        if len(legs) == 2:
            done.update(name for name, times in Counter(read.name for read in store.reads).items() if times > 1)
            store.is_breaking = True
        return found

    with monkeypatch.context() as patched:
        patched.setattr(CheckpointStore, "load_or_compute", then_break)
        with pytest.raises(UnlostError, match=r"/cdx.*(cannot be reached|cannot be read): "):
            maps.build_map(keeping, [folder], tmp_path / "there")
    assert len(legs) == 2
    assert not (tmp_path / "there").exists()
    store.start()
    store.reads.clear()
    maps.build_map(keeping, [folder], tmp_path / "there")
    build_map(local_files(index), tmp_path / "here")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert 0 < len(done) < 5
    for name, times in Counter(read.name for read in store.reads).items():
        assert (times == 1) == (name in done), "of what was read before only the first lines are looked at"
    assert keeping.checkpoints is not None
    keeping.checkpoints.delete()
    assert list((tmp_path / "kept").iterdir()) == []
