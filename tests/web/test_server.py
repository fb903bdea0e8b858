"""The server as a process: ports, signals, reload and graceful shutdown."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.cli.run import UNLOST, unlost
from tests.external.process import free_port
from tests.waiting import wait_until
from tests.web.client import ROOT, Client, is_ready
from tests.web.fixed_results import PAGE
from tests.web.server_process import run_process, wait_for_client
from unlost.web import server
from unlost.webui import templating

REGISTRY = """
[[archive]]
id = "a"
name = "A"
kind = "memento"
limits = []
timemap = "http://127.0.0.1:{port}/timemap/"
"""


def run_service(tmp_path: Path, *more: str) -> tuple[list[str | Path], dict[str, str]]:
    """Return the command of a server with an unreachable archive, and its environment."""
    registry = tmp_path / "archives.toml"
    registry.write_text(REGISTRY.format(port=free_port()))
    environment = {"UNLOST_HOME": str(tmp_path), "UNLOST_CONTACT": "me@example.org", "PYTHONUNBUFFERED": "1"}
    return [UNLOST, "serve", "--port", "0", "--archives", str(registry), *more], environment


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_server_reports_its_url_and_stops_on_signals(tmp_path: Path, number: int, code: int) -> None:
    """Also with a connected reader of events. SIGTERM exits with 0, Ctrl-C as interrupted."""
    with run_process(*run_service(tmp_path)) as process, socket.socket() as watcher:
        client = wait_for_client(process)
        watcher.settimeout(20)
        watcher.connect(("127.0.0.1", client.port))
        watcher.sendall(b"GET /monitor HTTP/1.1\r\nHost: a\r\n\r\n")
        while b": unlost" not in watcher.recv(1 << 12):
            pass
        assert client.request("/health").status == 200
        process.send_signal(number)
        assert process.wait(8) == code
        while watcher.recv(1 << 12):
            pass


SETTLED = """
import gc, os, signal, uvloop
from contextlib import nullcontext
from tests.web import fixed_results
from unlost.clock import SystemClock
from unlost.web import server
from unlost.web.monitoring import Metrics
from unlost.web.monitoring import EventStream
from unlost.web.factory import ServiceContext
from unlost.web.server import ReloadableApplication
from unlost.web.monitoring import MetricsListener

def ready():
    print(gc.get_freeze_count(), len(gc.get_objects()), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

async def main():
    metrics, monitor = Metrics(), EventStream()
    finder = fixed_results.FixedResults(MetricsListener(metrics, monitor))
    context = ServiceContext(finder, fixed_results.FixedCaptures(), finder, SystemClock(), metrics, monitor)
    with server.listen("127.0.0.1", 0) as listening:
        async with ReloadableApplication(lambda _: nullcontext(context), 5.0, print) as application:
            await server.serve(application, listening, ready, 5.0)

uvloop.run(main())
"""


def test_sighup_reloads_the_registry_without_closing_connections(tmp_path: Path) -> None:
    """A new archive is used by the next request of an open connection; event streams continue."""
    command, environment = run_service(tmp_path)
    registry = tmp_path / "archives.toml"
    with run_process(command, environment) as process, ExitStack() as stack:
        client = wait_for_client(process)
        connection = stack.enter_context(closing(http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)))

        def archives() -> set[str]:
            connection.request("GET", "/about?format=json")
            return {each["id"] for each in json.loads(connection.getresponse().read())["archives"]}

        assert archives() == {"a"}
        opened = connection.sock
        registry.write_text(registry.read_text() + REGISTRY.format(port=free_port()).replace('"a"', '"b"'))
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: archives() == {"a", "b"})
        assert connection.sock is opened
        process.send_signal(signal.SIGTERM)
        assert process.wait(8) == 0


def test_unreadable_registry_is_not_reloaded(tmp_path: Path) -> None:
    """The service continues with the registry in use and reports the error."""
    with run_process(*run_service(tmp_path)) as process:
        client = wait_for_client(process)
        (tmp_path / "archives.toml").write_text("[[archive]\n")
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        assert b"not reloaded" in process.stderr.readline()
        assert client.request("/health").status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(8) == 0


def test_the_unspecified_ipv6_address_accepts_ipv4() -> None:
    """`--host ::` accepts both."""
    with server.listen("::", 0) as listening:
        port = listening.getsockname()[1]
        for host in ("127.0.0.1", "::1"):
            with socket.create_connection((host, port), timeout=5):
                pass


def test_server_listens_on_loopback_by_default(tmp_path: Path) -> None:
    """Other hosts cannot connect unless an option allows it."""
    with run_process(*run_service(tmp_path)) as process:
        port = wait_for_client(process).port
        tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
        rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
        listening = {row[1].rpartition(":")[0] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
        assert listening == {"0100007F"}


def test_startup_objects_are_excluded_from_garbage_collection() -> None:
    """After startup, full collections skip the loaded objects."""
    found = subprocess.run([sys.executable, "-c", SETTLED], capture_output=True, text=True, check=True)
    passed_over, looked_at = map(int, found.stdout.split())
    assert passed_over > 10_000
    assert looked_at < passed_over / 20


def test_invalid_requests_are_not_logged(tmp_path: Path) -> None:
    """An invalid request gets a response and no line in the log."""
    with run_process(*run_service(tmp_path)) as process:
        client = wait_for_client(process)
        assert b" 400 " in client.raw(b"\x00\xff\r\n\r\n")
        upgrade = b"GET /health HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: close, Upgrade\r\n\r\n"
        assert b" 200 OK" in client.raw(upgrade)
        process.send_signal(signal.SIGTERM)
        assert process.wait(8) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_idle_connections_do_not_block_clients(tmp_path: Path) -> None:
    """More idle connections than the usual limit of open files do not block others."""
    command, env = run_service(tmp_path)
    limited: list[str | Path] = ["/bin/sh", "-c", 'ulimit -Sn 64; exec "$@"', "sh", *command]
    with run_process(limited, env) as process, ExitStack() as idle:
        client = wait_for_client(process)
        for _ in range(100):
            idle.enter_context(socket.create_connection(("127.0.0.1", client.port), 10))
        assert client.request("/health").status == 200


def test_pending_responses_are_completed_on_shutdown() -> None:
    """Requests before SIGTERM get responses; later ones do not."""
    port = free_port()
    command: list[str | Path] = [sys.executable, "-m", "tests.web.fixed_results", str(port)]
    with run_process(command, {"PYTHONPATH": str(ROOT)}) as process:
        client = Client(port)
        while not is_ready(port):
            assert process.poll() is None
        with socket.create_connection(("127.0.0.1", port), 20) as pending:
            pending.sendall(b"GET /timemap/link/http://slow.example/ HTTP/1.1\r\nHost: a\r\n\r\n")
            client.request("/health")  # it came later, so what came before it is under way
            process.send_signal(signal.SIGTERM)
            response = b""
            while piece := pending.recv(1 << 16):
                response += piece
        assert process.wait(20) == 0
        assert response.startswith(b"HTTP/1.1 200")
        assert b"X-Memento-Count: 4" in response
        assert response.endswith(b'rel="timegate"\n')
        with pytest.raises(ConnectionRefusedError):
            client.request("/health")


def test_port_in_use_is_reported(tmp_path: Path) -> None:
    """The message says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = unlost("serve", "--port", str(port), env={"UNLOST_HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == (
        f"unlost: port {port} of 127.0.0.1 is taken: end what listens there, or choose another with --port\n"
    )


@pytest.mark.parametrize(
    "options",
    [
        ("--root", "memento.example"),
        ("--root", "http://a/?b"),
        ("--root", "https://a.example/timemap/"),
        ("--root", "https://a.example/recover"),
        ("--root", "https://a.example/jobs/x"),
        ("--root", 'http://a/">'),
        ("--top-k", "0"),
        ("--deadline", "0"),
        ("--only", "nobody"),
        ("--host", "256.1.1.1"),
        ("--upstream-max", "0"),
    ],
)
def test_invalid_options_are_rejected(options: tuple[str, str]) -> None:
    """Before the server listens."""
    assert unlost("serve", "--port", "0", *options).returncode == 2


@pytest.mark.parametrize("file", ["nothing.ukvs", __file__, "/dev/null"], ids=["not there", "no map", "empty"])
def test_missing_published_map_is_rejected(file: str) -> None:
    """The message names the file, before the server listens."""
    done = unlost("serve", "--port", "0", "--publish-map", file)
    assert (done.returncode, done.stderr.count(b"\n")) == (3, 1)
    assert done.stderr.decode().startswith(f"unlost: {file}: ")


def test_links_begin_with_the_root(tmp_path: Path) -> None:
    """With --root, whatever the Host header is; an unreachable archive is reported."""
    command, environment = run_service(tmp_path, "--root", "https://memento.example.org/x/", "--deadline", "3")
    with run_process(command, environment) as process:
        client = wait_for_client(process)
        response = client.request("/openapi.json", headers={"Host": "evil.example"})
        assert json.loads(response.text)["servers"] == [{"url": "https://memento.example.org/x"}]
        missing = client.request(f"/timemap/link/{PAGE}")
        assert (missing.status, missing.headers["x-archives-failed"]) == (503, "a=refused")
        assert missing.headers["cache-control"] == "no-store"


def test_page_urls_have_the_prefix(tmp_path: Path) -> None:
    """Links, forms, style sheets and redirects are below the prefix; requests work with and without it."""
    more = ("--root", "https://example.org/find", "--jobs", str(tmp_path / "jobs"), "--workers", "0")
    command, environment = run_service(tmp_path, *more)
    with run_process(command, environment) as process:
        assert process.stderr is not None
        assert b"no --smtp" in process.stderr.readline()
        assert b"a token for administrators" in process.stderr.readline()
        client = wait_for_client(process)
        for path in ("/", "/about", "/recover", "/privacy", "/admin/login", "/jobs/nosuch"):
            page = client.request(f"/find{path}", headers={"Accept": "text/html"})
            assert page.text == client.request(path, headers={"Accept": "text/html"}).text or path in (
                "/recover",
                "/admin/login",
            )  # these have tokens
            urls = re.findall(r'(?:href|src|action|data-\w+)="(/[^"]*)"', page.text)
            assert urls, path
            assert [url for url in urls if not url.startswith("/find/")] == []
            for url in urls:
                if "/static/" in url:
                    assert client.request(url).status == 200
        redirect = client.request("/find/admin")
        assert (redirect.status, redirect.headers["location"]) == (303, "/find/admin/login")
        assert client.request("/finder").status == 404
        assert client.request("/find", headers={"Accept": "text/html"}).text.startswith("<!doctype html>")


def test_template_urls_have_the_prefix() -> None:
    """Paths in templates begin with `base`."""
    folder = Path(templating.__file__).parent / "templates"
    for file in folder.rglob("*.html"):
        if file.parent.name == "letters":
            continue
        assert not re.findall(
            r'(?:href|src|action|data-\w+)="(?:/|\{\{ "/|\{\{ (?:link|api|frame|here) \}\})', file.read_text()
        ), file
