"""Runs a module of this package in its own network and mount namespaces, without any interface but loopback.

Processes in the sandbox cannot reach other hosts. A private `/etc/hosts` maps the name of the archive to loopback.
Root is not needed where the system allows user namespaces.
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

from bench.peers.fake_wayback import NAME

ROOT = Path(__file__).parents[2]
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
LIVE_HOST = "living.example"
"""Host name of sites that are not lost; it resolves to loopback."""
_UNSHARE = ["unshare", "--map-root-user", "--net", "--mount"]
_BIND_HOSTS = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'


def is_available() -> bool:
    """Return whether namespaces are available."""
    try:
        return subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def run_isolated(module: str, arguments: Sequence[str], folder: Path) -> Any:  # noqa: ANN401  any JSON
    """Run a module with the archive's host name and certificate; return its output, parsed as JSON.

    Raises RuntimeError if it fails.
    """
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n127.0.0.1 {NAME}\n127.0.0.1 {LIVE_HOST}\n")
    make_certificate(folder, NAME)
    command: list[str | Path] = [
        *_UNSHARE,
        "sh",
        "-c",
        _BIND_HOSTS,
        "sh",
        hosts,
        sys.executable,
        "-m",
        module,
        *arguments,
    ]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=None, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} ended with {done.returncode}")
    return json.loads(done.stdout)


def set_up_network() -> None:
    """Bring up loopback and check that it is the only interface. Raises RuntimeError outside of the sandbox."""
    names = [name for _, name in socket.if_nameindex()]
    if names != ["lo"]:
        raise RuntimeError(
            f"expected no network but loopback, found {', '.join(names)}: this runs by bench.peers.sandbox alone"
        )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(control_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def tool_environment(folder: Path) -> dict[str, str]:
    """Return the environment variables of tools: trusted certificate and a private home folder."""
    trusted = str(folder / f"{NAME}.pem")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**inherited, "SSL_CERT_FILE": trusted, "REQUESTS_CA_BUNDLE": trusted, "HOME": str(folder)}


def main() -> None:
    """Print the interfaces, the address of the archive's host name, and the error of an outside connection."""
    set_up_network()
    seen = {"interfaces": [name for _, name in socket.if_nameindex()], "archive": socket.gethostbyname(NAME)}
    try:
        socket.create_connection(("192.0.2.1", 80), 5).close()  # reserved for documentation (RFC 5737)
        seen["outside"] = "reached"
    except OSError as error:
        seen["outside"] = error.strerror or str(error)
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
