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

It is not named `recover`, because importing a package of that name would replace the function `unlost.recover`.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.recovery.estimate import ArchiveCost as ArchiveCost
    from unlost.recovery.events import EVENT_TYPES as EVENT_TYPES
    from unlost.recovery.events import ArchiveSuspended as ArchiveSuspended
    from unlost.recovery.events import CaptureFailed as CaptureFailed
    from unlost.recovery.events import CaptureRejected as CaptureRejected
    from unlost.recovery.events import ListingEnded as ListingEnded
    from unlost.recovery.events import ProgressCounted as ProgressCounted
    from unlost.recovery.events import RecoveryEvent as RecoveryEvent
    from unlost.recovery.events import ResourceMissing as ResourceMissing
    from unlost.recovery.events import ResourceRecovered as ResourceRecovered
    from unlost.recovery.events import ResourceSubstituted as ResourceSubstituted
    from unlost.recovery.frontier import RecoveryFrontier as RecoveryFrontier
    from unlost.recovery.listings import CALENDAR as CALENDAR
    from unlost.recovery.listings import DUPLICATE as DUPLICATE
    from unlost.recovery.listings import NO_CONTENT as NO_CONTENT
    from unlost.recovery.listings import NOT_LINKED as NOT_LINKED
    from unlost.recovery.listings import OUT_OF_SCOPE as OUT_OF_SCOPE
    from unlost.recovery.listings import TRAP as TRAP
    from unlost.recovery.listings import store_listed_captures as store_listed_captures
    from unlost.recovery.options import CONFIRMATION_THRESHOLD as CONFIRMATION_THRESHOLD
    from unlost.recovery.options import SELECTABLE_POLICIES as SELECTABLE_POLICIES
    from unlost.recovery.options import RecoverOptions as RecoverOptions
    from unlost.recovery.options import RecoverPolicy as RecoverPolicy
    from unlost.recovery.options import RunOptions as RunOptions
    from unlost.recovery.quality_gate import SiteContext as SiteContext
    from unlost.recovery.ranking import CapturePreference as CapturePreference
    from unlost.recovery.ranking import CaptureQuality as CaptureQuality
    from unlost.recovery.ranking import distinct_versions as distinct_versions
    from unlost.recovery.ranking import has_same_payload as has_same_payload
    from unlost.recovery.ranking import listed_quality as listed_quality
    from unlost.recovery.ranking import rank_captures as rank_captures
    from unlost.recovery.ranking import resolve_revisits as resolve_revisits
    from unlost.recovery.ranking import stored_quality as stored_quality
    from unlost.recovery.scheduler import RecoveryRunResult as RecoveryRunResult
    from unlost.recovery.scheduler import RecoveryScheduler as RecoveryScheduler
    from unlost.recovery.scope import RecoveryScope as RecoveryScope
    from unlost.recovery.session import RecoverySession as RecoverySession
    from unlost.recovery.sources import LIVE_ARCHIVE as LIVE_ARCHIVE
    from unlost.recovery.sources import LiveSiteClient as LiveSiteClient
    from unlost.recovery.sources import open_sources as open_sources
    from unlost.recovery.warc_records import RecoveryRecord as RecoveryRecord
    from unlost.recovery.warc_store import WarcStore as WarcStore
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
            "options": "CONFIRMATION_THRESHOLD RecoverOptions RecoverPolicy RunOptions SELECTABLE_POLICIES",
            "quality_gate": "SiteContext",
            "ranking": (
                "CapturePreference CaptureQuality distinct_versions has_same_payload listed_quality "
                "rank_captures resolve_revisits stored_quality"
            ),
            "scheduler": "RecoveryRunResult RecoveryScheduler",
            "scope": "RecoveryScope",
            "session": "RecoverySession",
            "sources": "LIVE_ARCHIVE LiveSiteClient open_sources",
            "warc_records": "RecoveryRecord",
            "warc_store": "WarcStore",
        },
    )
