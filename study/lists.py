"""Reads the real URL lists of the study, or reports that they are missing."""

import gzip
import sys
from pathlib import Path

from tests.real_data import DATA

HOSTS = DATA / "urls" / "eot2024-hosts.txt.gz"
"""Seeds and sitemaps of 1,514 whole government hosts (end-of-term/eot2024, Apache-2.0): a deep, narrow archive."""

LINKS = DATA / "urls" / "reddit2013-links.tsv.gz"
"""Link posts with their dates (umbrae/reddit-top-2.5-million, PDDL): a broad, shallow archive."""


def require_files(*files: Path) -> None:
    """Exit with 3 if a list is missing, and print the expected folder."""
    missing = [file for file in files if not file.exists()]
    if missing:
        print(
            f"study: {', '.join(file.name for file in missing)} not found: expected the public lists of addresses in "
            "the folder `urls` of UNLOST_DATA (default ../shared/data); docs/study.md says what they are",
            file=sys.stderr,
        )
        sys.exit(3)


def read_hosts() -> list[str]:
    """Return the URLs of whole hosts."""
    require_files(HOSTS)
    with gzip.open(HOSTS, "rt", encoding="utf-8", newline="\n") as lines:
        return [line.rstrip("\n") for line in lines]


def read_links() -> list[tuple[int, str]]:
    """Return the time in seconds since 1970 and the URL of each post, oldest first."""
    require_files(LINKS)
    with gzip.open(LINKS, "rt", encoding="utf-8", newline="\n") as lines:
        rows = (line.rstrip("\n").split("\t") for line in lines)
        return sorted((int(row[0]), row[2]) for row in rows)
