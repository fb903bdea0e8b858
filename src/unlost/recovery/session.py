"""A recovery in its folder: opens the state, the WARC files and the sources, and runs the scheduler.

The command line, `unlost.recover` and the workers of the web service recover through this module.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from unlost._core import VERSION
from unlost.archives.base import ArchiveClient, collect_problems
from unlost.atomic import ensure_directory
from unlost.clock import Clock
from unlost.http.client import ArchiveHttpClient
from unlost.problems import Problems
from unlost.recovery.estimate import ArchiveCost
from unlost.recovery.events import EventListener, ignore_event
from unlost.recovery.options import RecoverOptions, RunOptions
from unlost.recovery.scheduler import RecoveryRunResult, RecoveryScheduler
from unlost.recovery.sources import open_sources, store_source_paths
from unlost.recovery.state.schema import explain_sqlite_errors
from unlost.recovery.state.store import RecoveryState, RequestsSent
from unlost.recovery.warc_store import WarcStore
from unlost.registry.models import Archive
from unlost.sqlite import STATE_FILE_NAME

WARC_FOLDER = "warc"
ConfirmCallback = Callable[[int, Callable[[float], list[ArchiveCost]], bool], bool]
"""Decides whether many listed resources are fetched; see `RecoveryScheduler`."""


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What a recovery would cost.

    Attributes:
        costs: The remaining requests by archive.
        unknown: Archives whose requests are unknown because they gave no complete listing, with the reason.
    """

    costs: list[ArchiveCost]
    unknown: dict[str, str]


@dataclass(slots=True)
class RecoverySession:
    """A recovery in a folder. `run` starts or resumes it; it may be called again.

    Attributes:
        folder: The folder; it is created if necessary.
        options: What to recover. They are stored, and must not contradict those of earlier runs.
        archives: The sources by id, in the order of preference where nothing else decides. An empty mapping is allowed.
        http_client: Sends the requests to archives. It is opened and closed by each run.
        clock: The source of time.
        run_options: How the run behaves. They are not stored.
        on_event: Receives the events.
        should_stop: Returns whether to stop. It is called often.
        confirm: Called before more than `CONFIRMATION_THRESHOLD` listed resources are fetched; see `RecoveryScheduler`.
        source_problems: Unreadable data that archives returned in the last run, by archive.
    """

    folder: Path
    options: RecoverOptions
    archives: Mapping[str, Archive]
    http_client: ArchiveHttpClient
    clock: Clock
    run_options: RunOptions = field(default_factory=RunOptions)
    on_event: EventListener = ignore_event
    should_stop: Callable[[], bool] = lambda: False
    confirm: ConfirmCallback = lambda *_: True
    source_problems: dict[str, Problems] = field(default_factory=dict)

    @property
    def requests_sent(self) -> RequestsSent:
        """The requests sent so far, by archive and kind."""
        return self.http_client.request_counts

    async def run(self) -> RecoveryRunResult:
        """Do everything that can be done now.

        Raises:
            UsageError: The options contradict those of an earlier run.
            InputError: The folder has other contents, or another process uses it.
            OSError: A file could not be written (disk full). Nothing stored so far is lost.
        """
        async with self._open() as (scheduler, clients):
            result = await scheduler.run()
            self.source_problems = {name: await collect_problems(each) for name, each in clients.items()}
            return replace(result, requests=dict(self.requests_sent))

    async def estimate(self, share: float) -> CostEstimate:
        """Query the listings and estimate the remaining requests; fetch nothing.

        Args:
            share: The share of the archives' rate limits that may be used.

        Raises:
            UsageError, InputError, OSError: As `run`.
        """
        async with self._open() as (scheduler, _):
            try:
                return CostEstimate(*await scheduler.estimate_costs(share))
            except BaseExceptionGroup as group:
                raise group.exceptions[0] from None

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[tuple[RecoveryScheduler, Mapping[str, ArchiveClient]]]:
        run = self.run_options
        with (
            ensure_directory(self.folder),
            explain_sqlite_errors(self.folder / STATE_FILE_NAME),
            RecoveryState(self.folder) as state,
        ):
            store_source_paths(state, self.archives)
            with closing(WarcStore(self.folder / WARC_FOLDER, self.clock, f"unlost/{VERSION}")) as warcs:
                sources = open_sources(
                    self.archives, self.http_client, self.options, self.clock, contact=run.contact, delay=run.delay,
                    proxies=run.proxies,
                )  # fmt: skip
                async with self.http_client, sources as clients:
                    scheduler = RecoveryScheduler(
                        self.options, state, warcs, clients, self.clock, self.on_event, connections=run.connections,
                        wait=run.wait, until_done=run.until_done, should_stop=self.should_stop,
                        requests_sent=self.requests_sent, confirm=self.confirm,
                    )  # fmt: skip
                    yield scheduler, clients
