"""A TimeMap of a million mementos with bounded memory."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.cli.run import UNLOST
from tests.web.server_process import run_process, wait_for_client

PAGE = "http://example.com/page"
COUNT = 1_000_000
GROWTH = 64 << 20


def entries(base: str) -> Iterator[bytes]:
    """Yield a TimeMap with a memento per second of twelve days, an hour at a time."""
    yield f'<{PAGE}>; rel="original",\n'.encode()
    names = ("Wed", "Thu", "Fri", "Sat", "Sun", "Mon", "Tue")
    for hour in range(-(-COUNT // 3600)):
        day, clock = hour // 24 + 1, hour % 24
        yield "".join(
            f"<{base}/201401{day:02}{clock:02}{second // 60:02}{second % 60:02}/{PAGE}>; rel=memento; "
            f'datetime="{names[(day - 1) % 7]}, {day:02} Jan 2014 {clock:02}:{second // 60:02}:{second % 60:02} GMT",\n'
            for second in range(min(3600, COUNT - hour * 3600))
        ).encode()


def memory(pid: int, name: str) -> int:
    """Return a memory figure of a process in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


@contextmanager
def serving_million() -> Iterator[str]:
    """Serve the TimeMap as a stream, and yield the URL of the archive."""

    class Archive(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path.endswith(PAGE) else 404)
            self.send_header("Content-Type", "application/link-format")
            self.end_headers()
            for piece in entries("http://a.example/web") if self.path.endswith(PAGE) else ():
                self.wfile.write(piece)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def serve_command(archive: str, folder: Path) -> tuple[list[str | Path], dict[str, str]]:
    """Return the command that serves the archive, and its environment."""
    registry = folder / "archives.toml"
    registry.write_text(
        f'[[archive]]\nid = "a"\nname = "A"\nkind = "memento"\nlimits = []\ntimemap = "{archive}/map/"\n'
    )
    environment = {"UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "me@example.org"}
    return [UNLOST, "serve", "--port", "0", "--archives", str(registry), "--deadline", "60"], environment


def test_large_timemap_is_served_with_little_memory(tmp_path: Path) -> None:
    """The server's memory grows by at most 64 MB."""
    with serving_million() as archive, run_process(*serve_command(archive, tmp_path)) as process:
        client = wait_for_client(process)
        assert client.request("/timemap/link/http://other.example/").status == 404  # all that is loaded late is loaded
        before = memory(process.pid, "VmRSS")
        Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # the peak is that of the present
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
        connection.request("GET", f"/timemap/link/{PAGE}")
        response = connection.getresponse()
        found = mementos = 0
        last = b""
        while piece := response.read(1 << 20):
            text = last + piece
            mementos += text.count(b"memento") - last.count(b"memento")
            found += len(piece)
            last = text[-64:]
        connection.close()
        grown = memory(process.pid, "VmHWM") - before
    assert (response.status, response.getheader("X-Memento-Count")) == (200, str(COUNT))
    assert response.getheader("X-Archives-Failed") is None
    assert mementos == COUNT
    assert found > 110 * COUNT
    assert grown <= GROWTH, f"{grown >> 20} MB"
