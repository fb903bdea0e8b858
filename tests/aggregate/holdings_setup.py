"""A holdings store with its clock and its messages."""

from pathlib import Path
from typing import Any

from tests.archives.stubs import StubHttpClient
from tests.virtual_clock import VirtualClock
from unlost.aggregate import HoldingsStore
from unlost.registry import Archive

PAGE = "http://example.com/a"
ROWS = "com,example)/* 2\n"
OTHER = "org,other)/* 2\n"


class HoldingsSetup:
    """A holdings store, its clock, its warnings and its infos."""

    def __init__(self, folder: Path, *archives: Archive, **options: Any) -> None:  # noqa: ANN401  those of Known
        self.clock = options.pop("clock", VirtualClock())
        self.warnings: list[str] = []
        self.infos: list[str] = []
        client = options.pop("courier", StubHttpClient())
        self.store = HoldingsStore(
            archives,
            client,
            folder / "cache",
            self.clock,
            warn=self.warnings.append,
            on_info=self.infos.append,
            **options,
        )

    def should_query(self, page: str = PAGE, name: str = "a") -> bool | None:
        """Return whether an archive should be queried; None if it has no holdings."""
        holdings = self.store.holdings().get(name)
        return None if holdings is None else holdings.lookup(page).should_query

    def problems(self) -> tuple[str, ...]:
        """Return the problems of the first archive."""
        return self.store.statuses()[0].problems


def replace_file(path: Path, text: str | bytes) -> None:
    """Replace a file atomically."""
    temporary = path.with_suffix(".new")
    temporary.write_bytes(text if isinstance(text, bytes) else text.encode())
    temporary.replace(path)
