"""Scores a recovery of the lost site: which bodies are correct, what the others are, and whether links work."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from bench.peers.lost_site import CDN, HOST, Site
from unlost.html import extract_links

_DISK = "http://disk.invalid"


@dataclass
class RecoveryScore:
    """Result of a recovery. The field names are keys of `peers.json`.

    Attributes:
        resources: Resources of the site.
        right: Bodies that are those of the last good captures.
        wrong: Number of other bodies, by description.
        missing: Resources without a file.
        kinds: Correct and total resources of each kind.
    """

    resources: int = 0
    right: int = 0
    wrong: dict[str, int] = field(default_factory=dict)
    missing: int = 0
    kinds: dict[str, tuple[int, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)


def score_recovery(site: Site, found: Mapping[str, bytes]) -> RecoveryScore:
    """Score a recovery. found: recovered body of each URL."""
    score = RecoveryScore(len(site.resources))
    others = {body for resource in site for body in (resource.body, *resource.other_bodies)}
    for resource in site:
        body = found.get(resource.uri)
        is_right = body == resource.body
        if is_right:
            score.right += 1
        elif body is None:
            score.missing += 1
        else:
            what = resource.other_bodies.get(body) or ("another page" if body in others else "something else")
            score.wrong[what] = score.wrong.get(what, 0) + 1
        right, count = score.kinds.get(resource.kind, (0, 0))
        score.kinds[resource.kind] = (right + is_right, count + 1)
    return score


@dataclass(frozen=True)
class LinkCounts:
    """Links of pages opened from a disk. working: links to a file. broken: links to a missing file or a lost host."""

    working: int
    broken: int


def check_links(folder: Path, files: Iterable[Path]) -> LinkCounts:
    """Resolve the links of pages to files of a folder; links to other hosts are not counted."""
    working = broken = 0
    for file in files:
        body = file.read_bytes()
        # Link extraction needs a base URL: a fictitious host whose paths are file paths.
        for link in extract_links(body, "text/html", _DISK + quote(str(file.resolve()))):
            parts = urlsplit(link.uri)
            if link.uri.startswith(f"{_DISK}/"):
                # The query is not part of a file name.
                target = Path(unquote(parts.path))
                exists = target.is_file() and target.is_relative_to(folder.resolve())
            elif parts.hostname in (HOST, CDN):
                exists = False
            else:
                continue
            working, broken = working + exists, broken + (not exists)
    return LinkCounts(working, broken)
