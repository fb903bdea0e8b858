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
class Store:
    """The store.

    Attributes:
        folder: The local folder of its files.
        reads: All read responses.
        is_breaking: Whether the store stops during its next response, after half of the file.
    """

    folder: Path
    reads: list[Read] = field(default_factory=list)
    is_breaking: bool = False
    _servers: "list[_Server]" = field(default_factory=list)
    _ports: list[int] = field(default_factory=lambda: [0, 0])
    _deciding: threading.Lock = field(default_factory=threading.Lock)

    @property
    def address(self) -> str:
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

    def place(self, name: str, query: str) -> str:
        """Return the URL of the bytes of a file, on the other server."""
        return f"http://127.0.0.1:{self._ports[1]}{_PREFIX}{quote(name)}?{query}&sent=true"

    def breaks(self) -> bool:
        """Return once whether it is time to break."""
        with self._deciding:
            is_breaking, self.is_breaking = self.is_breaking, False
            return is_breaking


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, store: Store, port: int) -> None:
        self.store = store
        super().__init__(("127.0.0.1", port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Disable the log."""

    def _take(self) -> None:
        """Respond to a request."""
        url = urlsplit(self.path)
        self.query = {name.lower(): values[0] for name, values in parse_qs(url.query).items()}
        self.name = unquote(url.path.removeprefix(_PREFIX)) or "/"
        self.there = self._file(self.name)
        operation = getattr(self, f"_{self.query['op'].lower()}", None)
        if operation is None:
            self._refuse(400, "java.lang.IllegalArgumentException", f"Invalid value for webhdfs parameter {url.query}")
        elif self.query["op"] in ("OPEN", "CREATE") and "sent" not in self.query:
            if self.query["op"] == "OPEN" and not self.there.is_file():
                self._refuse_missing()
            else:
                self._say(307, None, Location=self.server.store.place(self.name, url.query))
        else:
            with suppress(BrokenPipeError, ConnectionResetError):
                operation()

    do_GET = do_PUT = do_DELETE = _take  # noqa: N815  names of http.server

    def _file(self, name: str) -> Path:
        return self.server.store.folder / name.lstrip("/")

    def _say(self, status: int, found: object, **headers: str) -> None:
        body = b"" if found is None else json.dumps(found).encode()
        self.send_response(status)
        # No Content-Type: the client of PySpark lacks classes to parse it.
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status: int, kind: str, message: str) -> None:
        told = {"exception": kind.rpartition(".")[2], "javaClassName": kind, "message": message}
        self._say(status, {"RemoteException": told})

    def _refuse_missing(self) -> None:
        self._refuse(404, "java.io.FileNotFoundException", f"File does not exist: {self.name}")

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
            "owner": "somebody",
            "pathSuffix": suffix,
            "permission": "755" if is_folder else "644",
            "replication": 0 if is_folder else 1,
            "type": "DIRECTORY" if is_folder else "FILE",
        }

    def _getfilestatus(self) -> None:
        if not self.there.exists():
            return self._refuse_missing()
        return self._say(200, {"FileStatus": self._status(self.there, "")})

    def _liststatus(self) -> None:
        if not self.there.exists():
            return self._refuse_missing()
        if self.there.is_file():
            found = [self._status(self.there, "")]
        else:
            found = [self._status(each, each.name) for each in sorted(self.there.iterdir())]
        return self._say(200, {"FileStatuses": {"FileStatus": found}})

    def _getfileblocklocations(self) -> None:
        if not self.there.exists():
            return self._refuse_missing()
        host = {"cachedHosts": [], "corrupt": False, "hosts": ["127.0.0.1"], "names": [], "topologyPaths": []}
        block = {**host, "offset": 0, "length": self.there.stat().st_size}
        return self._say(200, {"BlockLocations": {"BlockLocation": [block]}})

    def _mkdirs(self) -> None:
        self.there.mkdir(parents=True, exist_ok=True)
        self._say(200, {"boolean": True})

    def _rename(self) -> None:
        target = self._file(self.query["destination"])
        if target.is_dir():
            target /= self.there.name
        is_done = self.there.exists() and target.parent.is_dir() and not target.exists()
        if is_done:
            self.there.rename(target)
        self._say(200, {"boolean": is_done})

    def _delete(self) -> None:
        is_there = self.there.exists()
        if self.there.is_dir():
            shutil.rmtree(self.there)
        else:
            self.there.unlink(missing_ok=True)
        self._say(200, {"boolean": is_there})

    # Requests to the data server

    def _open(self) -> None:
        store = self.server.store
        offset = int(self.query.get("offset", 0))
        try:
            data = self.there.read_bytes()[offset:]
        except OSError:
            return self._refuse_missing()
        data = data[: int(self.query.get("length", len(data)))]
        store.reads.append(Read(self.name, offset))
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if store.breaks():
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
            return store.stop()
        self.wfile.write(data)
        return None

    def _create(self) -> None:
        self.there.parent.mkdir(parents=True, exist_ok=True)
        with self.there.open("wb") as file:
            # Chunked transfer coding.
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                file.write(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
        self._say(201, None)


@contextmanager
def storing(folder: Path) -> Iterator[Store]:
    """Run a store of a folder."""
    store = Store(folder)
    store.start()
    try:
        yield store
    finally:
        store.stop()
