"""Progress bars: on a terminal, and only there."""

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.run import UNLOST, unlost
from tests.warc.warcs import member, record

ROW = b'com,a)/%07d 20140210000001 {"url": "http://a.com/%d"}\n'
HIDDEN, SHOWN = b"\x1b[?25l", b"\x1b[?25h"


class Terminal:
    """A command with a terminal as its stderr.

    Attributes:
        seen: Its output so far.
    """

    def __init__(self, *arguments: str) -> None:
        self._end, other = pty.openpty()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("UNLOST_")}
        environment |= {"UNLOST_HOME": os.environ["UNLOST_HOME"], "COLUMNS": "120", "LINES": "24", "TERM": "xterm"}
        self.process = subprocess.Popen(
            [UNLOST, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=other, env=environment
        )
        os.close(other)
        self.output = b""

    def read_until(self, mark: bytes) -> None:
        """Read until these bytes are there."""
        while mark not in self.output:
            more = self._read()
            assert more, self.output
            self.output += more

    def read_all(self) -> int:
        """Read to the end and return the exit code."""
        while more := self._read():
            self.output += more
        assert self.process.stdout is not None
        self.process.stdout.close()
        os.close(self._end)
        return self.process.wait(timeout=60)

    def _read(self) -> bytes:
        try:
            return os.read(self._end, 1 << 16)
        except OSError:  # how Linux tells that the other end is closed
            return b""


@contextmanager
def endless(path: Path) -> Iterator[None]:
    """Make a pipe that yields rows for as long as it is read."""
    os.mkfifo(path)

    def write() -> None:
        try:
            with path.open("wb") as pipe:
                for number in range(10**7):
                    pipe.write(ROW % (number, number))
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write)
    writer.start()
    yield
    writer.join(timeout=60)
    assert not writer.is_alive()


def test_bar_shows_bytes_lines_speed_and_remaining_time(tmp_path: Path) -> None:
    """It is removed at the end, and the cursor is shown again."""
    source, target = tmp_path / "a.cdxj", tmp_path / "b.cdxj"
    source.write_bytes(b"".join(ROW % (number, number) for number in range(20_000)))
    terminal = Terminal("index", "convert", str(source), "-o", str(target))
    assert terminal.read_all() == 0
    assert b"converting" in terminal.output
    assert b"MB" in terminal.output
    assert b" lines, " in terminal.output
    assert b"--:--" in terminal.output or b"0:0" in terminal.output
    assert terminal.output.rfind(SHOWN) > terminal.output.rfind(HIDDEN) > -1
    assert target.read_bytes() == source.read_bytes()


def test_index_build_shows_the_bytes_of_all_files(tmp_path: Path) -> None:
    """As total."""
    for name in ("a.warc.gz", "b.warc.gz"):
        (tmp_path / name).write_bytes(b"".join(member(record(number=number)) for number in range(300)))
    files = [str(tmp_path / "a.warc.gz"), str(tmp_path / "b.warc.gz")]
    terminal = Terminal("index", "build", *files, "-o", str(tmp_path / "c.cdxj"))
    assert terminal.read_all() == 0
    assert b"building" in terminal.output
    size = sum(Path(file).stat().st_size for file in files)
    assert f"{size / 1000:.1f} kB".encode() in terminal.output


@pytest.mark.parametrize(
    ("label", "command"),
    [
        ("checking", ["map", "check", "a.ukvs"]),
        ("checking", ["profile", "check", "H3P1.cdxj"]),
        ("merging", ["profile", "merge", "H3P1.cdxj", "H3P1.cdxj", "-o", "b.cdxj"]),
        ("mapping", ["profile", "to-map", "H3P1.cdxj", "-o", "b.ukvs"]),
    ],
    ids=["map check", "profile check", "profile merge", "profile to-map"],
)
def test_reading_maps_and_profiles_shows_a_bar(label: str, command: list[str], tmp_path: Path) -> None:
    """At the end all bytes are read."""
    source = tmp_path / "a.cdxj"
    source.write_bytes(b"".join(ROW % (number, number) for number in range(3000)))
    for made in (["map", "build", "-o", "a.ukvs"], ["profile", "build", "--policy", "H3P1", "-o", "H3P1.cdxj"]):
        done = unlost(*made[:-1], str(tmp_path / made[-1]), str(source))
        assert done.returncode == 0, done.stderr
    terminal = Terminal(*(str(tmp_path / word) if "." in word else word for word in command))
    assert terminal.read_all() == 0, terminal.output
    assert label.encode() in terminal.output
    sizes = [(tmp_path / word).stat().st_size for word in command if word in ("a.ukvs", "H3P1.cdxj")]
    size = f"{sum(sizes) / 1000:.1f}"
    assert f"{size}/{size} kB".encode() in terminal.output


@pytest.mark.parametrize("command", [("index", "convert"), ("filter", "build")], ids=" ".join)
def test_interruption_restores_the_terminal(command: tuple[str, str], tmp_path: Path) -> None:
    """The bar is erased, the cursor is shown, one line is printed, and no file is left."""
    with endless(tmp_path / "pipe"):
        terminal = Terminal(*command, str(tmp_path / "pipe"), "-o", str(tmp_path / "b.cdxj"))
        terminal.read_until(b"000 lines, ")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.read_all() == 130
    after = terminal.output[terminal.output.rfind(SHOWN) :]
    assert HIDDEN not in after
    assert after.endswith(b"unlost: interrupted\r\n")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("options", [[], ["--log", "json"]], ids=["no terminal", "messages as JSON"])
def test_no_bar_without_a_terminal_or_with_json_messages(options: list[str], tmp_path: Path) -> None:
    """Stderr is empty."""
    source, target = tmp_path / "a.cdxj", tmp_path / "b.cdxj"
    source.write_bytes(ROW % (1, 1))
    arguments = [*options, "index", "convert", str(source), "-o", str(target)]
    if options:
        terminal = Terminal(*arguments)
        assert (terminal.read_all(), terminal.output) == (0, b"")
    else:
        done = unlost(*arguments)
        assert (done.returncode, done.stderr) == (0, b"")


def test_rich_is_not_imported_without_a_bar() -> None:
    """It takes time."""
    code = "import sys; import unlost.cli.index; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
