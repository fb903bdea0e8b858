"""A vault on disk: a folder with `vault.json` and the blocks of each segment."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unlost._core import signing_public_key
from unlost.errors import InputError
from unlost.formats.output import atomic_path
from unlost.formats.unread import unreadable_error
from unlost.vault import coding
from unlost.vault.block import VaultBlock, serialize_block
from unlost.vault.carriers import Carrier, wrap_in_carrier
from unlost.vault.generation import Generation, VaultSegment, generation_to_json, generation_from_json
from unlost.vault.planning import CarrierPage

STATE_NAME = "vault.json"
BLOCKS_FOLDER = "blocks"
SIGNING_KEY_NAME = "signing.key"
STATE_FORMAT = "unlost-vault-state-1"
_WORK_FOLDER = "at-work"

LiveBlock = tuple[str, int, int]
"""A block that a page carries now: the id of a segment, the number of the generation that it is of, its own number."""


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """What stays as it is from one pack to the next. limit: bytes of a page. recipients: of age.

    sealed: `no`, `recipients` or `passphrase`. extra_pages: made only to carry blocks. notice: whether pages tell when
    their blocks changed. raw: whether what was packed is served as it is, too.
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
    """A vault as it is on disk.

    pages: of the site. generations: one, or while an update is under way two, the older first. live: what each page
    carries now. since: when that last changed, 14 digits, by page.
    """

    folder: Path
    settings: VaultSettings = field(default_factory=VaultSettings)
    pages: tuple[CarrierPage, ...] = ()
    generations: tuple[Generation, ...] = ()
    live: Mapping[str, tuple[LiveBlock, ...]] = field(default_factory=dict)
    since: Mapping[str, str] = field(default_factory=dict)

    @property
    def newest(self) -> Generation:
        """The last generation. Raises IndexError if nothing was packed."""
        return self.generations[-1]

    def segment(self, block: LiveBlock) -> VaultSegment:
        """Return the segment of a live block. Raises KeyError or StopIteration if there is none."""
        return next(each for each in self.generations if each.number == block[1]).segment(block[0])

    def read_block(self, segment: VaultSegment, index: int) -> bytes:
        """Return the bytes of one block. Raises InputError if they are not there, OSError."""
        try:
            with (self.folder / BLOCKS_FOLDER / segment.blocks_name).open("rb") as file:
                return coding.read_block(file, segment.shape, index)
        except InputError as error:
            raise InputError(f"{self.folder / BLOCKS_FOLDER / segment.blocks_name}: {error}") from None

    def page_blocks_text(self, key: str) -> bytes:
        """Return what a page carries, in its carriers; nothing if it carries nothing."""
        return b"".join(self._block_text(block) for block in self.live.get(key, ()))

    def _block_text(self, live: LiveBlock) -> bytes:
        segment = self.segment(live)
        data = self.read_block(segment, live[2])
        label = segment.block_header(live[2], hashlib.sha256(data).hexdigest())
        return wrap_in_carrier(serialize_block(VaultBlock(label, data), self.signing_seed()), self.settings.carrier)

    def location_text(self, location: tuple[str, int]) -> bytes:
        """Return a block of the newest generation in its carrier."""
        return self._block_text((location[0], self.newest.number, location[1]))

    def signing_seed(self) -> bytes | None:
        """Return the secret key that blocks are signed with; None if they are not. Raises InputError, OSError."""
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
    """Return the key that tells a vault's blocks from forged ones, in hexadecimal digits; None if none is signed."""
    seed = vault.signing_seed()
    return None if seed is None else signing_public_key(seed).hex()


def open_vault(folder: Path) -> Vault:
    """Return the vault in a folder. Raises InputError if there is none."""
    try:
        value = json.loads((folder / STATE_NAME).read_bytes())
    except FileNotFoundError as error:
        if not folder.exists():
            raise unreadable_error(folder, error, "`unlost vault pack` makes a vault") from None
        raise InputError(f"{folder}: no vault is there: `unlost vault pack` makes one") from None
    except OSError as error:
        is_closed = not folder.is_dir() or not os.access(folder, os.X_OK)
        raise unreadable_error(folder if is_closed else folder / STATE_NAME, error) from None
    except ValueError:
        raise InputError(f"{folder / STATE_NAME}: expected JSON, found something else: pack again") from None
    try:
        return _vault_from_json(folder, value)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise InputError(f"{folder / STATE_NAME}: expected {STATE_FORMAT}, found something else: pack again") from None


def _vault_from_json(folder: Path, value: Mapping[str, Any]) -> Vault:
    if value["format"] != STATE_FORMAT:
        raise ValueError(value["format"])
    given = value["settings"]
    settings = VaultSettings(
        **{**given, "carrier": Carrier(given["carrier"]), "recipients": tuple(given["recipients"])}
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
    """Keep others from changing a vault meanwhile, and give a folder in it that goes at the end.

    What a process left there that was killed goes, too: it may be what is sealed in pages. Raises InputError if
    another process is at work on it.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{folder}: another process is at work on it: wait for that one") from None
        _remove_leftovers(folder)
        place = folder / _WORK_FOLDER
        place.mkdir(mode=0o700)
        try:
            yield place
        finally:
            shutil.rmtree(place)
    finally:
        os.close(lock)


def _remove_leftovers(folder: Path) -> None:
    """Take away what a process that was killed left behind."""
    shutil.rmtree(folder / _WORK_FOLDER, ignore_errors=True)
    for stale in (*folder.glob(".*.part"), *(folder / BLOCKS_FOLDER).glob("*.new")):
        stale.unlink()


def save_vault(vault: Vault) -> None:
    """Write a vault's state, whole or not at all, and take away blocks that nothing names any more."""
    settings = {name: getattr(vault.settings, name) for name in VaultSettings.__slots__}
    value = {
        "format": STATE_FORMAT,
        "settings": {**settings, "recipients": list(vault.settings.recipients)},
        "pages": [[page.key, page.size, page.hops] for page in vault.pages],
        "generations": [generation_to_json(each) for each in vault.generations],
        "live": {page: [list(block) for block in blocks] for page, blocks in vault.live.items()},
        "since": dict(vault.since),
    }
    with atomic_path(vault.folder / STATE_NAME) as aside:
        aside.write_text(json.dumps(value, indent=1) + "\n", "utf-8")
    named = {segment.blocks_name for each in vault.generations for segment in each.segments}
    for file in (vault.folder / BLOCKS_FOLDER).glob("*.blocks"):
        if file.name not in named:
            file.unlink()


def set_live_blocks(vault: Vault, live: Mapping[str, tuple[LiveBlock, ...]], now: str) -> Vault:
    """Return a vault whose pages carry other blocks from now on."""
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
