"""What stands above the keys of a profile."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Self

from unlost.errors import InputError, UsageError
from unlost.formats.problems import Problems
from unlost.formats.textfile import read_lines
from unlost.uri import DEFAULT_RULES, RULE_SETS, policy_name

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

        >>> print(ProfileHeader("H3P1", "UKWA 1996 Collection", "http://www.webarchive.org.uk/ukwa/").lines().decode())
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
                    f"{file}: tells its parts by {_join_fields(other.by)}, but {first_file} by {_join_fields(first.by)}: "
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
