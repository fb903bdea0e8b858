"""Four common web servers in their Debian configuration, each serving a folder with gzip."""

import http.client
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.external import apache, nginx
from tests.external.process import start_server

_NGINX = (
    nginx.BASE_CONFIG
    + """\
    access_log off;
    types {{ text/html html; }}
    gzip on;
    gzip_min_length 1;
    server {{ listen 127.0.0.1:{port}; root "{folder}"; }}
}}
"""
)

_APACHE = """\
AddOutputFilterByType DEFLATE text/html
{extra}
<Directory "{folder}">
    Require all granted
</Directory>
"""

_LIGHTTPD = """\
server.document-root = "{folder}"
server.bind = "127.0.0.1"
server.port = {port}
server.stat-cache-engine = "disable"
mimetype.assign = (".html" => "text/html")
"""

_CADDY = """\
{{
    admin off
    auto_https off
}}
http://127.0.0.1:{port} {{
    bind 127.0.0.1
    root * {folder}
    encode {{
        gzip
        minimum_length 1
    }}
    file_server
}}
"""

KINDS = ("nginx", "Apache", "Apache with INode", "lighttpd", "Caddy")


@contextmanager
def serve_folder(kind: str, folder: Path, work: Path) -> Iterator[int]:
    """Serve a folder on the port that is yielded. The folder has `ready.html` and is readable by everyone."""

    def command(port: int) -> list[str | Path]:
        config = work / "config"
        if kind == "nginx":
            config.write_text(_NGINX.format(work=work, folder=folder, port=port))
            return [nginx.program(), "-p", work, "-c", config, "-e", "stderr"]
        if kind == "lighttpd":
            config.write_text(_LIGHTTPD.format(folder=folder, port=port))
            return [_program("lighttpd"), "-D", "-f", config]
        if kind == "Caddy":
            config.write_text(_CADDY.format(folder=folder, port=port))
            return [_program("caddy"), "run", "--adapter", "caddyfile", "--config", config]
        extra = "FileETag INode MTime Size" if kind == "Apache with INode" else ""
        server = apache.server_config(folder, work, port, ("filter", "deflate"))
        config.write_text(server + _APACHE.format(extra=extra, folder=folder))
        return [apache.program(), "-f", config, "-D", "FOREGROUND"]

    # Caddy stores its own files in the home folder.
    home = {**os.environ, "HOME": str(work), "XDG_DATA_HOME": str(work), "XDG_CONFIG_HOME": str(work)}
    with start_server(command, _is_ready, work, env=home) as port:
        yield port


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if found is None:
        raise FileNotFoundError(f"{name}: run `scripts/need tools`, which installs it")
    return found


def _is_ready(port: int) -> bool:
    try:
        return fetch(port, "/ready.html")[0] == 200
    except OSError:
        return False


def fetch(port: int, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    """Request a page with these headers, with underscores for hyphens; return status and lower-case headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        response.read()
        return response.status, {name.lower(): value for name, value in response.getheaders()}
    finally:
        connection.close()
