"""Judges the pages that come: what a recovery knows of a site is their context."""

from urllib.parse import urlsplit

from unlost.pages.verdicts import Answer, Context, Known, Verdict, is_suspect, known_from, place_of, verdict_of

_KNOWN = 48  # pages of a site that are remembered, of at most 20,000 characters each
_USED = 6  # of them, for one page
_SAME_TIME = 1  # year: as long as the frame of a site stays about the same


class Judging:
    """Remembers good pages of the site, and what it answers where nothing is."""

    def __init__(self) -> None:
        self._good: dict[str, Known] = {}  # by address and date
        self._absent: list[Known] = []

    def verdict(self, page: Answer) -> Verdict | None:
        """Return why a page is not to be taken for what it seems to be; None if it is good, or nobody can tell."""
        return verdict_of(page, self._context(page))

    def learn(self, page: Answer) -> None:
        """Remember a good page."""
        is_root = urlsplit(page.uri).path in ("", "/")
        if len(self._good) < _KNOWN or is_root:
            self._good[f"{page.uri} {page.datetime}"] = known_from(page)
            if len(self._good) > 2 * _KNOWN:
                del self._good[next(iter(self._good))]

    def learn_absent(self, page: Answer) -> None:
        """Remember what the site answers with an honest status where nothing is."""
        self._absent = [*self._absent[-3:], known_from(page)]

    def needs_past(self, page: Answer) -> bool:
        """Return whether a page looks like that of a site which was taken over, and nothing from before is known."""
        return not self._earlier(page) and is_suspect(page)

    def _context(self, page: Answer) -> Context:
        year = int(page.datetime[:4])
        near = [known for known in self._good.values() if abs(int(known.datetime[:4]) - year) <= _SAME_TIME]
        others = [known for known in near if place_of(known.uri) != place_of(page.uri)]
        home = next((known for known in reversed(others) if urlsplit(known.uri).path in ("", "/")), None)
        absent = (known for known in self._absent if abs(int(known.datetime[:4]) - year) <= _SAME_TIME)
        return Context(self._earlier(page), others[:_USED], home, next(absent, None))

    def _earlier(self, page: Answer) -> tuple[Known, ...]:
        """Return pages from before: of the same address first, then the oldest."""
        here = place_of(page.uri)
        before = [known for known in self._good.values() if known.datetime < page.datetime]
        return tuple(sorted(before, key=lambda known: (place_of(known.uri) != here, known.datetime))[:_USED])
