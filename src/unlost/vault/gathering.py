"""Blocks out of many pages, from many places, together: grouped by version, kept on disk."""

import hashlib
import re
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from unlost.errors import ArchiveFileError
from unlost.formats.problems import Problems
from unlost.formats.warc import read_captures
from unlost.measure.sites.archive_parts import Part, parts_of
from unlost.measure.sites.kinds import Kind, kind_of
from unlost.vault.block import MAX_BLOCK_BYTES, Block, Label
from unlost.vault.finding import find_blocks

Group = tuple[str, str, str, int, int, int]
_MAX_BODY = 4 * MAX_BLOCK_BYTES
_RAW = re.compile(r"/unlost-vault/([0-9a-f]{16})\.([0-9a-f]{64})\.(tar\.gz|tar\.gz\.age)")
_TEXTS = ("text/", "application/xhtml", "application/xml")


@dataclass(frozen=True, slots=True)
class Kept:
    """A block that was found. offset: in the gathering's file. sources: where it was found, at most a few."""

    label: Label
    offset: int
    sources: tuple[str, ...]


@dataclass
class Gathering:
    """What was found. groups: blocks by version, then number; of one number there may be several, if some are forged.

    raw: whole segments that were served as they are: where they begin in the file, by id, version and wrap.
    problems: blocks that were none, by kind. pages: that were looked at, and how many of them had blocks.
    newest: the last date at which a version was seen, 14 digits or empty. archives: by version, the blocks that each
    archive or file has. keys: if there are any, only what these signed is taken.
    """

    keys: frozenset[str] = frozenset()
    groups: dict[Group, dict[int, list[Kept]]] = field(default_factory=dict)
    raw: dict[tuple[str, str, str], tuple[int, int]] = field(default_factory=dict)
    problems: Counter[str] = field(default_factory=Counter)
    reading: Problems = field(default_factory=Problems)
    pages: int = 0
    carrying: int = 0
    newest: dict[Group, str] = field(default_factory=dict)
    archives: dict[Group, dict[str, set[int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open the file that blocks are kept in; it goes with the last reference."""
        self.file = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as this does
        weakref.finalize(self, self.file.close)
        self._end = 0

    def add_page(self, body: bytes, source: str, date: str = "", archive: str = "") -> int:
        """Take the blocks of a page; return how many there were. archive: who had it."""
        self.pages += 1
        count = 0
        for block in find_blocks(body, self.problems):
            if self.keys and block.label.key not in self.keys:
                self.problems["not-signed"] += 1
                continue
            self._add(block, source, date, archive)
            count += 1
        self.carrying += count > 0
        return count

    def _add(self, block: Block, source: str, date: str, archive: str) -> None:
        label = block.label
        self.newest[label.group] = max(self.newest.get(label.group, ""), date)
        self.archives.setdefault(label.group, {}).setdefault(archive, set()).add(label.index)
        there = self.groups.setdefault(label.group, {}).setdefault(label.index, [])
        for number, kept in enumerate(there):
            if kept.label.sha256 == label.sha256:
                if source not in kept.sources and len(kept.sources) < 4:
                    there[number] = Kept(kept.label, kept.offset, (*kept.sources, source))
                return
        if len(there) < 8:  # more than eight forgeries of one block help nobody
            there.append(Kept(label, self._keep(block.data), (source,)))

    def _keep(self, data: bytes) -> int:
        offset, self._end = self._end, self._end + len(data)
        self.file.seek(offset)
        self.file.write(data)
        return offset

    def add_raw(self, address: str, body: bytes) -> bool:
        """Take a segment that was served as it is, if the address says that it is one, and its hash, too."""
        found = _RAW.search(urlsplit(address).path)
        if found is None or hashlib.sha256(body).hexdigest() != found[2]:
            return False
        name = (found[1], found[2], found[3])
        if name not in self.raw and body:
            self.raw[name] = (self._keep(body), len(body))
        return True

    def shapes(self) -> Iterator[tuple[Group, Label]]:
        """Yield each version that something was found of, with the label of one of its blocks."""
        for group, blocks in self.groups.items():
            yield group, next(iter(blocks.values()))[0].label


def gather(place: Path, into: Gathering) -> None:
    """Take all blocks from a place: the folder of a recovery; WARC, ARC or WACZ files; a page; a folder of pages.

    Every capture counts, also those that were replaced by later ones. Raises InputError for what is none of these.
    """
    if place.is_file() and not _is_archive(place):
        _add_file(place, place.name, into)
        return
    kind, files = kind_of(place)
    if kind is Kind.RECOVERY:
        files = sorted((place / "warc").glob("*.warc.gz"))
    elif kind is Kind.FOLDER:
        for file in sorted(place.rglob("*")):
            if file.is_file() and not file.is_symlink():
                _add_file(file, "/" + file.relative_to(place).as_posix(), into)
        return
    for file in files:
        for part in parts_of(file, into.reading):
            _add_part(part, into)


def _is_archive(place: Path) -> bool:
    name = place.name.lower()
    return any(ending in name for ending in (".warc", ".arc", ".wacz"))


def _add_file(file: Path, name: str, into: Gathering) -> None:
    if file.stat().st_size > _MAX_BODY and "/unlost-vault/" not in name:
        return
    body = file.read_bytes()
    if not into.add_raw(name, body):
        into.add_page(body, name, archive="folder")


def _add_part(part: Part, into: Gathering) -> None:
    within = None if part.length is None else (part.start, part.length)
    found = read_captures(part.path, into.reading, records=("response", "resource"), digests=False, within=within)
    for capture in found:
        mime = capture.mime or "text/html"
        is_raw = "/unlost-vault/" in capture.uri
        if capture.offset is None or not (is_raw or mime.startswith(_TEXTS)):
            continue
        try:
            body, _, _ = part.record(capture.offset, capture.skip or 0).read_undone(_MAX_BODY)
        except ArchiveFileError:
            into.problems["unreadable-record"] += 1
            continue
        if not into.add_raw(capture.uri, body):
            into.add_page(body, capture.uri, capture.datetime, archive=capture.archive or part.path.name)
