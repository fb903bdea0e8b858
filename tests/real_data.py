"""The folder of real data."""

import gzip
import os
from pathlib import Path

DATA = Path(os.environ.get("UNLOST_DATA") or Path(__file__).parents[2] / "shared" / "data")


def urls() -> list[str]:
    """Return the 1.2 million URLs of both lists: whole government hosts, and links of a link-sharing site."""
    with gzip.open(DATA / "urls" / "eot2024-hosts.txt.gz", "rt", encoding="utf-8", newline="\n") as lines:
        hosts = [line.rstrip("\n") for line in lines]
    with gzip.open(DATA / "urls" / "reddit2013-links.tsv.gz", "rt", encoding="utf-8", newline="\n") as lines:
        links = [line.rstrip("\n").split("\t")[2] for line in lines]
    return hosts + links
