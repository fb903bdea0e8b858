"""Files that appear whole, and sorting in bounded memory."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.formats.output import whole_file
from unlost.formats.sorting import sorted_lines


def test_a_file_gets_its_name_at_the_end(tmp_path: Path) -> None:
    """Until then, what stood there stays."""
    target = tmp_path / "a"
    target.write_text("old")
    with whole_file(target) as file:
        file.write(b"new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    """Neither half a file nor its temporary name, also when it is interrupted."""

    def interrupted() -> None:
        with whole_file(tmp_path / "a") as file:
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
    with whole_file(pipe) as file:
        file.write(b"text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_link_is_followed(tmp_path: Path) -> None:
    """What it leads to is written anew; the link stays one."""
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with whole_file(tmp_path / "link") as file:
        file.write(b"text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_text() == "text"


@given(st.lists(st.binary(max_size=5).map(lambda text: text.replace(b"\n", b"") + b"\n")), st.integers(1, 40))
def test_lines_come_sorted_and_once(lines: list[bytes], run_bytes: int) -> None:
    """However many runs there were."""
    assert list(sorted_lines(lines, run_bytes)) == sorted(set(lines))
