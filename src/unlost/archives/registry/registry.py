"""The registry: which archives there are, from the file that is shipped, a user's own, or MemGator's list."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from errno import ENOENT
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from unlost.archives.archive import Archive, RateLimit
from unlost.archives.registry.entries import build_archive, parse_entry, parse_limit
from unlost.archives.registry.fields import FieldReader, describe_value, entry_fields, suggest_name
from unlost.archives.registry.memgator import parse_memgator
from unlost.errors import InputError, UsageError
from unlost.formats.unread import unreadable_error, unreadable_error_for_errno

_MAX_BYTES = 1 << 18  # ours has a twentieth of it
_MAX_DOTS = 200  # in a line: the time that a key of a.b.c takes to be read grows with the square of its parts
_SHIPPED_NAME = Path("archives.toml")  # as messages call it
_JSON = re.compile(rb"\{|\[\s*[\]{]")  # what begins so is no TOML


@dataclass(frozen=True, slots=True)
class Registry:
    """The archives that can be asked, in the order of their file.

    notes: sentences on what the file says and was passed over.
    """

    archives: tuple[Archive, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Archive]:
        """Return all archives, also those that are off."""
        return iter(self.archives)

    def get(self, name: str) -> Archive:
        """Return the archive with an id, in whatever case. Raises UsageError, which lists those that there are."""
        for archive in self.archives:
            if archive.id == name.lower():
                return archive
        ids = [archive.id for archive in self.archives]
        hint = suggest_name(name.lower(), ids) or "."
        raise UsageError(f"no archive `{name[:100]}` in the registry{hint} There are {', '.join(ids)}")

    def only(self, names: Iterable[str] = ()) -> tuple[Archive, ...]:
        """Return the archives with these ids, also those that are off; without any ids, those that are on.

        In the order of the registry, each once. Raises UsageError, which lists those that there are.
        """
        wanted = {self.get(name).id for name in names}
        return tuple(archive for archive in self.archives if (archive.id in wanted if wanted else archive.enabled))


def load_registry(path: Path | None = None) -> Registry:
    """Return the registry in a file, or the one that is shipped. Raises InputError.

    The file is told by its content: a TOML of ours, which replaces the shipped one unless it says
    `extends = "default"`, or MemGator's JSON.

    >>> load_registry().get("arquivo.pt").name
    'Portuguese Web Archive'
    """
    shipped = _load_shipped()
    if path is None:
        return shipped.build_registry(shipped.default_limits or ())
    data = _read_file(path)
    if _JSON.match(data.lstrip()):
        entries, notes = parse_memgator(_parse_json(data, path), path, shipped.by_id())
        return _RegistryFile(path, entries, notes).build_registry(shipped.default_limits or ())
    own = _parse_toml(data, path)
    limits = shipped.default_limits if own.default_limits is None else own.default_limits
    return (own.extended_from(shipped) if own.extends else own).build_registry(limits or ())


@dataclass(frozen=True, slots=True)
class _RegistryFile:
    """What a file says, before anything is filled in.

    default_limits: None if it says nothing of them.
    """

    path: Path
    entries: list[dict[str, Any]]
    notes: list[str]
    default_limits: tuple[RateLimit, ...] | None = None
    extends: bool = False

    def __post_init__(self) -> None:
        """Raise InputError for an id that is there twice."""
        seen: set[str] = set()
        for each in self.entries:
            if each["id"] in seen:
                raise InputError(f"{self.path}: archive `{each['id']}`: id: there twice: expected each once")
            seen.add(each["id"])

    def by_id(self) -> dict[str, dict[str, Any]]:
        """Return the entries by id, in order."""
        return {each["id"]: each for each in self.entries}

    def extended_from(self, base: "_RegistryFile") -> "_RegistryFile":
        """Return the entries of a base, changed field by field where this file has the same id, then the new ones."""
        merged = base.by_id()
        for each in self.entries:
            merged[each["id"]] = merged.get(each["id"], {}) | each
        return _RegistryFile(self.path, list(merged.values()), self.notes)

    def build_registry(self, default_limits: tuple[RateLimit, ...]) -> Registry:
        """Return the archives, whole. Raises InputError."""
        if not self.entries:
            raise InputError(f"{self.path}: no archive in it: expected at least one")
        archives = [
            build_archive(each, f"{self.path}: archive `{each['id']}`", default_limits) for each in self.entries
        ]
        return Registry(tuple(archives), tuple(self.notes))


@cache
def _load_shipped() -> _RegistryFile:
    file = _parse_toml(files("unlost.archives.registry").joinpath(_SHIPPED_NAME.name).read_bytes(), _SHIPPED_NAME)
    return replace(file, default_limits=tuple(replace(each, is_default=True) for each in file.default_limits or ()))


def without_default_limits(archive: Archive) -> Archive:
    """Return the archive with those limits only that it is registered with.

    For the aggregator, which adapts the number of requests at once to how the archive copes.
    """
    own = tuple(limit for limit in archive.limits if not limit.is_default)
    return archive if len(own) == len(archive.limits) else replace(archive, limits=own)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise unreadable_error(path, error) from error
    except ValueError as error:  # a NUL in a name
        raise unreadable_error_for_errno(path, ENOENT) from error
    if len(data) > _MAX_BYTES:
        raise InputError(f"{path}: more than {_MAX_BYTES} bytes: not a registry of archives")
    return data.removeprefix(b"\xef\xbb\xbf")


def _parse_toml(data: bytes, path: Path) -> _RegistryFile:
    import tomllib  # noqa: PLC0415  start-up

    if any(line.count(b".") > _MAX_DOTS for line in data.splitlines()):
        raise InputError(f"{path}: a line with more than {_MAX_DOTS} dots: not a registry of archives")
    try:
        table = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: neither TOML nor MemGator's JSON: it is no text in UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: neither TOML nor MemGator's JSON: {str(error)[:200]}") from error
    fields = FieldReader(table, str(path))
    fields.reject_unknown(("extends", "archive", "default_limits"))
    if "extends" in fields:
        fields.choice("extends", ("default",))
    limits = None
    if "default_limits" in fields:
        limits = tuple(parse_limit(each) for each in fields.subtables("default_limits"))
    tables = table.get("archive", [])
    if not isinstance(tables, list):
        raise InputError(
            f"{path}: archive: expected tables that begin with [[archive]], found {describe_value(tables)}"
        )
    entries = [parse_entry(entry_fields(each, number, path), path.parent) for number, each in enumerate(tables, 1)]
    return _RegistryFile(path, entries, [], limits, "extends" in fields)


def _parse_json(data: bytes, path: Path) -> object:
    import json  # noqa: PLC0415

    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {str(error)[:200]}") from error
