"""Looking up what a profile says of a page, or of everything below a key."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Self

from unlost.errors import InputError, UsageError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.problems import Problems
from unlost.formats.textfile import read_lines
from unlost.formats.unread import unreadable_error
from unlost.holdings._profile_header import ProfileHeader
from unlost.uri import KeyPolicies, SuffixList

_CHUNK = 64 << 10  # bytes: what is read at a time, and what is not worth halving again
_COMPRESSION_MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # gzip, zstd


@dataclass(frozen=True, slots=True)
class ProfileLookupResult:
    """What a profile has under a key.

    key: the key, or the beginning of one, that was asked for.
    frequency: how many URI-Ms; 0 if there is nothing.
    spread: how many profiles contributed; of several keys, the most.
    keys: under how many keys of the profile.
    """

    key: str
    frequency: int
    spread: int
    keys: int


class UriKeyProfile:
    r"""A profile to look up pages in; made by `Profile.open`.

    path: the file, as it was given. header: what it says about itself.

    A plain file is searched where the key must be, by halves; a compressed one is read through. All methods may be
    called by several threads at once.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.cdxj")
    ...     _ = file.write_text('@about {"type": "urikey#H3P1"}\nuk,co,bbc)/images {"frequency": 152, "spread": 3}\n')
    ...     profile = Profile.open(file)
    ...     profile.lookup("http://www.bbc.co.uk/images/logo.png"), profile.lookup_key("uk,co,").frequency
    (Holding(key='uk,co,bbc)/images', frequency=152, spread=3, keys=1), 152)
    """

    def __init__(self, path: str | PathLike[str], suffixes: SuffixList | None = None) -> None:
        self.path = fspath(path)
        self.header = ProfileHeader.read(path)
        section = suffixes or SuffixList(section=self.header.suffixes)
        self._keys = KeyPolicies([self.header.policy], self.header.rules, section)

    @classmethod
    def open(cls, path: str | PathLike[str], suffixes: SuffixList | None = None) -> Self:
        """Return the profile in a file. suffixes: the list it was built with, if that is not the one of unlost.

        Raises InputError if it is not a profile.
        """
        return cls(path, suffixes)

    def lookup(self, uri: str | bytes, *, year: str | None = None, mime: str | None = None) -> ProfileLookupResult:
        """Return what is held under the key that an address has by the profile's policy; nothing found is no error.

        year, mime: only captures of that year, of that group of media types (`HTML`, `images`, `other`); for profiles
        that were built by these. Raises UriError if it is no address, UsageError if the profile does not tell, and
        InputError if it cannot be read.
        """
        (key,) = self._keys.keys(uri)
        return self._sum_keys(key, f"{key} ".encode(), self._part_selector(year, mime))

    def lookup_key(self, prefix: str, *, year: str | None = None, mime: str | None = None) -> ProfileLookupResult:
        """Return the sum over all keys that begin so: `uk,co,` for everything below `.co.uk`."""
        return self._sum_keys(prefix, prefix.encode("utf-8", "surrogateescape"), self._part_selector(year, mime))

    def _part_selector(self, year: str | None, mime: str | None) -> tuple[str | None, ...]:
        """Return what the fields of a part must be, None for any; nothing if all parts are wanted."""
        wanted = {name: value for name, value in (("year", year), ("mime", mime)) if value is not None}
        names = self.header.by
        for name in wanted:
            if name not in names:
                raise UsageError(f"{self.path}: does not tell by {name}: build it with `--by {name}`")
        return tuple(wanted.get(name) for name in names) if wanted else ()

    def _sum_keys(self, key: str, beginning: bytes, wanted: tuple[str | None, ...] = ()) -> ProfileLookupResult:
        frequency = spread = keys = 0
        for line in self._lines_from_prefix(beginning):
            if not line.startswith(beginning):
                if line > beginning:
                    break
                continue
            try:
                found = json.loads(line[line.index(b" ") :])
                copies = _sum_parts(found["parts"], wanted) if wanted else int(found["frequency"])
                if wanted and not copies:
                    continue
                frequency += copies
                spread = max(spread, int(found.get("spread", 1)))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise InputError(f"{self.path}: not what a profile has: {ascii(line)[2:80]}") from None
            keys += 1
        return ProfileLookupResult(key, frequency, spread, keys)

    def _lines_from_prefix(self, beginning: bytes) -> Iterator[bytes]:
        """Yield lines from where the first that begins so must be, or from before that."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise unreadable_error(self.path, error) from error
        try:
            if os.pread(handle, 4, 0).startswith(_COMPRESSION_MAGIC):
                lines = self._decompressed_lines()
            else:
                lines = _lines_from(handle, _seek_offset(handle, beginning))
            yield from (line for line in lines if line.strip() and line[:1] != b"@")
        except OSError as error:
            raise unreadable_error(self.path, error) from error
        finally:
            os.close(handle)

    def _decompressed_lines(self) -> Iterator[bytes]:
        problems = Problems()
        yield from (line.text for line in read_lines(self.path, problems))
        # The last is about the file itself, those before it about lines that suffered.
        for problem in reversed(problems.first.values()):
            raise InputError(str(problem))


def _sum_parts(parts: dict[str, int], wanted: tuple[str | None, ...]) -> int:
    """Return how much is of parts whose fields are those that are wanted."""
    return sum(
        int(count)
        for part, count in parts.items()
        if all(value in (None, field) for value, field in zip(wanted, part.split(" "), strict=True))
    )


def _seek_offset(handle: int, beginning: bytes) -> int:
    """Return where a line begins before which no line sorts behind `beginning`, and not far behind which one may."""
    low, high = 0, os.fstat(handle).st_size
    while high - low > _CHUNK:
        middle = (low + high) // 2
        start, line = _line_after(handle, middle)
        # Headers stand above all keys, however they sort.
        if line is not None and (line.startswith(b"@") or line < beginning):
            low = start
        else:
            high = middle
    return low


def _line_after(handle: int, offset: int) -> tuple[int, bytes | None]:
    """Return the first line that begins behind an offset, and where; none at the end."""
    start = offset
    for text in _read_chunks(handle, offset):
        end = text.find(b"\n")
        if end >= 0:
            start += end + 1
            break
        start += len(text)
    return start, next(_lines_from(handle, start), None)


def _lines_from(handle: int, offset: int) -> Iterator[bytes]:
    rest = b""
    for text in _read_chunks(handle, offset):
        *lines, rest = (rest + text).split(b"\n")
        yield from lines
        if len(rest) > MAX_LINE_BYTES:
            raise InputError("expected lines, found none: not a profile")
    if rest:
        yield rest


def _read_chunks(handle: int, offset: int) -> Iterator[bytes]:
    while text := os.pread(handle, _CHUNK, offset):
        offset += len(text)
        yield text
