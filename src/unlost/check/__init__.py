"""Checks how much of a site could be recovered from web archives if it were lost now.

Modules, in reading order:
- `availability`: the state of one resource (on the web, in archives), and the score of a site.
- `visit_store`, `history`: the SQLite database of visits, the visit in progress, and all visits of a site.
- `archives`: queries archives for CDX listings, single resources and captures.
- `summary`: statistics and advice.
- `checker`: checks a site that is crawled, or read from a local copy.
- `report`: text, JSON, SVG and HTML.

Must not import watch, jobs, web or the command line.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.check.archives import MAX_FAILURES as MAX_FAILURES
    from unlost.check.archives import ArchiveAccess as ArchiveAccess
    from unlost.check.archives import ArchiveQueryResult as ArchiveQueryResult
    from unlost.check.archives import AvailabilityQuery as AvailabilityQuery
    from unlost.check.archives import UrlProber as UrlProber
    from unlost.check.availability import STATE_ORDER as STATE_ORDER
    from unlost.check.availability import ArchiveHolding as ArchiveHolding
    from unlost.check.availability import AvailabilityScore as AvailabilityScore
    from unlost.check.availability import AvailabilityState as AvailabilityState
    from unlost.check.availability import ResourceAvailability as ResourceAvailability
    from unlost.check.checker import CheckOptions as CheckOptions
    from unlost.check.checker import CheckResult as CheckResult
    from unlost.check.checker import CrawledSite as CrawledSite
    from unlost.check.checker import SiteCrawlOptions as SiteCrawlOptions
    from unlost.check.checker import SiteSource as SiteSource
    from unlost.check.checker import check_site as check_site
    from unlost.check.checker import resume_or_begin_visit as resume_or_begin_visit
    from unlost.check.history import ANY_ARCHIVE as ANY_ARCHIVE
    from unlost.check.history import FinishedVisit as FinishedVisit
    from unlost.check.history import Observation as Observation
    from unlost.check.history import VisitHistory as VisitHistory
    from unlost.check.report import check_headline as check_headline
    from unlost.check.report import check_remarks as check_remarks
    from unlost.check.report import describe_advice as describe_advice
    from unlost.check.report import draw_state_bar as draw_state_bar
    from unlost.check.report import draw_state_columns as draw_state_columns
    from unlost.check.report import render_check_page as render_check_page
    from unlost.check.summary import CheckStats as CheckStats
    from unlost.check.summary import Hindrance as Hindrance
    from unlost.check.summary import compute_check_stats as compute_check_stats
    from unlost.check.visit_store import CurrentVisit as CurrentVisit
    from unlost.check.visit_store import ListingResult as ListingResult
    from unlost.check.visit_store import VisitDatabase as VisitDatabase
    from unlost.check.visit_store import VisitStage as VisitStage
    from unlost.check.visit_store import translate_visit_errors as translate_visit_errors
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "archives": "ArchiveAccess ArchiveQueryResult AvailabilityQuery MAX_FAILURES UrlProber",
            "availability": "ArchiveHolding AvailabilityScore AvailabilityState ResourceAvailability STATE_ORDER",
            "checker": (
                "CheckOptions CheckResult CrawledSite SiteCrawlOptions SiteSource check_site resume_or_begin_visit"
            ),
            "history": "ANY_ARCHIVE FinishedVisit Observation VisitHistory",
            "report": (
                "check_headline check_remarks describe_advice draw_state_bar draw_state_columns render_check_page"
            ),
            "summary": "CheckStats Hindrance compute_check_stats",
            "visit_store": "CurrentVisit ListingResult VisitDatabase VisitStage translate_visit_errors",
        },
    )
