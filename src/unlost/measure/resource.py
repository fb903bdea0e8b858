"""What a site consists of, wherever it was read from."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from unlost.formats.problems import Problems


class SiteResource(NamedTuple):
    """A page, or a part of one, as a site has it. What a source does not tell is None.

    A named tuple, since sites have very many: it is made four times as fast as a frozen dataclass.

    name: by which sites are matched, as `unlost.uri.naming.name_of` makes it.
    uri: its address as it is spelled there.
    datetime: when this copy of it was made, 14 digits; None in a folder.
    modified: when it was last changed, by its server or the file system, 14 digits.
    mime: the media type as it was told, in lower case without parameters.
    digest: the SHA-1 of the body with all codings undone: 20 bytes.
    size: how many bytes such a body has.
    migrated: whether an archive changed its format (True), kept it (False), or nobody says (None).
    place: where the body is, for the site that it is of: nobody else looks into it.
    """

    name: str
    uri: str
    datetime: str | None
    modified: str | None
    mime: str | None
    digest: bytes
    size: int
    migrated: bool | None
    place: object


NO_DATE = -1
"""In columns, in the place of a date that nobody knows."""


class ResourceColumns(NamedTuple):
    """What is asked of all resources of a site, in the same order in each column: no objects are made for it.

    datetimes, modified: numbers of 14 digits, or `NONE`. The rest is as in a `Resource`.
    """

    names: Sequence[str]
    uris: Sequence[str]
    mimes: Sequence[str | None]
    digests: Sequence[bytes]
    sizes: Sequence[int]
    datetimes: Sequence[int]
    modified: Sequence[int]


class SiteResources(Mapping[str, SiteResource]):
    """The resources of a site by name; of several copies of one, the one that counts."""

    @abstractmethod
    def columns(self) -> ResourceColumns:
        """Return all of them as columns."""


@dataclass(frozen=True, slots=True)
class ResourceBody:
    """The bytes of a resource, all codings undone.

    content: as many of them as were asked for.
    charset: what it was said to be written in, by its server; None if nobody said.
    cut: whether there are more.
    """

    content: bytes
    charset: str | None
    is_truncated: bool


class Site(Protocol):
    """A site that was read: what it consists of, and what is known about it besides.

    resources: what it consists of.
    listed: the names of what archives are known to hold and nobody has fetched; empty but in a recovery.
    requests: how many requests for copies and lists a recovery took; None if this is none, or one that did not count.
    left_out: how many records are no resources, by the reason: `redirect`, `error`, `no-body`, `foreign-scheme` …
    problems: what could not be read.
    """

    resources: SiteResources
    listed: frozenset[str]
    requests: int | None
    skipped: Mapping[str, int]
    problems: Problems

    def read_body(self, resource: SiteResource, max_bytes: int) -> ResourceBody:
        """Return the body of one of its resources, at most so many bytes. May be called from several threads.

        Raises InputError if it cannot be read any more, OSError if the file cannot.
        """
        ...
