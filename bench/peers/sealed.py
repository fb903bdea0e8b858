"""Runs a module of this package where no network is but this machine's own, and names lead here: in own namespaces.

Nothing that is run there can reach the world, whatever it asks: there is no interface for it but loopback. The system's
file of host names is another one for it, and for nobody else. Neither needs root where the system lets users have
namespaces.
"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.external.certificate import make_certificate

from bench.peers.machine import NAME

ROOT = Path(__file__).parents[2]
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
LIVING = "living.example"
"""Another name that leads here, for sites that are not lost."""
_OWN = ["unshare", "--map-root-user", "--net", "--mount"]
_NAMED = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'


def can_be_sealed() -> bool:
    """Return whether namespaces can be had here."""
    try:
        return subprocess.run([*_OWN, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def run_sealed(module: str, arguments: Sequence[str], folder: Path) -> Any:  # noqa: ANN401  whatever JSON it prints
    """Run a module with the made-up machine's name and certificate; return what it prints, read as JSON.

    Raises RuntimeError with the end of what it said on stderr.
    """
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n127.0.0.1 {NAME}\n127.0.0.1 {LIVING}\n")
    make_certificate(folder, NAME)
    command: list[str | Path] = [*_OWN, "sh", "-c", _NAMED, "sh", hosts, sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=None, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} ended with {done.returncode}")
    return json.loads(done.stdout)


def begin() -> None:
    """Bring loopback up inside, and make sure that there is nothing else. Raises RuntimeError outside."""
    names = [name for _, name in socket.if_nameindex()]
    if names != ["lo"]:
        raise RuntimeError(
            f"expected no network but loopback, found {', '.join(names)}: this runs by bench.peers.sealed alone"
        )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def environment(folder: Path) -> dict[str, str]:
    """Return what tools are told inside: whom to trust, and a home of their own."""
    trusted = str(folder / f"{NAME}.pem")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "SSL_CERT_FILE": trusted, "REQUESTS_CA_BUNDLE": trusted, "HOME": str(folder)}


def main() -> None:
    """Print what is seen from inside: the interfaces, where the archive's name leads, how a way out fails."""
    begin()
    seen = {"interfaces": [name for _, name in socket.if_nameindex()], "archive": socket.gethostbyname(NAME)}
    try:
        socket.create_connection(("192.0.2.1", 80), 5).close()  # an address that is nobody's
        seen["outside"] = "reached"
    except OSError as error:
        seen["outside"] = error.strerror or str(error)
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
