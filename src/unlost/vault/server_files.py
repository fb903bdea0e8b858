"""Selection of server files and dump commands, and their division into segments."""

import hashlib
import shlex
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from unlost.errors import InputError, UsageError
from unlost.report.format import parse_byte_size


@dataclass(frozen=True, slots=True)
class ServerFile:
    """A file, folder or link to keep.

    name: its path in the tar, with slashes. place: where its bytes are; None for folders and links.
    kind: `file`, `folder` or `link`. mode: the permission bits. mtime: nanoseconds since 1970. size: bytes.
    link: where a link leads.
    """

    name: str
    path: Path | None
    kind: str
    mode: int
    mtime: int
    size: int
    link_target: str = ""


CRAWLABLE = frozenset(
    {".avif", ".bmp", ".css", ".eot", ".flac", ".gif", ".htm", ".html", ".ico", ".jpeg", ".jpg", ".m4a", ".m4v", ".map",
     ".mp3", ".mp4", ".ogg", ".otf", ".pdf", ".png", ".svg", ".tif", ".tiff", ".ttf", ".wav", ".webm", ".webp", ".woff",
     ".woff2", ".xhtml"}
)  # fmt: skip
"""Endings of what archives keep as it is; the optimistic set leaves them to archives."""
INSTALLABLE = frozenset({"node_modules", "vendor", "venv", ".venv", "site-packages", "bower_components"})
"""Folders of what others publish; the optimistic set leaves them to these."""
GENERATED = frozenset({"__pycache__", ".git", ".hg", ".svn", ".cache", ".pytest_cache", ".mypy_cache", ".DS_Store"})
"""What programs make of other files, and histories: in no set."""
DUMP_FOLDER = "dump"


@dataclass(slots=True)
class FileSelection:
    """Files to keep, and how many were left out, by the reason."""

    files: list[ServerFile] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)

    def count_skipped(self, reason: str) -> None:
        """Count one that is not kept."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1


def select_files(paths: Iterable[Path], *, is_optimistic: bool = False) -> FileSelection:
    """Return the files at these paths, folders with all that is in them, under names that begin with the path's last.

    Links are kept as links. Raises UsageError for two paths with one name, OSError for what cannot be read.
    """
    choice = FileSelection()
    taken: set[str] = set()
    for path in paths:
        root = path.absolute().resolve() if path.name in {"", ".", ".."} else path
        if root.name in taken:
            raise UsageError(f"{path}: another path given has the name {root.name!r}, too: give the folder of both")
        taken.add(root.name)
        _walk_files(root, root.name, choice, is_optimistic=is_optimistic)
    if not choice.files:
        raise InputError("no files to keep: name files or folders of the server, or give --dump")
    return choice


def _walk_files(path: Path, name: str, selection: FileSelection, *, is_optimistic: bool) -> None:
    waiting = [(path, name)]
    while waiting:
        place, called = waiting.pop()
        found = place.lstat()
        mode, mtime = stat.S_IMODE(found.st_mode), found.st_mtime_ns
        if place.name in GENERATED:
            selection.count_skipped("made by programs")
        elif stat.S_ISLNK(found.st_mode):
            target = str(place.readlink())
            selection.files.append(ServerFile(called, None, "link", 0o777, mtime, 0, target))
        elif stat.S_ISDIR(found.st_mode):
            if is_optimistic and place.name in INSTALLABLE:
                selection.count_skipped("published by others")
                continue
            selection.files.append(ServerFile(called, None, "folder", mode, mtime, 0))
            waiting += [(each, f"{called}/{each.name}") for each in sorted(place.iterdir(), reverse=True)]
        elif not stat.S_ISREG(found.st_mode):
            selection.count_skipped("neither file, folder nor link")
        elif is_optimistic and place.suffix.lower() in CRAWLABLE:
            selection.count_skipped("archives get it from pages")
        else:
            selection.files.append(ServerFile(called, place, "file", mode, mtime, found.st_size))


def run_dump_commands(commands: Sequence[str], folder: Path) -> list[ServerFile]:
    """Run commands and return what they print as files, `dump/NAME`. commands: `NAME=COMMAND`, run without a shell.

    folder: where to keep what they print. The files have no time of their own, so that equal dumps are equal files.
    Raises UsageError for what is none, InputError if a command fails: half a database is none.
    """
    files: list[ServerFile] = []
    for text in commands:
        name, found, command = text.partition("=")
        if not found or not command.strip() or "/" in name or name in {"", ".", ".."}:
            raise UsageError(f"--dump {ascii(text)[:60]}: expected NAME=COMMAND, as in db.sql='sqlite3 site.db .dump'")
        place = folder / f"{len(files)}"
        with place.open("wb") as output:
            try:
                done = subprocess.run(  # noqa: S603  it is the user's own command
                    shlex.split(command), stdout=output, stderr=subprocess.PIPE, check=False, stdin=subprocess.DEVNULL
                )
            except (FileNotFoundError, PermissionError) as error:
                raise InputError(f"--dump {name}: {error.filename}: {error.strerror}") from None
            except ValueError as error:
                raise UsageError(f"--dump {name}: {error}") from None
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise InputError(f"--dump {name}: the command failed with {done.returncode}: {said[0][:200]}")
        if place.stat().st_size == 0:
            raise InputError(f"--dump {name}: the command printed nothing: a dump goes to its standard output")
        files.append(ServerFile(f"{DUMP_FOLDER}/{name}", place, "file", 0o600, 0, place.stat().st_size))
    return files


_DAY = 86_400 * 10**9
# Relative to the newest file, so that the same files are divided in the same way on every day.
_AGE_CLASSES = (("changes-often", 14 * _DAY), ("changes-sometimes", 180 * _DAY))
_OLDEST_CLASS = "changes-rarely"
WHOLE_SEGMENT = "all"


@dataclass(frozen=True, slots=True)
class SegmentDivision:
    """How files are divided. kind: `one`, `directory`, `size` or `changed`. size: bytes, for the third."""

    kind: str = "one"
    size: int = 0

    def __str__(self) -> str:
        """Return it as it is written."""
        return f"size:{self.size}" if self.kind == "size" else self.kind


def parse_division(text: str) -> SegmentDivision:
    """Return what `--segments` says. Raises UsageError.

    >>> division_of("size:1MB")
    Division(kind='size', size=1048576)
    """
    kind, _, size = text.partition(":")
    if kind in {"one", "directory", "changed"} and not size:
        return SegmentDivision(kind)
    if kind == "size" and size and (count := parse_byte_size(size)) > 0:
        return SegmentDivision(kind, count)
    raise UsageError(f"--segments {ascii(text)[:40]}: expected one, directory, size:1MB or changed")


def divide_into_segments(
    files: Iterable[ServerFile], division: SegmentDivision, previous: Mapping[str, str] | None = None
) -> dict[str, list[ServerFile]]:
    """Return files by the names of their segments.

    before: where each file was last time, by its name: with `changed` it stays there if it has not changed.
    """
    every = sorted(files, key=lambda file: file.name.encode("utf-8", "surrogateescape"))
    if division.kind == "one":
        return {WHOLE_SEGMENT: every}
    if division.kind == "size":
        return _divide_by_size(every, division.size)
    newest = max(file.mtime for file in every)
    found: dict[str, list[ServerFile]] = {}
    for file in every:
        name = (
            _directory_name(file)
            if division.kind == "directory"
            else (previous or {}).get(file.name) or _age_class(file, newest)
        )
        found.setdefault(name, []).append(file)
    return found


def _directory_name(file: ServerFile) -> str:
    """Return the folder below the first one: `site/lib` of `site/lib/a/b.py`; of what is directly in it, that one."""
    parts = file.name.split("/")
    depth = len(parts) if file.kind == "folder" else len(parts) - 1
    return "/".join(parts[: min(depth, 2)]) or "."


def _age_class(file: ServerFile, newest: int) -> str:
    return next((name for name, age in _AGE_CLASSES if newest - file.mtime <= age), _OLDEST_CLASS)


def _divide_by_size(files: list[ServerFile], size: int) -> dict[str, list[ServerFile]]:
    """Fill segments in the order of names; one that is longer is alone. A segment is named by its first."""
    found: dict[str, list[ServerFile]] = {}
    name, total = "", 0
    for file in files:
        if not name or total + file.size > size:
            name, total = f"from {file.name}", 0
            found[name] = []
        found[name].append(file)
        total += file.size
    return found


def segment_id(name: str) -> str:
    """Return what a segment is called in pages: nothing of its name is told there.

    >>> segment_id("all")
    '9b48bb5ad0d1c100'
    """
    return hashlib.sha256(f"unlost-vault-1 segment {name}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
