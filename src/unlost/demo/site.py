"""The lost site: what it had when it ended, and which archive has which copy of what."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from unlost import dates
from unlost.demo.making import made, type_of

_MOVED = 301


@dataclass(frozen=True, slots=True)
class Answer:
    """What the site answered with. mime: the whole Content-Type. location: where a redirect leads."""

    status: int
    mime: str
    body: bytes
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy in an archive, by the archive's id. date: 14 digits."""

    archive: str
    date: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class Resource:
    """One address of the site.

    title: of a page; empty for anything else. last: what was there when the site ended; None if it was gone by then.
    copies: by date.
    """

    url: str
    title: str
    last: Answer | None
    copies: tuple[Copy, ...]

    @property
    def is_page(self) -> bool:
        """Whether it was a page when the site ended."""
        return bool(self.title) and self.last is not None


@dataclass(frozen=True, slots=True)
class LostSite:
    """All of it. url: its home page. ended: its last day, 14 digits. archives: names by ids."""

    url: str
    ended: str
    archives: Mapping[str, str]
    resources: tuple[Resource, ...]

    def copies_in(self, archive: str) -> Iterator[tuple[Resource, Copy]]:
        """Yield what an archive has."""
        for resource in self.resources:
            yield from ((resource, copy) for copy in resource.copies if copy.archive == archive)

    def originals(self) -> Iterator[tuple[Resource, Answer]]:
        """Yield what was there when the site ended."""
        for resource in self.resources:
            if resource.last is not None:
                yield resource, resource.last


@lru_cache(1)
def lost_site() -> LostSite:
    """Return the site."""
    told = tomllib.loads(files("unlost.demo").joinpath("captures.toml").read_text(encoding="utf-8"))
    return LostSite(
        told["site"],
        dates.from_people(told["ended"]),
        {each["id"]: each["name"] for each in told["archive"]},
        tuple(_resource(told["site"], each) for each in told["resource"]),
    )


def _resource(site: str, told: Mapping[str, Any]) -> Resource:
    last = _answer(told, told.get("file"))
    copies = [
        Copy(each["archive"], dates.from_people(each["date"]), _answer(told, each.get("file", told.get("file"))))
        for each in told.get("copies", ())
    ]
    return Resource(
        site + told["path"],
        told.get("title", ""),
        last if told.get("original", True) else None,
        tuple(sorted(copies, key=lambda copy: copy.date)),
    )


def _answer(told: Mapping[str, Any], file: str | None) -> Answer:
    if file is None:
        return Answer(_MOVED, "text/html", b"", told["to"])
    return Answer(200, type_of(file), made(file, told["path"], told.get("title", "")))
