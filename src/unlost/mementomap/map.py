"""Look-ups in a MementoMap, in its file or in memory.

In memory, a map is a hash table: a page has about eight keys that could match, and with the most specific key first,
two probes are enough for most pages. In its file, rows are found by binary search, which notices rows out of order that
it comes across; `unlost map check` finds them all.
"""

from collections.abc import Callable, Iterable
from io import BytesIO
from os import PathLike, fspath
from typing import Self

from unlost import _core
from unlost._core import LookupResult, LookupResults
from unlost.errors import InputError, UriError
from unlost.index.ukvs import ROW_BYTES_FIELD, UkvsHeader, UkvsReader
from unlost.mementomap.map_file import refuse_bad_header, refuse_truncated, refuse_unknown_version
from unlost.problems import Problems, unreadable_error
from unlost.text_lines import MAX_LINE_BYTES
from unlost.uri import DEFAULT_RULES, RULE_SETS

__all__ = ["LookupResult", "LookupResults", "Map"]


class Map:
    r"""A MementoMap for look-ups. Create it with `Map.open` or `Map.load`.

    All methods are thread-safe and release the GIL.

    Attributes:
        path: Path of the file, as given.
        header: The header.
        rules: Rule set of the keys, from `rules` in the header's `!meta`; `wayback` by default.
        problems: Unknown lines of the header.
        rows: The rows in the Rust core.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.ukvs")
    ...     _ = file.write_text('!meta {"name": "Example"}\ncom,example)/a/* 7\n')
    ...     holdings = Map.open(file)
    >>> holdings.header.meta["name"], holdings.lookup("http://example.com/a/b?c").matched
    ('Example', 'com,example)/a/*')
    """

    def __init__(self, path: str | PathLike[str], read: Callable[[str], _core.MapSource]) -> None:
        self.path = fspath(path)
        self.problems = Problems()
        try:
            source = read(self.path)
            self.header: UkvsHeader = UkvsReader(BytesIO(source.header), self.problems, self.path).header
            keys, values = self.header.keys, self.header.values
            refuse_unknown_version(self.header)
            refuse_truncated(self.header, source)
            frequency = len(keys) + values.index("frequency") if "frequency" in values else None
            declared = self.header.meta.get(ROW_BYTES_FIELD)
            row_bytes = declared if isinstance(declared, int) else None
            self.rows = source.rows(frequency, self.header.meta.get("rolled_up") is True, row_bytes)
        except OSError as error:
            raise unreadable_error(self.path, error) from error
        except InputError as error:
            raise self._add_path(error) from error
        refuse_bad_header(self.problems)
        rules = self.header.meta.get("rules", DEFAULT_RULES)
        if rules not in RULE_SETS:
            raise InputError(
                f"{self.path}: made by unknown rules, {ascii(rules)[:40]}: expected {' or '.join(RULE_SETS)}"
            )
        self.rules = str(rules)

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Self:
        """Memory-map a map. Takes milliseconds for any size, since only the header is read.

        A map of up to 64 MB is loaded into memory once it has been queried for as many pages as it has rows: by then,
        its searches have cost as much as loading.

        The file must be sorted and uncompressed. It may be replaced by renaming another over it, but must not be
        modified in place: accessing a truncated memory-mapped file kills the process. Raises InputError if the file
        cannot be read, is not a map judging by its first lines, or is truncated.
        """
        return cls(path, _core.MapSource.open)

    @classmethod
    def load(cls, path: str | PathLike[str], max_bytes: int | None = None) -> Self:
        """Read a map (plain, gzip or zstd) into memory. Takes the size of its text and about ten bytes per row.

        For maps that are queried all the time, or whose file may be modified.

        Args:
            path: The file.
            max_bytes: Maximum size, uncompressed; None for no limit.

        Raises:
            InputError: The file cannot be read, is not a map, is too large, damaged, truncated or not sorted.
        """
        return cls(path, lambda name: _core.MapSource.load(name, MAX_LINE_BYTES, max_bytes))

    def lookup(self, uri: str | bytes) -> LookupResult:
        """Look up a page, given by its URL or SURT.

        The most specific matching key decides: the page itself, its wildcard, then those of its folders, its host and
        its domains. If none matches, the page is not held as far as the map knows.

        Raises:
            UriError: The URL is invalid.
            InputError: The rows are not sorted.
        """
        try:
            return self.rows.lookup(uri, self.rules)
        except UriError:
            raise
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_many(
        self, uris: Iterable[str | bytes], threads: int | None = None
    ) -> LookupResults[LookupResult | UriError]:
        """Return for each URL the result of `lookup`, or the UriError that it would raise.

        The result is a sequence that creates its elements on access; its attribute `held` is a list of booleans.

        Args:
            uris: URLs or SURTs.
            threads: Maximum number of threads; None for all processors.
        """
        try:
            return self.rows.lookup_many(uris, self.rules, threads)
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_key(self, key: str | bytes) -> LookupResult:
        """Look up a normalized key (`unlost.uri.key`); its query string is dropped."""
        try:
            return self.rows.lookup_key(key)
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_keys_many(self, keys: Iterable[str | bytes], threads: int | None = None) -> LookupResults[LookupResult]:
        """Look up normalized keys (`unlost.uri.key`); query strings are dropped.

        Faster than `lookup_many`, because nothing is normalized. A key ends at the first white space.
        """
        try:
            return self.rows.lookup_keys_many(keys, threads)
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_key_lines(self, lines: bytes, threads: int | None = None) -> LookupResults[LookupResult]:
        """Look up normalized keys, one at the beginning of each line of `lines`.

        Faster than `lookup_keys_many`, because there are no separate string objects.
        """
        try:
            return self.rows.lookup_key_lines(lines, threads)
        except InputError as error:
            raise self._add_path(error) from error

    def _add_path(self, error: InputError) -> InputError:
        return InputError(f"{self.path}: {error}")
