"""Files that appear whole, and sorting in bounded memory."""

import errno
import os
import resource
import tempfile
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.atomic import atomic_file
from unlost.index import sort_lines


def test_a_file_gets_its_name_at_the_end(tmp_path: Path) -> None:
    """Until then, what stood there stays."""
    target = tmp_path / "a"
    target.write_text("old")
    with atomic_file(target) as file:
        file.write(b"new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    """Neither half a file nor its temporary name, also when it is interrupted."""

    def interrupted() -> None:
        with atomic_file(tmp_path / "a") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """As root, a file renamed to the name of a pipe or device would take its place."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with atomic_file(pipe) as file:
        file.write(b"text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert pipe.is_fifo()


def test_the_name_of_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A full disk, a folder that is not there, links in a circle: never the name that only we know."""
    (tmp_path / "loop").symlink_to("loop")
    for target in (Path("/dev/full"), tmp_path / "none" / "a", tmp_path / "loop", tmp_path):
        with pytest.raises(OSError, match=str(target)) as caught, atomic_file(target) as file:
            file.write(b"text")
        assert caught.value.filename == str(target)
    assert (tmp_path / "loop").is_symlink()


def test_a_name_may_be_as_long_as_names_are(tmp_path: Path) -> None:
    """The name that it has until then is no longer."""
    with atomic_file(tmp_path / ("\u00fc" * 127)) as file:
        file.write(b"text")
    assert [len(path.name) for path in tmp_path.iterdir()] == [127]


def test_the_mode_is_that_of_any_file_or_of_the_one_before(tmp_path: Path) -> None:
    """What was private stays private; what is new is as the mask has it."""
    private, new, plain = tmp_path / "private", tmp_path / "new", tmp_path / "plain"
    private.touch(0o600)
    plain.touch()
    for path in (private, new):
        with atomic_file(path) as file:
            file.write(b"text")
    assert private.stat().st_mode & 0o777 == 0o600
    assert new.stat().st_mode == plain.stat().st_mode


def test_a_full_disk_while_sorting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the temporary files, which need not be that of the output."""
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda prefix: Path("/dev/full").open("r+b"))  # noqa: ARG005, SIM115
    with pytest.raises(OSError, match="No space left") as caught:
        list(sort_lines([b"a\n"] * 9, 1))
    assert caught.value.filename == tempfile.gettempdir()


@pytest.mark.parametrize("full", ["temporary files", "output"])
def test_of_two_disks_the_full_one_is_named(full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote does not say which it was; the room that is left does."""
    output = tmp_path / "out" / "file"
    output.parent.mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    is_full = tmp_path / "tmp" if full == "temporary files" else output.parent

    def statvfs(place: str | os.PathLike[str]) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=0 if Path(place) == is_full else 9, f_frsize=4096)

    monkeypatch.setattr(os, "statvfs", statvfs)
    with pytest.raises(OSError, match="No space left") as caught, atomic_file(output):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(is_full if full == "temporary files" else output)


def test_a_link_is_followed(tmp_path: Path) -> None:
    """What it leads to is written anew; the link stays one."""
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with atomic_file(tmp_path / "link") as file:
        file.write(b"text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_text() == "text"


@given(st.lists(st.binary(max_size=5).map(lambda text: text.replace(b"\n", b"") + b"\n")), st.integers(1, 40))
def test_lines_come_sorted_and_once(lines: list[bytes], run_bytes: int) -> None:
    """However many runs there were."""
    assert list(sort_lines(lines, run_bytes)) == sorted(set(lines))


def test_more_runs_than_files_may_be_open() -> None:
    """An index of a billion lines has thousands of runs."""
    lines = [b"%04d\n" % (number * 7 % 10_000) for number in range(10_000)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        assert list(sort_lines(lines, 1)) == sorted(lines)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_short_lines_take_no_more_memory_than_long_ones() -> None:
    """What Python needs for each line counts, too."""
    tracemalloc.start()
    next(sort_lines((b"%07d\n" % number for number in range(200_000)), 1 << 20))
    assert tracemalloc.get_traced_memory()[1] < 3 << 20
    tracemalloc.stop()
