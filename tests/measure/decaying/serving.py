"""The decaying web, served by nginx."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.neighbours.nginx import answers, program
from tests.neighbours.process import running

_CONFIG = """\
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
    types {{ text/html html; application/pdf pdf; image/gif gif; image/jpeg jpg; image/png png; text/plain txt; }}
    server {{
        listen 127.0.0.1:{port};
        root "{folder}";
        location = /ready-{port} {{ return 204; }}
    }}
}}
"""


@contextmanager
def served(folder: Path, work: Path) -> Iterator[str]:
    """Serve a folder; yield the address of its top, with a slash at the end. work: a folder for nginx's own files."""

    def command(port: int) -> list[str | Path]:
        config = work / "nginx.conf"
        config.write_text(_CONFIG.format(work=work, folder=folder, port=port))
        return [program(), "-p", work, "-c", config, "-e", "stderr"]

    with running(command, lambda port: answers(port, f"/ready-{port}"), work) as port:
        yield f"http://127.0.0.1:{port}/"
