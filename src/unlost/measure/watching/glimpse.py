"""One page of a site, as a look at the site sees it."""

from dataclasses import dataclass
from typing import Protocol

from unlost.pages.text import extract_text
from unlost.pages.verdicts import PageResponse

MAX_PAGE_BYTES = 512 << 10
"""Of a page, that is looked at: verdicts read half of it."""


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """What came of asking for a page, redirects followed.

    uri: what was asked for. final: where the answer came from. status: None if no answer came.
    mime, charset: as they were told. body: at most `MAX_BYTES`, without codings. datetime: 14 digits.
    digest: as in WARCs; None if it is not known.
    trouble: what went wrong, in words, if no answer came. is_forbidden: whether robots.txt kept us from asking.
    """

    uri: str
    datetime: str
    final_url: str = ""
    status: int | None = None
    mime: str | None = None
    charset: str | None = None
    body: bytes = b""
    digest: str | None = None
    error: str = ""
    is_forbidden: bool = False

    @property
    def is_good(self) -> bool:
        """Whether it came with a good status."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def response(self) -> PageResponse:
        """The same, to be judged."""
        return PageResponse(self.uri, self.datetime, self.status, self.mime, self.body, (), self.charset)

    def text(self) -> str:
        """Return what a reader sees."""
        read = extract_text(self.body, self.mime, self.final_url or self.uri, self.charset)
        return "" if read is None else read.text


class PageFetcher(Protocol):
    """Whoever fetches pages of a living site, politely."""

    async def fetch(self, uri: str) -> FetchedPage:
        """Return what came of asking for a page; raises nothing that a site could cause."""
        ...
