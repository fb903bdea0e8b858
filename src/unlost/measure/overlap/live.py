"""The live web, as far as a measurement looks at it: the pages of which copies were fetched."""

from typing import Protocol

from unlost.measure.overlap.copies import PageObservation


class LiveWebClient(Protocol):
    """Whoever looks at live pages, politely: robots.txt, one question at a time to a site, and pauses between them."""

    async def fetch_snapshot(self, uri: str) -> tuple[str, PageObservation | None]:
        """Return what came of it, and what was seen.

        `answered` with what was seen, whatever its status; `absent` if that says in words that there is no such page;
        `silent` if no answer came; `forbidden` if robots.txt does not want it to be looked at; any other word if
        nobody can tell now. Raises nothing for what a server does.
        """
        ...
