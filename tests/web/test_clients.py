"""Third-party clients with the service and real archives: memento-client, pywb and schemathesis."""

import http.client
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.archives.clients.records import response
from tests.cli.run import UNLOST, unlost
from tests.external import pywb
from tests.external.process import free_port, start_server
from tests.web.client import Client, is_ready

NEIGHBOURS = pywb.ROOT / ".neighbours"
LOST = "http://lost.example/page?a=1&b=2"
CLIENT = """
import json, sys
from memento_client import MementoClient
client = MementoClient(timegate_uri=sys.argv[1], check_native_timegate=False)
found = client.get_memento_info(sys.argv[2], client.convert_to_datetime(sys.argv[3]))
print(json.dumps(found, default=str))
"""


class Environment:
    """Two archives and a service. `page` is a URL that is both live and archived."""

    def __init__(self, service: Client, archives: list[pywb.Pywb], registry: Path, page: str) -> None:
        self.service = service
        self.archives = archives
        self.registry = registry
        self.page = page


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """Run archives with captures of two pages: of 2010 and 2014 in the first, of 2012 in the second."""
    folder = tmp_path_factory.mktemp("world")
    port = free_port()
    page = f"http://127.0.0.1:{port}/health"
    crawls = (("2010-01-01T00:00:00Z", "2014-02-10T00:00:01Z"), ("2012-06-01T12:00:00Z",))
    warcs = []
    for number, dates in enumerate(crawls):
        warc = folder / f"{number}.warc.gz"
        records = [response(uri, date, f"<p>as of {date}</p>".encode()) for uri in (page, LOST) for date in dates]
        warc.write_bytes(b"".join(records))
        warcs.append(warc)
    with pywb.serve_warcs(warcs, folder) as archives:
        registry = folder / "archives.toml"
        registry.write_text(
            "".join(
                f'[[archive]]\nid = "{name}"\nname = "{name}"\nkind = "pywb"\nlimits = []\n'
                f'timemap = "http://127.0.0.1:{each.port}/t/timemap/link/"\ntimegate = "http://127.0.0.1:{each.port}/t/"\n'
                f'cdx = "http://127.0.0.1:{each.port}/t/cdx"\n'
                f'replay = "http://127.0.0.1:{each.port}/t/{{datetime}}id_/{{uri}}"\n'
                for name, each in zip(("first", "second"), archives, strict=True)
            )
        )
        variables = {**os.environ, "UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "me@example.org"}

        def command(_: int) -> list[str | Path]:
            return [UNLOST, "serve", "--port", str(port), "--archives", registry]

        with start_server(command, lambda _: is_ready(port), folder, variables):
            yield Environment(Client(port), archives, registry, page)


def test_clients_find_all_mementos(environment: Environment) -> None:
    """Ordered by date; the command has the same result as the service."""
    response = environment.service.request(f"/timemap/text/{LOST}")
    assert response.status == 200
    assert [line[:4] for line in response.text.splitlines()] == ["2010", "2012", "2014"]
    home = {"UNLOST_HOME": str(environment.registry.parent / "home"), "UNLOST_CONTACT": "me@example.org"}
    done = unlost("timemap", LOST, "--format", "text", "--archives", str(environment.registry), env=home)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, response.text, b"")
    done = unlost("timegate", LOST, "2012", "--archives", str(environment.registry), env=home)
    assert done.returncode == 0
    timestamp, location = done.stdout.decode().split()
    assert timestamp == "20120601120000"
    assert environment.service.request(f"/memento/2012/{LOST}").headers["location"] == location
    done = unlost("timegate", "http://never.example/", "--json", "--archives", str(environment.registry), env=home)
    assert (done.returncode, json.loads(done.stdout)["closest"]) == (1, None)


@pytest.mark.parametrize(
    ("date", "year"), [("Sun, 01 Apr 2012 12:00:00 GMT", "2012"), ("Tue, 01 Jan 2030 00:00:00 GMT", "2014")]
)
def test_memento_client(environment: Environment, date: str, year: str) -> None:
    """It follows the TimeGate to the closest memento; it reads first, last and previous once the TimeMap is cached.

    TimeGates of pywb link only the closest memento, so before that no other relation is known.
    """
    python = NEIGHBOURS / "memento-client" / "bin" / "python"
    command: list[str | Path] = [python, "-c", CLIENT, f"{environment.service.base}/timegate/", environment.page, date]
    for is_cached in (False, True):
        if is_cached:
            assert environment.service.request(f"/timemap/link/{environment.page}").status == 200
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        found = json.loads(done.stdout)
        assert found["mementos"]["closest"]["datetime"].startswith(year)
    assert found["original_uri"] == environment.page
    assert found["timegate_uri"] == f"{environment.service.base}/timegate/{environment.page}"
    assert found["mementos"]["closest"]["http_status_code"] == 200
    assert found["mementos"]["first"]["datetime"].startswith("2010")
    assert found["mementos"]["last"]["datetime"].startswith("2014")
    assert found["mementos"]["prev"]["datetime"].startswith("2010" if year == "2012" else "2012")


def test_memento_is_proxied(environment: Environment) -> None:
    """From its archive, byte by byte."""
    response = environment.service.request(f"/memento/proxy/2012/{LOST}")
    assert (response.status, response.body) == (200, b"<p>as of 2012-06-01T12:00:00Z</p>")
    assert response.headers["memento-datetime"] == "Fri, 01 Jun 2012 12:00:00 GMT"


def test_pywb_uses_the_service_as_index(environment: Environment, tmp_path: Path) -> None:
    """A pywb without an archive of its own lists and replays pages of others."""
    base = environment.service.base
    source = {
        "type": "memento",
        "timegate_url": f"{base}/timegate/{{url}}",
        "timemap_url": f"{base}/timemap/link/{{url}}",
        "replay_url": f"{base}/memento/proxy/{{timestamp}}/{{url}}",
    }
    config = {"framed_replay": False, "enable_memento": True, "collections": {"t": {"index": source}}}
    (tmp_path / "config.yaml").write_text(json.dumps(config))

    def command(port: int) -> list[str | Path]:
        return [pywb.WAYBACK, "-b", "127.0.0.1", "-p", str(port), "-t", "1", "-d", tmp_path]

    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with start_server(command, pywb._is_ready, tmp_path, variables) as port:
        server = pywb.Pywb(port)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", f"/t/timemap/link/{LOST}")
        listed = connection.getresponse().read().decode()
        connection.close()
        assert [f"/t/{year}" in listed for year in (2010, 2012, 2014)] == [True] * 3
        for date in ("2010-01-01T00:00:00Z", "2012-06-01T12:00:00Z", "2014-02-10T00:00:01Z"):
            digits = "".join(char for char in date if char.isdigit())
            response = server.fetch(digits, LOST)
            assert response.status == 200
            assert response.body == f"<p>as of {date}</p>".encode()


def test_schemathesis(service: Client, tmp_path: Path) -> None:
    """No generated request causes an internal error, and every response matches the description."""
    begin = time.monotonic()
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    done = subprocess.run(
        [
            NEIGHBOURS / "schemathesis" / "bin" / "schemathesis", "run", f"{service.base}/openapi.json",
            "--checks", f"{checks},unsupported_method,allow_header_conformance",
            "--phases", "examples,coverage,fuzzing", "--max-examples", "10", "--max-time", "12", "--seed", "1208",
            "--max-redirects", "0", "--suppress-health-check", "all", "--no-color",
        ],
        capture_output=True, check=False, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout.decode()[-4_000:]
    assert time.monotonic() - begin < 30
    assert service.request("/health").status == 200
