"""Selection of server files, output of dump commands, and division into segments."""

import hashlib
import shlex
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from unlost.errors import InputError, UsageError
from unlost.report.format import parse_byte_size

CRAWLABLE = frozenset(
    {".avif", ".bmp", ".css", ".eot", ".flac", ".gif", ".htm", ".html", ".ico", ".jpeg", ".jpg", ".m4a", ".m4v", ".map",
     ".mp3", ".mp4", ".ogg", ".otf", ".pdf", ".png", ".svg", ".tif", ".tiff", ".ttf", ".wav", ".webm", ".webp", ".woff",
     ".woff2", ".xhtml"}
)  # fmt: skip
"""Extensions of files that archives preserve unchanged. The optimistic selection skips them."""
INSTALLABLE = frozenset({"node_modules", "vendor", "venv", ".venv", "site-packages", "bower_components"})
"""Folders of third-party packages, which their publishers preserve. The optimistic selection skips them."""
GENERATED = frozenset({"__pycache__", ".git", ".hg", ".svn", ".cache", ".pytest_cache", ".mypy_cache", ".DS_Store"})
"""Caches and version control folders; never selected."""
DUMP_FOLDER = "dump"
_DAY = 86_400 * 10**9
# Relative to the newest file, so that the division does not depend on the current date.
_AGE_CLASSES = (("changes-often", 14 * _DAY), ("changes-sometimes", 180 * _DAY))
_OLDEST_CLASS = "changes-rarely"
WHOLE_SEGMENT = "all"


@dataclass(frozen=True, slots=True)
class ServerFile:
    """A file, folder or symbolic link to pack.

    Attributes:
        name: Path in the tar archive, with slashes.
        path: File with the content; None for folders and links.
        kind: `file`, `folder` or `link`.
        mode: Permission bits.
        mtime: Nanoseconds since 1970.
        size: Bytes.
        link_target: Target of a link.
    """

    name: str
    path: Path | None
    kind: str
    mode: int
    mtime: int
    size: int
    link_target: str = ""


@dataclass(slots=True)
class FileSelection:
    """Selected files.

    Attributes:
        files: The files.
        skipped: Number of skipped files by reason.
    """

    files: list[ServerFile] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)

    def count_skipped(self, reason: str) -> None:
        """Count a skipped file."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1


def select_files(paths: Iterable[Path], *, is_optimistic: bool = False) -> FileSelection:
    """Select the files at these paths, folders recursively. Names begin with the last component of the path.

    Symbolic links are not followed.

    Args:
        paths: Files and folders.
        is_optimistic: Whether to skip files that archives or package publishers preserve.

    Raises:
        UsageError: Two paths have the same last component.
        InputError: No file is selected.
        OSError: A file cannot be read.
    """
    selection = FileSelection()
    root_names: set[str] = set()
    for path in paths:
        root = path.absolute().resolve() if path.name in {"", ".", ".."} else path
        if root.name in root_names:
            raise UsageError(f"{path}: another path given has the name {root.name!r}, too: give the folder of both")
        root_names.add(root.name)
        _walk_files(root, root.name, selection, is_optimistic=is_optimistic)
    if not selection.files:
        raise InputError("no files to keep: name files or folders of the server, or give --dump")
    return selection


def _walk_files(path: Path, name: str, selection: FileSelection, *, is_optimistic: bool) -> None:
    pending = [(path, name)]
    while pending:
        current, current_name = pending.pop()
        file_stat = current.lstat()
        mode, mtime = stat.S_IMODE(file_stat.st_mode), file_stat.st_mtime_ns
        if current.name in GENERATED:
            selection.count_skipped("made by programs")
        elif stat.S_ISLNK(file_stat.st_mode):
            target = str(current.readlink())
            selection.files.append(ServerFile(current_name, None, "link", 0o777, mtime, 0, target))
        elif stat.S_ISDIR(file_stat.st_mode):
            if is_optimistic and current.name in INSTALLABLE:
                selection.count_skipped("published by others")
                continue
            selection.files.append(ServerFile(current_name, None, "folder", mode, mtime, 0))
            pending += [(each, f"{current_name}/{each.name}") for each in sorted(current.iterdir(), reverse=True)]
        elif not stat.S_ISREG(file_stat.st_mode):
            selection.count_skipped("neither file, folder nor link")
        elif is_optimistic and current.suffix.lower() in CRAWLABLE:
            selection.count_skipped("archives get it from pages")
        else:
            selection.files.append(ServerFile(current_name, current, "file", mode, mtime, file_stat.st_size))


def run_dump_commands(commands: Sequence[str], folder: Path) -> list[ServerFile]:
    """Run commands and return their output as files `dump/NAME`.

    The files have no modification time, so that equal dumps give equal archives.

    Args:
        commands: `NAME=COMMAND`, run without a shell.
        folder: Folder for the output.

    Raises:
        UsageError: A command is not of this form.
        InputError: A command fails or prints nothing, since an incomplete dump is of no use.
    """
    files: list[ServerFile] = []
    for text in commands:
        name, separator, command = text.partition("=")
        if not separator or not command.strip() or "/" in name or name in {"", ".", ".."}:
            raise UsageError(f"--dump {ascii(text)[:60]}: expected NAME=COMMAND, as in db.sql='sqlite3 site.db .dump'")
        file = folder / f"{len(files)}"
        with file.open("wb") as output:
            try:
                process = subprocess.run(  # noqa: S603  it is the user's own command
                    shlex.split(command), stdout=output, stderr=subprocess.PIPE, check=False, stdin=subprocess.DEVNULL
                )
            except (FileNotFoundError, PermissionError) as error:
                raise InputError(f"--dump {name}: {error.filename}: {error.strerror}") from None
            except ValueError as error:
                raise UsageError(f"--dump {name}: {error}") from None
        if process.returncode != 0:
            last_error = process.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise InputError(f"--dump {name}: the command failed with {process.returncode}: {last_error[0][:200]}")
        if file.stat().st_size == 0:
            raise InputError(f"--dump {name}: the command printed nothing: a dump goes to its standard output")
        files.append(ServerFile(f"{DUMP_FOLDER}/{name}", file, "file", 0o600, 0, file.stat().st_size))
    return files


@dataclass(frozen=True, slots=True)
class SegmentDivision:
    """How files are divided into segments.

    Attributes:
        kind: `one`, `directory`, `size` or `changed`.
        size: Size of a segment in bytes, for `size`.
    """

    kind: str = "one"
    size: int = 0

    def __str__(self) -> str:
        """Return the form that `parse_division` reads."""
        return f"size:{self.size}" if self.kind == "size" else self.kind


def parse_division(text: str) -> SegmentDivision:
    """Parse the value of `--segments`. Raises UsageError.

    >>> parse_division("size:1MB")
    SegmentDivision(kind='size', size=1048576)
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
    """Return the files of each segment, by the segment's name.

    Args:
        files: The files.
        division: How to divide them.
        previous: Previous segment of unchanged files. With the division `changed`, they remain in it.
    """
    sorted_files = sorted(files, key=lambda file: file.name.encode("utf-8", "surrogateescape"))
    if division.kind == "one":
        return {WHOLE_SEGMENT: sorted_files}
    if division.kind == "size":
        return _divide_by_size(sorted_files, division.size)
    newest = max(file.mtime for file in sorted_files)
    segments: dict[str, list[ServerFile]] = {}
    for file in sorted_files:
        name = (
            _directory_name(file)
            if division.kind == "directory"
            else (previous or {}).get(file.name) or _age_class(file, newest)
        )
        segments.setdefault(name, []).append(file)
    return segments


def _directory_name(file: ServerFile) -> str:
    """Return the first two components of a file's folder: `site/lib` for `site/lib/a/b.py`, `site` for `site/a.py`."""
    parts = file.name.split("/")
    depth = len(parts) if file.kind == "folder" else len(parts) - 1
    return "/".join(parts[: min(depth, 2)]) or "."


def _age_class(file: ServerFile, newest: int) -> str:
    return next((name for name, age in _AGE_CLASSES if newest - file.mtime <= age), _OLDEST_CLASS)


def _divide_by_size(files: list[ServerFile], size: int) -> dict[str, list[ServerFile]]:
    """Fill segments in the order of names; a larger file gets its own. Segments are named after their first file."""
    segments: dict[str, list[ServerFile]] = {}
    name, total = "", 0
    for file in files:
        if not name or total + file.size > size:
            name, total = f"from {file.name}", 0
            segments[name] = []
        segments[name].append(file)
        total += file.size
    return segments


def segment_id(name: str) -> str:
    """Return the id of a segment in pages. It does not reveal the segment's name.

    >>> segment_id("all")
    '9b48bb5ad0d1c100'
    """
    return hashlib.sha256(f"unlost-vault-1 segment {name}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
