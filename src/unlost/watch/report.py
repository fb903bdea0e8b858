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
    SiteHealth.FINE: "it is there",
    SiteHealth.WAIT: "it says that it is away for a while",
    SiteHealth.UNRESPONSIVE: "it does not answer",
    SiteHealth.MISSING: "nothing of it is there",
    SiteHealth.PARKED: "the domain has no site",
    SiteHealth.HIJACKED: "another site is in its place",
    SiteHealth.MOVED: "it leads to another domain",
    SiteHealth.UNSEEN: "its robots.txt does not want us to look",
}
LIFETIME_COLUMNS = (
    "in",
    "resources",
    "ever held",
    "until held",
    "held for (TTL_c)",
    "to be had (P_r)",
    "vulnerable for",
    "endangered for",
    "held late",
    "still held",
)
"""Headers of the cells that `lifetime_cells` returns."""


def describe_health(health: SiteHealth) -> str:
    """Return a description of the health of a site.

    >>> describe_health(SiteHealth.PARKED)
    'the domain has no site'
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
        lines.append(f"{undated:,} of them have no date, since the clock went back: times are without them.")
    if survey.change_rate is not None:
        lines.append(
            f"A page differs from what it was at the visit before in {format_share(survey.change_rate)} of the cases."
        )
    if survey.birth_rate is not None:
        lines.append(f"Of what is on the web, {format_share(survey.birth_rate)} is new at each visit.")
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
    until = "until now" if loss.over is None else f"until {_format_day(loss.over)}"
    return f"since {_format_day(loss.since)}, noticed {_format_day(loss.noticed)}, {until}"
