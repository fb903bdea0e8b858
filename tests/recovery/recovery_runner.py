"""Recoveries of a small site from in-memory archives."""

import asyncio
from pathlib import Path
from typing import Any

from tests.recovery.stub_archive import Held, Stub
from tests.virtual_clock import VirtualClock
from unlost.recovery import (
    RecoverOptions,
    RecoverPolicy,
    RecoveryEvent,
    RecoveryRunResult,
    RecoveryScheduler,
    WarcStore,
)
from unlost.recovery.state import RecoveryState
from unlost.report.recovery import summary_rows

SITE = "http://lost.example/"
_TIMEOUT_SECONDS = 60  # of real time


def page(path: str, *links: str, date: str = "20140101000000", **more: Any) -> Held:  # noqa: ANN401  those of Held
    """Return a page with links."""
    text = f"<title>{path}</title>" + "".join(f"<a href='{link}'>x</a>" for link in links)
    return Held(SITE + path, date, **{"body": text.encode(), **more})


class RecoveryRunner:
    """A recovery in a folder that can be run repeatedly."""

    def __init__(
        self,
        folder: Path,
        *archives: Stub,
        max_bytes: int = 1 << 30,
        **plan: Any,  # noqa: ANN401  that of Plan
    ) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self.archives = archives
        self.plan = self.planned(**plan)
        self.clock = VirtualClock()
        self.events: list[tuple[str, dict[str, object]]] = []

    def planned(self, **plan: Any) -> RecoverOptions:  # noqa: ANN401
        """Return options that by default follow links on the site's own hosts and drop rejected pages."""
        linked = {"policy": RecoverPolicy.KNOWLEDGEABLE, "page_requisites": False, "drop_rejected": True}
        return RecoverOptions(SITE, **{**linked, **plan})

    def __call__(self, **options: Any) -> RecoveryRunResult:  # noqa: ANN401  those of Recovery
        """Run the recovery once."""
        return asyncio.run(asyncio.wait_for(self._run(options), _TIMEOUT_SECONDS))

    async def _run(self, options: dict[str, Any]) -> RecoveryRunResult:
        self.events.clear()
        with RecoveryState(self.folder) as state:
            warcs = WarcStore(self.folder / "warc", self.clock, "test", max_bytes=self.max_bytes)
            try:
                recovery = RecoveryScheduler(
                    self.plan,
                    state,
                    warcs,
                    {stub.archive.id: stub for stub in self.archives},
                    self.clock,
                    self._record_event,
                    **options,
                )
                return await recovery.run()
            finally:
                warcs.close()

    def _record_event(self, event: RecoveryEvent) -> None:
        values = event.to_json()
        self.events.append((str(values.pop("event")), values))

    def outcome(self) -> dict[str, str | None]:
        """Return archive and date of recovered resources, and None for missing ones, by path."""
        with RecoveryState(self.folder) as state:
            return {
                entry.uri.removeprefix(SITE): f"{entry.archive} {entry.datetime}" if entry.archive else None
                for entry in summary_rows(state)
                if not entry.uri.endswith(("robots.txt", "sitemap.xml"))
            }

    def with_defaults(self, **plan: Any) -> "RecoveryRunner":  # noqa: ANN401
        """Use the default options except these from now on; return self."""
        self.plan = RecoverOptions(SITE, **plan)
        return self

    def events_of(self, event: str) -> list[dict[str, object]]:
        """Return the events with a name."""
        return [fields for name, fields in self.events if name == event]
