"""A page to be judged, and what is known of its site."""

from collections.abc import Sequence
from dataclasses import dataclass

from unlost.pages.text import extract_text

_MAX_TEXT_LENGTH = 20_000  # characters of a known page: as much as is ever compared


@dataclass(frozen=True, slots=True)
class PageResponse:
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
class ReferencePage:
    """A page that is known to be good, or what a site answers for addresses that never were.

    text: without markup, a bounded part of it.
    """

    uri: str
    datetime: str
    text: str


@dataclass(frozen=True, slots=True)
class ClassifierContext:
    """What is known of the site of a page. All of it may be missing.

    earlier: good pages from before, at the same or another address.
    others: good pages of about the same time, at other addresses.
    home: what the root of the site answers at about the same time.
    random: what the site answers at about the same time where nothing ever was.
    """

    earlier: Sequence[ReferencePage] = ()
    siblings: Sequence[ReferencePage] = ()
    home: ReferencePage | None = None
    random_url: ReferencePage | None = None


def page_identity(uri: str) -> str:
    """Return an address without what never tells two pages apart: scheme, `www`, a final slash, letter case of hosts.

    >>> place_of("https://www.A.example/B/")
    'a.example/B'
    """
    host, slash, path = uri.partition("://")[2].partition("/")
    return f"{host.lower().removeprefix('www.')}{slash}{path}".rstrip("/")


def make_reference_page(page: PageResponse) -> ReferencePage:
    """Return what of a page is worth to be known when others are judged."""
    read = extract_text(page.body, page.mime, page.uri, page.charset)
    return ReferencePage(page.uri, page.datetime, "" if read is None else read.text[:_MAX_TEXT_LENGTH])
