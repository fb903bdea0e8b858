"""`unlost serve` with a failing archive: no 404, nothing cached, nothing learned."""

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.run import UNLOST, unlost
from tests.web.client import Client
from tests.web.server_process import run_process, wait_for_client
from unlost.logs import read_upstream_log
from unlost.problems import Problems

PAGE = "http://example.com/page"
TIMEMAP = b'<http://b/1>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"'


@dataclass
class Environment:
    """Archive `a` has nothing; archive `b` sends `status`, `headers` and `body` and counts requests."""

    folder: Path
    registry: Path
    status: int = 404
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    requests: int = 0

    def environment(self) -> dict[str, str]:
        """Return the environment of a user with both archives."""
        home = str(self.folder / "home")
        return {"UNLOST_HOME": home, "UNLOST_CONTACT": "me@example.org", "UNLOST_ARCHIVES": str(self.registry)}

    def serving(self, *more: str) -> tuple[list[str | Path], dict[str, str]]:
        """Return the command of a server, and its environment."""
        return [UNLOST, "serve", "--port", "0", "--deadline", "5", *more], self.environment()


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    """Run both archives."""
    environment = Environment(tmp_path, tmp_path / "archives.toml")

    class Archives(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_second = self.path.startswith("/b/")
            environment.requests += is_second
            body = environment.body if is_second else b""
            self.send_response(environment.status if is_second else 404)
            for name, value in {**(environment.headers if is_second else {}), "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Archives)
    environment.registry.write_text(
        "".join(
            f'[[archive]]\nid = "{name}"\nname = "{name}"\nkind = "memento"\nlimits = []\n'
            f'timemap = "http://127.0.0.1:{server.server_port}/{name}/"\n'
            for name in ("a", "b")
        )
    )
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield environment
    server.shutdown()
    thread.join()
    server.server_close()


def statuses(client: Client, **headers: str) -> set[int]:
    """Return the statuses of a TimeMap, a TimeGate and a memento."""
    return {
        client.request(f"/{path}/{PAGE}", headers=headers).status
        for path in ("timemap/link", "timegate", "api/json/2014")
    }


def test_rate_limited_archive(environment: Environment) -> None:
    """503 until its Retry-After; not logged as a miss. 404 if it is not routed."""
    environment.status, environment.headers = 429, {"Retry-After": "120"}
    log = environment.folder / "up.ndjson"
    with run_process(*environment.serving("--log-upstream", str(log))) as process:
        client = wait_for_client(process)
        response = client.request(f"/timemap/json/{PAGE}")
        assert (response.status, response.headers["x-archives-failed"]) == (503, "b=not-now")
        assert 100 < int(response.headers["retry-after"]) <= 120
        assert statuses(client) == {503}
        assert statuses(client, **{"Cache-Control": "only-if-cached"}) == {504}
        assert statuses(client, Prefer='archives="a"') == {404}
        rates = {each["id"]: each["hit_rate"] for each in json.loads(client.request("/about").text)["archives"]}
        assert rates["a"] < rates["b"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert environment.requests == 1
    assert {(each.archive, each.outcome) for each in read_upstream_log(log, Problems())} == {
        ("a", "miss"),
        ("b", "limited"),
    }
    for command in ("timemap", "timegate"):
        done = unlost(command, PAGE, env=environment.environment())
        assert (done.returncode, done.stdout) == (4, b""), done.stderr
        assert b"but 1 of 2 archives did not answer" in done.stderr


def test_failures_are_not_cached(environment: Environment) -> None:
    """The service responds as soon as the archive does, also after a restart."""
    environment.status = 500
    with run_process(*environment.serving()) as process:
        assert statuses(wait_for_client(process)) == {503}
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    with run_process(*environment.serving()) as process:
        client = wait_for_client(process)
        assert statuses(client) == {503}
        environment.status, environment.body = 200, TIMEMAP
        assert statuses(client) == {200, 302}


def test_complete_result_is_404(environment: Environment) -> None:
    """404, which is cached."""
    with run_process(*environment.serving()) as process:
        client = wait_for_client(process)
        assert statuses(client) == {404}
        assert client.request(f"/timemap/link/{PAGE}").headers["x-memento-count"] == "0"
        assert statuses(client, **{"Cache-Control": "only-if-cached"}) == {404}
        assert environment.requests == 1
