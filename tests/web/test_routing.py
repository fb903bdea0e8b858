"""`unlost serve` with three archives, maps and filters: routing, caching and logging."""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.run import UNLOST, unlost
from tests.web.client import Client
from tests.web.server_process import run_process, wait_for_client
from unlost.logs import read_upstream_log
from unlost.problems import Problems

HELD = {
    "a": {"http://one.example/": ["20100101000000"], "http://all.example/": ["20110101000000", "20150101000000"]},
    "b": {"http://two.example/x?y=1": ["20120101000000"], "http://all.example/": ["20120101000000"]},
    "c": {"http://all.example/": ["20130101000000"]},
}
PAGES = ("http://one.example/", "http://two.example/x?y=1", "http://all.example/", "http://none.example/")


class Environment:
    """Three archives with request counters, and their registry."""

    def __init__(self, folder: Path, port: int, requests: Counter[str]) -> None:
        self.folder = folder
        self.requests = requests
        entries = []
        for name, held in HELD.items():
            index = folder / f"{name}.cdxj"
            rows = [f'{unlost("uri", "surt", page).stdout.decode().strip()} {date} {{"url": "{page}"}}\n'
                    for page, dates in held.items() for date in dates]  # fmt: skip
            index.write_text("".join(sorted(rows)))
            for kind, more in (("map", ("--host-weight", "1", "--path-weight", "1")), ("filter", ())):
                done = unlost(kind, "build", str(index), "-o", str(folder / f"{name}.{kind}"), *more)
                assert done.returncode == 0, done.stderr
            entries.append(
                f'[[archive]]\nid = "{name}"\nname = "{name}"\nkind = "memento"\nlimits = []\n'
                f'timemap = "http://127.0.0.1:{port}/{name}/"\nmementomap = "{name}.map"\nfilters = ["{name}.filter"]\n'
            )
        (folder / "archives.toml").write_text("\n".join(entries))

    def serving(self, *more: str) -> tuple[list[str | Path], dict[str, str]]:
        """Return the command of a server, and its environment."""
        environment = {"UNLOST_HOME": str(self.folder / "home"), "UNLOST_CONTACT": "me@example.org"}
        registry = str(self.folder / "archives.toml")
        return [UNLOST, "serve", "--port", "0", "--archives", registry, "--explore", "0", *more], environment


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    """Run three archives."""
    requests: Counter[str] = Counter()

    class Archives(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, name, page = self.path.split("/", 2)
            requests[name] += 1
            entries = [f'<http://m/{date}/{page}>; rel="memento"; datetime="{_http(date)}"'
                       for date in HELD[name].get(page, [])]  # fmt: skip
            body = ",\n".join([f'<{page}>; rel="original"', *entries]).encode() if entries else b""
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Archives)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield Environment(tmp_path, server.server_port, requests)
    server.shutdown()
    thread.join()
    server.server_close()


def _http(date: str) -> str:
    return {"2010": "Fri", "2011": "Sat", "2012": "Sun", "2013": "Tue", "2015": "Thu"}[date[:4]] + (
        f", 01 Jan {date[:4]} 00:00:00 GMT"
    )


def mementos_text(client: Client, page: str, **headers: str) -> str:
    """Return the mementos of a page as text; empty if there are none."""
    response = client.request(f"/timemap/text/{page}", headers=headers)
    assert response.status in (200, 404)
    assert "x-archives-failed" not in response.headers
    return response.text if response.status == 200 else ""


def test_routing_queries_only_holders_and_loses_nothing(environment: Environment) -> None:
    """Results equal those of broadcast, with fewer requests, which are all logged."""
    log = environment.folder / "up.ndjson"
    with run_process(*environment.serving("--log-upstream", str(log))) as process:
        client = wait_for_client(process)
        routed = {page: mementos_text(client, page) for page in PAGES}
        assert environment.requests == {"a": 2, "b": 2, "c": 1}
        assert routed == {page: mementos_text(client, page, Prefer="broadcast") for page in PAGES}
        assert environment.requests == {"a": 2 + 4, "b": 2 + 4, "c": 1 + 4}
        assert routed["http://all.example/"].count("\n") == 4
        mementos_text(client, PAGES[0])
        assert environment.requests.total() == 17, "it was kept"
        archives = json.loads(client.request("/about").text)["archives"]
        assert [(each["why"], each["routed"]["asked"]) for each in archives] == [
            ("routed by its map and its filter", requests) for requests in (2, 2, 1)
        ]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    problems = Problems()
    responses = list(read_upstream_log(log, problems))
    assert Counter((each.archive, each.reason) for each in responses) == {
        ("a", "routed"): 2, ("b", "routed"): 2, ("c", "routed"): 1,
        ("a", "broadcast"): 4, ("b", "broadcast"): 4, ("c", "broadcast"): 4,
    }  # fmt: skip
    assert not problems.total
    out = environment.folder / "out.ukvs"
    done = unlost(
        "map", "exclude", str(environment.folder / "a.map"), "--misses", str(log), "--archive", "a", "-o", str(out)
    )
    assert done.returncode == 0, done.stderr


def test_disk_cache_is_shared_and_persistent(environment: Environment) -> None:
    """A server with the same home has the cached results, including misses; several may run at once."""
    with run_process(*environment.serving()) as first:
        client = wait_for_client(first)
        before = {page: mementos_text(client, page) for page in PAGES}
        first.send_signal(signal.SIGTERM)
        assert first.wait(10) == 0
    requests = environment.requests.total()
    with run_process(*environment.serving()) as second, run_process(*environment.serving()) as third:
        for process in (second, third):
            client = wait_for_client(process)
            only = {"Cache-Control": "only-if-cached"}
            assert {page: mementos_text(client, page, **only) for page in PAGES} == before
    assert environment.requests.total() == requests
