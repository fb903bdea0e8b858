"""A page to be judged, and what is known of its site."""

from collections.abc import Sequence
from dataclasses import dataclass

from unlost.pages.text import text_of

_KEPT = 20_000  # characters of a known page: as much as is ever compared


@dataclass(frozen=True, slots=True)
class Answer:
    """What a site, or an archive, answered.

    uri: the address that was asked for. datetime: when it was captured, 14 digits, UTC.
    status: None if it is not known. mime: as it was told, with or without parameters. body: without codings.
    headers: as they came; only some are looked at. charset: as it was told; None if it was not.
    """

    uri: str
    datetime: str
    status: int | None
    mime: str | None
    body: bytes
    headers: Sequence[tuple[str, str]] = ()
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A page that is known to be good, or what a site answers for addresses that never were.

    text: without markup, a bounded part of it.
    """

    uri: str
    datetime: str
    text: str


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of the site of a page. All of it may be missing.

    earlier: good pages from before, at the same or another address.
    others: good pages of about the same time, at other addresses.
    home: what the root of the site answers at about the same time.
    random: what the site answers at about the same time where nothing ever was.
    """

    earlier: Sequence[Known] = ()
    others: Sequence[Known] = ()
    home: Known | None = None
    random: Known | None = None


def place_of(uri: str) -> str:
    """Return an address without what never tells two pages apart: scheme, `www`, a final slash, letter case of hosts.

    >>> place_of("https://www.A.example/B/")
    'a.example/B'
    """
    host, slash, path = uri.partition("://")[2].partition("/")
    return f"{host.lower().removeprefix('www.')}{slash}{path}".rstrip("/")


def known_from(page: Answer) -> Known:
    """Return what of a page is worth to be known when others are judged."""
    read = text_of(page.body, page.mime, page.uri, page.charset)
    return Known(page.uri, page.datetime, "" if read is None else read.text[:_KEPT])
