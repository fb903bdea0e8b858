"""The vault on disk: settings, pages, generations with their segments, the manifest, and block files.

A `Generation` is one complete version of all files. `save_vault` writes `vault.json` atomically.
"""

import gzip
import hashlib
import io
import json
import os
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unlost._core import signing_public_key
from unlost.atomic import atomic_path
from unlost.errors import InputError
from unlost.file_lock import acquire_lock
from unlost.problems import unreadable_error
from unlost.vault import erasure_code
from unlost.vault.block import KIND_MANIFEST, BlockHeader, Carrier, VaultBlock, serialize_block, wrap_in_carrier
from unlost.vault.erasure_code import CodeShape, stripe_width
from unlost.vault.plan import CarrierPage

ManifestEntry = tuple[str, str, int, int, int]
"""A file in a manifest: name, kind, size in bytes, mode, modification time in nanoseconds."""

BlockPlacement = Mapping[str, tuple[tuple[str, int], ...]]
"""The blocks that each page carries: pairs of segment id and block index, by page key."""
MANIFEST_FORMAT = "unlost-vault-manifest-1"
MANIFEST_NAME = "manifest"
_MAX_MANIFEST_BYTES = 64 << 20
"""Limit of a manifest's text in bytes: half a million files, more than pages can carry."""
_MAX_MANIFEST_EXPANSION = 100
"""Limit of the ratio of a manifest's text to its compressed size; names and hashes compress to a tenth at best."""
STATE_NAME = "vault.json"
BLOCKS_FOLDER = "blocks"
SIGNING_KEY_NAME = "signing.key"
STATE_FORMAT = "unlost-vault-state-1"
_WORK_FOLDER = "at-work"
LiveBlock = tuple[str, int, int]
"""A block that a page carries: segment id, generation number, block index."""


@dataclass(frozen=True, slots=True)
class VaultSegment:
    """A coded part of the files.

    Attributes:
        name: Its name.
        id: Its identifier in pages, derived from the name.
        kind: `KIND_FILES` or `KIND_MANIFEST`.
        source: SHA-256 of the content before compression and encryption; detects changes.
        version: SHA-256 of the coded content.
        shape: Parameters of the erasure code.
        wrap: Type of the coded content, as a file extension.
        entries: The files in it.
    """

    name: str
    id: str
    kind: str
    source: str
    version: str
    shape: CodeShape
    wrap: str
    entries: tuple[ManifestEntry, ...] = ()

    @property
    def blocks_name(self) -> str:
        """Name of its block file. It contains all parameters that determine the positions of the blocks."""
        shape = self.shape
        numbers = f"{shape.needed}-{shape.count}-{shape.block}-{stripe_width(shape)}"
        return f"{self.id}-{self.version[:24]}-{numbers}.blocks"

    def block_header(self, index: int, sha256: str) -> BlockHeader:
        """Return the header of one of its blocks."""
        return BlockHeader(self.kind, self.id, self.version, self.shape, self.wrap, index, sha256)

    @property
    def group(self) -> tuple[str, str, str, int, int, int]:
        """The fields that its blocks share, as in `BlockHeader.group`."""
        return self.block_header(0, "").group


@dataclass(frozen=True, slots=True)
class Generation:
    """One complete version of all files.

    Attributes:
        number: Its number, from 1.
        segments: Its segments.
        placement: The blocks that each page carries.
    """

    number: int
    segments: tuple[VaultSegment, ...]
    placement: BlockPlacement

    def segment(self, name: str) -> VaultSegment:
        """Return the segment with an id. Raises StopIteration if there is none."""
        return next(each for each in self.segments if each.id == name)

    @property
    def files(self) -> tuple[VaultSegment, ...]:
        """All segments except the manifest."""
        return tuple(each for each in self.segments if each.kind != KIND_MANIFEST)

    def pages_of(self, segment: VaultSegment) -> dict[int, str]:
        """Return the page of each block of a segment, by block index."""
        locations = ((page, location) for page, locations in self.placement.items() for location in locations)
        return {index: page for page, (name, index) in locations if name == segment.id}


def generation_to_json(generation: Generation) -> dict[str, Any]:
    """Return a generation as a JSON object."""
    return {
        "number": generation.number,
        "segments": [segment_to_json(each) for each in generation.segments],
        "placement": {
            page: [list(location) for location in locations] for page, locations in generation.placement.items()
        },
    }


def segment_to_json(segment: VaultSegment) -> dict[str, Any]:
    """Return a segment as a JSON object."""
    shape = segment.shape
    return {
        "name": segment.name, "id": segment.id, "kind": segment.kind, "source": segment.source,
        "version": segment.version,
        "size": shape.size, "block": shape.block, "needed": shape.needed, "count": shape.count, "wrap": segment.wrap,
        "files": [list(entry) for entry in segment.entries],
    }  # fmt: skip


def segment_from_json(value: Mapping[str, Any]) -> VaultSegment:
    """Reverse `segment_to_json`. Raises KeyError, TypeError or ValueError for an invalid object."""
    shape = CodeShape(int(value["size"]), int(value["block"]), int(value["needed"]), int(value["count"]))
    entries = tuple((str(e[0]), str(e[1]), int(e[2]), int(e[3]), int(e[4])) for e in value["files"])
    name, segment_id, kind, source, version = (str(value[each]) for each in ("name", "id", "kind", "source", "version"))
    return VaultSegment(name, segment_id, kind, source, version, shape, str(value["wrap"]), entries)


def generation_from_json(value: Mapping[str, Any]) -> Generation:
    """Reverse `generation_to_json`. Raises KeyError, TypeError or ValueError for an invalid object."""
    placement = {
        str(page): tuple((str(name), int(index)) for name, index in locations)
        for page, locations in value["placement"].items()
    }
    return Generation(int(value["number"]), tuple(segment_from_json(each) for each in value["segments"]), placement)


@dataclass(frozen=True, slots=True)
class VaultManifest:
    """A parsed manifest.

    Attributes:
        number: Number of the generation.
        segments: Its segments.
        pages: The page of each block, by segment id, then by block index.
    """

    number: int
    segments: tuple[VaultSegment, ...]
    pages: Mapping[str, Mapping[int, str]]


def serialize_manifest(generation: Generation) -> tuple[bytes, str]:
    """Return the gzipped manifest of all file segments, and the SHA-256 of its text."""
    segments = []
    for each in generation.files:
        pages = generation.pages_of(each)
        value: dict[str, Any] = segment_to_json(each)
        value["pages"] = [pages.get(index) for index in range(each.shape.count)]
        segments.append(value)
    text = json.dumps(
        {"format": MANIFEST_FORMAT, "number": generation.number, "segments": segments}, separators=(",", ":")
    ).encode()
    compressed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=compressed, mtime=0) as file:
        file.write(text)
    return compressed.getvalue(), hashlib.sha256(text).hexdigest()


def parse_manifest(compressed: bytes) -> VaultManifest:
    """Reverse `serialize_manifest`. Raises InputError for invalid data."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(compressed)) as file:
            max_bytes = min(_MAX_MANIFEST_BYTES, max(1 << 20, _MAX_MANIFEST_EXPANSION * len(compressed)))
            text = file.read(max_bytes + 1)
        value = json.loads(text[:max_bytes])
        _check_manifest_format(value["format"])
        number = int(value["number"])
        segments = tuple(segment_from_json(each) for each in value["segments"])
        pages = {
            str(each["id"]): {index: str(page) for index, page in enumerate(each["pages"]) if page is not None}
            for each in value["segments"]
        }
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError, zlib.error, OSError, RecursionError):
        raise InputError("expected a manifest, found something else, or damage") from None
    return VaultManifest(number, segments, pages)


def _check_manifest_format(found: object) -> None:
    if found != MANIFEST_FORMAT:
        raise ValueError(found)


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """Settings that persist from one pack to the next.

    Attributes:
        carrier: How pages carry blocks.
        limit: Maximum size of a page in bytes.
        sealed: Encryption: `no`, `recipients` or `passphrase`.
        recipients: Public keys for age.
        segments: Division into segments, as `parse_division` reads it.
        signed: Whether blocks are signed.
        extra_pages: Number of pages generated only to carry blocks.
        notice: Whether pages show the date when their blocks changed.
        raw: Whether segments are also served as plain files.
    """

    carrier: Carrier = Carrier.COMMENT
    limit: int = 0
    sealed: str = "no"
    recipients: tuple[str, ...] = ()
    segments: str = "one"
    signed: bool = False
    extra_pages: int = 0
    notice: bool = False
    raw: bool = False


@dataclass(frozen=True, slots=True)
class Vault:
    """A vault as stored on disk.

    Attributes:
        folder: Its folder.
        settings: Its settings.
        pages: Pages of the site, including extra pages.
        generations: One, or during a staged update two, the older one first.
        live: The blocks that each page carries, by page key.
        since: When the blocks of a page last changed (14 digits, UTC), by page key.
    """

    folder: Path
    settings: VaultSettings = field(default_factory=VaultSettings)
    pages: tuple[CarrierPage, ...] = ()
    generations: tuple[Generation, ...] = ()
    live: Mapping[str, tuple[LiveBlock, ...]] = field(default_factory=dict)
    since: Mapping[str, str] = field(default_factory=dict)

    @property
    def newest(self) -> Generation:
        """The latest generation. Raises IndexError if nothing has been packed."""
        return self.generations[-1]

    def segment(self, block: LiveBlock) -> VaultSegment:
        """Return the segment of a live block. Raises StopIteration if there is none."""
        return next(each for each in self.generations if each.number == block[1]).segment(block[0])

    def read_block(self, segment: VaultSegment, index: int) -> bytes:
        """Return the data of one block. Raises InputError if it is missing, OSError if it cannot be read."""
        try:
            with (self.folder / BLOCKS_FOLDER / segment.blocks_name).open("rb") as file:
                return erasure_code.read_block(file, segment.shape, index)
        except InputError as error:
            raise InputError(f"{self.folder / BLOCKS_FOLDER / segment.blocks_name}: {error}") from None

    def page_blocks_text(self, key: str) -> bytes:
        """Return the blocks of a page in their carriers; empty if it carries none."""
        return b"".join(self._block_text(block) for block in self.live.get(key, ()))

    def _block_text(self, live: LiveBlock) -> bytes:
        segment = self.segment(live)
        data = self.read_block(segment, live[2])
        header = segment.block_header(live[2], hashlib.sha256(data).hexdigest())
        return wrap_in_carrier(serialize_block(VaultBlock(header, data), self.signing_seed()), self.settings.carrier)

    def location_text(self, location: tuple[str, int]) -> bytes:
        """Return a block of the newest generation in its carrier."""
        return self._block_text((location[0], self.newest.number, location[1]))

    def signing_seed(self) -> bytes | None:
        """Return the secret key for signatures; None if blocks are not signed. Raises InputError, OSError."""
        if not self.settings.signed:
            return None
        try:
            seed = bytes.fromhex((self.folder / SIGNING_KEY_NAME).read_text("ascii").strip())
        except ValueError:
            seed = b""
        if len(seed) != 32 or not any(seed):
            raise InputError(f"{self.folder / SIGNING_KEY_NAME}: expected a secret key of 64 hexadecimal digits")
        return seed


def public_key(vault: Vault) -> str | None:
    """Return the public key of the vault's signatures in hexadecimal digits; None if blocks are not signed."""
    seed = vault.signing_seed()
    return None if seed is None else signing_public_key(seed).hex()


def open_vault(folder: Path) -> Vault:
    """Open the vault in a folder. Raises InputError if there is none or it is damaged."""
    try:
        value = json.loads((folder / STATE_NAME).read_bytes())
    except FileNotFoundError as error:
        if not folder.exists():
            raise unreadable_error(folder, error, "`unlost vault pack` makes a vault") from None
        raise InputError(f"{folder}: no vault is there: `unlost vault pack` makes one") from None
    except OSError as error:
        is_unreadable = not folder.is_dir() or not os.access(folder, os.X_OK)
        raise unreadable_error(folder if is_unreadable else folder / STATE_NAME, error) from None
    except ValueError:
        raise InputError(f"{folder / STATE_NAME}: expected JSON, found something else: pack again") from None
    try:
        return _vault_from_json(folder, value)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise InputError(f"{folder / STATE_NAME}: expected {STATE_FORMAT}, found something else: pack again") from None


def _vault_from_json(folder: Path, value: Mapping[str, Any]) -> Vault:
    if value["format"] != STATE_FORMAT:
        raise ValueError(value["format"])
    stored = value["settings"]
    settings = VaultSettings(
        **{**stored, "carrier": Carrier(stored["carrier"]), "recipients": tuple(stored["recipients"])}
    )
    return Vault(
        folder,
        settings,
        tuple(CarrierPage(*page) for page in value["pages"]),
        tuple(generation_from_json(each) for each in value["generations"]),
        {page: tuple((str(a), int(b), int(c)) for a, b, c in blocks) for page, blocks in value["live"].items()},
        dict(value["since"]),
    )


@contextmanager
def lock_vault(folder: Path) -> Iterator[Path]:
    """Lock a vault and yield a temporary folder in it, which is deleted at the end.

    Files that a killed process left in that folder are deleted, too, since they may be unencrypted.

    Raises:
        InputError: Another process has the lock.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            acquire_lock(lock)
        except OSError:
            raise InputError(f"{folder}: another process is at work on it: wait for that one") from None
        _remove_leftovers(folder)
        work_folder = folder / _WORK_FOLDER
        work_folder.mkdir(mode=0o700)
        try:
            yield work_folder
        finally:
            shutil.rmtree(work_folder)
    finally:
        os.close(lock)


def _remove_leftovers(folder: Path) -> None:
    shutil.rmtree(folder / _WORK_FOLDER, ignore_errors=True)
    for stale in (*folder.glob(".*.part"), *(folder / BLOCKS_FOLDER).glob("*.new")):
        stale.unlink()


def save_vault(vault: Vault) -> None:
    """Write the state of a vault atomically, then delete block files that it does not refer to."""
    settings = {name: getattr(vault.settings, name) for name in VaultSettings.__slots__}
    value = {
        "format": STATE_FORMAT,
        "settings": {**settings, "recipients": list(vault.settings.recipients)},
        "pages": [[page.key, page.size, page.hops] for page in vault.pages],
        "generations": [generation_to_json(each) for each in vault.generations],
        "live": {page: [list(block) for block in blocks] for page, blocks in vault.live.items()},
        "since": dict(vault.since),
    }
    with atomic_path(vault.folder / STATE_NAME) as temporary:
        temporary.write_text(json.dumps(value, indent=1) + "\n", "utf-8")
    current_names = {segment.blocks_name for each in vault.generations for segment in each.segments}
    for file in (vault.folder / BLOCKS_FOLDER).glob("*.blocks"):
        if file.name not in current_names:
            file.unlink()


def set_live_blocks(vault: Vault, live: Mapping[str, tuple[LiveBlock, ...]], now: str) -> Vault:
    """Return a vault whose pages carry other blocks.

    Args:
        vault: The vault before.
        live: The blocks that each page carries, by page key.
        now: Date of the change for pages whose blocks differ: 14 digits, UTC.
    """
    since = {
        page: vault.since.get(page, now) if _known_block_ids(vault, vault.live.get(page, ())) == groups else now
        for page, groups in ((page, _block_ids(vault, blocks)) for page, blocks in live.items())
    }
    return replace(vault, live=live, since=since)


def _known_block_ids(vault: Vault, blocks: tuple[LiveBlock, ...]) -> set[tuple[object, ...]]:
    try:
        return _block_ids(vault, blocks)
    except StopIteration:
        return set()


def _block_ids(vault: Vault, blocks: tuple[LiveBlock, ...]) -> set[tuple[object, ...]]:
    return {(*vault.segment(block).group, block[2]) for block in blocks}
