"""Validation of the values in a registry file, with messages that name the place and the expected value."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from unlost.errors import InputError

_MAX_TEXT = 1_000  # characters of a name, a source, an address: more is none
_MAX_PLACES = 100  # in a list of files: an archive has a few
_MAX_EXCERPT = 60  # characters of somebody's input in a message
_TYPE_NAMES: dict[type, str] = {dict: "a table", list: "a list", type(None): "nothing"}
_ID = re.compile(r"[a-z0-9][a-z0-9._:-]{0,99}", re.ASCII)
_MEDIA_TYPE = re.compile(r"\*|[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)", re.ASCII)
_BRACES = re.compile(r"\{[^{}]*\}|[{}]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class FieldReader:
    """A table of a registry: every look at a field says where it stands and what was found if it is wrong.

    place: how messages call the table: the file, and the archive in it.
    """

    def __init__(self, table: Mapping[str, Any], place: str) -> None:
        self._table = table
        self.place = place

    def __contains__(self, name: str) -> bool:
        """Whether the field is there."""
        return name in self._table

    def names(self) -> list[str]:
        """Return the names of all fields, in order."""
        return list(self._table)

    def reject_unknown(self, known: Collection[str]) -> None:
        """Raise InputError for a field that is none of these."""
        for name in self._table:
            if name not in known:
                hint = suggest_name(name, known) or f": expected one of {', '.join(known)}"
                raise InputError(f"{self.place}: {truncate_text(name)}: no such field{hint}")

    def fail(self, name: str, expected: str) -> NoReturn:
        """Raise InputError: what was expected, and what is there instead."""
        found = describe_value(self._table[name]) if name in self._table else "nothing"
        raise InputError(f"{self.place}: {name}: expected {expected}, found {found}")

    def value(self, name: str) -> object:
        """Return what is there, unchecked; None if nothing is."""
        return self._table.get(name)

    def text(self, name: str, expected: str = "a line of text") -> str:
        """Return a line of text that is not empty, without spaces around it."""
        value = self._table.get(name)
        if not isinstance(value, str) or not is_printable_line(value):
            self.fail(name, expected)
        return value.strip()

    def flag(self, name: str) -> bool:
        """Return true or false."""
        value = self._table.get(name)
        if not isinstance(value, bool):
            self.fail(name, "true or false")
        return value

    def choice(self, name: str, known: Collection[str]) -> str:
        """Return one of these words."""
        value = self._table.get(name)
        if not isinstance(value, str) or value not in known:
            self.fail(name, f"one of {', '.join(known)}")
        return value

    def choices(self, name: str, known: Collection[str]) -> tuple[str, ...]:
        """Return one or more of these words, none twice."""
        values = self._table.get(name)
        expected = f"a list of one or more of {', '.join(known)}, none twice"
        if not isinstance(values, list) or not values:
            self.fail(name, expected)
        if any(not isinstance(value, str) or value not in known for value in values) or len(set(values)) < len(values):
            self.fail(name, expected)
        return tuple(values)

    def integer(self, name: str, lowest: int, highest: int) -> int:
        """Return a whole number in a range, both ends included."""
        value = self._table.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            self.fail(name, f"a whole number from {lowest} to {highest}")
        return value

    def number(self, name: str, lowest: float, highest: float) -> float:
        """Return a number in a range, both ends included."""
        value = self._table.get(name)
        # Compared before it becomes a float, which no integer of more than 308 digits can; NaN compares with nothing.
        if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value <= highest:
            self.fail(name, f"a number from {lowest:g} to {highest:g}")
        return float(value)

    def subtable(self, name: str) -> "FieldReader":
        """Return the table in a field."""
        value = self._table.get(name)
        if not isinstance(value, dict):
            self.fail(name, "a table")
        return FieldReader(value, f"{self.place}: {name}")

    def subtables(self, name: str) -> list["FieldReader"]:
        """Return the tables in a field, which may be none; messages count them from 1."""
        value = self._table.get(name)
        if not isinstance(value, list) or any(not isinstance(each, dict) for each in value):
            self.fail(name, "a list of tables")
        return [FieldReader(each, f"{self.place}: {name} {number}") for number, each in enumerate(value, 1)]

    def id(self, name: str = "id") -> str:
        """Return the name by which an archive is called."""
        value = self._table.get(name)
        if not isinstance(value, str) or not _ID.fullmatch(value):
            self.fail(name, "lower-case letters, digits and . _ : - (such as `web.archive.org`)")
        return value

    def media_types(self, name: str) -> tuple[str, ...]:
        """Return patterns of media types: `*`, `image/*`, `text/html`; there may be none."""
        values = self._table.get(name)
        if not isinstance(values, list) or any(
            not isinstance(value, str) or not _MEDIA_TYPE.fullmatch(value) or len(value) > _MAX_TEXT for value in values
        ):
            self.fail(name, "a list of media types in lower case, such as `text/html`, `image/*` or `*`")
        return tuple(values)

    def http_url(self, name: str, parts: Collection[str] = ()) -> str:
        """Return an http or https address with each of these parts in it, `{uri}` and the like, and no other."""
        value = self._table.get(name)
        expected = "an http or https address" + (f" with {' and '.join(parts)} in it" if parts else "")
        if not isinstance(value, str) or not is_http_url(_BRACES.sub("x", value)):
            self.fail(name, expected)
        host = urlsplit(value).netloc
        if set(_BRACES.findall(value)) != set(parts) or "{" in host:
            self.fail(name, expected + ("" if parts else " without braces: the page's own is put behind it"))
        return value

    def path(self, name: str, folder: Path) -> str:
        """Return a path: what is relative in the file is relative to the file's folder; `~` is the user's."""
        text = self.text(name, "the path of a file or folder")
        if _SCHEME.match(text):
            self.fail(name, "the path of a file or folder")
        try:
            return str(folder / Path(text).expanduser())
        except RuntimeError:  # `~somebody` who does not exist
            self.fail(name, "the path of a file or folder")

    def path_or_url(self, name: str, folder: Path) -> str:
        """Return a path as above, or an http or https address."""
        value = self._table.get(name)
        if isinstance(value, str) and _SCHEME.match(value):
            return self.http_url(name)
        return self.path(name, folder)

    def paths_or_urls(self, name: str, folder: Path) -> tuple[str, ...]:
        """Return a list of such, none twice; there may be none."""
        values = self._table.get(name)
        if not isinstance(values, list) or len(values) > _MAX_PLACES:
            self.fail(name, f"a list of at most {_MAX_PLACES} files or addresses")
        each = [FieldReader({name: value}, self.place).path_or_url(name, folder) for value in values]
        if len(set(each)) < len(each):
            self.fail(name, "a list of files or addresses, none twice")
        return tuple(each)


def entry_fields(table: object, number: int, file: Path) -> FieldReader:
    """Return the table of one archive, called by its id where it has one, or else by its number. Raises InputError."""
    if not isinstance(table, dict):
        raise InputError(f"{file}: archive {number}: expected a table, found {describe_value(table)}")
    name = table.get("id")
    return FieldReader(
        table, f"{file}: archive " + (f"`{truncate_text(name)}`" if isinstance(name, str) and name else str(number))
    )


def is_http_url(text: str) -> bool:
    """Return whether a text is an http or https address with a host, and without a user, a fragment or white space.

    >>> is_http_url("https://example.com:8080/web/"), is_http_url("ftp://example.com/"), is_http_url("http://")
    (True, False, False)
    """
    if not is_printable_line(text) or not text.isascii() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    has_host = bool(parts.hostname) and port != 0 and "@" not in parts.netloc
    return parts.scheme in ("http", "https") and has_host and not parts.fragment


def is_printable_line(text: str) -> bool:
    """Return whether a text is a line that a terminal can show, not empty and not endless."""
    return bool(text.strip()) and len(text) <= _MAX_TEXT and text.isprintable()


def suggest_name(name: str, known: Collection[str]) -> str:
    """Return a hint at the known name that was meant; empty if none is like it.

    >>> suggest_name("timmap", ["timemap", "timegate"]), suggest_name("size", ["timemap"])
    (': did you mean `timemap`?', '')
    """
    close = get_close_matches(name[:_MAX_EXCERPT], known, 1)
    return f": did you mean `{close[0]}`?" if close else ""


def describe_value(value: object) -> str:
    """Return what a value is, short, whatever it is.

    >>> describe_value({"a": 1}), describe_value("ftp://a/"), describe_value(7)
    ('a table', '`ftp://a/`', '7')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"`{truncate_text(value)}`"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 10**_MAX_EXCERPT):
        return str(value)
    if isinstance(value, int):
        return "a number of very many digits"
    return _TYPE_NAMES.get(type(value), "a date or a time")  # TOML has nothing else


def truncate_text(text: str) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= _MAX_EXCERPT else text[:_MAX_EXCERPT] + "…"
