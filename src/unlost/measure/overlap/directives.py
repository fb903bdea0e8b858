"""What a page and its server say about being kept: `noarchive`, and directives of Cache-Control."""

import re
from collections.abc import Iterable
from contextlib import suppress
from html.parser import HTMLParser

_MAX_HEAD_BYTES = 1 << 16  # bytes of a page in which its head must end
_MAX_ROBOTS = 10  # robots that are named
_ROBOT = re.compile(r"[a-z0-9_.*-]{1,40}")
_NOARCHIVE_TOKENS = frozenset({"noarchive", "nocache", "none"})
_NO_CACHE_DIRECTIVES = frozenset({"no-cache", "no-store", "private"})

ALL_ROBOTS = "robots"
"""The name that stands for all robots."""


def noarchive_robots(body: bytes, headers: Iterable[tuple[str, str]] = ()) -> tuple[str, ...]:
    """Return the names of the robots that are asked not to keep a page, in order; `robots` are all of them.

    body: HTML; only its beginning is looked at. headers: as they came; of them X-Robots-Tag counts. `none` means
    noindex and nofollow, which keeps a page out of archives as well.

    >>> noarchive(b'<meta name=googlebot content="noarchive"><meta name="robots" content="NOINDEX, NoArchive">')
    ('googlebot', 'robots')
    >>> noarchive(b"", [("X-Robots-Tag", "otherbot: noarchive"), ("X-Robots-Tag", "noindex")])
    ('otherbot',)
    """
    head = _RobotsMetaParser()
    head.feed_safely(body[:_MAX_HEAD_BYTES].decode("latin-1"))
    said = [*head.directives, *_header_directives(headers)]
    names = {name for name, content in said if _NOARCHIVE_TOKENS & _directive_tokens(content)}
    return tuple(sorted(names)[:_MAX_ROBOTS])


def forbids_caching(cache_control: str | None) -> bool:
    """Return whether a Cache-Control header says `no-cache`, `no-store` or `private`.

    >>> [refuses_caches(each) for each in ("max-age=0, No-Store", 'private="x"', "public", None)]
    [True, True, False, False]
    """
    parts = (cache_control or "").lower().split(",")
    return any(part.partition("=")[0].strip() in _NO_CACHE_DIRECTIVES for part in parts)


def _directive_tokens(content: str) -> frozenset[str]:
    return frozenset(re.split(r"[\s,;]+", content.lower()))


def _header_directives(headers: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    for name, value in headers:
        if name.lower() == "x-robots-tag":
            robot, colon, rest = value.partition(":")
            # `unavailable_after: date` has a colon, too, and names nobody.
            is_named = bool(colon) and _ROBOT.fullmatch(robot.strip().lower()) and robot.strip() != "unavailable_after"
            yield (robot.strip().lower(), rest) if is_named else (ALL_ROBOTS, value)


class _RobotsMetaParser(HTMLParser):
    """The meta tags of a page. said: name and content of those that may be for robots."""

    def __init__(self) -> None:
        super().__init__()
        self.directives: list[tuple[str, str]] = []

    def feed_safely(self, text: str) -> None:
        """Read a page as far as it can be read."""
        with suppress(AssertionError):  # a broken declaration ends it: what is before that counts
            self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at one tag."""
        values = {name: value or "" for name, value in reversed(attrs)}
        name = values.get("name", "").strip().lower()
        is_robot = name == ALL_ROBOTS or name.endswith("bot") or name in ("slurp", "teoma")
        if tag == "meta" and is_robot and _ROBOT.fullmatch(name):
            self.directives.append((name, values.get("content", "")[:500]))
