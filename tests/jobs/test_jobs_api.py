"""The jobs API of `unlost serve --jobs`, with its own worker."""

import asyncio
import csv
import http.client
import io
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from tests.cli.run import unlost
from tests.external.postgresql import Postgresql
from tests.external.tcp_relay import run_relay
from tests.jobs.service_process import ORDER, ServiceProcess, run_service
from tests.jobs.worker_processes import ArchivePause
from tests.recovery.sample_site import FILES, SiteArchives, sample_site, serve_site
from tests.waiting import wait_until
from tests.web.test_metrics import samples
from tests.webui.visitor import Visitor
from unlost.export import MANIFEST_NAME
from unlost.jobs.watcher import _MAX_PER_KEY
from unlost.web import jobs_api
from unlost.webui import render

NEIGHBOURS = Path(__file__).parents[2] / ".neighbours"


@pytest.fixture(scope="module")
def site_archives() -> Iterator[SiteArchives]:
    """Run the archives of a small site."""
    with serve_site(sample_site()) as found:
        yield found


@pytest.fixture(scope="module")
def service(site_archives: SiteArchives, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Run a service with one worker."""
    folder = tmp_path_factory.mktemp("serving")
    with run_service(folder, site_archives.registry(folder)) as found:
        yield found


def test_job_from_order_to_download(service: ServiceProcess) -> None:
    """An order is confirmed, processed, watched, and downloaded in ranges."""
    made = service.request("POST", "/api/jobs", ORDER)
    assert made.status == 201
    key, number = made.json["key"], made.json["number"]
    assert made.headers["location"].endswith(f"/api/jobs/{key}")
    assert (made.json["state"], made.json["policy"], made.json["place"]) == ("pending", "complete", None)
    link = service.wait_for_log(rf"job {number}, confirm: http://127\.0\.0\.1:\d+(/jobs/confirm/[\w-]+)")
    visitor = Visitor(service)
    page = visitor.get(link)
    assert (page.status, page.headers["referrer-policy"]) == (200, "no-referrer")
    assert service.status(key)["state"] == "pending", "to look at the page confirms nothing"
    confirmed = visitor.post(link, {})
    assert confirmed.status == 303
    assert service.request("GET", confirmed.headers["location"]).status == 200
    done = service.wait_until_ended(key)
    assert (done["state"], done["progress"]["recovered"], done["progress"]["share"]) == ("complete", FILES, 1.0)
    assert {each["format"] for each in done["packages"]} == {"zip", "tar.gz", "wacz"}
    path = f"/api/jobs/{key}/package/zip"
    first = service.request("GET", path, Range="bytes=0-999")
    tag = first.headers["etag"]
    assert (first.status, len(first.body)) == (206, 1000)
    assert service.status(key)["picked_up"] is None, "that was not all of it"
    rest = service.request("GET", path, Range="bytes=1000-", If_Range=tag)
    assert rest.status == 206
    assert service.request("GET", path, Range="bytes=1000-", If_Range='"other"').status == 200
    with zipfile.ZipFile(io.BytesIO(first.body + rest.body)) as packed:
        assert packed.testzip() is None
        assert len(set(packed.namelist()) - {MANIFEST_NAME}) == FILES
    assert service.request("GET", path, Range="bytes=99999999-").status == 416
    wait_until(lambda: service.status(key)["picked_up"] is not None)
    assert service.request("HEAD", f"/api/jobs/{key}/package/wacz").headers["content-type"] == "application/wacz"
    assert service.request("GET", f"/api/jobs/{key}/package/rar").status == 404


@pytest.mark.parametrize(
    ("tail", "start", "added"), [("3.html", "3.html", "index.html"), ("", "index.html", None)]
)  # fmt: skip
def test_package_starts_at_the_ordered_page(
    service: ServiceProcess, tail: str, start: str, added: str | None
) -> None:  # fmt: skip
    """So do the preview and the instructions; the zip always has a start page."""
    order = {**ORDER, "url": ORDER["url"] + tail, "page": True}
    key = service.request("POST", "/api/jobs", order, is_admin=True).json["key"]
    assert service.wait_until_ended(key)["state"] == "complete"
    page = service.request("GET", f"/jobs/{key}").body.decode()
    assert f'open <code class="uri"><bdi>{start}</bdi></code>.' in page
    frame = re.search(r'src="(/preview/[^"]+)"', service.request("GET", f"/jobs/{key}/preview").body.decode())
    assert frame is not None
    begun = service.request("GET", frame[1])
    assert (begun.status, begun.headers["location"]) == (307, f"{frame[1]}{start}")
    opened_page = service.request("GET", begun.headers["location"])
    assert (opened_page.status, b"words" in opened_page.body) == (200, bool(tail))
    with zipfile.ZipFile(io.BytesIO(service.request("GET", f"/api/jobs/{key}/package/zip").body)) as packed:
        assert "index.html" in packed.namelist()
        assert added is None or f"url={start}".encode() in packed.read(added)


def test_malformed_http_leaves_no_traceback(site_archives: SiteArchives, tmp_path: Path) -> None:
    """This includes clients that disconnect during a body or during pipelined requests."""
    with run_service(tmp_path, site_archives.registry(tmp_path), "--workers", "0") as service:

        def send(data: bytes, *, is_reset: bool) -> None:
            with socket.create_connection(("127.0.0.1", service.port), 30) as opened:
                opened.sendall(data)
                if is_reset:
                    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                opened.shutdown(socket.SHUT_WR)
                while opened.recv(1 << 16):
                    pass

        get = b"GET /about HTTP/1.1\r\nHost: a\r\n\r\n"
        types = (b"application/json", b"application/x-www-form-urlencoded")
        heads = [
            b"POST %b HTTP/1.1\r\nHost: a\r\nContent-Type: %b\r\n" % (path, type_)
            for path in (b"/api/jobs", b"/recover", b"/recover/check", b"/admin/login")
            for type_ in types
        ]
        ends = [
            b"Content-Length: 9\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
            b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n\0\0",
        ]  # fmt: skip
        broken = [head + end for head in heads for end in ends]
        broken += [get + b"\0\0", get * 3 + b"\0\0", b"\0\0", b"GET http://[ HTTP/1.1\r\nHost: a\r\n\r\n", get * 3]
        for data in broken:
            for is_reset in (False, True):
                send(data, is_reset=is_reset)
        assert service.request("GET", "/health").status == 200
        service.process.terminate()
        service.process.wait(30)
    assert not [line for line in service.lines if "Traceback" in line or "rror" in line or "fault" in line]


def test_progress_is_streamed(service: ServiceProcess) -> None:
    """A subscriber gets an event at once, one for each change, and a last one when the job has ended."""
    job = service.request("POST", "/api/jobs", ORDER, is_admin=True).json
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    connection.request("GET", f"/api/jobs/{job['key']}/events")
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")
    text = response.read().decode()
    connection.close()
    events = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    assert events[-1]["state"] == "complete"
    assert all(one != other for one, other in pairwise(events))


def test_event_streams_are_limited(service: ServiceProcess) -> None:
    """The number of streams per client network is limited; other networks are not affected."""
    order = {"url": "http://streams.example/", "mail": "streams@example.org"}
    keys = [service.request("POST", "/api/jobs", order).json["key"] for _ in range(2)]

    def stream(key: str, source: str) -> tuple[socket.socket, bytes]:
        opened = socket.create_connection(("127.0.0.1", service.port), 30, (source, 0))
        opened.sendall(f"GET /api/jobs/{key}/events HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return opened, opened.recv(12)

    with ExitStack() as stack:
        for number in range(_MAX_PER_KEY):
            opened, status_line = stream(keys[number % 2], "127.0.0.1")
            stack.enter_context(opened)
            assert status_line == b"HTTP/1.1 200"
        one_too_many, status_line = stream(keys[0], "127.0.0.1")
        one_too_many.close()
        assert status_line == b"HTTP/1.1 429"
        elsewhere, status_line = stream(keys[0], "127.0.0.2")
        elsewhere.close()
        assert status_line == b"HTTP/1.1 200"

    def has_room() -> bool:
        again, status_line = stream(keys[0], "127.0.0.1")
        again.close()
        return status_line == b"HTTP/1.1 200"

    wait_until(has_room)


def test_authentication_by_keys_and_tokens(service: ServiceProcess) -> None:
    """A key grants access to its job only; lists, moves and history need a token."""
    job = service.request("POST", "/api/jobs", ORDER).json
    key, number = job["key"], job["number"]
    forged = key[:-1] + ("A" if key[-1] != "A" else "B")
    other = f"{number + 1}-{key.partition('-')[2]}"
    for wrong in (forged, other, "x", f"{number}-", "1-" + "A" * 43):
        assert service.request("GET", f"/api/jobs/{wrong}").status == 404
    assert service.request("GET", f"/api/jobs/{number}").status == 404
    assert service.request("GET", f"/api/jobs/{number}", Authorization="Bearer x").status == 401
    assert service.request("GET", f"/api/jobs/{number}", is_admin=True).json["generation"] == 0
    for method, path in (
        ("GET", "/api/jobs"),
        ("GET", "/api/workers"),
        ("GET", "/api/history"),
        ("GET", "/api/statistics"),
        ("DELETE", f"/api/jobs/{key}"),
    ):
        refused = service.request(method, path)
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
    wrong_code = service.request("POST", f"/api/jobs/{key}/confirm", {"code": key})
    assert wrong_code.status == 400, "the key alone confirms nothing"
    code = service.wait_for_log(rf"job {number}, confirm: \S+/jobs/confirm/([\w-]+)")
    assert service.request("GET", f"/api/jobs/{code}").status == 404, "nor does the code open the job"
    assert service.request("POST", f"/api/jobs/{key}/cancel").json["state"] == "cancelled"
    assert service.request("POST", f"/api/jobs/{key}/confirm", {"code": code}).json["state"] == "cancelled"
    removed = service.request("DELETE", f"/api/jobs/{number}", is_admin=True).json
    assert (removed["state"], removed["mail"]) == ("removed", "")
    assert service.request("POST", f"/api/jobs/{key}/retry").status == 409
    logged = "".join(service.lines)
    assert service.token not in logged


def test_invalid_orders_are_rejected(service: ServiceProcess) -> None:
    """The error names the field."""
    wrong: list[dict[str, object]] = [
        {"url": ""}, {"url": "mailto:a@b"}, {"mail": "a b@c"}, {"mail": "a@b\nBcc: c@d"}, {"mail": "a@b@c"},
        {"page": 1},
        {"archives": ["nobody"]}, {"archives": "a"}, {"from": "2015", "to": "2014"}, {"to": "x"}, {"policy": "all"},
        {"name": "x" * 201}, {"name": "a\x1b"}, {"windows": "yes"},
    ]  # fmt: skip
    for more in wrong:
        refused = service.request("POST", "/api/jobs", {**ORDER, **more})
        assert refused.status == 400, more
        assert any(refused.json["error"].startswith(name) for name in more), refused.json
    assert service.request("POST", "/api/jobs", {**ORDER, "more": 1}).json["error"].startswith("more: no such field")
    assert service.request("POST", "/api/jobs", b"[" * 70_000).status == 413
    assert service.request("POST", "/api/jobs", b"[" * 60_000).status == 400
    assert (
        service.request("POST", "/api/jobs", b"url=x", Content_Type="application/x-www-form-urlencoded").status == 415
    )
    put = service.request("PUT", "/api/jobs", {})
    assert (put.status, {*put.headers["allow"].split(", ")}) == (405, {"DELETE", "GET", "HEAD", "POST"})


def test_request_body_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sends headers but no body gets a timeout error."""
    monkeypatch.setattr(render, "_BODY_SECONDS", 0.01)

    async def never() -> dict[str, object]:
        await asyncio.Event().wait()
        return {}

    async def run() -> None:
        scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"application/json")]}
        with pytest.raises(HTTPException, match="408"):
            await jobs_api._read_json(Request(scope, never))

    asyncio.run(run())


def test_paths_do_not_escape_the_job_folder(service: ServiceProcess) -> None:
    """Packages are selected by format only, so paths cannot be requested."""
    key = service.request("POST", "/api/jobs", ORDER, is_admin=True).json["key"]
    assert service.wait_until_ended(key)["state"] == "complete"
    for path in (
        "../../../secret",
        "..%2F..%2F..%2Fsecret",
        "%2Fetc%2Fpasswd",
        "zip/../../secret",
        "zip%00",
        "site.zip",
    ):
        response = service.request("GET", f"/api/jobs/{key}/package/{path}")
        assert response.status in (400, 404), path
        assert (service.folder / "jobs" / "secret").read_text() not in response.body.decode()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"])
def test_url_of_an_order_is_never_requested(service: ServiceProcess, host: str) -> None:
    """For any spelling of this machine's address, archives are queried and no connection to it is opened."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://{host}:{listener.getsockname()[1]}/admin"
        response = service.request("POST", "/api/jobs", {**ORDER, "url": url}, is_admin=True)
        if response.status == 201:
            assert service.wait_until_ended(response.json["key"])["progress"]["recovered"] == 0
        else:
            assert response.json["error"].startswith("url:")
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_administrator_endpoints(service: ServiceProcess, site_archives: SiteArchives) -> None:
    """Administrators list the queue and workers, move and assign jobs, and download the history."""
    hold = ArchivePause(site_archives, 1)
    try:
        busy = service.request("POST", "/api/jobs", ORDER, is_admin=True).json
        hold.wait()
        waiting = [service.request("POST", "/api/jobs", ORDER, is_admin=True).json for _ in range(3)]
        assert [job["place"] for job in waiting] == [1, 2, 3]
        assert (
            service.request("POST", f"/api/jobs/{waiting[2]['number']}/move", {"place": 1}, is_admin=True).json["place"]
            == 1
        )
        listed = service.request("GET", "/api/jobs?state=queued", is_admin=True).json
        numbers = [job["number"] for job in waiting]
        assert [job["number"] for job in listed["jobs"]] == [numbers[2], numbers[0], numbers[1]]
        assert listed["counts"]["queued"] == 3
        (worker,) = service.request("GET", "/api/workers", is_admin=True).json["workers"]
        assert worker["jobs"] == [busy["number"]]
        for number in numbers:
            path = f"/api/jobs/{number}/assign"
            assert (
                service.request("POST", path, {"worker": "elsewhere"}, is_admin=True).json["for_worker"] == "elsewhere"
            )
        measured = samples(service.request("GET", "/metrics").body.decode())
        assert measured["unlost_jobs_queued"] == 3
        assert measured["unlost_workers"] == 1
    finally:
        hold.release()
    service.wait_until_ended(busy["key"])
    assert {service.status(job["key"])["state"] for job in waiting} == {"queued"}, "none is of this worker"
    for job in waiting:
        assert service.request("POST", f"/api/jobs/{job['key']}/cancel").status == 200
    rows = service.request("GET", "/api/history", is_admin=True).json
    table = list(
        csv.DictReader(io.StringIO(service.request("GET", "/api/history?format=csv", is_admin=True).body.decode()))
    )
    tree = ET.fromstring(service.request("GET", "/api/history?format=xml", is_admin=True).body)  # noqa: S314  our own
    assert [row["number"] for row in rows] == sorted(row["number"] for row in rows)
    assert [str(row["number"]) for row in rows] == [row["number"] for row in table]
    assert [row["number"] for row in table] == [each.findtext("number") for each in tree]
    assert {busy["number"], *numbers} <= {row["number"] for row in rows}
    figures = service.request("GET", "/api/statistics", is_admin=True).json
    assert figures["ordered"] == len(rows)
    assert figures["complete"] == sum(row["state"] == "complete" for row in rows) >= 1
    assert (figures["recovered"]["max"], figures["tlds"][0]["tld"]) == (FILES, "example")
    assert [each["used"]["share"] for each in figures["archives"]] == [1.0, 1.0]


def test_job_commands(service: ServiceProcess) -> None:
    """`unlost jobs` submits, shows, cancels and lists jobs."""
    server = ("--server", service.base)
    done = unlost("jobs", "submit", "lost.example", "--mail", "me@example.org", *server)
    assert done.returncode == 0, done.stderr
    key = done.stdout.decode().strip()
    assert b"confirm it" in done.stderr
    assert json.loads(unlost("jobs", "status", key, *server, "--json").stdout)["state"] == "pending"
    assert b"pending" in unlost("jobs", "status", key, *server).stdout
    assert b"cancelled" in unlost("jobs", "cancel", key, *server).stdout
    assert unlost("jobs", "list", *server).returncode == 2
    listed = unlost("jobs", "list", *server, "--state", "cancelled", env={"UNLOST_TOKEN": service.token})
    assert b"http://lost.example" in listed.stdout
    assert unlost("jobs", "status", "1-x", *server).returncode == 2
    refused = unlost("jobs", "submit", "lost.example", "--mail", "nobody", *server)
    assert (refused.returncode, b"mail:" in refused.stderr) == (2, True)
    assert unlost("jobs", "status", key, "--server", "http://127.0.0.1:1").returncode == 3
    place = str(service.folder / "jobs")
    token = unlost("jobs", "token", "you", "--jobs", place).stdout.decode().strip()
    assert unlost("jobs", "list", *server, "--token", token).returncode == 0
    assert unlost("jobs", "token", "you", "--revoke", "--jobs", place).returncode == 0
    wait_until(lambda: unlost("jobs", "list", *server, "--token", token).returncode == 2)


@pytest.mark.parametrize("which", ["made up", "complete"])
def test_schemathesis(service: ServiceProcess, tmp_path: Path, which: str) -> None:
    """No generated request causes an internal error, and every response matches the description.

    Generated keys are invalid, so the second run has the key of a job and reaches all operations of its owner.
    """
    if which == "complete":
        key = service.request("POST", "/api/jobs", ORDER, is_admin=True).json["key"]
        assert service.wait_until_ended(key)["state"] == "complete"
        (tmp_path / "schemathesis.toml").write_text(f'[parameters]\n"path.key" = "{key}"\n')
    begin = time.monotonic()
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    done = subprocess.run(
        [
            NEIGHBOURS / "schemathesis" / "bin" / "schemathesis", "run", f"{service.base}/openapi.json",
            "--checks", f"{checks},unsupported_method,allow_header_conformance",
            "--include-path-regex", "^/api/(jobs|workers|history|statistics)" if which == "made up" else "key",
            "--header", f"Authorization: Bearer {service.token}",
            "--exclude-path-regex", "events",  # they do not end
            "--phases", "examples,coverage,fuzzing", "--max-examples", "10", "--max-time", "8", "--seed", "1208",
            "--max-redirects", "0", "--suppress-health-check", "all", "--no-color",
        ],
        capture_output=True, check=False, timeout=90, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout.decode()[-6_000:]
    assert time.monotonic() - begin < 60
    assert service.request("GET", "/health").status == 200
    if which == "complete":
        assert service.status(key)["state"] != "complete", "what changes a job has reached it"


def test_log_is_json_lines(service: ServiceProcess) -> None:
    """Every line has a level and a message; lines about jobs have the time and the job's number."""
    pending = service.request("POST", "/api/jobs", {**ORDER, "mail": "you@example.org"}).json["number"]
    service.wait_for_log(rf"(job {pending}, confirm)")
    number = service.request("POST", "/api/jobs", ORDER, is_admin=True).json["number"]
    wait_until(lambda: any(f"job {number} left" in line for line in service.lines))
    entries = [json.loads(line) for line in tuple(service.lines)]
    assert all({"level", "message"} <= each.keys() for each in entries)
    about = [each for each in entries if each.get("job") == number]
    assert all("time" in each for each in about)
    assert [(each["message"], each["generation"]) for each in about] == [
        (f"job {number} begun", 1), (f"job {number} left", 1)
    ]  # fmt: skip
    assert len({each["worker"] for each in about}) == 1


def test_service_survives_database_outage(site_archives: SiteArchives, server: Postgresql, tmp_path: Path) -> None:
    """`/health` and orders report it; other endpoints still work."""
    with run_relay(server.port) as relay:
        url = server.create_database().replace(str(server.port), str(relay.port))
        more = {"UNLOST_DATABASE": url}
        with run_service(tmp_path, site_archives.registry(tmp_path), "--workers", "0", env=more) as service:
            assert service.request("GET", "/health").status == 200
            key = service.request("POST", "/api/jobs", ORDER).json["key"]
            assert "unlost_jobs_pending" in service.request("GET", "/metrics").body.decode()
            relay.close()
            assert service.request("GET", "/health").status == 503
            for response in (
                service.request("POST", "/api/jobs", ORDER),
                service.request("GET", f"/api/jobs/{key}/events"),
            ):
                assert (response.status, response.headers["retry-after"]) == (503, "5")
                assert "cannot be reached" in response.json["error"]
                for private in ("127.0.0.1", "postgresql", str(relay.port)):
                    assert private not in response.json["error"]
            measured = service.request("GET", "/metrics")
            assert (measured.status, "unlost_jobs_pending" in measured.body.decode()) == (200, False)


def test_workers_end_with_the_service(site_archives: SiteArchives, tmp_path: Path) -> None:
    """A dead worker is replaced; workers end by themselves if the service is killed; SIGTERM ends all."""
    with run_service(tmp_path, site_archives.registry(tmp_path)) as service:
        first = service.wait_for_log(r"worker (\S+) waits for jobs")
        os.kill(_process(first), signal.SIGKILL)
        wait_until(lambda: sum("waits for jobs" in line for line in service.lines) == 2)
        second = [line for line in service.lines if "waits for jobs" in line][1].split()
        name = next(word for word in second if word.count("-") >= 2)
        service.process.kill()
        service.process.wait()
        wait_until(lambda: not Path(f"/proc/{_process(name)}").exists())
    with run_service(tmp_path, site_archives.registry(tmp_path)) as again:
        third = again.wait_for_log(r"worker (\S+) waits for jobs")
        again.process.terminate()
        assert again.process.wait(30) == 0
        assert not Path(f"/proc/{_process(third)}").exists()


def _process(worker: str) -> int:
    return int(worker.rsplit("-", 2)[1])
