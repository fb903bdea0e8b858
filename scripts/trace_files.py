"""Counts the source files that one operation passes through: a recovered resource, a TimeMap request, a map build.

Usage: python -m scripts.trace_files [--list] [recover|timemap|map ...]

A file counts if one of its functions is called while the operation is in progress; imports and the start of the
process do not count. Each operation runs in a process of its own, against a fake archive on the loopback interface.
"""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import unlost

PACKAGE = str(Path(unlost.__file__).parent) + os.sep
# The fake archive and its server run in the same process, and belong to the test.
IGNORED = ("testing" + os.sep,)
PAGE = "http://lost.example/"


class FileTracer:
    """Records the files of the package whose functions are called while `is_recording` is set, in all threads."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.is_recording = False

    def install(self) -> None:
        """Trace this thread and all that are started later."""
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)

    def _on_event(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if self.is_recording and event == "call" and code.co_name not in ("<module>", "<lambda>"):
            name = code.co_filename
            if name.startswith(PACKAGE) and not name[len(PACKAGE) :].startswith(IGNORED):
                self.files.add(name[len(PACKAGE) :])


def import_command(*words: str) -> None:
    """Import the modules of a command, so that functions that run on import are not counted."""
    with contextlib.redirect_stdout(io.StringIO()):
        run_command(*words, "--help")


def run_command(*arguments: str) -> None:
    """Run a command of the command line in this process."""
    from unlost.cli.main import run  # noqa: PLC0415

    with contextlib.redirect_stderr(io.StringIO()):
        code = run(list(arguments))
    if code != 0:
        raise SystemExit(f"unlost {' '.join(arguments)} ended with {code}")


def trace_recover(tracer: FileTracer, folder: Path) -> None:
    """Recover a page with one link from one archive."""
    import_command("recover")
    from unlost.testing import FakeArchive, write_registry  # noqa: PLC0415

    pages = {PAGE: [("20140210", "<a href=two>two</a>")], f"{PAGE}two": [("20140210", "<p>two")]}
    with FakeArchive(pages) as archive:
        registry = write_registry(folder / "archives.toml", archive.registry_entry())
        tracer.is_recording = True
        with contextlib.redirect_stdout(io.StringIO()):
            run_command("recover", "lost.example", "--archives", str(registry), "-o", str(folder / "recovery"))
        tracer.is_recording = False


def trace_timemap(tracer: FileTracer, folder: Path) -> None:
    """Request a TimeMap from a running service that has nothing cached."""
    from unlost.testing import FakeArchive, write_registry  # noqa: PLC0415

    def request(url: str) -> None:
        try:
            with urllib.request.urlopen(url) as warm_up:  # noqa: S310  loopback
                warm_up.read()
            tracer.is_recording = True
            with urllib.request.urlopen(url.replace("warm-up.example", "lost.example")) as response:  # noqa: S310
                response.read()
        finally:
            tracer.is_recording = False
            os.kill(os.getpid(), signal.SIGINT)

    class Stderr(io.StringIO):
        """Starts the request when the service says where it listens."""

        def write(self, text: str) -> int:
            port = text.partition("http://127.0.0.1:")[2].partition("/")[0].split()
            if port and port[0].isdecimal() and not started.is_set():
                started.set()
                url = f"http://127.0.0.1:{port[0]}/timemap/link/http://warm-up.example/"
                threading.Thread(target=request, args=(url,)).start()
            return super().write(text)

    started = threading.Event()
    pages = {PAGE: [("20140210", "lost")], "http://warm-up.example/": [("20140210", "warm")]}
    with FakeArchive(pages) as archive:
        registry = write_registry(folder / "archives.toml", archive.registry_entry())
        from unlost.cli.main import run  # noqa: PLC0415

        with contextlib.redirect_stderr(Stderr()), contextlib.redirect_stdout(Stderr()):
            run(["serve", "--port", "0", "--archives", str(registry)])


def trace_map(tracer: FileTracer, folder: Path) -> None:
    """Build a map from a small CDXJ file."""
    import_command("map", "build")
    fields = {"url": PAGE, "mime": "text/html", "status": "200", "digest": "A" * 32, "length": "9", "offset": "0"}
    (folder / "index.cdxj").write_text(f"example,lost)/ 20140210000000 {json.dumps(fields)}\n")
    tracer.is_recording = True
    run_command("map", "build", str(folder / "index.cdxj"), "-o", str(folder / "map.ukvs"))
    tracer.is_recording = False


OPERATIONS: dict[str, Callable[[FileTracer, Path], None]] = {
    "recover": trace_recover,
    "timemap": trace_timemap,
    "map": trace_map,
}


def trace(name: str) -> set[str]:
    """Run one operation under the tracer and return the files it passed through."""
    tracer = FileTracer()
    tracer.install()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UNLOST_HOME"] = folder
        OPERATIONS[name](tracer, Path(folder))
    sys.setprofile(None)
    return tracer.files


def main(arguments: list[str]) -> int:
    """Print the number of files of each operation; with --list, their names too."""
    names = [each for each in arguments if not each.startswith("-")] or list(OPERATIONS)
    if "--in-process" in arguments:
        print(json.dumps(sorted(trace(names[0]))))
        return 0
    for name in names:
        command = [sys.executable, "-m", "scripts.trace_files", "--in-process", name]
        result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        files = json.loads(result.stdout.splitlines()[-1])
        print(f"{name}: {len(files)} files")
        if "--list" in arguments:
            print("".join(f"  {each}\n" for each in files), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
