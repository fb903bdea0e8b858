"""pywb with an index and WARCs of ours."""

import http.client
import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.cli.run import unlost
from tests.external.process import start_server
from unlost.demo import pywb_config, pywb_environment, pywb_registry_entry
from unlost.registry import Archive, ArchiveKind

ROOT = Path(__file__).parents[2]
WAYBACK = ROOT / ".neighbours" / "pywb" / "bin" / "wayback"


class RawCapture(NamedTuple):
    """A capture as served by pywb: status, lower-case headers, stored body."""

    status: int
    headers: dict[str, str]
    body: bytes


class Pywb:
    """A running pywb with one collection, `t`."""

    def __init__(self, port: int) -> None:
        self.port = port

    def archive(self, name: str, kind: ArchiveKind = ArchiveKind.PYWB, rows_per_page: int = 100_000) -> Archive:
        """Return its registry entry."""
        return pywb_registry_entry(self.port, name, name, kind, rows_per_page)

    def fetch(self, datetime: str, uri: str) -> RawCapture:
        """Return a raw capture.

        Archived Content-Length headers are passed through and often wrong, so the body ends with the connection.
        """
        request = (
            f"GET /t/{datetime}id_/{uri} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            "Accept-Encoding: gzip, br\r\nConnection: close\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
            connection.sendall(request.encode())
            response = b""
            while data := connection.recv(1 << 16):
                response += data
        head, _, body = response.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        if headers.get("transfer-encoding") == "chunked":
            body = decode_chunked(body)
        return RawCapture(int(status.split()[1]), headers, body)

    def rows(self, uri: str) -> list[dict[str, str]]:
        """Return the rows of pywb's index server for a URL."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", f"/t/cdx?url={uri}&output=json")
            return [json.loads(line) for line in connection.getresponse().read().splitlines()]
        finally:
            connection.close()


def decode_chunked(body: bytes) -> bytes:
    """Return a body without chunked framing; other bodies are unchanged."""
    decoded = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        decoded, body = decoded + rest[:length], rest[length + 2 :] if length else b""
    return decoded


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/collinfo.json")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def serve_index(index: Path, warcs: Path, folder: Path) -> Iterator[Pywb]:
    """Serve an index and the folder of its WARCs."""
    if not WAYBACK.exists():
        raise FileNotFoundError(f"{WAYBACK}: run `make test`, which installs it")
    (folder / "config.yaml").write_text(pywb_config(warcs, index))
    with _start_pywb(folder) as server:
        yield server


@contextmanager
def serve_wacz(wacz: Path, folder: Path, *, framed: bool = True) -> Iterator[Pywb]:
    """Serve a WACZ added by pywb's own tool: its WARC and index.

    Args:
        framed: Whether pages are in a frame below a banner.
    """
    for arguments in (["init", "t"], ["add", "--unpack-wacz", "t", str(wacz)]):
        command = [str(WAYBACK.with_name("wb-manager")), *arguments]
        done = subprocess.run(command, cwd=folder, env=pywb_environment(), capture_output=True, check=False, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode())
    if not framed:
        (folder / "config.yaml").write_text(json.dumps({"framed_replay": False}))
    with _start_pywb(folder) as server:
        yield server


@contextmanager
def _start_pywb(folder: Path) -> Iterator[Pywb]:
    def command(port: int) -> list[str | Path]:
        return [WAYBACK, "-b", "127.0.0.1", "-p", str(port), "-t", "1", "-d", folder]

    with start_server(command, _is_ready, folder, pywb_environment()) as port:
        yield Pywb(port)


@contextmanager
def serve_warcs(warcs: list[Path], folder: Path) -> Iterator[list[Pywb]]:
    """Serve each WARC with its own instance, indexed by `unlost index build`."""
    with ExitStack() as running_servers:
        servers = []
        for number, warc in enumerate(warcs):
            instance = folder / f"instance-{number}"
            instance.mkdir()
            index = instance / "index.cdxj"
            done = unlost("index", "build", str(warc), "-o", str(index))
            if done.returncode != 0:
                raise RuntimeError(done.stderr.decode())
            servers.append(running_servers.enter_context(serve_index(index, warc.parent, instance)))
        yield servers
