"""Recovers lost websites: crawls the archives, selects the best captures, and stores them as WARC files.

Modules in reading order:

- options and scope: what to recover
- sources: archive clients, local files and the live site
- state: the SQLite database (package)
- warc_records and warc_store: the WARC files
- listings, frontier and page_requisites: which URLs are enqueued
- ranking and planner: which capture is fetched next
- fetcher and quality_gate: fetches, stores and classifies captures
- scheduler and events: one run of a recovery, and what it reports; estimate: its cost in advance
- session: opens all of these for a folder, and runs the scheduler

The package must not import unlost.export, unlost.report, unlost.api, unlost.jobs, unlost.web or unlost.cli.

It is callable: `unlost.recover(url, to)` calls `unlost.api.recovery.recover`. Function and package share the name, and
importing any module of the package binds `unlost.recover` to the package.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from unlost.lazy_exports import lazy_exports


class _Callable(ModuleType):
    """A callable module."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401  those of the function
        """Recover a lost site from all archives into a folder."""
        return _function()(*arguments, **options)

    @property
    def __signature__(self) -> object:
        """The signature for `help` and editors."""
        return import_module("inspect").signature(_function())


def _function() -> Any:  # noqa: ANN401
    # Imported lazily, because its module imports this package.
    return import_module("unlost.api.recovery").recover


sys.modules[__name__].__class__ = _Callable

if TYPE_CHECKING:
    from unlost.recover.estimate import ArchiveCost as ArchiveCost
    from unlost.recover.events import EVENT_TYPES as EVENT_TYPES
    from unlost.recover.events import ArchiveSuspended as ArchiveSuspended
    from unlost.recover.events import CaptureFailed as CaptureFailed
    from unlost.recover.events import CaptureRejected as CaptureRejected
    from unlost.recover.events import ListingEnded as ListingEnded
    from unlost.recover.events import ProgressCounted as ProgressCounted
    from unlost.recover.events import RecoveryEvent as RecoveryEvent
    from unlost.recover.events import ResourceMissing as ResourceMissing
    from unlost.recover.events import ResourceRecovered as ResourceRecovered
    from unlost.recover.events import ResourceSubstituted as ResourceSubstituted
    from unlost.recover.frontier import RecoveryFrontier as RecoveryFrontier
    from unlost.recover.listings import CALENDAR as CALENDAR
    from unlost.recover.listings import DUPLICATE as DUPLICATE
    from unlost.recover.listings import NO_CONTENT as NO_CONTENT
    from unlost.recover.listings import NOT_LINKED as NOT_LINKED
    from unlost.recover.listings import OUT_OF_SCOPE as OUT_OF_SCOPE
    from unlost.recover.listings import TRAP as TRAP
    from unlost.recover.listings import store_listed_captures as store_listed_captures
    from unlost.recover.options import CONFIRMATION_THRESHOLD as CONFIRMATION_THRESHOLD
    from unlost.recover.options import SELECTABLE_POLICIES as SELECTABLE_POLICIES
    from unlost.recover.options import RecoverOptions as RecoverOptions
    from unlost.recover.options import RecoverPolicy as RecoverPolicy
    from unlost.recover.quality_gate import SiteContext as SiteContext
    from unlost.recover.ranking import CapturePreference as CapturePreference
    from unlost.recover.ranking import CaptureQuality as CaptureQuality
    from unlost.recover.ranking import distinct_versions as distinct_versions
    from unlost.recover.ranking import has_same_payload as has_same_payload
    from unlost.recover.ranking import listed_quality as listed_quality
    from unlost.recover.ranking import rank_captures as rank_captures
    from unlost.recover.ranking import resolve_revisits as resolve_revisits
    from unlost.recover.ranking import stored_quality as stored_quality
    from unlost.recover.scheduler import RecoveryRunResult as RecoveryRunResult
    from unlost.recover.scheduler import RecoveryScheduler as RecoveryScheduler
    from unlost.recover.scope import RecoveryScope as RecoveryScope
    from unlost.recover.session import RecoverySession as RecoverySession
    from unlost.recover.sources import LIVE_ARCHIVE as LIVE_ARCHIVE
    from unlost.recover.sources import LiveSiteClient as LiveSiteClient
    from unlost.recover.sources import open_sources as open_sources
    from unlost.recover.warc_records import RecoveryRecord as RecoveryRecord
    from unlost.recover.warc_store import WarcStore as WarcStore
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "estimate": "ArchiveCost",
            "events": (
                "ArchiveSuspended CaptureFailed CaptureRejected EVENT_TYPES ListingEnded ProgressCounted "
                "RecoveryEvent ResourceMissing ResourceRecovered ResourceSubstituted"
            ),
            "frontier": "RecoveryFrontier",
            "listings": "CALENDAR DUPLICATE NOT_LINKED NO_CONTENT OUT_OF_SCOPE TRAP store_listed_captures",
            "options": "CONFIRMATION_THRESHOLD RecoverOptions RecoverPolicy SELECTABLE_POLICIES",
            "quality_gate": "SiteContext",
            "ranking": (
                "CapturePreference CaptureQuality distinct_versions has_same_payload listed_quality "
                "rank_captures resolve_revisits stored_quality"
            ),
            "scope": "RecoveryScope",
            "scheduler": "RecoveryRunResult RecoveryScheduler",
            "session": "RecoverySession",
            "sources": "LIVE_ARCHIVE LiveSiteClient open_sources",
            "warc_records": "RecoveryRecord",
            "warc_store": "WarcStore",
        },
    )
