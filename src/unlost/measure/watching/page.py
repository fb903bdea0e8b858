"""A watch as a page for people: one file that needs no script and asks for nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from unlost import dates
from unlost.measure.availability.drawing import ORDER, columns
from unlost.measure.availability.wording import STATES
from unlost.measure.visits.losses import Lost
from unlost.measure.watching.survey import Survey
from unlost.measure.watching.wording import COLUMNS, cells, look_words, remarks
from unlost.shown.page import templates


@dataclass(frozen=True, slots=True)
class Watched:
    """What is known of one site that is watched."""

    url: str
    survey: Survey
    losses: list[Lost]


def watch_page(sites: Sequence[Watched]) -> str:
    """Return the page: HTML with everything in it, the same for the same visits. Everything in it is escaped."""
    return (
        templates("unlost.measure")
        .get_template("watch.html")
        .render(
            sites=[
                {
                    "url": each.url,
                    "remarks": remarks(each.survey),
                    "drawing": columns([(_day(visit.time), visit.states) for visit in each.survey.visits]),
                    "rows": [cells(row) for row in each.survey.rows],
                    "losses": [(look_words(lost.kind), lost.reason, _span(lost)) for lost in each.losses],
                    "is_lost": bool(each.losses) and each.losses[-1].over is None,
                    "visits": [
                        (_day(visit.time), visit.look or "", [visit.states[state] for state in ORDER])
                        for visit in each.survey.visits[-30:]
                    ],
                }
                for each in sites
            ],
            columns=COLUMNS,
            states=[(state.value, STATES[state]) for state in ORDER],
        )
    )


def _day(time: float) -> str:
    return dates.to_iso(dates.from_epoch(str(int(time))))[:10]


def _span(lost: Lost) -> str:
    until = "until now" if lost.over is None else f"until {_day(lost.over)}"
    return f"since {_day(lost.since)}, noticed {_day(lost.noticed)}, {until}"
