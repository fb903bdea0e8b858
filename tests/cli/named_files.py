"""Every file and folder that a command reads, named wrongly: not there, of the wrong kind, not to be read.

`python -m tests.cli.named_files FOLDER` tries all of them in one process, as somebody whom rights hold back, and prints
how each ended as JSON.
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
from scripts.cli_reference import commands

from unlost.cli import ReadablePath, app, run

WORDS = {
    "archives list": "",
    "archives reset": "--all",
    "archives show": "first",
    "archives test": "",
    "check": "{url}",
    "compare": "{original} {recovered}",
    "demo": "--no-wait",
    "evaluate": "--index {index} --queries {queries}",
    "export": "{recovery} --to {new}",
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
"""What is written behind a command: names in braces stand for what is read, {new} for what is made."""

READ = {
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
"""What is read, too, though its type does not say so: addresses are taken as well, or it may be new."""

WRITTEN = {
    "check": "html save", "compare": "html", "demo": "keep", "evaluate": "output", "export": "to",
    "filter add": "output", "filter build": "output", "filter compact": "output", "harvest": "cdxj output",
    "index build": "output", "index convert": "output", "jobs clock": "jobs", "jobs token": "jobs",
    "map build": "output",
    "map compact": "output trace with_filter", "map exclude": "output", "map merge": "output",
    "map sample": "log output state", "overlap": "html plot state svg", "profile build": "output",
    "profile merge": "output", "profile to-map": "output", "recover": "output stop_file summary",
    "refresh learn": "output plot", "refresh simulate": "write", "report": "html output plot",
    "serve": "jobs log_upstream", "stats index": "output", "stats logs": "output", "synth index": "output",
    "synth queries": "output", "vault inject": "to", "vault pack": "crawl vault", "vault plan": "crawl",
    "vault recover": "output recovery", "vault status": "crawl", "watch": "html plot", "worker": "jobs",
}  # fmt: skip
"""What is not read but made, or waited for."""

OTHERS = {"evaluate archive": "a={}"}
"""How what is named is written, where not by itself."""

_PLACES = ("FILE", "DIR", "SOURCE", "INDEX", "FOLDER", "PATH", "WARC", "LOG")
_WITH = {"report": {"ranks": "--factors", "backlinks": "--factors", "original": "--factors"},
         "map compact": {"queries": "--budget 9"}, "serve": {"smtp_ca": "--jobs {new}"},
         "harvest": {"warcs": "--history {ok}"}, "evaluate": {"archive": ""}}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Named:
    """One thing that a command reads. kind: file, folder, place (either) or missing (only that is an error)."""

    command: str
    name: str
    kind: str
    flag: str

    def cases(self) -> list[str]:
        """Return what can be wrong with it."""
        more = {"file": ["folder", "forbidden"], "folder": ["file", "forbidden"], "place": ["forbidden"]}
        return ["missing", *more.get(self.kind, [])]

    def arguments(self, bad: str, places: dict[str, str]) -> list[str]:
        """Return the words of the command with something bad in this place and sound things in the others."""
        words = WORDS[self.command]
        bad = OTHERS.get(f"{self.command} {self.name}", "{}").format(bad)
        if f"{{{self.name}}}" not in words:
            words = f"{words} {_WITH.get(self.command, {}).get(self.name, '')} {self.flag} {{{self.name}}}"
        if self.command == "evaluate" and self.name == "archive":
            words = words.replace("--index {index}", "")
        filled = words.format_map(_Filled({**places, self.name: bad}))
        return [*self.command.split(), *filled.split()]


class _Filled(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return self["ok"]


def read_by_commands() -> Iterator[Named]:
    """Yield all that commands read, by the commands themselves; what no table has raises KeyError."""
    for title, context in commands(app, ()):
        command = title.removeprefix("unlost").strip()
        for param in context.command.params:
            name = str(param.name)
            metavar = param.make_metavar(context) if not isinstance(param.type, click.Path) else "PATH"
            flag = "" if isinstance(param, click.Argument) else max(param.opts, key=len)
            kind = READ.get(f"{command} {name}")
            if isinstance(param.type, ReadablePath):
                both = param.type.file_okay and param.type.dir_okay
                kind = "place" if both else "file" if param.type.file_okay else "folder"
            if kind is not None:
                yield Named(command, name, kind, flag)
                continue
            # Of the site that is watched nobody can tell whether a name was meant or an address.
            known = {*WRITTEN.get(command, "").split(), *({"site"} if command == "watch" else ())}
            if name not in known and not {*metavar.split("|")}.isdisjoint(_PLACES):
                raise KeyError(f"{command}: {name}: neither read nor written: say which")


def _drop_rights() -> None:
    """Let rights of files hold back the administrator, too: capabilities 1 and 2 of Linux are what they do not."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):
        libc.prctl(24, capability)


def tried(folder: Path) -> list[tuple[str, str, str, str, int, str]]:
    """Return how each command ended that was given something bad: command, name, case, what it was, code, message."""
    sound = folder / "sound.txt"
    sound.write_text("http://example.com/\n")
    bad = {"missing": folder / "none", "folder": folder / "a-folder", "file": sound, "forbidden": folder / "forbidden"}
    bad["folder"].mkdir()
    results = []
    for each in read_by_commands():
        for case in each.cases():
            place = bad[case]
            if case == "forbidden":
                place = folder / f"forbidden-{'folder' if each.kind == 'folder' else 'file'}"
                if not place.exists():
                    place.mkdir() if each.kind == "folder" else place.write_text("http://example.com/\n")
                place.chmod(0)
            given = {"ok": str(sound), "url": "http://127.0.0.1:1/", "new": str(folder / "new"),
                     "site": str(bad["folder"]), "recovery": str(bad["folder"])}  # fmt: skip
            code, said = _ended(each.arguments(str(place), given))
            results.append((each.command, each.name, case, str(place), code, said))
    return results


KINDS = {
    "picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\xff\xfe\x80",
    "nothing": b"",
    "half": gzip.compress(b"".join(b"com,example)/%d 20200101000000 {}\n" % number for number in range(999)))[:-99],
    "page": b"<!DOCTYPE html><html><title>Not Found</title><p>404</html>\n",
    "object": b'{"a": [1, 2]}\n',
}
"""Files that are of no kind that is wanted."""

_LASTING = ("archives test", "demo", "harvest", "serve", "timegate", "timemap", "worker")


def tried_kinds(folder: Path) -> list[tuple[str, str, str, str, int, str]]:
    """Return the same for files of the wrong kind, as far as the command reads them before it asks anybody."""
    results = []
    lost = Path(__file__).parents[2] / "docs" / "examples" / "lost" / "archives.toml"
    os.environ["UNLOST_ARCHIVES"] = str(lost)
    for each in read_by_commands():
        if each.kind == "folder" or (each.command in _LASTING and each.name not in ("archives", "scheme")):
            continue
        for kind, content in KINDS.items():
            with TemporaryDirectory(dir=folder) as inside:
                place, sound, site = Path(inside, kind), Path(inside, "sound.txt"), Path(inside, "site")
                place.write_bytes(content)
                sound.write_text("http://example.com/\n")
                site.mkdir()
                given = {"ok": str(sound), "url": "http://127.0.0.1:1/", "new": str(Path(inside, "new")),
                         "site": str(site), "recovery": str(site)}  # fmt: skip
                code, said = _ended(each.arguments(str(place), given))
            results.append((each.command, each.name, kind, str(place), code, said))
    return results


def _ended(words: list[str]) -> tuple[int, str]:
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.TextIOWrapper(io.BytesIO(), write_through=True)):
        try:
            code = run(words)
        except Exception:  # noqa: BLE001  that is what is looked for
            code = -1
            traceback.print_exc(file=said)
    return code, said.getvalue()


if __name__ == "__main__":
    if "--dropped" not in sys.argv:
        # What is dropped counts from the next program on.
        _drop_rights()
        words = [sys.executable, "-m", "tests.cli.named_files", *sys.argv[1:], "--dropped"]
        os.execv(sys.executable, words)  # noqa: S606  no shell is needed
    here = Path(sys.argv[1])
    print(json.dumps([tried(here), tried_kinds(here)]))
