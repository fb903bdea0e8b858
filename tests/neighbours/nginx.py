"""nginx: serving files of a folder, with ranges, as the host of a large collection of WARCs does; hosting a site."""

import http.client
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.neighbours.process import running

_CONFIG = """\
daemon off;
master_process off;
pid {work}/nginx.pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
    access_log {work}/access.log;
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
    types {{ application/gzip gz; }}
    default_type application/octet-stream;
    server {{
        listen 127.0.0.1:{port};
        location = /ready {{ return 204; }}
        location / {{ root "{folder}"; }}
        location /whole/ {{ alias "{folder}/"; max_ranges 0; }}
    }}
}}
"""

_HOSTING = """\
daemon off;
master_process off;
pid {work}/nginx.pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
    types {{ text/html html; }}
    default_type application/octet-stream;
    include "{folder}/_nginx/http.conf";
    server {{
        listen 127.0.0.1:{port};
        root "{folder}";
        location = /ready-{port} {{ return 204; }}
        include "{folder}/_nginx/server.conf";
    }}
}}
"""


def program() -> str:
    """Return where it is. Raises FileNotFoundError."""
    # Debian has it where only root's path leads.
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise FileNotFoundError("nginx: run `scripts/need tools`, which installs it")
    return found


def answers(port: int, path: str = "/ready") -> bool:
    """Return whether it is ready."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 204
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def serving(folder: Path, work: Path) -> Iterator[int]:
    """Serve a folder on the port that is yielded; below `/whole/`, without ranges. work: a folder for its own files."""

    def command(port: int) -> list[str | Path]:
        config = work / "nginx.conf"
        config.write_text(_CONFIG.format(work=work, folder=folder, port=port))
        return [program(), "-p", work, "-c", config, "-e", "stderr"]

    with running(command, answers, work) as port:
        yield port


@contextmanager
def hosting(folder: Path, work: Path) -> Iterator[int]:
    """Host an exported site with the settings that are in it, on the port that is yielded."""

    def command(port: int) -> list[str | Path]:
        return [program(), "-p", work, "-c", _hosting(folder, work, port), "-e", "stderr"]

    with running(command, lambda port: answers(port, f"/ready-{port}"), work) as port:
        yield port


def complaints(folder: Path, work: Path) -> str:
    """Return what it says against the settings in an exported site; empty if it takes them."""
    command: list[str | Path] = [program(), "-q", "-t", "-p", work, "-c", _hosting(folder, work, 1), "-e", "stderr"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def _hosting(folder: Path, work: Path, port: int) -> Path:
    config = work / "nginx.conf"
    config.write_text(_HOSTING.format(work=work, folder=folder, port=port))
    return config
