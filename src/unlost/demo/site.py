"""The lost site: what it had when it ended, and which archive has which copy of what."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from unlost import dates
from unlost.demo.making import build_body, content_type_of

_MOVED_PERMANENTLY = 301


@dataclass(frozen=True, slots=True)
class SiteResponse:
    """What the site answered with. mime: the whole Content-Type. location: where a redirect leads."""

    status: int
    mime: str
    body: bytes
    location: str | None = None


@dataclass(frozen=True, slots=True)
class SiteCapture:
    """A copy in an archive, by the archive's id. date: 14 digits."""

    archive: str
    date: str
    response: SiteResponse


@dataclass(frozen=True, slots=True)
class DemoResource:
    """One address of the site.

    title: of a page; empty for anything else. last: what was there when the site ended; None if it was gone by then.
    copies: by date.
    """

    url: str
    title: str
    last: SiteResponse | None
    captures: tuple[SiteCapture, ...]

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
    resources: tuple[DemoResource, ...]

    def captures_in(self, archive: str) -> Iterator[tuple[DemoResource, SiteCapture]]:
        """Yield what an archive has."""
        for resource in self.resources:
            yield from ((resource, copy) for copy in resource.captures if copy.archive == archive)

    def final_resources(self) -> Iterator[tuple[DemoResource, SiteResponse]]:
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
        dates.from_user_input(told["ended"]),
        {each["id"]: each["name"] for each in told["archive"]},
        tuple(_resource(told["site"], each) for each in told["resource"]),
    )


def _resource(site: str, entry: Mapping[str, Any]) -> DemoResource:
    last = _response(entry, entry.get("file"))
    copies = [
        SiteCapture(
            each["archive"], dates.from_user_input(each["date"]), _response(entry, each.get("file", entry.get("file")))
        )
        for each in entry.get("copies", ())
    ]
    return DemoResource(
        site + entry["path"],
        entry.get("title", ""),
        last if entry.get("original", True) else None,
        tuple(sorted(copies, key=lambda copy: copy.date)),
    )


def _response(entry: Mapping[str, Any], file: str | None) -> SiteResponse:
    if file is None:
        return SiteResponse(_MOVED_PERMANENTLY, "text/html", b"", entry["to"])
    return SiteResponse(200, content_type_of(file), build_body(file, entry["path"], entry.get("title", "")))
