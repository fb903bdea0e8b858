"""Labelled pages and pages of real crawls, with the classifier's verdicts."""

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
    """Return host, path and datetime of each real capture that was labelled bad by hand."""
    listed = tomllib.loads((FOLDER / "real_bad.toml").read_text(encoding="utf-8"))["capture"]
    return frozenset((_without_scheme(capture["uri"]), capture["datetime"]) for capture in listed)


def is_labelled_bad(uri: str, datetime: str) -> bool:
    """Return whether a real capture is listed in `real_bad.toml`. uri: with or without its scheme."""
    return (_without_scheme(uri), datetime) in _bad_captures()


def count_labelled_bad() -> int:
    """Return the number of captures in `real_bad.toml`."""
    return len(_bad_captures())


def _without_scheme(uri: str) -> str:
    return uri.removeprefix("http://").removeprefix("www.").rstrip("/")


def to_page_response(page: Page) -> PageResponse:
    """Return a page as input of the classifier."""
    kind = dict(page.headers)["Content-Type"]
    charset = kind.partition("charset=")[2] or None
    return PageResponse(page.uri, f"{page.when:%Y%m%d%H%M%S}", page.status, kind, page.body, page.headers, charset)


def to_context(example: Example) -> ClassifierContext:
    """Return the classifier context of an example."""

    def with_role(role: str) -> list[Known]:
        return [page for page in example.context if page.role == role]

    home, random = (
        [make_reference_page(to_page_response(page)) for page in with_role(role)] for role in ("home", "random")
    )
    return ClassifierContext(
        tuple(make_reference_page(to_page_response(page)) for page in with_role("earlier")),
        tuple(make_reference_page(to_page_response(page)) for page in with_role("other")),
        home[-1] if home else None,
        random[-1] if random else None,
    )


@cache
def classified_examples() -> tuple[tuple[Example, PageVerdict | None], ...]:
    """Return all examples with their verdicts."""
    return tuple((example, classify_page(to_page_response(example), to_context(example))) for example in examples())


@cache
def classified_held_out() -> tuple[tuple[Example, PageVerdict | None], ...]:
    """Return the held-out pages with their verdicts."""
    return tuple((example, classify_page(to_page_response(example), to_context(example))) for example in held_out())


def is_detected(example: Example, verdict: PageVerdict | None) -> bool:
    """Return whether a bad page was detected with an accepted label."""
    return verdict is not None and verdict.kind.value in example.accepted_labels


def real_pages() -> Iterator[PageResponse]:
    """Yield all readable HTML captures with status 200 of the real WARCs."""
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
            http, url = record.http_headers, record.rec_headers.get_header("WARC-Target-URI") or ""
            if record.rec_type != "response" or http is None or http.get_statuscode() != "200":
                continue
            mime = http.get_header("Content-Type") or ""
            if "html" not in mime:
                continue
            is_brotli = http.get_header("Content-Encoding") == "br"
            raw = record.raw_stream.read() if is_brotli else b""  # warcio would need another package for Brotli
            body = (
                brotli.decompress(raw)
                if is_brotli and raw
                else record.content_stream().read()
                if not is_brotli
                else b""
            )
            date = "".join(filter(str.isdigit, record.rec_headers.get_header("WARC-Date") or ""))[:14]
            yield PageResponse(url, date.ljust(14, "0"), 200, mime, body, http.headers)
