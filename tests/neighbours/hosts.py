"""Other machines as network namespaces, each connected by a cable that a test can unplug."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count

from tests.waiting import wait_until

_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class Host:
    """A machine. name: its namespace. cable: our end of its cable."""

    name: str
    cable: str

    @property
    def run(self) -> list[str]:
        """Return a command that runs a command there."""
        return ["ip", "netns", "exec", self.name]

    def cut(self) -> None:
        """Unplug the cable: packets are dropped silently."""
        _ip("link", "set", self.cable, "down")

    def mend(self) -> None:
        """Plug the cable in again."""
        _ip("link", "set", self.cable, "up")


@dataclass(frozen=True, slots=True)
class Network:
    """Machines connected to this one. here: our IP address for them. clients: their network."""

    here: str
    clients: str
    hosts: list[Host]


def missing() -> str:
    """Return why there can be no namespaces; empty if there can."""
    if os.getuid() != 0:
        return "network namespaces need root"
    name = f"unlost{os.getpid()}"
    try:
        done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "`ip` is missing: run `scripts/need tools`, which installs iproute2"
    if done.returncode == 0:
        _ip("netns", "delete", name)
    return "" if done.returncode == 0 else f"no network namespaces here: {done.stderr.strip()}"


@contextmanager
def network(machines: int) -> Iterator[Network]:
    """Create machines. They reach us at one IP address, and do not reach each other."""
    # IP addresses reserved for network tests (RFC 2544): four for each cable, and one for us.
    part = f"198.18.{os.getpid() % 256}"
    here = f"{part}.254"
    with ExitStack() as stack:
        _ip("address", "add", f"{here}/32", "dev", "lo")
        stack.callback(_ip, "address", "delete", f"{here}/32", "dev", "lo")
        hosts = [stack.enter_context(_host(f"{part}.", 4 * number, here)) for number in range(machines)]
        yield Network(here, f"{part}.0/24", hosts)


@contextmanager
def _host(part: str, first: int, here: str) -> Iterator[Host]:
    number = next(_NUMBERS)
    name, cable, far = f"unlost{os.getpid()}-{number}", f"un{os.getpid()}a{number}", f"un{os.getpid()}b{number}"
    _ip("netns", "add", name)
    try:
        _ip("link", "add", cable, "type", "veth", "peer", "name", far, "netns", name)
        _ip("address", "add", f"{part}{first + 1}/30", "dev", cable)
        _ip("link", "set", cable, "up")
        there = ("-n", name)
        _ip(*there, "link", "set", "lo", "up")
        _ip(*there, "address", "add", f"{part}{first + 2}/30", "dev", far)
        _ip(*there, "link", "set", far, "up")
        _ip(*there, "route", "add", here, "via", f"{part}{first + 1}")
        host = Host(name, cable)
        wait_until(lambda: _reaches(host, here))
        yield host
    finally:
        _ip("netns", "delete", name)  # with its cable


def _reaches(host: Host, address: str) -> bool:
    """Return whether a machine has a route to us: a connection is refused and does not hang."""
    look = f"import socket, sys; s = socket.socket(); s.settimeout(1); sys.exit(s.connect_ex(('{address}', 1)) != 111)"
    return subprocess.run([*host.run, "python3", "-c", look], check=False).returncode == 0


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
