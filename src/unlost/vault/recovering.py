"""From blocks back to files: which versions are whole, decoded, opened, unpacked."""

import hashlib
import io
import itertools
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from unlost.errors import InputError
from unlost.shown.words import counted
from unlost.vault import coding
from unlost.vault.block import FILES, MANIFEST, Label
from unlost.vault.gathering import Gathering, Group, Kept
from unlost.vault.manifest import Manifest, manifest_of
from unlost.vault.sealing import Keys, unsealed
from unlost.vault.unpacking import Unpacked, Unpacking, new_folder

_TRIES = 400  # selections of blocks that are tried where some are forged: each costs one decoding


@dataclass(frozen=True, slots=True)
class Short:
    """A version that there are too few blocks of. missing: how many more are needed.

    pages: the pages that carried the others, as far as the manifest says; any `missing` of them suffice.
    """

    segment: str
    name: str
    version: str
    found: int
    needed: int
    pages: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """How many more blocks are needed."""
        return self.needed - self.found


@dataclass(frozen=True, slots=True)
class Whole:
    """A version of a segment that can be had. newest: when it was last seen, 14 digits or empty."""

    segment: str
    version: str
    label: Label | None
    wrap: str
    newest: str


@dataclass(slots=True)
class Recovered:
    """What came back. whole: by segment, the version that was taken. short: segments of which none could be.

    older: segments of which a newer version than the one taken was seen in part.
    """

    whole: dict[str, Whole] = field(default_factory=dict)
    short: list[Short] = field(default_factory=list)
    older: list[Short] = field(default_factory=list)
    forged: int = 0
    unpacked: Unpacked = field(default_factory=Unpacked)
    manifest: Manifest | None = None


def is_complete(recovered: Recovered) -> bool:
    """Return whether every segment that is known came back."""
    known = {each.id for each in recovered.manifest.segments} if recovered.manifest else set()
    return not recovered.short and known <= recovered.whole.keys() and bool(recovered.whole)


def recover(gathering: Gathering, target: Path | None, keys: Keys, most: int | None = None) -> Recovered:
    """Decode all segments, the newest whole version of each, and unpack them into a new folder.

    target: None only to see what could be. most: bytes that a segment may unpack to; None for what is usual.
    Raises InputError if no blocks were found, or keys do not open them.
    """
    if not gathering.groups and not gathering.raw:
        raise InputError(f"no blocks in {counted(gathering.pages, 'page')}: are these pages of a site with a vault?")
    done = Recovered()
    with tempfile.TemporaryDirectory() as folder:
        contents = _Contents(gathering, Path(folder))
        done.manifest = _manifest(contents, gathering, keys)
        chosen = _choose(contents, done)
        _tell_short(gathering, contents, done)
        done.forged = contents.forged
        if target is not None and chosen:
            with new_folder(target) as aside:
                unpacking = Unpacking(aside, most)
                for whole, file in chosen:
                    _unpack(file, whole, keys, unpacking)
                done.unpacked = unpacking.end()
    return done


def _unpack(file: Path, whole: Whole, keys: Keys, unpacking: Unpacking) -> None:
    with file.open("rb") as packed:
        if not whole.wrap.endswith(".age"):
            unpacking.add(packed, file.stat().st_size)
            return
        content = unsealed(packed.read(), keys)
    unpacking.add(io.BytesIO(content), len(content))


Name = tuple[str, str, str]
"""A version: its kind, its segment, and its hash."""


class _Contents:
    """The versions that there are enough blocks of; each is decoded when it is asked for, into a file of its own."""

    def __init__(self, gathering: Gathering, folder: Path) -> None:
        self.forged = 0
        self._gathering, self._folder = gathering, folder
        self._groups: dict[Name, list[tuple[Group, Label]]] = {}
        self._raw: dict[Name, tuple[str, int, int]] = {}
        self._found: dict[Name, tuple[Whole, Path] | None] = {}
        for group, label in gathering.shapes():
            if len(gathering.groups[group]) >= label.shape.needed:
                self._groups.setdefault((label.kind, label.segment, label.version), []).append((group, label))
        for (segment, version, wrap), (offset, size) in gathering.raw.items():
            self._raw[FILES, segment, version] = (wrap, offset, size)

    def names(self, kind: str) -> list[Name]:
        """Return the versions of a kind that could be had if no block of them is forged, those seen last first."""
        found = [name for name in {**self._groups, **self._raw} if name[0] == kind]
        return sorted(found, key=lambda name: (self._newest(name), name), reverse=True)

    def get(self, name: Name) -> tuple[Whole, Path] | None:
        """Return a version and the file with its content; None if it cannot be had."""
        if name not in self._found:
            self._found[name] = self._decoded(name)
        return self._found[name]

    def __contains__(self, name: Name) -> bool:
        """Return whether a version can be had."""
        return self.get(name) is not None

    def could_be(self, name: Name) -> bool:
        """Return whether a version can be had, as far as it was tried: nothing is decoded for that."""
        return self._found[name] is not None if name in self._found else name in self._groups or name in self._raw

    def _newest(self, name: Name) -> str:
        return max((self._gathering.newest.get(group, "") for group, _ in self._groups.get(name, ())), default="")

    def _decoded(self, name: Name) -> tuple[Whole, Path] | None:
        file = self._folder / f"{len(self._found)}"
        gathering = self._gathering
        if name in self._raw:
            wrap, offset, size = self._raw[name]
            gathering.file.seek(offset)
            file.write_bytes(gathering.file.read(size))
            return Whole(name[1], name[2], None, wrap, self._newest(name)), file
        for group, label in self._groups.get(name, ()):
            with file.open("w+b") as target:
                if decode_group(gathering, group, label, target):
                    return _whole(label, gathering, group), file
            self.forged += 1
        file.unlink(missing_ok=True)
        return None


def _whole(label: Label, gathering: Gathering, group: Group) -> Whole:
    return Whole(label.segment, label.version, label, label.wrap, gathering.newest.get(group, ""))


def decode_group(gathering: Gathering, group: Group, label: Label, target: BinaryIO) -> bool:
    """Write what a version's blocks code, and return whether it is that: its hash is the version.

    Blocks may be forged, with hashes of their own that are right. Then others are left out, one by one, as far as there
    are more than needed.
    """
    for places in itertools.islice(_selections(gathering.groups[group], label.shape.needed), _TRIES):
        shape = replace(label.shape, count=max(label.shape.count, max(places) + 1))
        coding.decode(gathering.file, places, shape, target)
        target.seek(0)
        if _hash(target) == label.version:
            return True
    return False


def _hash(file: BinaryIO) -> str:
    hashed = hashlib.sha256()
    while piece := file.read(1 << 20):
        hashed.update(piece)
    return hashed.hexdigest()


def _selections(blocks: Mapping[int, list[Kept]], needed: int) -> Iterator[dict[int, int]]:
    """Yield sets of blocks to decode: first all, then all but one, or with another of the same number."""
    first = {index: kept[0].offset for index, kept in sorted(blocks.items())}
    yield first
    for index, kept in blocks.items():
        for other in kept[1:]:
            yield {**first, index: other.offset}
    if len(first) == needed:
        return
    indices = sorted(first)
    for gone in indices:
        yield {index: first[index] for index in indices if index != gone}
    # Forgers have pages of their own, next to each other in no order that is known: leave out runs of them.
    spare = len(indices) - needed
    for start in range(0, len(indices), max(1, spare // 2)):
        gone_run = set(indices[start : start + spare])
        yield {index: first[index] for index in indices if index not in gone_run}


def _manifest(contents: _Contents, gathering: Gathering, keys: Keys) -> Manifest | None:
    """Return the last manifest of which all segments are whole, else the last one; None if none can be opened."""
    found: list[tuple[str, Manifest]] = []
    for name in contents.names(MANIFEST):
        content = contents.get(name)
        if content is None:
            continue
        try:
            found.append((content[0].newest, _opened_manifest(*content, keys)))
        except InputError:
            gathering.problems["manifest-not-opened"] += 1
    # A page may carry two of them during an update: then both were seen last.
    found.sort(key=lambda each: (each[0], each[1].number), reverse=True)
    settled = (each for _, each in found if _is_settled(each, contents))
    return next(settled, found[0][1] if found else None)


def _opened_manifest(whole: Whole, file: Path, keys: Keys) -> Manifest:
    content = file.read_bytes()
    return manifest_of(unsealed(content, keys) if whole.wrap.endswith(".age") else content)


def _is_settled(manifest: Manifest, contents: _Contents) -> bool:
    """Return whether all that a manifest names can be had; one that names nothing was made by nobody who packs."""
    return bool(manifest.segments) and all((FILES, each.id, each.version) in contents for each in manifest.segments)


def _choose(contents: _Contents, done: Recovered) -> list[tuple[Whole, Path]]:
    """Return for each segment the version that the manifest names, else the one seen last.

    Segments that the manifest does not know are of another version of the files: they count only if it is not whole.
    """
    manifest = done.manifest
    wanted = {each.id: each.version for each in manifest.segments} if manifest else {}
    is_settled = manifest is not None and _is_settled(manifest, contents)
    by_segment: dict[str, list[Name]] = {}
    for name in contents.names(FILES):
        if not is_settled or name[1] in wanted:
            by_segment.setdefault(name[1], []).append(name)
    chosen = []
    for segment, versions in sorted(by_segment.items()):
        # The order in which they were seen stays among all others.
        versions.sort(key=lambda name: name[2] != wanted.get(name[1]))
        best = next((found for name in versions if (found := contents.get(name)) is not None), None)
        if best is not None:
            done.whole[segment] = best[0]
            chosen.append(best)
    return chosen


def _tell_short(gathering: Gathering, contents: _Contents, done: Recovered) -> None:
    names = {each.id: each.name for each in done.manifest.segments} if done.manifest else {}
    is_settled = done.manifest is not None and _is_settled(done.manifest, contents)
    seen: set[str] = set()
    for group, label in gathering.shapes():
        name = (label.kind, label.segment, label.version)
        if label.kind == MANIFEST or contents.could_be(name):
            continue
        there = gathering.groups[group]
        carriers = (done.manifest.pages.get(label.segment, {}) if done.manifest else {}).items()
        pages = tuple(page for index, page in sorted(carriers) if index not in there)
        # What has enough and is not whole has forged ones among them: one true one more, at least.
        found = min(len(there), label.shape.needed - 1)
        short = Short(label.segment, names.get(label.segment, ""), label.version, found, label.shape.needed, pages)
        taken = done.whole.get(label.segment)
        if taken is None and (not is_settled or label.segment in names):
            done.short.append(short)
            seen.add(label.segment)
        elif taken is None or gathering.newest.get(group, "") > taken.newest:
            done.older.append(short)
    for each in done.manifest.segments if done.manifest else ():
        if each.id not in done.whole and each.id not in seen:
            pages = tuple(done.manifest.pages.get(each.id, {}).values()) if done.manifest else ()
            done.short.append(Short(each.id, each.name, each.version, 0, each.shape.needed, pages))
