"""The results of a watch as text, table cells, and an HTML page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unlost import dates
from unlost.check.availability import STATE_ORDER
from unlost.check.history import ANY_ARCHIVE
from unlost.check.report import STATE_TEXTS, draw_state_columns
from unlost.report.format import format_count, format_share
from unlost.report.html_templates import make_template_environment
from unlost.watch.lifetimes import LifetimeRow, SiteSurvey
from unlost.watch.losses import SiteLoss
from unlost.watch.site_health import SiteHealth

_HEALTH_TEXTS: Mapping[SiteHealth, str] = {
    SiteHealth.FINE: "online",
    SiteHealth.WAIT: "temporarily unavailable",
    SiteHealth.UNRESPONSIVE: "no response",
    SiteHealth.MISSING: "content missing",
    SiteHealth.PARKED: "domain parked",
    SiteHealth.HIJACKED: "domain hijacked",
    SiteHealth.MOVED: "moved to another domain",
    SiteHealth.UNSEEN: "not visited: disallowed by robots.txt",
}
LIFETIME_COLUMNS = (
    "archive",
    "resources",
    "archived",
    "until archived",
    "archived for (TTL_c)",
    "available (P_r)",
    "vulnerable for",
    "endangered for",
    "archived late",
    "still archived",
)
"""Headers of the cells that `lifetime_cells` returns."""


def describe_health(health: SiteHealth) -> str:
    """Return a description of the health of a site.

    >>> describe_health(SiteHealth.PARKED)
    'domain parked'
    """
    return _HEALTH_TEXTS[health]


def format_days(value: float | None) -> str:
    """Format a number of days.

    >>> format_days(12.34), format_days(None)
    ('12.3 d', 'n/a')
    """
    return "n/a" if value is None else f"{value:.1f} d"


def lifetime_cells(row: LifetimeRow) -> tuple[str, ...]:
    """Return the cells of a row; their headers are `LIFETIME_COLUMNS`. Times are means."""
    stats = row.stats
    archive = "all archives" if row.archive == ANY_ARCHIVE else row.archive
    return (
        f"{archive}, {row.group}" if row.group else archive,
        f"{stats.resources:,}",
        f"{stats.held:,}",
        format_days(stats.ta),
        format_days(stats.ttl_c),
        format_share(stats.p_r),
        format_days(stats.vulnerable),
        format_days(stats.endangered),
        f"{stats.late:,}",
        f"{stats.open:,}",
    )


def survey_remarks(survey: SiteSurvey) -> list[str]:
    """Return sentences about all visits: their number, missing dates, and how the site changes."""
    undated = sum(not each.is_dated for each in survey.visits)
    lines = [f"{format_count(len(survey.visits), 'visit')}."]
    if undated:
        lines.append(f"{undated:,} of them have no date because the clock went back; durations exclude them.")
    if survey.change_rate is not None:
        lines.append(f"Change rate: {format_share(survey.change_rate)} of the pages differ from the previous visit.")
    if survey.birth_rate is not None:
        lines.append(f"Birth rate: {format_share(survey.birth_rate)} of the online resources are new at each visit.")
    return lines


@dataclass(frozen=True, slots=True)
class WatchedSite:
    """One watched site.

    Attributes:
        url: URL of the site.
        survey: Statistics over all visits.
        losses: Its losses in order.
    """

    url: str
    survey: SiteSurvey
    losses: list[SiteLoss]


def render_watch_page(sites: Sequence[WatchedSite]) -> str:
    """Return the HTML page, with everything inline. The same visits give the same bytes."""
    return (
        make_template_environment("unlost.watch")
        .get_template("watch.html")
        .render(
            sites=[
                {
                    "url": each.url,
                    "remarks": survey_remarks(each.survey),
                    "drawing": draw_state_columns(
                        [(_format_day(visit.time), visit.states) for visit in each.survey.visits]
                    ),
                    "rows": [lifetime_cells(row) for row in each.survey.rows],
                    "losses": [
                        (describe_health(loss.kind), loss.reason, _format_loss_span(loss)) for loss in each.losses
                    ],
                    "is_lost": bool(each.losses) and each.losses[-1].over is None,
                    "visits": [
                        (_format_day(visit.time), visit.health or "", [visit.states[state] for state in STATE_ORDER])
                        for visit in each.survey.visits[-30:]
                    ],
                }
                for each in sites
            ],
            columns=LIFETIME_COLUMNS,
            states=[(state.value, STATE_TEXTS[state]) for state in STATE_ORDER],
        )
    )


def _format_day(time: float) -> str:
    return dates.to_iso(dates.from_epoch(str(int(time))))[:10]


def _format_loss_span(loss: SiteLoss) -> str:
    until = "ongoing" if loss.over is None else f"until {_format_day(loss.over)}"
    return f"since {_format_day(loss.since)}, detected {_format_day(loss.noticed)}, {until}"
