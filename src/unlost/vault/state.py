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
from unlost.formats.output import whole_path
from unlost.formats.unread import unread
from unlost.vault import coding
from unlost.vault.block import Block, text_of
from unlost.vault.carriers import Carrier, carried
from unlost.vault.generation import Generation, Segment, generation_object, generation_of
from unlost.vault.planning import Page

NAME = "vault.json"
BLOCKS = "blocks"
KEY = "signing.key"
FORMAT = "unlost-vault-state-1"
_AT_WORK = "at-work"

LiveBlock = tuple[str, int, int]
"""A block that a page carries now: the id of a segment, the number of the generation that it is of, its own number."""


@dataclass(frozen=True, slots=True)
class Settings:
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
    settings: Settings = field(default_factory=Settings)
    pages: tuple[Page, ...] = ()
    generations: tuple[Generation, ...] = ()
    live: Mapping[str, tuple[LiveBlock, ...]] = field(default_factory=dict)
    since: Mapping[str, str] = field(default_factory=dict)

    @property
    def newest(self) -> Generation:
        """The last generation. Raises IndexError if nothing was packed."""
        return self.generations[-1]

    def segment(self, block: LiveBlock) -> Segment:
        """Return the segment of a live block. Raises KeyError or StopIteration if there is none."""
        return next(each for each in self.generations if each.number == block[1]).segment(block[0])

    def data(self, segment: Segment, index: int) -> bytes:
        """Return the bytes of one block. Raises InputError if they are not there, OSError."""
        try:
            with (self.folder / BLOCKS / segment.blocks_name).open("rb") as file:
                return coding.read_block(file, segment.shape, index)
        except InputError as error:
            raise InputError(f"{self.folder / BLOCKS / segment.blocks_name}: {error}") from None

    def text(self, key: str) -> bytes:
        """Return what a page carries, in its carriers; nothing if it carries nothing."""
        return b"".join(self._text(block) for block in self.live.get(key, ()))

    def _text(self, live: LiveBlock) -> bytes:
        segment = self.segment(live)
        data = self.data(segment, live[2])
        label = segment.label(live[2], hashlib.sha256(data).hexdigest())
        return carried(text_of(Block(label, data), self.seed()), self.settings.carrier)

    def text_of_place(self, place: tuple[str, int]) -> bytes:
        """Return a block of the newest generation in its carrier."""
        return self._text((place[0], self.newest.number, place[1]))

    def seed(self) -> bytes | None:
        """Return the secret key that blocks are signed with; None if they are not. Raises InputError, OSError."""
        if not self.settings.signed:
            return None
        try:
            seed = bytes.fromhex((self.folder / KEY).read_text("ascii").strip())
        except ValueError:
            seed = b""
        if len(seed) != 32 or not any(seed):
            raise InputError(f"{self.folder / KEY}: expected a secret key of 64 hexadecimal digits")
        return seed


def public_key(vault: Vault) -> str | None:
    """Return the key that tells a vault's blocks from forged ones, in hexadecimal digits; None if none is signed."""
    seed = vault.seed()
    return None if seed is None else signing_public_key(seed).hex()


def open_vault(folder: Path) -> Vault:
    """Return the vault in a folder. Raises InputError if there is none."""
    try:
        value = json.loads((folder / NAME).read_bytes())
    except FileNotFoundError as error:
        if not folder.exists():
            raise unread(folder, error, "`unlost vault pack` makes a vault") from None
        raise InputError(f"{folder}: no vault is there: `unlost vault pack` makes one") from None
    except OSError as error:
        is_closed = not folder.is_dir() or not os.access(folder, os.X_OK)
        raise unread(folder if is_closed else folder / NAME, error) from None
    except ValueError:
        raise InputError(f"{folder / NAME}: expected JSON, found something else: pack again") from None
    try:
        return _vault_of(folder, value)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise InputError(f"{folder / NAME}: expected {FORMAT}, found something else: pack again") from None


def _vault_of(folder: Path, value: Mapping[str, Any]) -> Vault:
    if value["format"] != FORMAT:
        raise ValueError(value["format"])
    given = value["settings"]
    settings = Settings(**{**given, "carrier": Carrier(given["carrier"]), "recipients": tuple(given["recipients"])})
    return Vault(
        folder,
        settings,
        tuple(Page(*page) for page in value["pages"]),
        tuple(generation_of(each) for each in value["generations"]),
        {page: tuple((str(a), int(b), int(c)) for a, b, c in blocks) for page, blocks in value["live"].items()},
        dict(value["since"]),
    )


@contextmanager
def at_work(folder: Path) -> Iterator[Path]:
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
        _sweep(folder)
        place = folder / _AT_WORK
        place.mkdir(mode=0o700)
        try:
            yield place
        finally:
            shutil.rmtree(place)
    finally:
        os.close(lock)


def _sweep(folder: Path) -> None:
    """Take away what a process that was killed left behind."""
    shutil.rmtree(folder / _AT_WORK, ignore_errors=True)
    for stale in (*folder.glob(".*.part"), *(folder / BLOCKS).glob("*.new")):
        stale.unlink()


def save(vault: Vault) -> None:
    """Write a vault's state, whole or not at all, and take away blocks that nothing names any more."""
    settings = {name: getattr(vault.settings, name) for name in Settings.__slots__}
    value = {
        "format": FORMAT,
        "settings": {**settings, "recipients": list(vault.settings.recipients)},
        "pages": [[page.key, page.size, page.hops] for page in vault.pages],
        "generations": [generation_object(each) for each in vault.generations],
        "live": {page: [list(block) for block in blocks] for page, blocks in vault.live.items()},
        "since": dict(vault.since),
    }
    with whole_path(vault.folder / NAME) as aside:
        aside.write_text(json.dumps(value, indent=1) + "\n", "utf-8")
    named = {segment.blocks_name for each in vault.generations for segment in each.segments}
    for file in (vault.folder / BLOCKS).glob("*.blocks"):
        if file.name not in named:
            file.unlink()


def with_live(vault: Vault, live: Mapping[str, tuple[LiveBlock, ...]], now: str) -> Vault:
    """Return a vault whose pages carry other blocks from now on."""
    since = {
        page: vault.since.get(page, now) if _groups(vault, vault.live.get(page, ())) == groups else now
        for page, groups in ((page, _live_groups(vault, blocks)) for page, blocks in live.items())
    }
    return replace(vault, live=live, since=since)


def _groups(vault: Vault, blocks: tuple[LiveBlock, ...]) -> set[tuple[object, ...]]:
    try:
        return _live_groups(vault, blocks)
    except StopIteration:
        return set()


def _live_groups(vault: Vault, blocks: tuple[LiveBlock, ...]) -> set[tuple[object, ...]]:
    return {(*vault.segment(block).group, block[2]) for block in blocks}
