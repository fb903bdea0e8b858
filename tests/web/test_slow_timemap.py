"""A TimeGate for an archive whose TimeMap takes very long."""

import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

from tests.cli.run import UNLOST
from tests.web.server_process import run_process, wait_for_client

PAGE = "http://example.com/page"


def test_redirect_does_not_wait_for_the_timemap(tmp_path: Path) -> None:
    """The archive's TimeGate responds at once, and so does the service; HEAD equals GET."""
    ended = Event()

    class Archive(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/map/"):
                ended.wait(60)
                return
            self.send_response(302)
            self.send_header("Location", f"http://a.example/20140210000001/{PAGE}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    thread = Thread(target=server.serve_forever)
    thread.start()
    base = f"http://127.0.0.1:{server.server_port}"
    registry = tmp_path / "archives.toml"
    registry.write_text(
        '[[archive]]\nid = "a"\nname = "A"\nkind = "memento"\nlimits = []\n'
        f'timemap = "{base}/map/"\ntimegate = "{base}/gate/"\n'
    )
    environment = {"UNLOST_HOME": str(tmp_path / "home"), "UNLOST_CONTACT": "me@example.org"}
    command: list[str | Path] = [UNLOST, "serve", "--port", "0", "--archives", str(registry)]
    try:
        with run_process(command, environment) as process:
            client = wait_for_client(process)
            start = time.monotonic()
            for path in (f"/timegate/{PAGE}", f"/memento/2014/{PAGE}"):
                response = client.request(path)
                assert (response.status, response.headers["location"]) == (
                    302,
                    f"http://a.example/20140210000001/{PAGE}",
                )
                assert "x-memento-count" not in response.headers, "it is not known"
                assert client.request(path, "HEAD").status == 302
            assert time.monotonic() - start < 5, "half of the deadline"
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
