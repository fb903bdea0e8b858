"""Checkpoints: an aborted run resumes after the files that it has read."""

import os
import pickle
from pathlib import Path
from shutil import copytree

import pytest

from tests.research.spark.conftest import local_files
from unlost.errors import ClusterError, InputError
from unlost.mementomap import MapOptions, build_map
from unlost.research.spark import CheckpointStore, SparkEngine, TaskReport, maps, read_inputs, statistics

pytestmark = pytest.mark.spark


@pytest.fixture
def checkpointing_engine(engine: SparkEngine, tmp_path: Path) -> SparkEngine:
    """Return the cluster with a checkpoint folder."""
    return SparkEngine(engine.session, engine.parts, CheckpointStore(engine.session, str(tmp_path / "kept [a]")))


def _checkpoints(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "kept [a]").glob("unlost-*"))


def test_aborted_run_resumes_from_its_checkpoint(
    checkpointing_engine: SparkEngine, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written before; files are not read again unless they have changed."""
    source = tmp_path / "a.cdxj"
    source.write_bytes((index / "part-0.cdxj").read_bytes())
    build_map([source], tmp_path / "here", MapOptions(name="A"))
    state = source.stat()

    def fail(*_: object, **__: object) -> None:
        raise ClusterError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(maps, "write_parts", fail)
        with pytest.raises(ClusterError):
            maps.build_map(checkpointing_engine, [source], tmp_path / "there", MapOptions(name="A"))
    assert not (tmp_path / "there").exists()
    assert len(_checkpoints(tmp_path)) == 1
    # Nobody sees that this is another file, unless it is read.
    other = b'com,other)/ 20200101000000 {"url": "http://other.com/"}'
    source.write_bytes(other.ljust(state.st_size, b"\n"))
    os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns))
    maps.build_map(checkpointing_engine, [source], tmp_path / "there", MapOptions(name="A"))
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    # With a new date it is another, and so is other work.
    os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns + 10**9))
    maps.build_map(checkpointing_engine, [source], tmp_path / "there", MapOptions(name="A"))
    assert (tmp_path / "there").read_bytes().endswith(b"\n* 1\ncom,other)/ 1\n")
    assert len(_checkpoints(tmp_path)) == 2
    assert checkpointing_engine.checkpoints is not None
    checkpointing_engine.checkpoints.delete()
    assert _checkpoints(tmp_path) == []


def test_each_file_is_in_one_checkpoint_range(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """However Spark escapes its name; a range is invalid after a change of any file."""
    folder = tmp_path / "an index"
    copytree(index, folder)
    (folder / "odd.cdxj").rename(folder / "odd %20é#.cdxj")
    store = CheckpointStore(engine.session, str(tmp_path / "kept"), range_bytes=1)
    files = read_inputs(engine, [folder], None, None)
    ranges = store.split_into_ranges(files, "work")
    read = [
        {row["name"] for row in range_.filter_rows(files.rows).select("name").distinct().collect()} for range_ in ranges
    ]
    assert [len(names) for names in read] == [2, 1, 1, 1], "the first is too small for a leg"
    assert len(set.union(*read)) == 5
    assert [range_.url for range_ in store.split_into_ranges(files, "work")] == [range_.url for range_ in ranges]
    os.utime(folder / "part-0.cdxj", ns=(0, 0))
    assert not {range_.url for range_ in store.split_into_ranges(files, "work")} & {range_.url for range_ in ranges}


@pytest.mark.long  # maps go on in the same way
def test_statistics_resume_from_a_checkpoint(
    checkpointing_engine: SparkEngine, engine: SparkEngine, index: Path, tmp_path: Path
) -> None:
    """Its rows have no order, and the result is the same."""
    expected = statistics.count_index(engine, [index])[0]
    for _ in range(2):
        assert statistics.count_index(checkpointing_engine, [index])[0] == expected
        assert len(_checkpoints(tmp_path)) == 1
    assert len(local_files(index)) == expected.files


def test_invalid_input_leaves_no_checkpoint(checkpointing_engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """An unsorted index with `sorted`."""
    with pytest.raises(InputError):
        maps.build_map(checkpointing_engine, [index], tmp_path / "there", MapOptions(sorted=True))
    assert _checkpoints(tmp_path) == []


def test_foreign_checkpoint_is_rejected() -> None:
    """Others may write to the folder: foreign data is never unpickled."""

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, ("false",)

    for foreign in (pickle.dumps(Evil()), pickle.dumps(TaskReport), pickle.dumps(1), b"rubbish", b""):
        with pytest.raises(InputError, match="not ours"):
            TaskReport.from_bytes(foreign)
    assert TaskReport.from_bytes(TaskReport(counts={"lines": 1}).to_row().data).counts == {"lines": 1}
