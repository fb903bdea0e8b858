"""Every file and folder that a command reads, missing, of the wrong kind or unreadable.

`python -m tests.cli.unreadable_paths FOLDER` tries all of them in one process without the rights of root, and prints
the results as JSON.
"""

import ctypes
import gzip
import io
import json
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from scripts.cli_reference import walk_commands

from unlost.cli import ReadablePath, app, run

ARGUMENTS = {
    "archives list": "",
    "archives reset": "--all",
    "archives show": "first",
    "archives test": "",
    "check": "{url}",
    "compare": "{original} {recovered}",
    "demo": "--no-wait",
    "evaluate": "--index {index} --queries {queries}",
    "export": "{recovery} -o {new}",
    "filter add": "{file} {files} -o {new}",
    "filter build": "{files} -o {new}",
    "filter check": "{file}",
    "filter compact": "{file} --index {index} -o {new}",
    "filter lookup": "{filter_file} {url}",
    "harvest": "{url} -o {new}",
    "index build": "{files} -o {new}.cdxj",
    "index check": "{file}",
    "index convert": "{file} -o {new}.cdxj",
    "index show": "{file}",
    "map build": "{files} -o {new}",
    "map check": "{file}",
    "map compact": "{file} -o {new}",
    "map diff": "{before} {after}",
    "map exclude": "{file} --misses {misses} -o {new}",
    "map lookup": "{map_file} {url}",
    "map merge": "{files} -o {new}",
    "map sample": "--archive first --uris {uris} -o {new}",
    "overlap": "--urls {urls} --state {new}",
    "profile build": "{inputs} --policy H3P1 -o {new}",
    "profile check": "{file}",
    "profile lookup": "{file} {url}",
    "profile merge": "{profiles} -o {new}",
    "profile to-map": "{profiles} -o {new}",
    "recover": "{url} -o {new}",
    "jobs submit": "{url} --mail me@a.example --server http://127.0.0.1:1",
    "refresh learn": "{log}",
    "report": "{recoveries}",
    "serve": "--port 0",
    "stats index": "{files}",
    "stats logs": "{files}",
    "synth index": "--lines 1 -o {new}",
    "synth queries": "--index {index} --count 1 -o {new}",
    "timegate": "{url}",
    "timemap": "{url}",
    "uri keys": "{url}",
    "vault advance": "--vault {vault}",
    "vault inject": "{site} --vault {vault}",
    "vault pack": "{files} --pages {pages} --vault {new}",
    "vault plan": "{files} --pages {pages}",
    "vault recover": "{sources} -o {new}",
    "vault remove": "{site}",
    "vault status": "--vault {vault}",
    "vault verify": "{sources} --vault {vault}",
    "watch": "{url} --report --history {history}",
    "worker": "",
}
"""Arguments of each command: names in braces are inputs, {new} is the output."""

READ_AS_TEXT = {
    "evaluate archive": "file",
    "evaluate index": "file",
    "filter build files": "file",
    "index build files": "file",
    "map build files": "file",
    "map compact file": "file",
    "map merge files": "file",
    "profile build inputs": "file",
    "stats index files": "file",
    "vault advance vault": "folder",
    "vault inject vault": "folder",
    "vault pack pages": "place",
    "vault plan pages": "place",
    "vault recover sources": "place",
    "vault status vault": "folder",
    "vault verify vault": "folder",
    "watch history": "missing",
}
"""Inputs whose type does not say so: URLs are accepted as well, or the file may be new."""

NOT_READ = {
    "check": "html save", "compare": "html", "demo": "keep", "evaluate": "output", "export": "output",
    "filter add": "output", "filter build": "output", "filter compact": "output", "harvest": "cdxj output",
    "index build": "output", "index convert": "output", "jobs clock": "jobs", "jobs token": "jobs",
    "map build": "output",
    "map compact": "output trace with_filter", "map exclude": "output", "map merge": "output",
    "map sample": "log output state", "overlap": "html plot state svg", "profile build": "output",
    "profile merge": "output", "profile to-map": "output", "recover": "output stop_file summary",
    "refresh learn": "output plot", "refresh simulate": "write", "report": "html output plot",
    "serve": "jobs log_upstream", "stats index": "output", "stats logs": "output", "synth index": "output",
    "synth queries": "output", "vault inject": "output", "vault pack": "crawl vault", "vault plan": "crawl",
    "vault recover": "output recovery", "vault status": "crawl", "watch": "html plot", "worker": "jobs",
}  # fmt: skip
"""Outputs, and files that a command waits for."""

SPELLINGS = {"evaluate archive": "a={}"}
"""Arguments that have more than the path."""

_PLACES = ("FILE", "DIR", "SOURCE", "INDEX", "FOLDER", "PATH", "WARC", "LOG")
_REQUIRED_WITH = {"report": {"ranks": "--factors", "backlinks": "--factors", "original": "--factors"},
         "map compact": {"queries": "--budget 9"}, "serve": {"smtp_ca": "--jobs {new}"},
         "harvest": {"warcs": "--history {ok}"}, "evaluate": {"archive": ""}}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PathParameter:
    """A file or folder that a command reads.

    Attributes:
        kind: `file`, `folder`, `place` (either) or `missing` (only a missing one is an error).
    """

    command: str
    name: str
    kind: str
    flag: str

    def cases(self) -> list[str]:
        """Return the cases that are errors."""
        more = {"file": ["folder", "forbidden"], "folder": ["file", "forbidden"], "place": ["forbidden"]}
        return ["missing", *more.get(self.kind, [])]

    def arguments(self, bad: str, places: dict[str, str]) -> list[str]:
        """Return the arguments with a bad path for this parameter and sound ones for the others."""
        words = ARGUMENTS[self.command]
        bad = SPELLINGS.get(f"{self.command} {self.name}", "{}").format(bad)
        if f"{{{self.name}}}" not in words:
            words = f"{words} {_REQUIRED_WITH.get(self.command, {}).get(self.name, '')} {self.flag} {{{self.name}}}"
        if self.command == "evaluate" and self.name == "archive":
            words = words.replace("--index {index}", "")
        filled = words.format_map(_Filled({**places, self.name: bad}))
        return [*self.command.split(), *filled.split()]


class _Filled(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return self["ok"]


def path_parameters() -> Iterator[PathParameter]:
    """Yield all paths that commands read, from their definitions. Raises KeyError for one in no table."""
    for title, context in walk_commands(app, ()):
        command = title.removeprefix("unlost").strip()
        for param in context.command.params:
            name = str(param.name)
            metavar = param.make_metavar(context) if not isinstance(param.type, click.Path) else "PATH"
            flag = "" if isinstance(param, click.Argument) else max(param.opts, key=len)
            kind = READ_AS_TEXT.get(f"{command} {name}")
            if isinstance(param.type, ReadablePath):
                both = param.type.file_okay and param.type.dir_okay
                kind = "place" if both else "file" if param.type.file_okay else "folder"
            if kind is not None:
                yield PathParameter(command, name, kind, flag)
                continue
            # The site of `watch` may be a name of a file or a URL.
            known = {*NOT_READ.get(command, "").split(), *({"site"} if command == "watch" else ())}
            if name not in known and not {*metavar.split("|")}.isdisjoint(_PLACES):
                raise KeyError(f"{command}: {name}: in neither table")


def _drop_capabilities() -> None:
    """Drop the capabilities 1 and 2 of Linux, so that file permissions also apply to root."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):
        libc.prctl(24, capability)


def run_unreadable(folder: Path) -> list[tuple[str, str, str, str, int, str]]:
    """Return command, name, case, path, exit code and stderr of each command with each bad path."""
    sound = folder / "sound.txt"
    sound.write_text("http://example.com/\n")
    bad = {"missing": folder / "none", "folder": folder / "a-folder", "file": sound, "forbidden": folder / "forbidden"}
    bad["folder"].mkdir()
    results = []
    for each in path_parameters():
        for case in each.cases():
            place = bad[case]
            if case == "forbidden":
                place = folder / f"forbidden-{'folder' if each.kind == 'folder' else 'file'}"
                if not place.exists():
                    place.mkdir() if each.kind == "folder" else place.write_text("http://example.com/\n")
                place.chmod(0)
            places = {"ok": str(sound), "url": "http://127.0.0.1:1/", "new": str(folder / "new"),
                     "site": str(bad["folder"]), "recovery": str(bad["folder"])}  # fmt: skip
            code, stderr = _run(each.arguments(str(place), places))
            results.append((each.command, each.name, case, str(place), code, stderr))
    return results


KINDS = {
    "picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\xff\xfe\x80",
    "nothing": b"",
    "half": gzip.compress(b"".join(b"com,example)/%d 20200101000000 {}\n" % number for number in range(999)))[:-99],
    "page": b"<!DOCTYPE html><html><title>Not Found</title><p>404</html>\n",
    "object": b'{"a": [1, 2]}\n',
}
"""Files of unexpected kinds."""

_NETWORK_COMMANDS = ("archives test", "demo", "harvest", "serve", "timegate", "timemap", "worker")


def run_wrong_kinds(folder: Path) -> list[tuple[str, str, str, str, int, str]]:
    """Return the same for files of the wrong kind, for commands that read them before any request."""
    results = []
    lost = Path(__file__).parents[2] / "docs" / "examples" / "lost" / "archives.toml"
    os.environ["UNLOST_ARCHIVES"] = str(lost)
    for each in path_parameters():
        if each.kind == "folder" or (each.command in _NETWORK_COMMANDS and each.name not in ("archives", "scheme")):
            continue
        for kind, content in KINDS.items():
            with TemporaryDirectory(dir=folder) as inside:
                place, sound, site = Path(inside, kind), Path(inside, "sound.txt"), Path(inside, "site")
                place.write_bytes(content)
                sound.write_text("http://example.com/\n")
                site.mkdir()
                places = {"ok": str(sound), "url": "http://127.0.0.1:1/", "new": str(Path(inside, "new")),
                         "site": str(site), "recovery": str(site)}  # fmt: skip
                code, stderr = _run(each.arguments(str(place), places))
            results.append((each.command, each.name, kind, str(place), code, stderr))
    return results


def _run(words: list[str]) -> tuple[int, str]:
    stderr = io.StringIO()
    with redirect_stderr(stderr), redirect_stdout(io.TextIOWrapper(io.BytesIO(), write_through=True)):
        try:
            code = run(words)
        except Exception:  # noqa: BLE001  a failure to report
            code = -1
            traceback.print_exc(file=stderr)
    return code, stderr.getvalue()


if __name__ == "__main__":
    if "--dropped" not in sys.argv:
        # Dropped capabilities take effect in the next program.
        _drop_capabilities()
        words = [sys.executable, "-m", "tests.cli.unreadable_paths", *sys.argv[1:], "--dropped"]
        os.execv(sys.executable, words)  # noqa: S606  no shell is needed
    here = Path(sys.argv[1])
    print(json.dumps([run_unreadable(here), run_wrong_kinds(here)]))
