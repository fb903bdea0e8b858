"""A store of files at another machine, in the little of WebHDFS that reading needs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

_ROOT = "/webhdfs/v1"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Give the address of a store of what a folder has, as Spark takes it."""

    class Store(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            query = {name.lower(): values[0] for name, values in parse_qs(address.query).items()}
            path = folder / unquote(address.path.removeprefix(_ROOT)).lstrip("/")
            operation = query.get("op", "").upper()
            if not path.exists():
                name = "FileNotFoundException"
                told = {"exception": name, "javaClassName": f"java.io.{name}", "message": f"{path.name} is not there"}
                self._send(404, {"RemoteException": told})
            elif operation == "GETFILESTATUS":
                self._send(200, {"FileStatus": _status(path, "")})
            elif operation == "LISTSTATUS":
                found = [_status(each, each.name) for each in sorted(path.iterdir())]
                self._send(200, {"FileStatuses": {"FileStatus": found}})
            elif operation == "OPEN" and "noredirect" not in query:
                offset = int(query.get("offset", "0"))
                length = int(query.get("length", str(1 << 40)))
                self._send_bytes(200, path.read_bytes()[offset : offset + length], "application/octet-stream")
            else:
                self._send(400, {"RemoteException": {"exception": "IOException", "message": operation}})

        def _send(self, status: int, told: object) -> None:
            self._send_bytes(status, json.dumps(told).encode(), "application/json")

        def _send_bytes(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"webhdfs://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _status(path: Path, suffix: str) -> dict[str, object]:
    is_folder = path.is_dir()
    return {
        "pathSuffix": suffix, "type": "DIRECTORY" if is_folder else "FILE",
        "length": 0 if is_folder else path.stat().st_size,
        "accessTime": 0, "modificationTime": 1, "blockSize": 1 << 27, "replication": 1, "owner": "a", "group": "a",
        "permission": "755", "childrenNum": 0, "fileId": 0, "storagePolicy": 0,
    }  # fmt: skip
