"""Two web processes with a real nginx as reverse proxy and one PostgreSQL share all state."""

import http.client
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.cli.run import unlost
from tests.external import nginx
from tests.external.postgresql import Postgresql
from tests.jobs.service_process import ORDER, ServiceProcess, run_service
from tests.jobs.worker_processes import ArchivePause
from tests.recovery.sample_site import SiteArchives, sample_site, serve_site
from tests.waiting import wait_until
from tests.webui.visitor import Visitor, log_in
from unlost.errors import LimitError
from unlost.jobs import Database, JobStore, LookupRateLimit, OrderLimits, OrderOrigin, parse_order

SITE = Path(__file__).parents[2] / "deploy" / "nginx.conf"
ADMIN, PASSWORD = "operator", "a long enough password"


@dataclass
class Pair:
    """Two processes of one service, with nginx and the archives."""

    one: ServiceProcess
    other: ServiceProcess
    lost: SiteArchives
    proxy: int
    work: Path

    @property
    def both(self) -> tuple[ServiceProcess, ServiceProcess]:
        """Both processes."""
        return self.one, self.other

    def request(self, method: str, path: str, body: object = None, source: str = "127.0.0.1", **headers: str) -> int:
        """Send a request to nginx from a local address and return the status."""
        return send_request(self.proxy, method, path, body, source, **headers).status

    def answered(self) -> Counter[str]:
        """Return the number of requests that nginx sent to each process."""
        return Counter(line.partition(" ")[0] for line in (self.work / "access.log").read_text().splitlines())


def send_request(
    port: int, method: str, path: str, body: object, source: str, **headers: str
) -> http.client.HTTPResponse:  # fmt: skip
    """Send one request from a local address and read the response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=(source, 0))
    try:
        fields = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
        connection.request(method, path, None if body is None else json.dumps(body), fields)
        response = connection.getresponse()
        response.read()
        return response
    finally:
        connection.close()


@pytest.fixture(scope="module")
def pair(server: Postgresql, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Run two processes, a worker, and nginx with the configuration in `deploy`."""
    folder = tmp_path_factory.mktemp("pair")
    env = {"UNLOST_DATABASE": server.create_database()}
    with ExitStack() as stack:
        lost = stack.enter_context(serve_site(sample_site()))
        made = {**env, "UNLOST_ADMIN_PASSWORD": PASSWORD}
        done = unlost("serve", "--set-admin", ADMIN, "--jobs", str(folder / "jobs"), env=made)
        assert done.returncode == 0, done.stderr
        more = ("--behind-proxy", "--proxies", "127.0.0.1", "--workers")
        registry = lost.registry(folder)
        one, other = (stack.enter_context(run_service(folder, registry, *more, n, env=env)) for n in ("1", "0"))
        site = SITE.read_text()
        for port, service in zip((1208, 1209), (one, other), strict=True):
            assert f"127.0.0.1:{port};" in site
            site = site.replace(f"127.0.0.1:{port};", f"127.0.0.1:{service.port};")
        lines = [line for line in site.splitlines() if "ssl_" not in line]
        site = "\n".join(lines).replace("access_log off;", f"access_log {folder}/access.log who;")
        yield Pair(one, other, lost, stack.enter_context(nginx.run_reverse_proxy(site, folder)), folder)


def order(number: int, **more: str) -> dict[str, str]:
    """Return a unique order."""
    return {**ORDER, "url": f"http://lost{number}.example/", "mail": f"{number}@example.org", **more}


def test_order_limits_hold_for_both_processes(pair: Pair) -> None:
    """Both processes count the orders of an email address; other addresses are not affected."""
    found = [pair.request("POST", "/api/jobs", order(each, mail="much@example.org")) for each in range(10)]
    assert found == [201] * 10
    by_nginx = pair.answered()
    assert min(by_nginx[f"127.0.0.1:{each.port}"] for each in pair.both) >= 3, by_nginx
    for service in pair.both:
        assert service.request("POST", "/api/jobs", order(50, mail="much@example.org")).status == 429
        assert service.request("POST", "/api/jobs", order(50 + service.port)).status == 201


def test_forwarded_addresses_are_trusted_from_proxies_only(pair: Pair) -> None:
    """Look-ups are counted by the address that nginx reports; addresses claimed by clients are ignored."""
    paths = (f"/recover/holdings?{urlencode({'url': f'http://look{each}.example/'})}" for each in range(100))

    def is_refused(port: int, source: str, claim: str) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=(source, 0))
        connection.request("GET", next(paths), headers={"X-Forwarded-For": claim})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        assert response.status == 200
        return "Too many searches from your network" in text

    by_nginx = [is_refused(pair.proxy, "127.0.0.5", f"192.0.2.{each}") for each in range(31)]
    assert by_nginx == [False] * 30 + [True], "whatever they claim, it is one visitor"
    for service in pair.both:
        assert is_refused(service.port, "127.0.0.5", "192.0.2.99"), "also who goes round the proxy"
        assert is_refused(service.port, "127.0.0.1", "127.0.0.5"), "as the proxy would say it"
        assert not is_refused(service.port, "127.0.0.1", f"192.0.2.{service.port % 250}")


def test_cached_results_are_shared(pair: Pair) -> None:
    """Archives are queried once: results on disk, including misses, are shared."""
    paths = {"/timemap/json/http://lost.example/": 200, "/timemap/json/http://never.example/": 404}
    start = time.time()
    for path, status in paths.items():
        assert pair.one.request("GET", path).status == status
    before = len(pair.lost.requests)
    file = next(pair.work.rglob("timemaps.sqlite"))

    def is_kept() -> bool:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as responses:
            lines = responses.execute("SELECT count(*) FROM answer WHERE made >= ?", (start,)).fetchone()[0]
            return bool(lines >= len(paths))

    wait_until(is_kept)
    for path, status in paths.items():
        assert [pair.other.request("GET", path).status for _ in range(2)] == [status, status]
    assert len(pair.lost.requests) == before


def test_admin_sessions_are_shared(pair: Pair) -> None:
    """Sessions and forms of one process are valid in the other, and so is a logout."""
    one = log_in(pair.one, ADMIN, PASSWORD)
    other = Visitor(pair.other, one.cookies, one.token)
    assert b"/admin/logout" in other.get("/admin").body
    limits = {"per_mail": "10", "per_client": "5000", "per_address": "10", "megabytes": "900", "hours": "3"}
    other.token = one.token
    assert other.post("/admin/limits", limits).status in (200, 303)
    assert b'value="900"' in one.get("/admin/limits").body, "it holds for both at once"
    assert other.post("/admin/logout", {}).status == 303
    assert one.get("/admin").status == 303


def test_login_attempts_are_counted_together(pair: Pair) -> None:
    """Eight failed attempts from one client, half at each process, are counted together."""
    visitors = [Visitor(service) for service in pair.both]
    wrong = {"name": "nobody", "password": "wrong wrong wrong"}
    found = []
    for each in range(10):
        visitor = visitors[each % 2]
        visitor.get("/admin/login", X_Forwarded_For="192.0.2.77")
        found.append(visitor.post("/admin/login", wrong, X_Forwarded_For="192.0.2.77").status)
    assert found == [403] * 8 + [429] * 2


def test_progress_is_visible_in_both_processes(pair: Pair) -> None:
    """A job of one process's worker can be watched in both and through nginx."""
    hold = ArchivePause(pair.lost, 8)
    key = pair.other.request("POST", "/api/jobs", ORDER, is_admin=True).json["key"]
    try:
        hold.wait()
        streams = [follow(port, key) for port in (pair.one.port, pair.other.port, pair.proxy)]
        for stream in streams:
            assert next(stream)["state"] == "processing"
    finally:
        hold.release()
    for stream in streams:
        assert [event["state"] for event in stream][-1] == "complete"
    for service in pair.both:
        assert b"resources recovered." in service.request("GET", f"/jobs/{key}/report").body


def test_concurrent_requests_do_not_exceed_limits(server: Postgresql) -> None:
    """Of many simultaneous orders to two processes, exactly the allowed number is accepted."""
    url = server.create_database()
    databases = [Database(url), Database(url)]
    databases[0].prepare()
    looks, shops = [LookupRateLimit(each) for each in databases], [JobStore(each) for each in databases]

    def looked(number: int) -> bool:
        return looks[number % 2].try_acquire("here")

    def ordered(number: int) -> bool:
        sent = {"url": f"http://h{number}.example/", "mail": "me@example.org"}
        try:
            shops[number % 2].submit(parse_order(sent, ("a",)), origin=OrderOrigin("here"))
        except LimitError:
            return False
        return True

    with ThreadPoolExecutor(16) as crowd:
        assert sum(crowd.map(looked, range(60))) == 30
        assert sum(crowd.map(ordered, range(40))) == OrderLimits().per_mail
    for each in databases:
        each.close()


def follow(port: int, key: str) -> Iterator[dict[str, str]]:
    """Yield the events of a job."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", f"/api/jobs/{key}/events")
    response = connection.getresponse()
    assert (response.status, response.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))
    connection.close()
