"""Who knows the maps and filters of archives, and what is told of them."""

from pathlib import Path
from typing import Any

from tests.archives.stubs import Answers
from tests.virtual_clock import VirtualClock
from unlost.aggregate import HoldingsStore
from unlost.registry import Archive

PAGE = "http://example.com/a"
ROWS = "com,example)/* 2\n"
OTHER = "org,other)/* 2\n"


class Scene:
    """A folder, who knows what is in it, and what was told."""

    def __init__(self, folder: Path, *archives: Archive, **options: Any) -> None:  # noqa: ANN401  those of Known
        self.clock = options.pop("clock", VirtualClock())
        self.told: list[str] = []
        self.noted: list[str] = []
        courier = options.pop("courier", Answers())
        self.known = HoldingsStore(
            archives, courier, folder / "cache", self.clock, warn=self.told.append, on_info=self.noted.append, **options
        )

    def says(self, page: str = PAGE, name: str = "a") -> bool | None:
        """Return whether an archive is worth asking; None if nothing is known."""
        holdings = self.known.holdings().get(name)
        return None if holdings is None else holdings.lookup(page).should_query

    def problems(self) -> tuple[str, ...]:
        """Return what is wrong with the first archive."""
        return self.known.statuses()[0].problems


def replace(path: Path, text: str | bytes) -> None:
    """Put a new file in the place of an old one, as those who know do."""
    aside = path.with_suffix(".new")
    aside.write_bytes(text if isinstance(text, bytes) else text.encode())
    aside.replace(path)
