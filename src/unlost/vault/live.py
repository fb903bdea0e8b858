"""The pages of a living site, visited politely: to plan a vault for them, or to see what they carry now."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from unlost.clock import Clock
from unlost.crawl.crawling import crawl
from unlost.crawl.plan import Plan, Reach
from unlost.crawl.polite import Tell
from unlost.crawl.reading import read_resources
from unlost.crawl.resource import LiveResource, Outcome
from unlost.errors import ArchiveFileError, InputError, UsageError
from unlost.measure.sites.archive_parts import Part
from unlost.vault.block import MAX_BLOCK_BYTES
from unlost.vault.page_text import without_blocks
from unlost.vault.planning import Page
from unlost.vault.shape import MAX_BLOCKS
from unlost.vault.site_pages import address_of, is_added, key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unlost.crawl.result import Result

_MAX_BODY = 4 * MAX_BLOCK_BYTES
_HTML = ("text/html", "application/xhtml+xml")


class Visits:
    """Visits a site into a folder, as `crawl` does: robots.txt is obeyed, and what was interrupted goes on.

    delay: seconds between two requests, at least. contact: an address of mail or of a page.
    result: how the last crawl ended, once it has. visited: how many addresses were visited now, not by an earlier run.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        delay: float,
        contact: str | None = None,
        tell: Tell = lambda _, __: None,
    ) -> None:
        self._folder, self._clock, self._delay, self._contact, self._tell = folder, clock, delay, contact, tell
        self.result: Result | None = None
        self.visited = 0

    async def pages_of_site(self, start: str) -> list[Page]:
        """Follow links and sitemaps from a start, and return the pages that archives may keep.

        Raises UsageError for no web address, InputError if there are none or the site does not answer.
        """
        folder = urlsplit(_checked(start)).path.rpartition("/")[0]
        reach = Reach.PREFIX if folder else Reach.HOST
        await self._visit(Plan((start,), reach, parts=False, delay=self._delay, resources=2 * MAX_BLOCKS))
        found = [
            Page(key_of(each.uri), len(without_blocks(body)), each.hops)
            for each, body in self.bodies()
            # Whoever asks archives not to keep a page does not want it to carry anything for them.
            if each.mime in _HTML and not each.is_noarchive and each.truncated is None
        ]
        found = [page for page in found if not is_added(page.key)]
        if not found:
            raise InputError(f"{ascii(start)[:80]}: {self._why()}")
        return sorted(found, key=lambda page: (page.hops is None, page.hops))

    async def visit_pages(self, site: str, keys: Iterable[str]) -> None:
        """Visit the pages of a vault, and nothing else. Raises UsageError for a site that has no web address."""
        addresses = tuple(address_of(_checked(site), key) for key in keys)
        plan = Plan((), extra=addresses, links=False, parts=False, sitemaps=False, delay=self._delay)
        await self._visit(plan)

    async def _visit(self, plan: Plan) -> None:
        # Everything is kept, also what asks not to be: it is the site of whoever runs this.
        await crawl(
            replace(plan, keep_noarchive=True), self._folder, self._clock, contact=self._contact, tell=self._tell
        )

    def _told(self, word: str, about: "Mapping[str, object]") -> None:
        self.visited += word == "fetched"
        self._tell(word, about)

    def bodies(self) -> Iterator[tuple[LiveResource, bytes]]:
        """Yield what was fetched, with status 200, and its body."""
        for each in read_resources(self._folder):
            if each.status != 200 or each.file is None or each.offset is None:
                continue
            file = self._folder / "warc" / each.file
            try:
                body, _, _ = Part(file, str(file)).record(each.offset, 0).read_undone(_MAX_BODY)
            except ArchiveFileError:
                continue
            yield each, body

    def _why(self) -> str:
        """Return in words why there are no pages."""
        first = next(read_resources(self._folder), None)
        if first is not None and first.outcome is Outcome.FORBIDDEN and first.reason == "robots":
            return "its robots.txt forbids to visit it, as it does to archives: give a folder or a list of pages"
        if first is not None and first.outcome is Outcome.FETCHED:
            return "no page of HTML is there that archives may keep"
        return f"no answer ({(first.reason if first is not None else None) or 'nothing came'}): is it running?"


def _checked(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise UsageError(f"{ascii(address)[:80]}: expected an address that begins with http:// or https://")
    return address
