"""Other machines as network namespaces, each connected by a virtual Ethernet pair that a test can disconnect."""

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
    """A machine. name: its namespace. interface: our end of its virtual Ethernet pair."""

    name: str
    interface: str

    @property
    def command_prefix(self) -> list[str]:
        """Return the prefix of a command that runs on the machine."""
        return ["ip", "netns", "exec", self.name]

    def disconnect(self) -> None:
        """Take the link down: packets are dropped silently."""
        _ip("link", "set", self.interface, "down")

    def reconnect(self) -> None:
        """Take the link up again."""
        _ip("link", "set", self.interface, "up")


@dataclass(frozen=True, slots=True)
class Network:
    """Machines connected to this one. local_address: our IP address for them. client_network: their network."""

    local_address: str
    client_network: str
    hosts: list[Host]


def unavailable_reason() -> str:
    """Return why inside can be no namespaces; empty if inside can."""
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
    """Create machines. They reach this machine at one IP address, and do not reach each other."""
    # IP addresses reserved for network tests (RFC 2544): four for each link, and one for this machine.
    subnet = f"198.18.{os.getpid() % 256}"
    local_address = f"{subnet}.254"
    with ExitStack() as stack:
        _ip("address", "add", f"{local_address}/32", "dev", "lo")
        stack.callback(_ip, "address", "delete", f"{local_address}/32", "dev", "lo")
        hosts = [stack.enter_context(_host(f"{subnet}.", 4 * number, local_address)) for number in range(machines)]
        yield Network(local_address, f"{subnet}.0/24", hosts)


@contextmanager
def _host(subnet: str, first: int, local_address: str) -> Iterator[Host]:
    number = next(_NUMBERS)
    name, interface, peer = f"unlost{os.getpid()}-{number}", f"un{os.getpid()}a{number}", f"un{os.getpid()}b{number}"
    _ip("netns", "add", name)
    try:
        _ip("link", "add", interface, "type", "veth", "peer", "name", peer, "netns", name)
        _ip("address", "add", f"{subnet}{first + 1}/30", "dev", interface)
        _ip("link", "set", interface, "up")
        inside = ("-n", name)
        _ip(*inside, "link", "set", "lo", "up")
        _ip(*inside, "address", "add", f"{subnet}{first + 2}/30", "dev", peer)
        _ip(*inside, "link", "set", peer, "up")
        _ip(*inside, "route", "add", local_address, "via", f"{subnet}{first + 1}")
        host = Host(name, interface)
        wait_until(lambda: _reaches(host, local_address))
        yield host
    finally:
        _ip("netns", "delete", name)  # with its interface


def _reaches(host: Host, address: str) -> bool:
    """Return whether a machine has a route to us: a connection is refused and does not hang."""
    probe = f"import socket, sys; s = socket.socket(); s.settimeout(1); sys.exit(s.connect_ex(('{address}', 1)) != 111)"
    return subprocess.run([*host.command_prefix, "python3", "-c", probe], check=False).returncode == 0


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
