"""nginx: serves files with ranges, like the host of a WARC collection, or hosts a site."""

import http.client
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.external.process import start_server

BASE_CONFIG = """\
daemon off;
master_process off;
pid {work}/nginx.pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
"""
"""Common beginning of all configurations."""

_CONFIG = (
    BASE_CONFIG
    + """\
    access_log {work}/access.log;
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
)

_EXPORTED_SITE = (
    BASE_CONFIG
    + """\
    access_log off;
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
)

_SITE = (
    BASE_CONFIG
    + """\
    access_log off;
    types {{ text/html html; application/pdf pdf; image/gif gif; image/jpeg jpg; image/png png; text/plain txt; }}
    server {{
        listen 127.0.0.1:{port};
        root "{folder}";
        location = /ready-{port} {{ return 204; }}
    }}
}}
"""
)

_REVERSE_PROXY = (
    BASE_CONFIG
    + """\
    log_format who '$upstream_addr $request_method $uri $status';
    include "{folder}/site.conf";
}}
"""
)


def program() -> str:
    """Return the path of the program. Raises FileNotFoundError."""
    # On Debian it is only in the PATH of root.
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise FileNotFoundError("nginx: run `scripts/need tools`, which installs it")
    return found


def is_ready(port: int, path: str = "/ready") -> bool:
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
def serve_folder(folder: Path, work: Path) -> Iterator[int]:
    """Serve a folder on the port that is yielded; below `/whole/` without ranges. work: folder for its own files."""
    with start_server(lambda port: _command(_CONFIG, folder, work, port), is_ready, work) as port:
        yield port


@contextmanager
def serve_site(folder: Path, work: Path) -> Iterator[str]:
    """Serve a site's files; yield its URL with a final slash."""

    def command(port: int) -> list[str | Path]:
        return _command(_SITE, folder, work, port)

    with start_server(command, lambda port: is_ready(port, f"/ready-{port}"), work) as port:
        yield f"http://127.0.0.1:{port}/"


@contextmanager
def host_site(folder: Path, work: Path) -> Iterator[int]:
    """Host an exported site with its settings on the port that is yielded."""

    def command(port: int) -> list[str | Path]:
        return _command(_EXPORTED_SITE, folder, work, port)

    with start_server(command, lambda port: is_ready(port, f"/ready-{port}"), work) as port:
        yield port


@contextmanager
def run_reverse_proxy(serve_site: str, work: Path) -> Iterator[int]:
    """Run a reverse proxy on the port that is yielded, instead of 443.

    Args:
        site: Its configuration, without TLS.
        work: Folder for its own files; access.log has a line per request with the upstream address.
    """

    def command(port: int) -> list[str | Path]:
        text = serve_site.replace(
            "listen 443 ssl;", f"listen 127.0.0.1:{port}; location = /ready-{port} {{ return 204; }}"
        )
        (work / "site.conf").write_text(text)
        return _command(_REVERSE_PROXY, work, work, port)

    with start_server(command, lambda port: is_ready(port, f"/ready-{port}"), work) as port:
        yield port


def config_errors(folder: Path, work: Path) -> str:
    """Return the errors in the settings of an exported site; empty if they are valid."""
    command = _command(_EXPORTED_SITE, folder, work, 1)
    command[1:1] = ["-q", "-t"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def _command(config: str, folder: Path, work: Path, port: int) -> list[str | Path]:
    """Write the configuration and return the command that runs it."""
    file = work / "nginx.conf"
    file.write_text(config.format(work=work, folder=folder, port=port))
    return [program(), "-p", work, "-c", file, "-e", "stderr"]
