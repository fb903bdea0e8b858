"""Targets of all kinds: what holds for folders, zip and tar files alike."""

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

from tests.export.archive_readers import KINDS, unpacked
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


class Pipe(io.BytesIO):
    """A body that cannot be measured. then: what is raised at its end."""

    def __init__(self, body: bytes, then: BaseException | None = None, *, seekable: bool = False) -> None:
        super().__init__(body)
        self._then = then
        self._seekable = seekable

    def seekable(self) -> bool:
        """Return whether it can be measured after all."""
        return self._seekable

    def read(self, count: int | None = -1, /) -> bytes:
        """Give some more."""
        found = super().read(count)
        if not found and self._then is not None:
            raise self._then
        return found


def write(path: Path, files: dict[str, bytes] = FILES) -> None:
    """Write files to a target."""
    with open_target(path) as target:
        for each, body in files.items():
            target.add(each, io.BytesIO(body), DATE)


@EVERY_KIND
def test_what_was_added_is_there(tmp_path: Path, name: str) -> None:
    """All bytes, under their names, with their dates; nothing else is left in the folder."""
    write(tmp_path / name)
    assert unpacked(tmp_path / name) == {path: (body, DATE) for path, body in FILES.items()}
    assert [file.name for file in tmp_path.iterdir()] == [name]


@EVERY_KIND
def test_a_body_is_read_from_where_it_stands(tmp_path: Path, name: str) -> None:
    """Also one that cannot be measured."""
    with open_target(tmp_path / name) as target:
        begun = io.BytesIO(b"not this, this")
        begun.seek(len(b"not this, "))
        target.add("a", begun, DATE)
        target.add("b", Pipe(b"piped" * 50_000), DATE)
    found = unpacked(tmp_path / name)
    assert (found["a"][0], found["b"][0]) == (b"this", b"piped" * 50_000)


@EVERY_KIND
def test_it_has_its_name_only_when_it_is_whole(tmp_path: Path, name: str) -> None:
    """Until then there is something beside it whose name says what it is."""
    with open_target(tmp_path / name) as target:
        target.add("a", io.BytesIO(b"a"), DATE)
        (aside,) = tmp_path.iterdir()
        assert aside.name.startswith(f".{name}.")
        assert aside.name.endswith(TEMPORARY_SUFFIX)
    assert (tmp_path / name).exists()


@EVERY_KIND
@pytest.mark.parametrize("error", [RuntimeError("planted"), KeyboardInterrupt(), OSError(5, "planted")])
@pytest.mark.parametrize("where", ["between files", "in a body", "in a measured body"])
def test_after_an_error_nothing_is_left(tmp_path: Path, name: str, error: BaseException, where: str) -> None:
    """Wherever it happens: the error comes out, and the folder is empty."""

    def add_all() -> None:
        with open_target(tmp_path / name) as target:
            target.add("deep/a", io.BytesIO(b"a" * 3_000_000), DATE)
            if where != "between files":
                body = Pipe(b"b" * 200_000, error, seekable=where == "in a measured body")
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
@pytest.mark.parametrize("put", [_file, _full_folder, _link_to_nothing, _link_to_empty_folder, os.mkfifo])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_what_is_in_the_place_stays(tmp_path: Path, name: str, put: Callable[[Path], object], when: str) -> None:
    """Whatever it is, and also if it came while the target was written: the message says what to do."""
    path = tmp_path / name

    def add_all() -> None:
        with open_target(path) as target:
            target.add("a", io.BytesIO(b"a"), DATE)
            if when == "meanwhile":
                put(path)

    if when == "before":
        put(path)
    with pytest.raises(InputError, match="give another name"):
        add_all()
    beside = {file.name for file in tmp_path.iterdir()} - {name, "empty"}
    assert beside == set()
    assert path.is_symlink() or path.is_fifo() or (path / "old" if path.is_dir() else path).read_bytes() == b"old"
    assert not any((tmp_path / "empty").glob("*"))


def test_an_empty_folder_is_replaced(tmp_path: Path) -> None:
    """By a folder, which has its mode; not by a packed file."""
    for name in KINDS:
        (tmp_path / name).mkdir(mode=0o750)
    write(tmp_path / KINDS[0])
    assert (tmp_path / KINDS[0]).stat().st_mode & 0o777 == 0o750
    for name in KINDS[1:]:
        with pytest.raises(InputError, match="there already"):
            write(tmp_path / name)


@pytest.mark.parametrize("path", ["", ".", "..", "a/.."])
def test_a_place_must_have_a_name(path: str) -> None:
    """The current folder cannot be replaced while somebody is in it."""
    with pytest.raises(UsageError, match="expected the name of something new"):
        open_target(Path(path))


@EVERY_KIND
def test_the_folder_of_the_place_must_be_there(tmp_path: Path, name: str) -> None:
    """It is not made: a name that was mistyped would be."""
    with pytest.raises(InputError, match="no such folder"):
        write(tmp_path / "missing" / name)


BAD = [
    "", "/", "/etc/passwd", "..", "../a", "a/../b", "a/..", "./a", "a/.", "a//b", "a/", "\\a", "a\\..\\b", "a\0b",
    "C:", "c:/a", "c:a", "//host/a", "\ud800", "x" * 5000,
]  # fmt: skip


@EVERY_KIND
@pytest.mark.parametrize("path", BAD, ids=ascii)
def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, name: str, path: str) -> None:
    """And nothing is written of it; what is added next is."""
    with open_target(tmp_path / name) as target:
        with pytest.raises(UsageError, match="no path of a file in an export"):
            target.add(path, io.BytesIO(b"bad"), DATE)
        target.add("good", io.BytesIO(b"good"), DATE)
    assert unpacked(tmp_path / name) == {"good": (b"good", DATE)}
    assert [file.name for file in tmp_path.iterdir()] == [name]


@EVERY_KIND
@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("a", "a", "written before"),
        ("a", "a/b", "file stands"),
        ("a/b", "a", "file stands"),
        ("a/b", "a/b/c/d", "file"),
    ],
)
def test_each_path_is_one_file(tmp_path: Path, name: str, first: str, second: str, said: str) -> None:
    """A file that was written stays as it is; no file is a folder."""
    with open_target(tmp_path / name) as target:
        target.add(first, io.BytesIO(b"first"), DATE)
        with pytest.raises(UsageError, match=said):
            target.add(second, io.BytesIO(b"second"), DATE)
    assert unpacked(tmp_path / name) == {first: (b"first", DATE)}


@settings(max_examples=50)  # each waits for the disk
@given(
    names=st.lists(
        st.lists(st.sampled_from(["a", "b", "..", ".", "", "\\", "c:", "\u00e9", "\n"]), min_size=1, max_size=4).map(
            "/".join
        ),
        max_size=6,
    )
)
def test_any_paths_stay_inside(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each kind of target takes the same paths and refuses the same, and nothing appears beside it."""
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
        assert unpacked(folder / kind) == {path: (path.encode(), DATE) for path in taken[-1]}
    assert taken[0] == taken[1] == taken[2]
    assert {file.name for file in folder.iterdir()} == set(KINDS)


@pytest.mark.parametrize("planted", ["deep", "deep/page.html"])
def test_a_link_that_appeared_in_the_folder_is_not_followed(tmp_path: Path, planted: str) -> None:
    """Neither in the place of a folder nor in that of a file: what it leads to stays as it is."""
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
def test_the_folder_may_be_renamed_meanwhile(tmp_path: Path, name: str) -> None:
    """All goes to the folder that was there at the beginning, and nothing to what has its name now."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    with open_target(here / name) as target:
        here.rename(there)
        here.mkdir()
        target.add("a", io.BytesIO(b"a"), DATE)
    assert list(here.iterdir()) == []
    assert unpacked(there / name) == {"a": (b"a", DATE)}


@pytest.mark.parametrize("name", KINDS[1:])
def test_the_same_files_make_the_same_bytes(tmp_path: Path, name: str) -> None:
    """Whatever the file is called, and whatever the mode of new files is."""
    write(tmp_path / name)
    before = os.umask(0o077)
    try:
        write(tmp_path / f"other-{name}")
    finally:
        os.umask(before)
    assert (tmp_path / name).read_bytes() == (tmp_path / f"other-{name}").read_bytes()


@EVERY_KIND
def test_a_date_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    """It is an error, not some other date."""
    with pytest.raises(DateError), open_target(tmp_path / name) as target:
        target.add("a", io.BytesIO(b"a"), "20110230000000")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", KINDS[1:])
def test_an_error_cannot_be_passed_over(tmp_path: Path, name: str) -> None:
    """Behind half a file nothing can follow: whoever goes on has no target in the end."""

    def add_all() -> None:
        with open_target(tmp_path / name) as target, pytest.raises(OSError, match="planted"):
            target.add("a", Pipe(b"a", OSError(5, "planted")), DATE)

    with pytest.raises(RuntimeError, match="not written whole"):
        add_all()
    assert list(tmp_path.iterdir()) == []


@EVERY_KIND
def test_a_large_body_takes_little_memory(tmp_path: Path, name: str) -> None:
    """64 MB pass through some pieces of it."""
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
def test_other_packed_files_are_not_written(name: str) -> None:
    """Somebody who wants one would find a folder."""
    with pytest.raises(UsageError, match=r"\.zip, \.tar\.gz, \.tgz"):
        open_target(Path(name))


def test_the_ending_tells_the_kind(tmp_path: Path) -> None:
    """In any letter case; a folder may have dots in its name, as hosts have."""
    for name in ("A.ZIP", "a.tgz", "a.Tar.Gz", "lost.com.br"):
        write(tmp_path / name)
    heads = [(tmp_path / name).read_bytes()[:2] for name in ("A.ZIP", "a.tgz", "a.Tar.Gz")]
    assert heads == [b"PK", b"\x1f\x8b", b"\x1f\x8b"]
    assert (tmp_path / "lost.com.br").is_dir()


INTERRUPTED = """
import io, sys
from pathlib import Path
from unlost.export.targets import open_target
with open_target(Path(sys.argv[1])) as target:
    for number in range(10**9):
        target.add(f"{number // 100}/{number}", io.BytesIO(b"x" * 1000), "20110101000000")
        if number == 300:
            print("ready", flush=True)
"""


@EVERY_KIND
def test_ctrl_c_leaves_nothing(tmp_path: Path, name: str) -> None:
    """A process that is interrupted removes what it had begun."""
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in process.communicate(timeout=30)[1]
    assert list(tmp_path.iterdir()) == []
