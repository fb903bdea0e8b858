"""URI-Key profiles (CDXJ files as in the archive profiling paper): the header, and look-ups in a profile."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Self

from unlost.errors import InputError, UsageError
from unlost.problems import Problems, unreadable_error
from unlost.text_lines import MAX_LINE_BYTES, read_lines
from unlost.uri import DEFAULT_RULES, RULE_SETS, KeyPolicies, SuffixList, policy_name

PROFILE_CONTEXT = "https://oduwsdl.github.io/contexts/archiveprofile.jsonld"
"""JSON-LD context of the archive profiling paper, which defines the members."""
PROFILE_VERSION = 1
"""Format version written to headers. Profiles without a version, as in the paper, are also read."""
_TYPE_PREFIX = "urikey#"
_SUFFIX_SECTIONS = ("all", "icann")
_ID_PATTERN = re.compile(r"[^\x00-\x20\x7f\ud800-\udfff]+")
_MAX_HEADER_BYTES = 1 << 20  # of a header line, so that other files are rejected early

_CHUNK_BYTES = 64 << 10  # bytes read at a time, and the size of the range at which the binary search ends
_COMPRESSION_MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # gzip, zstd


@dataclass(frozen=True, slots=True)
class ProfileHeader:
    """Header of a profile.

    Attributes:
        policy: Key policy, such as `H3P1`.
        name: Human-readable name of the archive, if known.
        id: URL of the archive, if known.
        rules: Rule set of the keys.
        suffixes: Sections of the Public Suffix List, `all` or `icann`. Only the D policies use them.
        others: Other members of `@about`; preserved, not interpreted.
    """

    policy: str
    name: str | None = None
    id: str | None = None
    rules: str = DEFAULT_RULES
    suffixes: str = "all"
    others: Mapping[str, object] = field(default_factory=dict)

    @property
    def by(self) -> list[str]:
        """Fields by which counts are split into parts, in order; empty without parts."""
        fields = self.others.get("by")
        return [name for name in fields if isinstance(name, str)] if isinstance(fields, list) else []

    @property
    def about(self) -> dict[str, object]:
        """Members of `@about`, in order."""
        name = {} if self.name is None else {"name": self.name}
        suffixes = {"suffixes": self.suffixes} if self.policy.startswith("D") else {}
        kind = {"type": _TYPE_PREFIX + self.policy, "rules": self.rules, **suffixes, "version": PROFILE_VERSION}
        return {**name, **kind, **self.others}

    def to_lines(self) -> bytes:
        """Return the header lines. Raises UsageError if the ID contains white space.

        >>> header = ProfileHeader("H3P1", "UKWA 1996 Collection", "http://www.webarchive.org.uk/ukwa/")
        >>> print(header.to_lines().decode())
        @context https://oduwsdl.github.io/contexts/archiveprofile.jsonld
        @id http://www.webarchive.org.uk/ukwa/
        @about {"name": "UKWA 1996 Collection", "type": "urikey#H3P1", "rules": "wayback", "version": 1}
        <BLANKLINE>
        """
        lines = [f"@context {PROFILE_CONTEXT}"]
        if self.id is not None:
            if not _ID_PATTERN.fullmatch(self.id):
                raise UsageError(f"{ascii(self.id)[:60]}: expected an id without white space, such as an address")
            lines.append(f"@id {self.id}")
        lines.append(f"@about {json.dumps(self.about)}")
        return "".join(line + "\n" for line in lines).encode()

    def to_json_prefix(self) -> bytes:
        """Return the beginning of a JSON-LD document, up to the opening brace after `profile`."""
        identity = {} if self.id is None else {"@id": self.id}
        document = json.dumps({"@context": PROFILE_CONTEXT, **identity, "about": self.about, "profile": {}})
        return document.removesuffix("}}").encode() + b"\n"

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Read the header of a file. Raises InputError if it is not a profile."""
        name = fspath(path)
        fields: dict[str, str] = {}
        problems = Problems()
        for line in read_lines(path, problems, max_line_bytes=_MAX_HEADER_BYTES):
            text = line.text.removeprefix(b"\xef\xbb\xbf") if line.number == 1 else line.text
            if text.startswith(b"{"):
                raise InputError(
                    f"{name}: a profile as one JSON document is for other programs: give the one in lines (CDXJ)"
                )
            if text.startswith(b"!"):
                raise InputError(f"{name}: not a profile: it begins as a map does")
            if text.startswith(b"@"):
                field_name, _, value = text.decode("utf-8", "replace").partition(" ")
                fields.setdefault(field_name, value.strip())
            elif text.strip():
                break
        return cls(**_parse_about(name, fields))  # type: ignore[arg-type]  # checked by _members

    @classmethod
    def merge(cls, headers: Mapping[str, "ProfileHeader"], name: str | None, identity: str | None) -> Self:
        """Return the header of merged profiles: the members that they share.

        Args:
            headers: Headers by file name.
            name: Name of the result; None for the shared name.
            identity: ID of the result; None for the shared ID.

        Raises:
            InputError: The keys of the profiles are not comparable.
        """
        (first_file, first), *others = headers.items()
        for file, other in others:
            if other.policy != first.policy:
                raise InputError(
                    f"{file}: a profile of {other.policy}, but {first_file} is one of {first.policy}: "
                    "only profiles of one policy merge; `unlost profile to-map` makes one map of different ones"
                )
        for file, other in others:
            if other.by != first.by:
                raise InputError(
                    f"{file}: tells its parts by {_join_fields(other.by)}, but {first_file} by "
                    f"{_join_fields(first.by)}: "
                    "build both with the same `--by`"
                )
        require_same_rules(headers)
        if len({each.suffixes for each in headers.values()}) > 1:
            raise InputError(
                f"{first_file} and others differ in the suffixes that counted: build them with one `--suffixes`"
            )
        all_headers = list(headers.values())
        return cls(
            first.policy,
            name if name is not None else _common_value(each.name for each in all_headers),
            identity if identity is not None else _common_value(each.id for each in all_headers),
            first.rules,
            first.suffixes,
            {"by": first.by} if first.by else {},
        )


def require_same_rules(headers: Mapping[str, ProfileHeader]) -> str:
    """Return the rule set of profiles, given by file name. Raises InputError if they differ."""
    (first_file, first), *others = headers.items()
    for file, other in others:
        if other.rules != first.rules:
            raise InputError(
                f"{file}: its keys were made by the rules {other.rules}, those of {first_file} by {first.rules}: "
                "build one of them anew with the `--rules` of the other"
            )
    return first.rules


def _join_fields(by: list[str]) -> str:
    return " and ".join(by) or "nothing"


def _common_value(values: Iterable[str | None]) -> str | None:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def _parse_about(name: str, fields: Mapping[str, str]) -> dict[str, object]:
    try:
        about = json.loads(fields.get("@about", ""))
    except (ValueError, RecursionError):
        about = None
    kind = about.get("type") if isinstance(about, dict) else None
    if not isinstance(about, dict) or not isinstance(kind, str) or not kind.startswith(_TYPE_PREFIX):
        raise InputError(
            f'{name}: not a profile: expected a header line `@about {{"type": "urikey#H3P1"}}` or of another policy'
        )
    try:
        policy = policy_name(kind.removeprefix(_TYPE_PREFIX))
    except UsageError as error:
        raise InputError(f"{name}: {error}") from error
    rules, suffixes = about.get("rules", DEFAULT_RULES), about.get("suffixes", "all")
    if rules not in RULE_SETS:
        raise InputError(f"{name}: made by unknown rules, {ascii(rules)[:40]}: expected {' or '.join(RULE_SETS)}")
    if suffixes not in _SUFFIX_SECTIONS:
        raise InputError(f"{name}: unknown suffixes, {ascii(suffixes)[:40]}: expected {' or '.join(_SUFFIX_SECTIONS)}")
    version = about.get("version", PROFILE_VERSION)
    if version != PROFILE_VERSION:
        raise InputError(f"{name}: version {ascii(version)[:40]} of the format: this unlost reads {PROFILE_VERSION}")
    title = about.get("name")
    known_members = {"name", "type", "rules", "suffixes", "version"}
    return {
        "policy": policy,
        "name": title if isinstance(title, str) else None,
        "id": _unquote_id(fields["@id"]) if fields.get("@id") else None,
        "rules": rules,
        "suffixes": suffixes,
        "others": {member: value for member, value in about.items() if member not in known_members},
    }


def _unquote_id(value: str) -> str:
    """Return an `@id` without the quotes that some tools write."""
    try:
        unquoted = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return unquoted if isinstance(unquoted, str) else value


@dataclass(frozen=True, slots=True)
class ProfileLookupResult:
    """Counts of a profile under a key.

    Attributes:
        key: The key or key prefix that was looked up.
        frequency: Number of URI-Ms; 0 if there are none.
        spread: Number of profiles that contributed; for several keys, the maximum.
        keys: Number of matching keys.
    """

    key: str
    frequency: int
    spread: int
    keys: int


class UriKeyProfile:
    r"""A profile for look-ups. Create it with `UriKeyProfile.open`.

    A plain file is searched by bisection, a compressed file sequentially. All methods are thread-safe.

    Attributes:
        path: Path of the file, as given.
        header: The header.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.cdxj")
    ...     _ = file.write_text('@about {"type": "urikey#H3P1"}\nuk,co,bbc)/images {"frequency": 152, "spread": 3}\n')
    ...     profile = UriKeyProfile.open(file)
    ...     profile.lookup("http://www.bbc.co.uk/images/logo.png"), profile.lookup_key("uk,co,").frequency
    (ProfileLookupResult(key='uk,co,bbc)/images', frequency=152, spread=3, keys=1), 152)
    """

    def __init__(self, path: str | PathLike[str], suffixes: SuffixList | None = None) -> None:
        self.path = fspath(path)
        self.header = ProfileHeader.read(path)
        section = suffixes or SuffixList(section=self.header.suffixes)
        self._keys = KeyPolicies([self.header.policy], self.header.rules, section)

    @classmethod
    def open(cls, path: str | PathLike[str], suffixes: SuffixList | None = None) -> Self:
        """Open a profile.

        Args:
            path: The file.
            suffixes: Public Suffix List that the profile was built with; None for the bundled one.

        Raises:
            InputError: The file is not a profile.
        """
        return cls(path, suffixes)

    def lookup(self, uri: str | bytes, *, year: str | None = None, mime: str | None = None) -> ProfileLookupResult:
        """Return the counts under the key of a URL by the profile's policy.

        Args:
            uri: The URL.
            year: Count only captures of this year; requires a profile built by year.
            mime: Count only this group of media types (`HTML`, `images`, `other`); requires a profile built by media
                type.

        Raises:
            UriError: The URL is invalid.
            UsageError: The profile has no parts by year or media type.
            InputError: The file cannot be read.
        """
        (key,) = self._keys.keys(uri)
        return self._sum_keys(key, f"{key} ".encode(), self._part_selector(year, mime))

    def lookup_key(self, prefix: str, *, year: str | None = None, mime: str | None = None) -> ProfileLookupResult:
        """Return the sum over all keys with a prefix: `uk,co,` for everything under `.co.uk`."""
        return self._sum_keys(prefix, prefix.encode("utf-8", "surrogateescape"), self._part_selector(year, mime))

    def _part_selector(self, year: str | None, mime: str | None) -> tuple[str | None, ...]:
        """Return the required fields of a part, None for any; an empty tuple for all parts."""
        required = {name: value for name, value in (("year", year), ("mime", mime)) if value is not None}
        names = self.header.by
        for name in required:
            if name not in names:
                raise UsageError(f"{self.path}: does not tell by {name}: build it with `--by {name}`")
        return tuple(required.get(name) for name in names) if required else ()

    def _sum_keys(self, key: str, beginning: bytes, selector: tuple[str | None, ...] = ()) -> ProfileLookupResult:
        frequency = spread = keys = 0
        for line in self._lines_from_prefix(beginning):
            if not line.startswith(beginning):
                if line > beginning:
                    break
                continue
            try:
                values = json.loads(line[line.index(b" ") :])
                mementos = _sum_parts(values["parts"], selector) if selector else int(values["frequency"])
                if selector and not mementos:
                    continue
                frequency += mementos
                spread = max(spread, int(values.get("spread", 1)))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise InputError(f"{self.path}: not what a profile has: {ascii(line)[2:80]}") from None
            keys += 1
        return ProfileLookupResult(key, frequency, spread, keys)

    def _lines_from_prefix(self, beginning: bytes) -> Iterator[bytes]:
        """Yield the lines from the first line with a prefix on, or from a few lines before it."""
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
        # The last problem describes the damage of the file, earlier ones the lines that it affects.
        for problem in reversed(problems.first.values()):
            raise InputError(str(problem))


def _sum_parts(parts: dict[str, int], selector: tuple[str | None, ...]) -> int:
    """Return the total count of the parts that match a selector."""
    return sum(
        int(count)
        for part, count in parts.items()
        if all(required in (None, actual) for required, actual in zip(selector, part.split(" "), strict=True))
    )


def _seek_offset(handle: int, beginning: bytes) -> int:
    """Return the offset of a line, at most a chunk too early, before which all lines sort before `beginning`."""
    low, high = 0, os.fstat(handle).st_size
    while high - low > _CHUNK_BYTES:
        middle = (low + high) // 2
        start, line = _line_after(handle, middle)
        # Header lines precede all keys, however they sort.
        if line is not None and (line.startswith(b"@") or line < beginning):
            low = start
        else:
            high = middle
    return low


def _line_after(handle: int, offset: int) -> tuple[int, bytes | None]:
    """Return the offset and the text of the first line that begins after an offset; None at the end."""
    start = offset
    for text in _read_chunks(handle, offset):
        end = text.find(b"\n")
        if end >= 0:
            start += end + 1
            break
        start += len(text)
    return start, next(_lines_from(handle, start), None)


def _lines_from(handle: int, offset: int) -> Iterator[bytes]:
    partial = b""
    for text in _read_chunks(handle, offset):
        *lines, partial = (partial + text).split(b"\n")
        yield from lines
        if len(partial) > MAX_LINE_BYTES:
            raise InputError("expected lines, found none: not a profile")
    if partial:
        yield partial


def _read_chunks(handle: int, offset: int) -> Iterator[bytes]:
    while text := os.pread(handle, _CHUNK_BYTES, offset):
        offset += len(text)
        yield text
