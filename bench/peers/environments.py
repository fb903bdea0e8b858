"""Where the peers are, and which versions of them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEIGHBOURS = ROOT / ".neighbours"
PEERS = ("surt", "cdxsummary", "mementomap", "memento-client", "cdx_toolkit", "pywaybackup", "waybackpack")
"""By the names that registries have them under, in the order of the report."""


def program(peer: str, name: str = "") -> Path:
    """Return a program of a peer's environment, by default the one of its own name."""
    return NEIGHBOURS / peer / "bin" / (name or peer)


def missing() -> list[str]:
    """Return the peers that are not installed."""
    return [peer for peer in PEERS if not program(peer, "python").exists()]


def version(peer: str) -> str:
    """Return the version that the list of its environment names."""
    lists = [folder / f"{peer}.txt" for folder in (ROOT / "bench" / "peers", ROOT / "tests" / "external")]
    text = next(file for file in lists if file.exists()).read_text()
    return str(re.findall(rf"(?m)^{re.escape(peer)}==(.+)$", text)[0])
