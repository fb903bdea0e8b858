"""Files are written atomically."""

import errno
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from unlost.atomic import atomic_file


def test_atomic_file_replaces_target_on_close(tmp_path: Path) -> None:
    """The previous content is visible until the file is closed."""
    target = tmp_path / "a"
    target.write_text("old")
    with atomic_file(target) as file:
        file.write(b"new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_atomic_file_on_exception_leaves_no_file(tmp_path: Path) -> None:
    """Neither the file nor its temporary file remains after an interruption."""

    def interrupted() -> None:
        with atomic_file(tmp_path / "a") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_atomic_file_to_fifo_writes_without_replacing(tmp_path: Path) -> None:
    """Renaming a file to a device's name as root would replace the device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with atomic_file(pipe) as file:
        file.write(b"text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert pipe.is_fifo()


def test_atomic_file_error_names_target(tmp_path: Path) -> None:
    """Errors name the target, never the temporary file."""
    (tmp_path / "loop").symlink_to("loop")
    for target in (Path("/dev/full"), tmp_path / "none" / "a", tmp_path / "loop", tmp_path):
        with pytest.raises(OSError, match=str(target)) as caught, atomic_file(target) as file:
            file.write(b"text")
        assert caught.value.filename == str(target)
    assert (tmp_path / "loop").is_symlink()


def test_atomic_file_accepts_longest_file_name(tmp_path: Path) -> None:
    """The temporary name is not longer than the target's name."""
    with atomic_file(tmp_path / ("\u00fc" * 127)) as file:
        file.write(b"text")
    assert [len(path.name) for path in tmp_path.iterdir()] == [127]


def test_atomic_file_mode_is_of_previous_file_or_umask(tmp_path: Path) -> None:
    """An existing file keeps its mode; a new one follows the umask."""
    private, new, plain = tmp_path / "private", tmp_path / "new", tmp_path / "plain"
    private.touch(0o600)
    plain.touch()
    for path in (private, new):
        with atomic_file(path) as file:
            file.write(b"text")
    assert private.stat().st_mode & 0o777 == 0o600
    assert new.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("full", ["temporary files", "output"])
def test_atomic_file_error_names_full_disk(full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Free space decides which of the two disks is named."""
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


def test_atomic_file_to_symlink_writes_link_target(tmp_path: Path) -> None:
    """The link's target is written, and the link remains."""
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with atomic_file(tmp_path / "link") as file:
        file.write(b"text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_text() == "text"
