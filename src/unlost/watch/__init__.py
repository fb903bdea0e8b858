"""Watches sites: visits them periodically, and reports when one is lost.

Modules, in reading order:
- `site_health`: fetches a few pages of a site and classifies its health.
- `losses`: detects and records losses, and runs the loss hook.
- `lifetimes`: lifetimes of resources on the web and in archives.
- `watcher`: visits sites on schedule; estimates the number of queries.
- `report`: text and HTML.

Builds on check. Must not import jobs, web or the command line.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.watch.lifetimes import Lifetime as Lifetime
    from unlost.watch.lifetimes import LifetimeRow as LifetimeRow
    from unlost.watch.lifetimes import SiteSurvey as SiteSurvey
    from unlost.watch.lifetimes import compute_lifetime as compute_lifetime
    from unlost.watch.lifetimes import resource_lifetimes as resource_lifetimes
    from unlost.watch.lifetimes import summarize_lifetimes as summarize_lifetimes
    from unlost.watch.lifetimes import survey_site as survey_site
    from unlost.watch.losses import CONFIRM_SECONDS as CONFIRM_SECONDS
    from unlost.watch.losses import MAX_WAIT_VISITS as MAX_WAIT_VISITS
    from unlost.watch.losses import DetectedLoss as DetectedLoss
    from unlost.watch.losses import LossHook as LossHook
    from unlost.watch.losses import LossStore as LossStore
    from unlost.watch.losses import SiteLoss as SiteLoss
    from unlost.watch.losses import VisitHealth as VisitHealth
    from unlost.watch.losses import detect_loss as detect_loss
    from unlost.watch.report import WatchedSite as WatchedSite
    from unlost.watch.report import render_watch_page as render_watch_page
    from unlost.watch.site_health import MAX_PAGE_BYTES as MAX_PAGE_BYTES
    from unlost.watch.site_health import FetchedPage as FetchedPage
    from unlost.watch.site_health import HealthCheck as HealthCheck
    from unlost.watch.site_health import KnownPage as KnownPage
    from unlost.watch.site_health import PolitePageFetcher as PolitePageFetcher
    from unlost.watch.site_health import SiteHealth as SiteHealth
    from unlost.watch.site_health import check_health as check_health
    from unlost.watch.watcher import VisitResult as VisitResult
    from unlost.watch.watcher import Watcher as Watcher
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "lifetimes": (
                "Lifetime LifetimeRow SiteSurvey compute_lifetime resource_lifetimes summarize_lifetimes survey_site"
            ),
            "losses": (
                "CONFIRM_SECONDS DetectedLoss LossHook LossStore MAX_WAIT_VISITS SiteLoss VisitHealth detect_loss"
            ),
            "report": "WatchedSite render_watch_page",
            "site_health": (
                "FetchedPage HealthCheck KnownPage MAX_PAGE_BYTES PolitePageFetcher SiteHealth check_health"
            ),
            "watcher": "VisitResult Watcher",
        },
    )
