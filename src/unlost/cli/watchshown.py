"""What `unlost watch` prints: tables for people, objects for programs."""

from dataclasses import asdict

from unlost import dates
from unlost.cli.addresses import write_lines
from unlost.cli.table import format_columns
from unlost.measure.availability.states import AvailabilityState
from unlost.measure.visits.losses import SiteLoss
from unlost.measure.watching.page import WatchedSite
from unlost.measure.watching.watcher import VisitResult
from unlost.measure.watching.wording import LIFETIME_COLUMNS, lifetime_cells, describe_health, survey_remarks
from unlost.shown.words import escape_unprintable


def print_survey(watched: WatchedSite) -> None:
    """Print what all visits of a site have shown."""
    lines = [escape_unprintable(watched.url), *survey_remarks(watched.survey)]
    for lost in watched.losses:
        over = "" if lost.over is None else f", there again {dates.to_local(lost.over)}"
        words = f"{describe_health(lost.kind)} ({escape_unprintable(lost.reason)})"
        lines.append(f"lost since {dates.to_local(lost.since)}, noticed {dates.to_local(lost.noticed)}{over}: {words}")
    lines += [
        "",
        *format_columns(
            LIFETIME_COLUMNS, [tuple(map(escape_unprintable, lifetime_cells(row))) for row in watched.survey.rows]
        ),
        "",
    ]
    write_lines([line + "\n" for line in lines])


def survey_object(watched: WatchedSite) -> dict[str, object]:
    """Return the same for programs; times are days, dates ISO 8601."""
    found = watched.survey
    return {
        "site": watched.url,
        "visits": [
            {
                "time": _date(each.time),
                "dated": each.is_dated,
                "look": each.look,
                "reason": each.reason,
                "new": each.new_resources,
                **{state.value: each.states[state] for state in AvailabilityState},
            }
            for each in found.visits
        ],
        "lives": [
            {"archive": row.archive or None, "group": row.group or None, **asdict(row.stats)} for row in found.rows
        ],
        "change_rate": found.change_rate,
        "birth_rate": found.birth_rate,
        "losses": [_loss(lost) for lost in watched.losses],
    }


def visit_object(visited: VisitResult) -> dict[str, object]:
    """Return what one visit came to."""
    figures = visited.check.stats
    return {
        "site": visited.url,
        "at": visited.check.now,
        "look": visited.health.health.value,
        "reason": visited.health.reason,
        "lost": None if visited.loss is None else _loss(visited.loss),
        "news": visited.is_news,
        "states": {state.value: figures.states[state] for state in AvailabilityState},
        "score": figures.score.share,
        "interval": None if figures.score.interval is None else list(figures.score.interval),
        "left_over": visited.check.incomplete,
        "undated": visited.undated_visits,
    }


def _loss(lost: SiteLoss) -> dict[str, object]:
    return {
        "kind": lost.kind.value,
        "reason": lost.reason,
        "since": _date(lost.since),
        "noticed": _date(lost.noticed),
        "over": None if lost.over is None else _date(lost.over),
    }


def _date(time: float) -> str:
    return dates.to_iso(dates.from_epoch(str(int(time))))
