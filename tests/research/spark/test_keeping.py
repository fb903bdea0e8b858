"""A run that ended goes on behind what it had read."""

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
def keeping(engine: SparkEngine, tmp_path: Path) -> SparkEngine:
    """Give the cluster with a folder to keep what was read."""
    return SparkEngine(engine.session, engine.parts, CheckpointStore(engine.session, str(tmp_path / "kept [a]")))


def _kept(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "kept [a]").glob("unlost-*"))


def test_what_was_read_is_not_read_again(
    keeping: SparkEngine, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an end in the middle nothing is written, and the same command goes on with what it had read."""
    source = tmp_path / "a.cdxj"
    source.write_bytes((index / "part-0.cdxj").read_bytes())
    build_map([source], tmp_path / "here", MapOptions(name="A"))
    state = source.stat()

    def gives_up(*_: object, **__: object) -> None:
        raise ClusterError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(maps, "write_parts", gives_up)
        with pytest.raises(ClusterError):
            maps.build_map(keeping, [source], tmp_path / "there", MapOptions(name="A"))
    assert not (tmp_path / "there").exists()
    assert len(_kept(tmp_path)) == 1
    # Nobody sees that this is another file, unless it is read.
    other = b'com,other)/ 20200101000000 {"url": "http://other.com/"}'
    source.write_bytes(other.ljust(state.st_size, b"\n"))
    os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns))
    maps.build_map(keeping, [source], tmp_path / "there", MapOptions(name="A"))
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    # With a new date it is another, and so is other work.
    os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns + 10**9))
    maps.build_map(keeping, [source], tmp_path / "there", MapOptions(name="A"))
    assert (tmp_path / "there").read_bytes().endswith(b"\n* 1\ncom,other)/ 1\n")
    assert len(_kept(tmp_path)) == 2
    assert keeping.checkpoints is not None
    keeping.checkpoints.delete()
    assert _kept(tmp_path) == []


def test_each_file_is_of_one_leg(engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """However Spark spells its name; and a leg outlives no change of any file."""
    folder = tmp_path / "an index"
    copytree(index, folder)
    (folder / "odd.cdxj").rename(folder / "odd %20é#.cdxj")
    keeper = CheckpointStore(engine.session, str(tmp_path / "kept"), range_bytes=1)
    files = read_inputs(engine, [folder], None, None)
    legs = keeper.split_into_ranges(files, "work")
    read = [{row["name"] for row in leg.filter_rows(files.rows).select("name").distinct().collect()} for leg in legs]
    assert [len(names) for names in read] == [2, 1, 1, 1], "the first is too small for a leg"
    assert len(set.union(*read)) == 5
    assert [leg.url for leg in keeper.split_into_ranges(files, "work")] == [leg.url for leg in legs]
    os.utime(folder / "part-0.cdxj", ns=(0, 0))
    assert not {leg.url for leg in keeper.split_into_ranges(files, "work")} & {leg.url for leg in legs}


@pytest.mark.long  # maps go on in the same way
def test_statistics_go_on_too(keeping: SparkEngine, engine: SparkEngine, index: Path, tmp_path: Path) -> None:
    """What was kept is in no order, and the numbers are the same."""
    expected = statistics.count_index(engine, [index])[0]
    for _ in range(2):
        assert statistics.count_index(keeping, [index])[0] == expected
        assert len(_kept(tmp_path)) == 1
    assert len(local_files(index)) == expected.files


def test_what_is_wrong_with_the_input_is_not_kept(keeping: SparkEngine, index: Path, tmp_path: Path) -> None:
    """An index that is not sorted as promised leaves nothing."""
    with pytest.raises(InputError):
        maps.build_map(keeping, [index], tmp_path / "there", MapOptions(sorted=True))
    assert _kept(tmp_path) == []


def test_a_note_that_somebody_else_wrote_runs_nothing() -> None:
    """Where notes are kept others may write: whatever is no note is refused before it is made."""

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, ("false",)

    for foreign in (pickle.dumps(Evil()), pickle.dumps(TaskReport), pickle.dumps(1), b"rubbish", b""):
        with pytest.raises(InputError, match="not ours"):
            TaskReport.from_bytes(foreign)
    assert TaskReport.from_bytes(TaskReport(counts={"lines": 1}).to_row().data).counts == {"lines": 1}
