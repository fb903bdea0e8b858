"""Paths and versions of the peers."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".neighbours"
PEERS = ("surt", "cdxsummary", "mementomap", "memento-client", "cdx_toolkit", "pywaybackup", "waybackpack")
"""Package names, in the order of the report."""


def program(peer: str, name: str = "") -> Path:
    """Return a program of a peer's environment, by default the one named after the peer."""
    return ENVIRONMENTS / peer / "bin" / (name or peer)


def missing_peers() -> list[str]:
    """Return the peers that are not installed."""
    return [peer for peer in PEERS if not program(peer, "python").exists()]


def pinned_version(peer: str) -> str:
    """Return the version in the requirements of its environment."""
    requirements = [folder / f"{peer}.txt" for folder in (ROOT / "bench" / "peers", ROOT / "tests" / "external")]
    text = next(file for file in requirements if file.exists()).read_text()
    return str(re.findall(rf"(?m)^{re.escape(peer)}==(.+)$", text)[0])
