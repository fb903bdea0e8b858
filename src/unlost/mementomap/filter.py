"""Look-ups in a filter (static approximate membership filter), in its file or in memory."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Literal, Self, get_args

from unlost import _core
from unlost.errors import InputError, UriError
from unlost.problems import unreadable_error

FilterKeyKind = Literal["hxpx", "urir"]
FILTER_KEY_KINDS: tuple[FilterKeyKind, ...] = get_args(FilterKeyKind)
"""What keys are: those of maps, without queries, or with them."""


@dataclass(frozen=True, slots=True)
class FilterLayer:
    """What a filter, or one of those that were chained, says about itself.

    key: what its keys are. rules: by which addresses become keys.
    bits: of a fingerprint: of pages that are not held, one in 2^bits is said to be.
    keys: how many it has; of a layer that was added, those that the ones before it did not have.
    earliest, latest: of the captures that were counted, 14 digits in UTC; None if nothing had a date.
    made: when it was, 14 digits in UTC; None if whoever made it did not say.
    status, mime, exclude: which rows were counted, as options have it; empty for all.
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
    """A filter; made by `Filter.open` or `Filter.load`, which look alike from then on.

    path: the file, as it was given.
    layers: what it is made up of, the oldest first: one, and one more for each time that something was added.
    file: what the core has of it.

    It never says no to a page that went into it. All its methods may be called by several threads at once, and let
    others run meanwhile. What is read of the file for the first time is checked: one that was damaged raises InputError
    and never says no by mistake.

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
        """Open a filter where it lies: in milliseconds, whatever its size, since only its headers are read.

        rules: refuse a filter that was made by others. The file may be replaced by renaming another over it but never
        changed in place. Raises InputError if it cannot be read, is no filter, is of another version, or has a header
        that was damaged.
        """
        return cls(path, rules)

    @classmethod
    def load(cls, path: str | PathLike[str], rules: str | None = None) -> Self:
        """Read a filter into memory, where it takes as much as its file, which may then be changed as anybody likes.

        For those that are asked all the time. What is damaged is found when it is asked, or by `check`. Raises
        InputError as `open` does.
        """
        return cls(path, rules, _core.FilterFile.load)

    @property
    def key(self) -> FilterKeyKind:
        """What its keys are."""
        return self.layers[0].key

    @property
    def rules(self) -> str:
        """By which addresses become keys."""
        return self.layers[0].rules

    @property
    def bits(self) -> int:
        """Of a fingerprint, in the first layer."""
        return self.layers[0].bits

    @property
    def keys(self) -> int:
        """How many it has in all layers."""
        return sum(layer.keys for layer in self.layers)

    @property
    def earliest(self) -> str | None:
        """Of all captures that were counted, 14 digits in UTC; None if nothing had a date."""
        return min((layer.earliest for layer in self.layers if layer.earliest), default=None)

    @property
    def latest(self) -> str | None:
        """Of all captures that were counted, 14 digits in UTC; None if nothing had a date."""
        return max((layer.latest for layer in self.layers if layer.latest), default=None)

    @property
    def built_at(self) -> str | None:
        """When the newest layer was, 14 digits in UTC; None if whoever made them did not say."""
        return max((layer.built_at for layer in self.layers if layer.built_at), default=None)

    def lookup(self, uri: str | bytes) -> bool:
        """Return whether the archive holds a page, given by its address or in its place a SURT.

        No is sure, for what the archive held when the filter was made; yes is wrong for one of 2^bits pages that it
        does not hold, or more of them if there are several layers. Raises UriError, or InputError if it turns out that
        the file is damaged.
        """
        try:
            return self.file.lookup(uri)
        except UriError:
            raise
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_many(self, uris: Iterable[str | bytes], threads: int | None = None) -> list[bool | UriError]:
        """Return for each address its answer, or the error that `lookup` would have raised for it.

        threads: how many may work on it; all processors if not given. The answers do not depend on it.
        """
        try:
            return self.file.lookup_many(uris, threads)
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_key(self, key: str | bytes) -> bool:
        """Return the same for a normal key, as `unlost.uri.key` makes it, with its query or without."""
        try:
            return self.file.lookup_key(key)
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_keys_many(self, keys: Iterable[str | bytes], threads: int | None = None) -> list[bool]:
        """Return for each normal key its answer. A key ends at the first white space.

        Faster than `lookup_many`, since nothing is brought into any form.
        """
        try:
            return self.file.lookup_keys_many(keys, threads)
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_key_lines(self, lines: bytes, threads: int | None = None) -> list[bool]:
        """Return the same for keys in one text, one at the beginning of each line.

        Faster than `lookup_keys_many`, since there are no strings that lie all over the memory.
        """
        try:
            return self.file.lookup_key_lines(lines, threads)
        except InputError as error:
            raise self._add_path(error) from error

    def check(self) -> list[str]:
        """Read everything, and return what is damaged, a sentence for each partition."""
        return self.file.check()

    def _add_path(self, error: InputError) -> InputError:
        return InputError(f"{self.path}: {error}")


def _parse_layer(layer: "_core.LayerFields") -> FilterLayer:
    kind, rules, bits, keys, dates, made, chosen = layer
    earliest, latest = dates or (None, None)
    key = FILTER_KEY_KINDS[FILTER_KEY_KINDS.index(kind)]
    status, mime, exclude = (frozenset(text.split(",")) if text else frozenset[str]() for text in chosen)
    return FilterLayer(key, rules, bits, keys, earliest, latest, made, status, mime, exclude)
