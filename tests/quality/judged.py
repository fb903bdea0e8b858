"""Labelled pages and pages of real crawls as the detector takes them, and what it says of them."""

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import brotli
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from tests.quality.examples import FOLDER, Example, Page, examples, held_out
from tests.quality.examples import Context as Known
from tests.real_data import DATA
from unlost.quality import ClassifierContext, PageResponse, PageVerdict, classify_page, make_reference_page


@cache
def _bad_captures() -> frozenset[tuple[str, str]]:
    """Return the place and date of each real capture that somebody has looked at and found to be bad."""
    listed = tomllib.loads((FOLDER / "real_bad.toml").read_text(encoding="utf-8"))["capture"]
    return frozenset((_place(capture["uri"]), capture["datetime"]) for capture in listed)


def is_labelled_bad(uri: str, datetime: str) -> bool:
    """Return whether a real capture is one of those in `real_bad.toml`. uri: with or without its scheme."""
    return (_place(uri), datetime) in _bad_captures()


def count_labelled_bad() -> int:
    """Return how many captures `real_bad.toml` names."""
    return len(_bad_captures())


def _place(uri: str) -> str:
    return uri.removeprefix("http://").removeprefix("www.").rstrip("/")


def answer_of(page: Page) -> PageResponse:
    """Return a page as it is judged."""
    kind = dict(page.headers)["Content-Type"]
    charset = kind.partition("charset=")[2] or None
    return PageResponse(page.uri, f"{page.when:%Y%m%d%H%M%S}", page.status, kind, page.body, page.headers, charset)


def context_of(example: Example) -> ClassifierContext:
    """Return what was known of the site of an example."""

    def of(role: str) -> list[Known]:
        return [known for known in example.context if known.role == role]

    home, random = ([make_reference_page(answer_of(known)) for known in of(role)] for role in ("home", "random"))
    return ClassifierContext(
        tuple(make_reference_page(answer_of(known)) for known in of("earlier")),
        tuple(make_reference_page(answer_of(known)) for known in of("other")),
        home[-1] if home else None,
        random[-1] if random else None,
    )


@cache
def judged() -> tuple[tuple[Example, PageVerdict | None], ...]:
    """Return all examples with their verdicts."""
    return tuple((example, classify_page(answer_of(example), context_of(example))) for example in examples())


@cache
def judged_held_out() -> tuple[tuple[Example, PageVerdict | None], ...]:
    """Return the pages that were held out with their verdicts."""
    return tuple((example, classify_page(answer_of(example), context_of(example))) for example in held_out())


def is_found(example: Example, verdict: PageVerdict | None) -> bool:
    """Return whether a bad page was found, with a label that it deserves."""
    return verdict is not None and verdict.kind.value in example.deserved


def real_pages() -> Iterator[PageResponse]:
    """Yield all captures of HTML with status 200 in the real WARCs, as far as these can be read."""
    for path in sorted((DATA / "warc").rglob("*.warc*")):
        yield from _pages(path)


def _pages(path: Path) -> Iterator[PageResponse]:
    with path.open("rb") as file:
        records = iter(ArchiveIterator(file))
        while True:
            try:
                record = next(records)
            except (StopIteration, ArchiveLoadFailed):
                return
            http, address = record.http_headers, record.rec_headers.get_header("WARC-Target-URI") or ""
            if record.rec_type != "response" or http is None or http.get_statuscode() != "200":
                continue
            mime = http.get_header("Content-Type") or ""
            if "html" not in mime:
                continue
            is_brotli = http.get_header("Content-Encoding") == "br"
            raw = record.raw_stream.read() if is_brotli else b""  # warcio would need another package for it
            body = (
                brotli.decompress(raw)
                if is_brotli and raw
                else record.content_stream().read()
                if not is_brotli
                else b""
            )
            date = "".join(filter(str.isdigit, record.rec_headers.get_header("WARC-Date") or ""))[:14]
            yield PageResponse(address, date.ljust(14, "0"), 200, mime, body, http.headers)
