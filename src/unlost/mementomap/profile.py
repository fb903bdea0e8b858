"""URI-Key profiles: the header, and look-ups in a profile's file."""

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
"""Where the first paper says what the members mean."""
PROFILE_VERSION = 1
"""Of the format, as it is written in headers. Profiles without one are read too: the paper's have none."""
_TYPE_PREFIX = "urikey#"
_SUFFIX_SECTIONS = ("all", "icann")
_ID_PATTERN = re.compile(r"[^\x00-\x20\x7f\ud800-\udfff]+")
_MAX_HEADER_BYTES = 1 << 20  # bytes: more is no header, and is not read


@dataclass(frozen=True, slots=True)
class ProfileHeader:
    """What a profile says about itself.

    policy: whose keys it has, such as `H3P1`.
    name, id: what people and programs call the archive; None if they were not told.
    rules: the rule set by which addresses became keys.
    suffixes: which sections of the Public Suffix List counted, `all` or `icann`. Only the D policies ask.
    others: what else the profile is said to be about; kept, never interpreted.
    """

    policy: str
    name: str | None = None
    id: str | None = None
    rules: str = DEFAULT_RULES
    suffixes: str = "all"
    others: Mapping[str, object] = field(default_factory=dict)

    @property
    def by(self) -> list[str]:
        """What its parts are told by, in their order; empty if it has none."""
        told = self.others.get("by")
        return [each for each in told if isinstance(each, str)] if isinstance(told, list) else []

    @property
    def about(self) -> dict[str, object]:
        """What is written as `@about`, in its order."""
        name = {} if self.name is None else {"name": self.name}
        suffixes = {"suffixes": self.suffixes} if self.policy.startswith("D") else {}
        kind = {"type": _TYPE_PREFIX + self.policy, "rules": self.rules, **suffixes, "version": PROFILE_VERSION}
        return {**name, **kind, **self.others}

    def to_lines(self) -> bytes:
        """Return it as lines, each with its end. Raises UsageError if the id would be more than one word.

        >>> print(ProfileHeader("H3P1", "UKWA 1996 Collection", "http://www.webarchive.org.uk/ukwa/").to_lines().decode())
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
        """Return it as the beginning of a JSON-LD document, up to the brace behind `profile`."""
        identity = {} if self.id is None else {"@id": self.id}
        document = json.dumps({"@context": PROFILE_CONTEXT, **identity, "about": self.about, "profile": {}})
        return document.removesuffix("}}").encode() + b"\n"

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Return what the header lines of a file say. Raises InputError if they are not those of a profile."""
        name = fspath(path)
        found: dict[str, str] = {}
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
                word, _, value = text.decode("utf-8", "replace").partition(" ")
                found.setdefault(word, value.strip())
            elif text.strip():
                break
        return cls(**_parse_about(name, found))  # type: ignore[arg-type]  # checked by _members

    @classmethod
    def merge(cls, headers: Mapping[str, "ProfileHeader"], name: str | None, identity: str | None) -> Self:
        """Return the header of what profiles, by the names of their files, are together: what they have in common.

        name, identity: what the whole is called. Raises InputError if their keys do not mean the same.
        """
        (first_file, first), *rest = headers.items()
        for file, other in rest:
            if other.policy != first.policy:
                raise InputError(
                    f"{file}: a profile of {other.policy}, but {first_file} is one of {first.policy}: "
                    "only profiles of one policy merge; `unlost profile to-map` makes one map of different ones"
                )
        for file, other in rest:
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
        everything = list(headers.values())
        return cls(
            first.policy,
            name if name is not None else _common_value(each.name for each in everything),
            identity if identity is not None else _common_value(each.id for each in everything),
            first.rules,
            first.suffixes,
            {"by": first.by} if first.by else {},
        )


def require_same_rules(headers: Mapping[str, ProfileHeader]) -> str:
    """Return the rule set of profiles, by the names of their files. Raises InputError if they differ."""
    (first_file, first), *rest = headers.items()
    for file, other in rest:
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


def _parse_about(name: str, found: Mapping[str, str]) -> dict[str, object]:
    try:
        about = json.loads(found.get("@about", ""))
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
    known = {"name", "type", "rules", "suffixes", "version"}
    return {
        "policy": policy,
        "name": title if isinstance(title, str) else None,
        "id": _unquote_id(found["@id"]) if found.get("@id") else None,
        "rules": rules,
        "suffixes": suffixes,
        "others": {member: value for member, value in about.items() if member not in known},
    }


def _unquote_id(value: str) -> str:
    """Return an `@id`, which some write in quotes."""
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read if isinstance(read, str) else value


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
