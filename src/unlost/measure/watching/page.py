"""A watch as a page for people: one file that needs no script and asks for nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from unlost import dates
from unlost.measure.availability.drawing import STATE_ORDER, draw_state_columns
from unlost.measure.availability.wording import STATE_TEXTS
from unlost.measure.visits.losses import SiteLoss
from unlost.measure.watching.survey import SiteSurvey
from unlost.measure.watching.wording import LIFETIME_COLUMNS, lifetime_cells, describe_health, survey_remarks
from unlost.shown.page import make_template_environment


@dataclass(frozen=True, slots=True)
class WatchedSite:
    """What is known of one site that is watched."""

    url: str
    survey: SiteSurvey
    losses: list[SiteLoss]


def render_watch_page(sites: Sequence[WatchedSite]) -> str:
    """Return the page: HTML with everything in it, the same for the same visits. Everything in it is escaped."""
    return (
        make_template_environment("unlost.measure")
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
                        (describe_health(lost.kind), lost.reason, _format_loss_span(lost)) for lost in each.losses
                    ],
                    "is_lost": bool(each.losses) and each.losses[-1].over is None,
                    "visits": [
                        (_format_day(visit.time), visit.look or "", [visit.states[state] for state in STATE_ORDER])
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


def _format_loss_span(lost: SiteLoss) -> str:
    until = "until now" if lost.over is None else f"until {_format_day(lost.over)}"
    return f"since {_format_day(lost.since)}, noticed {_format_day(lost.noticed)}, {until}"
