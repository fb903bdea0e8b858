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

from unlost.aggregate.known_file import HoldingsKind, MapOrFilter, HoldingsReader
from unlost.archives.archive import Archive, RequestKind
from unlost.archives.asking.question import HttpClient, HttpRequest, HttpResponse
from unlost.errors import ArchiveError, InputError
from unlost.formats.output import atomic_file

_ETAG = re.compile(r'(?:W/)?"[!#-~]{0,500}"')
_DATE = re.compile(r"[A-Za-z0-9,: +-]{1,60}")
_STALE_COPY_SECONDS = 3600.0  # nobody takes so long to read a copy
_MAX_METADATA_BYTES = 1 << 16  # bytes of what is noted beside a copy


@dataclass(frozen=True, slots=True)
class CacheValidators:
    """By what a server knows again what it sent. None for what it did not say."""

    etag: str | None = None
    modified: str | None = None

    @classmethod
    def from_response(cls, response: HttpResponse) -> "CacheValidators":
        """Return that of an answer, as far as it can be sent back."""
        etag, modified = response.header("ETag") or "", response.header("Last-Modified") or ""
        return cls(etag if _ETAG.fullmatch(etag) else None, modified if _DATE.fullmatch(modified) else None)


@dataclass(frozen=True, slots=True)
class _CopyMetadata:
    """What is noted of a copy: whence it is, which version, and the name of its file."""

    address: str
    version: CacheValidators
    file: str


class HoldingsUrl:
    """A map or filter at an address.

    place: the address. what: what was last read, and is sound; None if nothing was.
    problem: why what is there now is not what is used; None if it is.
    unchanged: how often the server said that nothing has changed.
    folder: where copies are kept, so that the next process has one at once, also if the server is down.
    """

    def __init__(self, url: str, kind: HoldingsKind, reader: HoldingsReader, folder: Path) -> None:
        self.url = url
        self.kind = kind
        self.value: MapOrFilter | None = None
        self.problem: str | None = None
        self.unchanged = 0
        self._reader = reader
        self._name = sha256(url.encode()).hexdigest()[:40]
        self._folder = folder
        self._current = CacheValidators()
        self._rejected = CacheValidators()
        self._is_loaded = False

    async def load(self) -> bool:
        """Read the copy that is kept, the first time, and return whether there is one. Nobody is asked."""
        if self._is_loaded:
            return False
        self._is_loaded = True
        try:
            note = await self._reader.run_in_thread(self._read_metadata)
            if note is None:
                return False
            self.value = await self._reader.run_in_thread(
                lambda: self._reader.read(self.kind, self._folder / note.file)
            )
        except InputError as error:
            self.problem = f"the copy that was kept: {error}"
            return False
        self._current = note.version
        return True

    async def refresh(self, archive: Archive, client: HttpClient) -> bool:
        """Ask whether there is another version, read it, and return whether it is sound and so in use from now on."""
        is_new = await self.load()
        try:
            reply = await client.send(
                archive,
                HttpRequest(self.url, RequestKind.INDEX, self._conditional_headers(), max_bytes=self._reader.max_bytes),
            )
            with reply.body:
                if reply.status == 304:
                    self._record_unchanged(CacheValidators.from_response(reply))
                    return is_new
                if reply.status != 200:
                    self.problem = f"{self.url}: status {reply.status}"
                    return is_new
                version = CacheValidators.from_response(reply)
                self.value = await self._reader.run_in_thread(lambda: self._store_copy(reply.body, version))
        except ArchiveError as error:
            self.problem = f"{self.url}: {error}"
            return is_new
        except InputError as error:
            self._rejected = version
            self.problem = f"{self.url}: what is there now cannot be used: {error}"
            return is_new
        except OSError as error:
            self.problem = f"{self.url}: {error.filename or self._folder}: {error.strerror or error}"
            return is_new
        self._current, self._rejected, self.problem = version, CacheValidators(), None
        return True

    def discard(self) -> None:
        """Ask for it anew next time, since what was read turned out to be damaged."""
        self.value, self._current, self._rejected, self._is_loaded = None, CacheValidators(), CacheValidators(), True

    def _conditional_headers(self) -> dict[str, str]:
        """Return the headers that spare us what we have, and what we have found to be broken."""
        tags = [version.etag for version in (self._current, self._rejected) if version.etag]
        date = self._rejected.modified or self._current.modified
        found = {"If-None-Match": ", ".join(dict.fromkeys(tags))} if tags else {}
        return found | ({"If-Modified-Since": date} if date else {})

    def _record_unchanged(self, version: CacheValidators) -> None:
        self.unchanged += 1
        refused = self._rejected
        if refused == CacheValidators() or (version.etag is not None and not _is_same_etag(version.etag, refused.etag)):
            self._rejected, self.problem = CacheValidators(), None

    def _read_metadata(self) -> _CopyMetadata | None:
        """Return what is noted of the copy; None if there is none."""
        try:
            with (self._folder / f"{self._name}.json").open("rb") as file:
                table = json.loads(file.read(_MAX_METADATA_BYTES))
            version = CacheValidators(table["version"]["etag"], table["version"]["modified"])
            note = _CopyMetadata(table["address"], version, table["file"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        texts = (note.file, version.etag or "", version.modified or "")
        is_ours = note.address == self.url and all(isinstance(text, str) for text in texts)
        return note if is_ours and re.fullmatch(rf"{self._name}\.[0-9a-f]+", note.file) else None

    def _store_copy(self, body: BinaryIO, version: CacheValidators) -> MapOrFilter:
        """Keep a copy, if it is sound, and return what was read from it. Raises InputError, OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        copy = self._folder / f"{self._name}.{os.urandom(8).hex()}"
        try:
            with atomic_file(copy) as file:
                shutil.copyfileobj(body, file, 1 << 20)
            what = self._reader.read(self.kind, copy)
            with atomic_file(self._folder / f"{self._name}.json") as file:
                file.write(json.dumps(asdict(_CopyMetadata(self.url, version, copy.name))).encode())
        except BaseException:
            copy.unlink(missing_ok=True)
            raise
        self._remove_stale_copies(copy.name)
        return what

    def _remove_stale_copies(self, kept: str) -> None:
        """Remove copies that nothing is noted of, but for new ones, which another process may be reading."""
        recent = (self._folder / kept).stat().st_mtime - _STALE_COPY_SECONDS
        for each in self._folder.glob(f"*{self._name}.*"):
            with suppress(OSError):
                if each.name not in (kept, f"{self._name}.json") and each.stat().st_mtime < recent:
                    each.unlink()


def _is_same_etag(one: str, other: str | None) -> bool:
    return other is not None and one.removeprefix("W/") == other.removeprefix("W/")
