"""`unlost timemap` and `unlost timegate`: output and exit codes."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.run import unlost

TIMEMAP = """<http://a.example/>; rel="original",
<http://m/20100101000000/http://a.example/>; rel="memento"; datetime="Fri, 01 Jan 2010 00:00:00 GMT",
<http://m/20140210000001/http://a.example/>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"
"""


class _Archive(BaseHTTPRequestHandler):
    """`/good/` has one page; `/bad/` responds with an invalid TimeMap."""

    def do_GET(self) -> None:
        """Respond."""
        has_it = self.path.endswith("/http://a.example/")
        body = b"<html>captcha</html>" if self.path.startswith("/bad/") else TIMEMAP.encode() if has_it else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Run both archives; return the settings of a user with a registry of them."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Archive)
    thread = Thread(target=server.serve_forever)
    thread.start()
    registry = tmp_path / "archives.toml"
    registry.write_text(
        "".join(
            f'[[archive]]\nid = "{name}"\nname = "{name}"\nkind = "memento"\nlimits = []\n'
            f'timemap = "http://127.0.0.1:{server.server_port}/{name}/"\n'
            for name in ("good", "bad")
        )
    )
    yield {"UNLOST_HOME": str(tmp_path), "UNLOST_CONTACT": "me@example.org", "UNLOST_ARCHIVES": str(registry)}
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("page", "only", "code", "lines"),
    [
        ("a.example/", "good", 0, 2),
        ("b.example/", "good", 1, 0),
        ("a.example/", "good,bad", 4, 2),
        ("b.example/", "bad", 4, 0),
    ],
)
def test_exit_codes(settings: dict[str, str], page: str, only: str, code: int, lines: int) -> None:
    """0 if mementos were found, 1 if not, 4 if an archive failed; failures are on stderr."""
    done = unlost("timemap", page, "--format", "text", "--only", only, env=settings)
    assert (done.returncode, done.stdout.count(b"\n")) == (code, lines), done.stderr
    assert (b"bad: malformed: " in done.stderr) is ("bad" in only)
    reasons = b"were found, but 1 of 1 archives did not answer: try again later\n"
    assert (reasons in done.stderr) is (page == "b.example/" and "bad" in only)
    assert (b"no mementos of http://b.example/ were found\n" in done.stderr) is (code == 1)
    gate = unlost("timegate", page, "--only", only, env=settings)
    assert (gate.returncode, gate.stdout.count(b"\n")) == (code, min(lines, 1))


@pytest.mark.parametrize("form", ["link", "json", "cdxj", "text"])
def test_timemap_formats(settings: dict[str, str], form: str) -> None:
    """As from the service at its default URL."""
    done = unlost("timemap", "http://a.example/", "--format", form, "--only", "good", env=settings)
    assert done.returncode == 0
    assert b"http://m/20140210000001/http://a.example/" in done.stdout
    if form == "json":
        assert json.loads(done.stdout)["timegate_uri"] == "http://localhost:1208/timegate/http://a.example/"


@pytest.mark.parametrize(
    ("date", "expected"),
    [("2009", "20100101000000"), ("2013-06-01", "20140210000001"), ("Sat, 02 Jan 2010 00:00:00 GMT", "20100101000000")],
)
def test_timegate_accepts_date_formats(settings: dict[str, str], date: str, expected: str) -> None:
    """14 digits, ISO 8601 or HTTP; date and URI-M of the closest memento are printed."""
    done = unlost("timegate", "a.example/", date, "--only", "good", env=settings)
    assert done.stdout.decode() == f"{expected}\thttp://m/{expected}/http://a.example/\n"
    done = unlost("timegate", "a.example/", date, "--only", "good,bad", "--json", env=settings)
    result = json.loads(done.stdout)
    assert (result["closest"]["archive"], result["mementos"]) == ("good", 2)
    assert result["archives_failed"] == {"bad": "malformed"}


@pytest.mark.parametrize("words", [("timegate", "a.example", "soon"), ("timemap", "ftp://a/"), ("timemap", " ")])
def test_invalid_date_or_url_is_rejected(words: tuple[str, ...]) -> None:
    """Before any request."""
    done = unlost(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"expected" in done.stderr or b"not a web page" in done.stderr
