"""Which server files to keep: all that are given, or only what crawlers cannot get; and dumps of databases."""

import shlex
import stat
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from unlost.errors import InputError, UsageError
from unlost.vault.packing import ServerFile

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
