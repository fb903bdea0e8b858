"""Tests of folders, zip and tar files as export targets."""

import io
import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.export.target_readers import KINDS, read_target
from unlost.errors import DateError, InputError, UsageError
from unlost.export import TEMPORARY_SUFFIX, open_target

DATE = "20110203040506"
FILES = {
    "index.html": b"<p>front",
    "deep/er/page.html": b"<p>deep" * 1000,
    "deep/b c.gif": bytes(range(256)) * 300,
    "gr\u00fc\u00dfe/\u65e5\u672c.txt": b"",
    "long/" + "x" * 200 + ".css": b"a{}",
}
EVERY_KIND = pytest.mark.parametrize("name", KINDS)


class UnseekableBody(io.BytesIO):
    """A body of unknown size. then: raised at its end."""

    def __init__(self, body: bytes, then: BaseException | None = None, *, seekable: bool = False) -> None:
        super().__init__(body)
        self._then = then
        self._seekable = seekable

    def seekable(self) -> bool:
        """Return whether the size is known after all."""
        return self._seekable

    def read(self, count: int | None = -1, /) -> bytes:
        """Return more bytes."""
        found = super().read(count)
        if not found and self._then is not None:
            raise self._then
        return found


def write_target(path: Path, files: dict[str, bytes] = FILES) -> None:
    """Write files to a target."""
    with open_target(path) as target:
        for each, body in files.items():
            target.add(each, io.BytesIO(body), DATE)


@EVERY_KIND
def test_added_files_are_written(tmp_path: Path, name: str) -> None:
    """All files have their names, bytes and dates, and nothing else is left in the folder."""
    write_target(tmp_path / name)
    assert read_target(tmp_path / name) == {path: (body, DATE) for path, body in FILES.items()}
    assert [file.name for file in tmp_path.iterdir()] == [name]


@EVERY_KIND
def test_body_is_read_from_its_position(tmp_path: Path, name: str) -> None:
    """This also holds for bodies of unknown size."""
    with open_target(tmp_path / name) as target:
        start = io.BytesIO(b"not this, this")
        start.seek(len(b"not this, "))
        target.add("a", start, DATE)
        target.add("b", UnseekableBody(b"piped" * 50_000), DATE)
    found = read_target(tmp_path / name)
    assert (found["a"][0], found["b"][0]) == (b"this", b"piped" * 50_000)


@EVERY_KIND
def test_target_has_a_temporary_name_until_complete(tmp_path: Path, name: str) -> None:
    """The temporary name shows what it is."""
    with open_target(tmp_path / name) as target:
        target.add("a", io.BytesIO(b"a"), DATE)
        (temporary,) = tmp_path.iterdir()
        assert temporary.name.startswith(f".{name}.")
        assert temporary.name.endswith(TEMPORARY_SUFFIX)
    assert (tmp_path / name).exists()


@EVERY_KIND
@pytest.mark.parametrize("error", [RuntimeError("planted"), KeyboardInterrupt(), OSError(5, "planted")])
@pytest.mark.parametrize("where", ["between files", "in a body", "in a measured body"])
def test_error_leaves_no_files(tmp_path: Path, name: str, error: BaseException, where: str) -> None:
    """The error is raised, and the folder is empty."""

    def add_all() -> None:
        with open_target(tmp_path / name) as target:
            target.add("deep/a", io.BytesIO(b"a" * 3_000_000), DATE)
            if where != "between files":
                body = UnseekableBody(b"b" * 200_000, error, seekable=where == "in a measured body")
                target.add("deep/b", body, DATE)
            raise error

    with pytest.raises(type(error)):
        add_all()
    assert list(tmp_path.iterdir()) == []


def _file(path: Path) -> None:
    path.write_bytes(b"old")


def _full_folder(path: Path) -> None:
    path.mkdir()
    (path / "old").write_bytes(b"old")


def _link_to_nothing(path: Path) -> None:
    path.symlink_to("nowhere")


def _link_to_empty_folder(path: Path) -> None:
    (path.parent / "empty").mkdir()
    path.symlink_to("empty")


@EVERY_KIND
@pytest.mark.parametrize("create", [_file, _full_folder, _link_to_nothing, _link_to_empty_folder, os.mkfifo])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_existing_file_is_not_replaced(tmp_path: Path, name: str, create: Callable[[Path], object], when: str) -> None:
    """Also if it appears during writing; the error says what to do."""
    path = tmp_path / name

    def add_all() -> None:
        with open_target(path) as target:
            target.add("a", io.BytesIO(b"a"), DATE)
            if when == "meanwhile":
                create(path)

    if when == "before":
        create(path)
    with pytest.raises(InputError, match="give another name"):
        add_all()
    others = {file.name for file in tmp_path.iterdir()} - {name, "empty"}
    assert others == set()
    assert path.is_symlink() or path.is_fifo() or (path / "old" if path.is_dir() else path).read_bytes() == b"old"
    assert not any((tmp_path / "empty").glob("*"))


def test_empty_folder_is_replaced_by_a_folder_only(tmp_path: Path) -> None:
    """The new folder has the mode of the old one."""
    for name in KINDS:
        (tmp_path / name).mkdir(mode=0o750)
    write_target(tmp_path / KINDS[0])
    assert (tmp_path / KINDS[0]).stat().st_mode & 0o777 == 0o750
    for name in KINDS[1:]:
        with pytest.raises(InputError, match="there already"):
            write_target(tmp_path / name)


@pytest.mark.parametrize("path", ["", ".", "..", "a/.."])
def test_target_needs_a_name(path: str) -> None:
    """The current folder cannot be replaced."""
    with pytest.raises(UsageError, match="expected the name of something new"):
        open_target(Path(path))


@EVERY_KIND
def test_missing_parent_folder_is_an_error(tmp_path: Path, name: str) -> None:
    """It is not created, since the name may be mistyped."""
    with pytest.raises(InputError, match="no such folder"):
        write_target(tmp_path / "missing" / name)


BAD = [
    "", "/", "/etc/passwd", "..", "../a", "a/../b", "a/..", "./a", "a/.", "a//b", "a/", "\\a", "a\\..\\b", "a\0b",
    "C:", "c:/a", "c:a", "//host/a", "\ud800", "x" * 5000,
]  # fmt: skip


@EVERY_KIND
@pytest.mark.parametrize("path", BAD, ids=ascii)
def test_invalid_path_is_refused(tmp_path: Path, name: str, path: str) -> None:
    """Nothing is written for it; later files are written."""
    with open_target(tmp_path / name) as target:
        with pytest.raises(UsageError, match="no path of a file in an export"):
            target.add(path, io.BytesIO(b"bad"), DATE)
        target.add("good", io.BytesIO(b"good"), DATE)
    assert read_target(tmp_path / name) == {"good": (b"good", DATE)}
    assert [file.name for file in tmp_path.iterdir()] == [name]


@EVERY_KIND
@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("a", "a", "written before"),
        ("a", "a/b", "file stands"),
        ("a/b", "a", "file stands"),
        ("a/b", "a/b/c/d", "file"),
    ],
)
def test_conflicting_paths_are_refused(tmp_path: Path, name: str, first: str, second: str, message: str) -> None:
    """A written file is unchanged, and no file is a folder."""
    with open_target(tmp_path / name) as target:
        target.add(first, io.BytesIO(b"first"), DATE)
        with pytest.raises(UsageError, match=message):
            target.add(second, io.BytesIO(b"second"), DATE)
    assert read_target(tmp_path / name) == {first: (b"first", DATE)}


@settings(max_examples=50)  # each waits for the disk
@given(
    names=st.lists(
        st.lists(st.sampled_from(["a", "b", "..", ".", "", "\\", "c:", "\u00e9", "\n"]), min_size=1, max_size=4).map(
            "/".join
        ),
        max_size=6,
    )
)
def test_all_targets_accept_the_same_paths(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """All kinds accept and refuse the same paths, and nothing is written outside."""
    folder = tmp_path_factory.mktemp("any")
    taken: list[set[str]] = []
    for kind in KINDS:
        taken.append(set())
        with open_target(folder / kind) as target:
            for path in names:
                try:
                    target.add(path, io.BytesIO(path.encode()), DATE)
                    taken[-1].add(path)
                except UsageError:
                    pass
        assert read_target(folder / kind) == {path: (path.encode(), DATE) for path in taken[-1]}
    assert taken[0] == taken[1] == taken[2]
    assert {file.name for file in folder.iterdir()} == set(KINDS)


@pytest.mark.parametrize("planted", ["deep", "deep/page.html"])
def test_symbolic_link_in_the_target_is_not_followed(tmp_path: Path, planted: str) -> None:
    """The target of the link is unchanged."""
    outside = tmp_path / "outside"
    (outside / "x").mkdir(parents=True)
    (outside / "x" / "page.html").write_bytes(b"mine")

    def add_all() -> None:
        with open_target(tmp_path / "site") as target:
            target.add("deep/other.html", io.BytesIO(b"other"), DATE)
            (root,) = tmp_path.glob(f"*{TEMPORARY_SUFFIX}")
            if planted == "deep":
                (root / "deep" / "other.html").unlink()
                (root / "deep").rmdir()
                (root / "deep").symlink_to(outside / "x")
            else:
                (root / planted).symlink_to(outside / "x" / "page.html")
            target.add("deep/new.html" if planted == "deep" else planted, io.BytesIO(b"theirs"), DATE)

    with pytest.raises(UsageError):
        add_all()
    assert (outside / "x" / "page.html").read_bytes() == b"mine"
    assert [file.name for file in (outside / "x").iterdir()] == ["page.html"]
    assert [file.name for file in tmp_path.iterdir()] == ["outside"]


@EVERY_KIND
def test_parent_folder_may_be_renamed_during_writing(tmp_path: Path, name: str) -> None:
    """All files go to the original folder."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    with open_target(here / name) as target:
        here.rename(there)
        here.mkdir()
        target.add("a", io.BytesIO(b"a"), DATE)
    assert list(here.iterdir()) == []
    assert read_target(there / name) == {"a": (b"a", DATE)}


@pytest.mark.parametrize("name", KINDS[1:])
def test_packed_target_is_deterministic(tmp_path: Path, name: str) -> None:
    """Name and umask do not matter."""
    write_target(tmp_path / name)
    before = os.umask(0o077)
    try:
        write_target(tmp_path / f"other-{name}")
    finally:
        os.umask(before)
    assert (tmp_path / name).read_bytes() == (tmp_path / f"other-{name}").read_bytes()


@EVERY_KIND
def test_invalid_date_is_refused(tmp_path: Path, name: str) -> None:
    """It is an error and not replaced."""
    with pytest.raises(DateError), open_target(tmp_path / name) as target:
        target.add("a", io.BytesIO(b"a"), "20110230000000")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", KINDS[1:])
def test_suppressed_error_invalidates_the_target(tmp_path: Path, name: str) -> None:
    """After a half-written file the target is not completed."""

    def add_all() -> None:
        with open_target(tmp_path / name) as target, pytest.raises(OSError, match="planted"):
            target.add("a", UnseekableBody(b"a", OSError(5, "planted")), DATE)

    with pytest.raises(RuntimeError, match="not written whole"):
        add_all()
    assert list(tmp_path.iterdir()) == []


@EVERY_KIND
def test_large_body_uses_bounded_memory(tmp_path: Path, name: str) -> None:
    """64 MB are written with less than 4 MB."""
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(64 << 20)
    tracemalloc.start()
    try:
        with open_target(tmp_path / name) as target, large.open("rb") as body:
            target.add("a", body, DATE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


@pytest.mark.parametrize("name", ["a.rar", "A.7Z", "a.tar", "a.tar.bz2", "a.warc", "a.gz", "a.tar.xz", "a.tar.zst"])
def test_unsupported_archive_formats_are_refused(name: str) -> None:
    """They are not written as folders."""
    with pytest.raises(UsageError, match=r"\.zip, \.tar\.gz, \.tgz"):
        open_target(Path(name))


def test_extension_determines_the_kind(tmp_path: Path) -> None:
    """In any letter case; folder names may have dots."""
    for name in ("A.ZIP", "a.tgz", "a.Tar.Gz", "lost.com.br"):
        write_target(tmp_path / name)
    heads = [(tmp_path / name).read_bytes()[:2] for name in ("A.ZIP", "a.tgz", "a.Tar.Gz")]
    assert heads == [b"PK", b"\x1f\x8b", b"\x1f\x8b"]
    assert (tmp_path / "lost.com.br").is_dir()


INTERRUPTED = """
import io, sys
from pathlib import Path
from unlost.export import open_target
with open_target(Path(sys.argv[1])) as target:
    for number in range(10**9):
        target.add(f"{number // 100}/{number}", io.BytesIO(b"x" * 1000), "20110101000000")
        if number == 300:
            print("ready", flush=True)
"""


@EVERY_KIND
def test_interrupted_process_leaves_no_files(tmp_path: Path, name: str) -> None:
    """The interrupted process removes its temporary files."""
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in process.communicate(timeout=30)[1]
    assert list(tmp_path.iterdir()) == []
