"""PostgreSQL from Debian: a temporary cluster on loopback that does not run as root."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.external.process import start_server

_NAMES = count()


@dataclass(frozen=True, slots=True)
class Postgresql:
    """A running server."""

    port: int

    def url(self, name: str = "postgres") -> str:
        """Return the URL of a database."""
        return f"postgresql://tester@127.0.0.1:{self.port}/{name}"

    def create_database(self) -> str:
        """Create an empty database and return its URL."""
        name = f"test_{os.getpid()}_{next(_NAMES)}"
        command = [program("createdb"), "-h", "127.0.0.1", "-p", str(self.port), "-U", "tester", name]
        subprocess.run(command, check=True, capture_output=True)
        return self.url(name)


def program(name: str) -> str:
    """Return the path of a program: Debian has a folder per version."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
    if found is None:
        raise FileNotFoundError(f"{name}: run `scripts/need tools`, which installs PostgreSQL")
    return found


def _run_as_postgres() -> list[str]:
    """Return a command prefix for the user `postgres` if we are root, since it refuses to run as root."""
    return ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []


@contextmanager
def run_cluster(host: str = "", clients: str = "", *, is_durable: bool = False) -> Iterator[Postgresql]:
    """Run a server with temporary data.

    Args:
        host: Another IP address of this machine that clients of the network `clients` may use.
        is_durable: Whether commits survive a kill of the server, which is slower.
    """
    folder = Path(tempfile.mkdtemp(prefix="unlost-postgresql-"))
    try:
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = folder / "data"
        initdb: list[str | Path] = [
            program("initdb"),
            "-D",
            data,
            "-U",
            "tester",
            "-A",
            "trust",
            "-N",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        subprocess.run([*_run_as_postgres(), *initdb], check=True, capture_output=True, cwd=folder)

        if host:
            with (data / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all tester {clients} trust\n")

        def command(port: int) -> list[str | Path]:
            options = {
                "listen_addresses": f"127.0.0.1,{host}".strip(","),
                "port": str(port),
                "unix_socket_directories": str(folder),
            }
            if not is_durable:
                options |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
            settings = [text for name, value in options.items() for text in ("-c", f"{name}={value}")]
            return [*_run_as_postgres(), program("postgres"), "-D", data, *settings]

        def ready(port: int) -> bool:
            command = [program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "tester"]
            return subprocess.run(command, check=False).returncode == 0

        with start_server(command, ready, folder) as port:
            yield Postgresql(port)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
