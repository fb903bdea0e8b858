"""Look-ups in a MementoMap, in its file or in memory."""

from collections.abc import Callable, Iterable
from io import BytesIO
from os import PathLike, fspath
from typing import Self

from unlost import _core
from unlost._core import Answer, Answers
from unlost.errors import InputError, UriError
from unlost.index.ukvs import ROW_BYTES_FIELD, UkvsHeader, UkvsReader
from unlost.mementomap.map_file import refuse_bad_header, refuse_truncated, refuse_unknown_version
from unlost.problems import Problems, unreadable_error
from unlost.text_lines import MAX_LINE_BYTES
from unlost.uri import DEFAULT_RULES, RULE_SETS

__all__ = ["Answer", "Answers", "Map"]


class Map:
    r"""A map; made by `Map.open` or `Map.load`, which look alike from then on.

    path: the file, as it was given.
    header: what stands above its rows.
    rules: the rule set by which addresses become keys: the one that the header's meta names as `rules`, else `wayback`.
    problems: what is unknown in the header.
    rows: what the core has of it.

    All its methods may be called by several threads at once, and let others run meanwhile.

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
        named = self.header.meta.get("rules", DEFAULT_RULES)
        if named not in RULE_SETS:
            raise InputError(
                f"{self.path}: made by unknown rules, {ascii(named)[:40]}: expected {' or '.join(RULE_SETS)}"
            )
        self.rules = str(named)

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Self:
        """Open a map where it lies: in milliseconds, whatever its size, since only its header is read.

        One of up to 64 MB that was asked about as many pages as it has rows is then kept in memory as well.

        The file must be sorted and not compressed, and may be replaced by renaming another over it but never changed in
        place: a process that looks into a file that was cut off is ended by the system. Raises InputError if it cannot
        be read, is no map as far as its first lines tell, or is truncated.
        """
        return cls(path, _core.MapSource.open)

    @classmethod
    def load(cls, path: str | PathLike[str], max_bytes: int | None = None) -> Self:
        """Read a map, plain, gzip or zstd, into memory, where it takes its text and about ten bytes a row.

        For those that are asked all the time, or must not change. max_bytes: of its text, uncompressed, if there is to
        be an end. Raises InputError if the file cannot be read, is no map, is larger, damaged,
        truncated or not sorted.
        """
        return cls(path, lambda name: _core.MapSource.load(name, MAX_LINE_BYTES, max_bytes))

    def lookup(self, uri: str | bytes) -> Answer:
        """Return what the map says about a page, given by its address or in its place a SURT.

        The most specific of the map's keys that cover the page answers: the page's own, then its wildcard, those of its
        folders, its host, its domains. Where none does, it is not held. That what is not held was never captured is
        not promised, only that the map does not know of it. Raises UriError, or InputError if it turns out that the
        rows are not sorted.
        """
        try:
            return self.rows.lookup(uri, self.rules)
        except UriError:
            raise
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_many(self, uris: Iterable[str | bytes], threads: int | None = None) -> Answers[Answer | UriError]:
        """Return for each address its answer, or the error that `lookup` would have raised for it.

        They come as a sequence that makes each answer when it is asked for; its `held` is a list of just that.

        threads: how many may work on it; all processors if not given. The answers do not depend on it.
        """
        try:
            return self.rows.lookup_many(uris, self.rules, threads)
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_key(self, key: str | bytes) -> Answer:
        """Return the same for a normal key, as `unlost.uri.key` makes it; its query is cut."""
        try:
            return self.rows.lookup_key(key)
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_keys_many(self, keys: Iterable[str | bytes], threads: int | None = None) -> Answers[Answer]:
        """Return for each key its answer. They must be normal, as `unlost.uri.key` makes them; queries are cut.

        Faster than `lookup_many`, since nothing is brought into any form. A key ends at the first white space.
        """
        try:
            return self.rows.lookup_keys_many(keys, threads)
        except InputError as error:
            raise self._add_path(error) from error

    def lookup_key_lines(self, lines: bytes, threads: int | None = None) -> Answers[Answer]:
        """Return the same for keys in one text, one at the beginning of each line.

        Faster than `lookup_keys_many`, since there are no strings that lie all over the memory.
        """
        try:
            return self.rows.lookup_key_lines(lines, threads)
        except InputError as error:
            raise self._add_path(error) from error

    def _add_path(self, error: InputError) -> InputError:
        return InputError(f"{self.path}: {error}")
