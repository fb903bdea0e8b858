"""Look-ups in a filter (a static approximate membership filter), in its file or in memory.

Filters are binary fuse filters with four slots per key, which take 1.11 times as many bits as fingerprints have (xor
filters take 1.23, Bloom filters 1.44). They have partitions of some hundred thousand keys with a checksum each; a
partition is verified when it is first read.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Literal, Self, get_args

from unlost import _core
from unlost.errors import InputError, UriError
from unlost.problems import unreadable_error

FilterKeyKind = Literal["hxpx", "urir"]
FILTER_KEY_KINDS: tuple[FilterKeyKind, ...] = get_args(FilterKeyKind)
"""Kinds of keys: those of maps, without query strings (`hxpx`), or whole URLs (`urir`)."""


@dataclass(frozen=True, slots=True)
class FilterLayer:
    """Header of a filter, or of one of its layers.

    Attributes:
        key: Kind of the keys.
        rules: Rule set of the keys.
        bits: Bits of a fingerprint. The false-positive rate is 1 in 2^bits.
        keys: Number of keys; in an added layer, of keys that the earlier layers lack.
        earliest: Date of the first capture, 14 digits in UTC; None if there are no dates.
        latest: Date of the last capture, 14 digits in UTC; None if there are no dates.
        built_at: Build time, 14 digits in UTC; None if unknown.
        status: Status codes of the included rows; empty for all.
        mime: Media types of the included rows; empty for all.
        exclude: Kinds of pages that were excluded.
    """

    key: FilterKeyKind
    rules: str
    bits: int
    keys: int
    earliest: str | None
    latest: str | None
    built_at: str | None
    status: frozenset[str] = frozenset()
    mime: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()


class Filter:
    """A static filter: approximate membership without false negatives. Create it with `Filter.open` or `Filter.load`.

    All methods are thread-safe and release the GIL. Data is verified when it is first read: a damaged file raises
    InputError and never causes a false negative.

    Attributes:
        path: Path of the file, as given.
        layers: Layers, the oldest first: one, and another for each addition.
        file: The filter in the Rust core.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from unlost.mementomap import build_filter
    >>> with TemporaryDirectory() as folder:
    ...     urls, file = Path(folder, "urls.txt"), Path(folder, "a.filter")
    ...     _ = urls.write_text("http://example.com/a?b=1")
    ...     _ = build_filter([urls], file)
    ...     held = Filter.open(file)
    >>> held.lookup("https://www.example.com/a"), held.lookup("http://example.org/"), held.keys
    (True, False, 1)
    """

    def __init__(
        self,
        path: str | PathLike[str],
        rules: str | None = None,
        read: Callable[[str], _core.FilterFile] = _core.FilterFile.open,
    ) -> None:
        self.path = fspath(path)
        try:
            self.file = read(self.path)
        except OSError as error:
            raise unreadable_error(self.path, error) from error
        except InputError as error:
            raise self._add_path(error) from error
        self.layers = tuple(_parse_layer(layer) for layer in self.file.layers)
        if rules is not None and rules != self.rules:
            raise InputError(f"{self.path}: made by other rules ({self.rules}) than are asked for ({rules})")

    @classmethod
    def open(cls, path: str | PathLike[str], rules: str | None = None) -> Self:
        """Memory-map a filter. Takes milliseconds for any size, since only the headers are read.

        The file may be replaced by renaming another over it, but must not be modified in place.

        Args:
            path: The file.
            rules: Required rule set; None for any.

        Raises:
            InputError: The file cannot be read, is not a filter, has another version or rule set, or a damaged header.
        """
        return cls(path, rules)

    @classmethod
    def load(cls, path: str | PathLike[str], rules: str | None = None) -> Self:
        """Read a filter into memory, which takes the size of the file. The file may then be modified.

        For filters that are queried all the time. Damage is detected by look-ups or by `check`. Raises InputError as
        `open` does.
        """
        return cls(path, rules, _core.FilterFile.load)

    @property
    def key(self) -> FilterKeyKind:
        """Kind of the keys."""
        return self.layers[0].key

    @property
    def rules(self) -> str:
        """Rule set of the keys."""
        return self.layers[0].rules

    @property
    def bits(self) -> int:
        """Bits of a fingerprint in the first layer."""
        return self.layers[0].bits

    @property
    def keys(self) -> int:
        """Number of keys in all layers."""
        return sum(layer.keys for layer in self.layers)

    @property
    def earliest(self) -> str | None:
        """Date of the first capture in all layers, 14 digits in UTC; None if there are no dates."""
        return min((layer.earliest for layer in self.layers if layer.earliest), default=None)

    @property
    def latest(self) -> str | None:
        """Date of the last capture in all layers, 14 digits in UTC; None if there are no dates."""
        return max((layer.latest for layer in self.layers if layer.latest), default=None)

    @property
    def built_at(self) -> str | None:
        """Build time of the newest layer, 14 digits in UTC; None if unknown."""
        return max((layer.built_at for layer in self.layers if layer.built_at), default=None)

    def lookup(self, uri: str | bytes) -> bool:
        """Return whether the archive may hold a page, given by its URL or SURT.

        False is certain, as of the time when the filter was built. True is wrong for one in 2^bits of the pages that
        are not held; with several layers, their rates add up.

        Raises:
            UriError: The URL is invalid.
            InputError: The file is damaged.
        """
        try:
            return self.file.lookup(uri)
        except UriError:
            raise
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_many(self, uris: Iterable[str | bytes], threads: int | None = None) -> list[bool | UriError]:
        """Return for each URL the result of `lookup`, or the UriError that it would raise.

        Args:
            uris: URLs or SURTs.
            threads: Maximum number of threads; None for all processors.
        """
        try:
            return self.file.lookup_many(uris, threads)
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_key(self, key: str | bytes) -> bool:
        """Look up a normalized key (`unlost.uri.key`), with or without its query string."""
        try:
            return self.file.lookup_key(key)
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_keys_many(self, keys: Iterable[str | bytes], threads: int | None = None) -> list[bool]:
        """Look up normalized keys. A key ends at the first white space.

        Faster than `lookup_many`, because nothing is normalized.
        """
        try:
            return self.file.lookup_keys_many(keys, threads)
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_key_lines(self, lines: bytes, threads: int | None = None) -> list[bool]:
        """Look up normalized keys, one at the beginning of each line of `lines`.

        Faster than `lookup_keys_many`, because there are no separate string objects.
        """
        try:
            return self.file.lookup_key_lines(lines, threads)
        except InputError as error:
            raise self._add_path(error) from error

    def check(self) -> list[str]:
        """Verify the whole file; return a message for each damaged partition."""
        return self.file.check()

    def _add_path(self, error: InputError) -> InputError:
        return InputError(f"{self.path}: {error}")


def _parse_layer(layer: "_core.LayerFields") -> FilterLayer:
    kind, rules, bits, keys, dates, built_at, selectors = layer
    earliest, latest = dates or (None, None)
    key = FILTER_KEY_KINDS[FILTER_KEY_KINDS.index(kind)]
    status, mime, exclude = (frozenset(text.split(",")) if text else frozenset[str]() for text in selectors)
    return FilterLayer(key, rules, bits, keys, earliest, latest, built_at, status, mime, exclude)
