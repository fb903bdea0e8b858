"""Fourteen simulated archives for the aggregator benchmark: TimeMaps served by nginx, with maps and filters."""

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.external import nginx
from tests.external.process import free_port, start_server

from bench.holdings import UNLOST

ARCHIVES = 14
PAGES = 4_000
ARCHIVED_SHARE = 0.05
"""Share of pages that each archive contains."""

MAX_MEMENTOS = 1_000
"""Maximum number of mementos of a page in one archive; numbers are log-uniform."""

_CONFIG = """\
daemon off;
master_process off;
pid {work}/nginx.pid;
error_log stderr;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 100000000;
    open_file_cache max=20000;
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
    default_type application/link-format;
    server {{ listen 127.0.0.1:{port}; location / {{ return 204; }} }}
    {servers}
}}
"""
_SERVER = 'server {{ listen 127.0.0.1:{port}; location / {{ root "{folder}"; }} }}'


@dataclass(frozen=True)
class SimulatedArchives:
    """The archives.

    Attributes:
        folder: Folder of all files.
        pages: URLs that clients may request.
        ports: Port of each archive.
        hits: Number of archives that contain each page.
    """

    folder: Path
    pages: list[str]
    ports: list[int]
    hits: dict[str, int]

    def registry(self, *, maps: bool = True, hanging: int | None = None, without: int | None = None) -> Path:
        """Write a registry of the archives.

        Args:
            maps: Whether to include maps and filters.
            hanging: Port that replaces that of the last archive.
            without: Number of archives to leave out.
        """
        path = self.folder / f"registry-{maps}-{hanging}-{without}.toml"
        entries = []
        for number, port in enumerate(self.ports[: ARCHIVES - (without or 0)]):
            used_port = hanging if hanging is not None and number == ARCHIVES - 1 else port
            entry = f'[[archive]]\nid = "a{number}"\nname = "A{number}"\nkind = "memento"\nlimits = []\n'
            entry += f'timemap = "http://127.0.0.1:{used_port}/timemap/link/"\n'
            if maps:
                entry += f'mementomap = "{self.folder}/a{number}.ukvs"\nfilters = ["{self.folder}/a{number}.filter"]\n'
            entries.append(entry)
        path.write_text("".join(entries))
        return path


def make_timemap(page: str, archive: int, count: int) -> str:
    """Return a TimeMap with this number of mementos."""
    lines = [f'<{page}>; rel="original"']
    for number in range(count):
        year, rest = 1996 + number * 28 // count, number * 7919
        date = f"{year}{rest % 12 + 1:02d}{rest % 28 + 1:02d}{rest % 24:02d}{rest % 60:02d}{rest % 59:02d}"
        day = (
            f"Mon, {rest % 28 + 1:02d} {_MONTHS[rest % 12]} {year} {rest % 24:02d}:{rest % 60:02d}:{rest % 59:02d} GMT"
        )
        lines.append(f'<http://a{archive}.example/web/{date}/{page}>; rel="memento"; datetime="{day}"')
    return ",\n".join(lines)


_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def _write_archives(folder: Path) -> tuple[list[str], dict[str, int]]:
    rng = random.Random(1)  # noqa: S311
    pages = [f"http://site{number % 500}.example/section{number % 7}/page{number}" for number in range(PAGES)]
    hits = dict.fromkeys(pages, 0)
    for archive in range(ARCHIVES):
        archived = rng.sample(pages, int(PAGES * ARCHIVED_SHARE))
        for page in archived:
            hits[page] += 1
            # nginx merges double slashes.
            file = folder / f"a{archive}" / "timemap" / "link" / page.replace("//", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(make_timemap(page, archive, int(MAX_MEMENTOS ** rng.random())))
        index = folder / f"a{archive}.txt"
        index.write_text("".join(f"{page}\n" for page in sorted(archived)))
        subprocess.run([UNLOST, "map", "build", index, "-o", folder / f"a{archive}.ukvs"], check=True, stderr=-3)
        subprocess.run([UNLOST, "filter", "build", index, "-o", folder / f"a{archive}.filter"], check=True, stderr=-3)
    return pages, hits


@contextmanager
def serve_archives(folder: Path) -> Iterator[SimulatedArchives]:
    """Write the archives into a folder and serve them."""
    pages, hits = _write_archives(folder)
    work = folder / "nginx"
    work.mkdir()
    ports: list[int] = []

    def command(port: int) -> list[str | Path]:
        ports[:] = [free_port() for _ in range(ARCHIVES)]
        servers = [_SERVER.format(port=each, folder=folder / f"a{number}") for number, each in enumerate(ports)]
        config = work / "nginx.conf"
        config.write_text(_CONFIG.format(work=work, port=port, servers="\n    ".join(servers)))
        return [nginx.program(), "-p", work, "-c", config, "-e", "stderr"]

    with start_server(command, nginx.is_ready, work):
        yield SimulatedArchives(folder, pages, ports, hits)


def cpu_seconds(process: int) -> float:
    """Return the CPU seconds of a process so far, in all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(process: int) -> float:
    """Return the memory of a process, in MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
