"""Judges what a tool brought back of the made-up site: what is right, what the rest is, and where links lead."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from bench.peers.site import CDN, HOST, Site
from unlost.html import extract_links

_DISK = "http://disk.invalid"


@dataclass
class Outcome:
    """What came back.

    right: how many bodies are those of the last good captures. wrong: what the others are, and how many of each.
    missing: resources of which there is no file. kinds: of the resources of each kind, how many are right.
    """

    resources: int = 0
    right: int = 0
    wrong: dict[str, int] = field(default_factory=dict)
    missing: int = 0
    kinds: dict[str, tuple[int, int]] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def judge(site: Site, found: Mapping[str, bytes]) -> Outcome:
    """Return how right it is. found: the body that there is for each address."""
    outcome = Outcome(len(site.resources))
    others = {body for resource in site for body in (resource.right, *resource.wrong)}
    for resource in site:
        body = found.get(resource.uri)
        is_right = body == resource.right
        if is_right:
            outcome.right += 1
        elif body is None:
            outcome.missing += 1
        else:
            what = resource.wrong.get(body) or ("another page" if body in others else "something else")
            outcome.wrong[what] = outcome.wrong.get(what, 0) + 1
        right, count = outcome.kinds.get(resource.kind, (0, 0))
        outcome.kinds[resource.kind] = (right + is_right, count + 1)
    return outcome


@dataclass(frozen=True)
class Links:
    """Where links lead on pages opened from a disk. working: to a file. broken: to none, or to a lost host."""

    working: int
    broken: int


def linked(folder: Path, files: Iterable[Path]) -> Links:
    """Follow the links of pages, and to what they show, to files of a folder; whatever leads away does not count."""
    working = broken = 0
    for file in files:
        body = file.read_bytes()
        # Links are found in pages of the web: the disk is a host of it, whose paths are those of the disk.
        for link in extract_links(body, "text/html", _DISK + quote(str(file.resolve()))):
            parts = urlsplit(link.uri)
            if link.uri.startswith(f"{_DISK}/"):
                # What is behind the `?` is no part of a file's name.
                place = Path(unquote(parts.path))
                is_there = place.is_file() and place.is_relative_to(folder.resolve())
            elif parts.hostname in (HOST, CDN):
                is_there = False
            else:
                continue
            working, broken = working + is_there, broken + (not is_there)
    return Links(working, broken)
