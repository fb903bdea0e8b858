"""A map or a filter at an address, kept in a folder and asked for again by conditional requests."""

import json
import os
import re
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from unlost.aggregate.known_file import PartKind, Read, Reading
from unlost.archives.archive import Archive, Work
from unlost.archives.asking.question import Asks, Question, Reply
from unlost.errors import ArchiveError, InputError
from unlost.formats.output import whole_file

_ETAG = re.compile(r'(?:W/)?"[!#-~]{0,500}"')
_DATE = re.compile(r"[A-Za-z0-9,: +-]{1,60}")
_TIDY_SECONDS = 3600.0  # nobody takes so long to read a copy
_MAX_NOTE = 1 << 16  # bytes of what is noted beside a copy


@dataclass(frozen=True, slots=True)
class Version:
    """By what a server knows again what it sent. None for what it did not say."""

    etag: str | None = None
    modified: str | None = None

    @classmethod
    def of(cls, reply: Reply) -> "Version":
        """Return that of an answer, as far as it can be sent back."""
        etag, modified = reply.header("ETag") or "", reply.header("Last-Modified") or ""
        return cls(etag if _ETAG.fullmatch(etag) else None, modified if _DATE.fullmatch(modified) else None)


@dataclass(frozen=True, slots=True)
class _Note:
    """What is noted of a copy: whence it is, which version, and the name of its file."""

    address: str
    version: Version
    file: str


class KnownAddress:
    """A map or filter at an address.

    place: the address. what: what was last read, and is sound; None if nothing was.
    problem: why what is there now is not what is used; None if it is.
    unchanged: how often the server said that nothing has changed.
    folder: where copies are kept, so that the next process has one at once, also if the server is down.
    """

    def __init__(self, place: str, kind: PartKind, reading: Reading, folder: Path) -> None:
        self.place = place
        self.kind = kind
        self.what: Read | None = None
        self.problem: str | None = None
        self.unchanged = 0
        self._reading = reading
        self._name = sha256(place.encode()).hexdigest()[:40]
        self._folder = folder
        self._kept = Version()
        self._refused = Version()
        self._has_looked = False

    async def load(self) -> bool:
        """Read the copy that is kept, the first time, and return whether there is one. Nobody is asked."""
        if self._has_looked:
            return False
        self._has_looked = True
        try:
            note = await self._reading.beside(self._note)
            if note is None:
                return False
            self.what = await self._reading.beside(lambda: self._reading.read(self.kind, self._folder / note.file))
        except InputError as error:
            self.problem = f"the copy that was kept: {error}"
            return False
        self._kept = note.version
        return True

    async def refresh(self, archive: Archive, courier: Asks) -> bool:
        """Ask whether there is another version, read it, and return whether it is sound and so in use from now on."""
        is_new = await self.load()
        try:
            reply = await courier.ask(
                archive, Question(self.place, Work.INDEX, self._conditions(), max_bytes=self._reading.max_bytes)
            )
            with reply.body:
                if reply.status == 304:
                    self._not_changed(Version.of(reply))
                    return is_new
                if reply.status != 200:
                    self.problem = f"{self.place}: status {reply.status}"
                    return is_new
                version = Version.of(reply)
                self.what = await self._reading.beside(lambda: self._taken(reply.body, version))
        except ArchiveError as error:
            self.problem = f"{self.place}: {error}"
            return is_new
        except InputError as error:
            self._refused = version
            self.problem = f"{self.place}: what is there now cannot be used: {error}"
            return is_new
        except OSError as error:
            self.problem = f"{self.place}: {error.filename or self._folder}: {error.strerror or error}"
            return is_new
        self._kept, self._refused, self.problem = version, Version(), None
        return True

    def forget(self) -> None:
        """Ask for it anew next time, since what was read turned out to be damaged."""
        self.what, self._kept, self._refused, self._has_looked = None, Version(), Version(), True

    def _conditions(self) -> dict[str, str]:
        """Return the headers that spare us what we have, and what we have found to be broken."""
        tags = [version.etag for version in (self._kept, self._refused) if version.etag]
        date = self._refused.modified or self._kept.modified
        found = {"If-None-Match": ", ".join(dict.fromkeys(tags))} if tags else {}
        return found | ({"If-Modified-Since": date} if date else {})

    def _not_changed(self, version: Version) -> None:
        self.unchanged += 1
        refused = self._refused
        if refused == Version() or (version.etag is not None and not _same(version.etag, refused.etag)):
            self._refused, self.problem = Version(), None

    def _note(self) -> _Note | None:
        """Return what is noted of the copy; None if there is none."""
        try:
            with (self._folder / f"{self._name}.json").open("rb") as file:
                table = json.loads(file.read(_MAX_NOTE))
            version = Version(table["version"]["etag"], table["version"]["modified"])
            note = _Note(table["address"], version, table["file"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        texts = (note.file, version.etag or "", version.modified or "")
        is_ours = note.address == self.place and all(isinstance(text, str) for text in texts)
        return note if is_ours and re.fullmatch(rf"{self._name}\.[0-9a-f]+", note.file) else None

    def _taken(self, body: BinaryIO, version: Version) -> Read:
        """Keep a copy, if it is sound, and return what was read from it. Raises InputError, OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        copy = self._folder / f"{self._name}.{os.urandom(8).hex()}"
        try:
            with whole_file(copy) as file:
                shutil.copyfileobj(body, file, 1 << 20)
            what = self._reading.read(self.kind, copy)
            with whole_file(self._folder / f"{self._name}.json") as file:
                file.write(json.dumps(asdict(_Note(self.place, version, copy.name))).encode())
        except BaseException:
            copy.unlink(missing_ok=True)
            raise
        self._tidy(copy.name)
        return what

    def _tidy(self, kept: str) -> None:
        """Remove copies that nothing is noted of, but for new ones, which another process may be reading."""
        recent = (self._folder / kept).stat().st_mtime - _TIDY_SECONDS
        for each in self._folder.glob(f"*{self._name}.*"):
            with suppress(OSError):
                if each.name not in (kept, f"{self._name}.json") and each.stat().st_mtime < recent:
                    each.unlink()


def _same(one: str, other: str | None) -> bool:
    return other is not None and one.removeprefix("W/") == other.removeprefix("W/")
