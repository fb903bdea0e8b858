"""A file store for Hadoop's own client over the network: WebHDFS as documented by Hadoop.

As in a cluster there are two servers: one resolves names and redirects to the other, which has the bytes. A real HDFS
is not available as a package; the client, which our code uses, is the real one.
"""

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

_PREFIX = "/webhdfs/v1"
_BLOCK = 1 << 27


class Read(NamedTuple):
    """A read response: the file and its first byte."""

    name: str
    offset: int


@dataclass
class HdfsStore:
    """The store.

    Attributes:
        folder: The local folder of its files.
        reads: All read responses.
        break_next: Whether the store stops during its next response, after half of the file.
    """

    folder: Path
    reads: list[Read] = field(default_factory=list)
    break_next: bool = False
    _servers: "list[_Server]" = field(default_factory=list)
    _ports: list[int] = field(default_factory=lambda: [0, 0])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """URL of its root without a final slash."""
        return f"webhdfs://127.0.0.1:{self._ports[0]}"

    def start(self) -> None:
        """Listen; after a stop, on the same port."""
        self._servers = [_Server(self, port) for port in self._ports]
        self._ports = [server.server_address[1] for server in self._servers]
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self._servers.clear()

    def data_url(self, name: str, query: str) -> str:
        """Return the URL of the bytes of a file, on the other server."""
        return f"http://127.0.0.1:{self._ports[1]}{_PREFIX}{quote(name)}?{query}&sent=true"

    def should_break(self) -> bool:
        """Return whether to stop during this response, and reset `break_next`."""
        with self._lock:
            is_breaking, self.break_next = self.break_next, False
            return is_breaking


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, store: HdfsStore, port: int) -> None:
        self.store = store
        super().__init__(("127.0.0.1", port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Disable the log."""

    def _handle(self) -> None:
        """Respond to a request."""
        url = urlsplit(self.path)
        self.query = {name.lower(): values[0] for name, values in parse_qs(url.query).items()}
        self.name = unquote(url.path.removeprefix(_PREFIX)) or "/"
        self.file = self._file(self.name)
        operation = getattr(self, f"_{self.query['op'].lower()}", None)
        if operation is None:
            self._respond_error(
                400, "java.lang.IllegalArgumentException", f"Invalid value for webhdfs parameter {url.query}"
            )
        elif self.query["op"] in ("OPEN", "CREATE") and "sent" not in self.query:
            if self.query["op"] == "OPEN" and not self.file.is_file():
                self._respond_missing()
            else:
                self._respond(307, None, Location=self.server.store.data_url(self.name, url.query))
        else:
            with suppress(BrokenPipeError, ConnectionResetError):
                operation()

    do_GET = do_PUT = do_DELETE = _handle  # noqa: N815  names of http.server

    def _file(self, name: str) -> Path:
        return self.server.store.folder / name.lstrip("/")

    def _respond(self, status: int, content: object, **headers: str) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        # No Content-Type: the client of PySpark lacks classes to parse it.
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _respond_error(self, status: int, kind: str, message: str) -> None:
        exception = {"exception": kind.rpartition(".")[2], "javaClassName": kind, "message": message}
        self._respond(status, {"RemoteException": exception})

    def _respond_missing(self) -> None:
        self._respond_error(404, "java.io.FileNotFoundException", f"File does not exist: {self.name}")

    # Requests to the name server

    def _status(self, path: Path, suffix: str) -> dict[str, object]:
        state = path.stat()
        is_folder = path.is_dir()
        return {
            "accessTime": 0,
            "blockSize": 0 if is_folder else _BLOCK,
            "group": "users",
            "length": 0 if is_folder else state.st_size,
            "modificationTime": state.st_mtime_ns // 1_000_000,
            "owner": "owner",
            "pathSuffix": suffix,
            "permission": "755" if is_folder else "644",
            "replication": 0 if is_folder else 1,
            "type": "DIRECTORY" if is_folder else "FILE",
        }

    def _getfilestatus(self) -> None:
        if not self.file.exists():
            return self._respond_missing()
        return self._respond(200, {"FileStatus": self._status(self.file, "")})

    def _liststatus(self) -> None:
        if not self.file.exists():
            return self._respond_missing()
        if self.file.is_file():
            content = [self._status(self.file, "")]
        else:
            content = [self._status(each, each.name) for each in sorted(self.file.iterdir())]
        return self._respond(200, {"FileStatuses": {"FileStatus": content}})

    def _getfileblocklocations(self) -> None:
        if not self.file.exists():
            return self._respond_missing()
        host = {"cachedHosts": [], "corrupt": False, "hosts": ["127.0.0.1"], "names": [], "topologyPaths": []}
        block = {**host, "offset": 0, "length": self.file.stat().st_size}
        return self._respond(200, {"BlockLocations": {"BlockLocation": [block]}})

    def _mkdirs(self) -> None:
        self.file.mkdir(parents=True, exist_ok=True)
        self._respond(200, {"boolean": True})

    def _rename(self) -> None:
        target = self._file(self.query["destination"])
        if target.is_dir():
            target /= self.file.name
        is_done = self.file.exists() and target.parent.is_dir() and not target.exists()
        if is_done:
            self.file.rename(target)
        self._respond(200, {"boolean": is_done})

    def _delete(self) -> None:
        existed = self.file.exists()
        if self.file.is_dir():
            shutil.rmtree(self.file)
        else:
            self.file.unlink(missing_ok=True)
        self._respond(200, {"boolean": existed})

    # Requests to the data server

    def _open(self) -> None:
        store = self.server.store
        offset = int(self.query.get("offset", 0))
        try:
            data = self.file.read_bytes()[offset:]
        except OSError:
            return self._respond_missing()
        data = data[: int(self.query.get("length", len(data)))]
        store.reads.append(Read(self.name, offset))
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if store.should_break():
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
            return store.stop()
        self.wfile.write(data)
        return None

    def _create(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("wb") as file:
            # Chunked transfer coding.
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                file.write(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
        self._respond(201, None)


@contextmanager
def run_webhdfs(folder: Path) -> Iterator[HdfsStore]:
    """Run a store of a folder."""
    store = HdfsStore(folder)
    store.start()
    try:
        yield store
    finally:
        store.stop()
