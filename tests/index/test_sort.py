"""Lines are sorted in bounded memory."""

import resource
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.index import sort_lines


def test_sort_error_on_full_disk_names_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the disk of the temporary files, not that of the output."""
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda prefix: Path("/dev/full").open("r+b"))  # noqa: ARG005, SIM115
    with pytest.raises(OSError, match="No space left") as caught:
        list(sort_lines([b"a\n"] * 9, 1))
    assert caught.value.filename == tempfile.gettempdir()


@given(st.lists(st.binary(max_size=5).map(lambda text: text.replace(b"\n", b"") + b"\n")), st.integers(1, 40))
def test_sort_lines_yields_sorted_unique_lines(lines: list[bytes], run_bytes: int) -> None:
    """The number of sorted runs does not matter."""
    assert list(sort_lines(lines, run_bytes)) == sorted(set(lines))


def test_sort_lines_with_many_runs_respects_open_file_limit() -> None:
    """10,000 runs are merged with at most 256 open files."""
    lines = [b"%04d\n" % (number * 7 % 10_000) for number in range(10_000)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        assert list(sort_lines(lines, 1)) == sorted(lines)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_sort_lines_memory_limit_counts_python_overhead() -> None:
    """Short lines need no more memory than long ones."""
    tracemalloc.start()
    next(sort_lines((b"%07d\n" % number for number in range(200_000)), 1 << 20))
    assert tracemalloc.get_traced_memory()[1] < 3 << 20
    tracemalloc.stop()
