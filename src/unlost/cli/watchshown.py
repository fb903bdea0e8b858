"""What `unlost watch` prints: tables for people, objects for programs."""

from dataclasses import asdict

from unlost import dates
from unlost.cli.addresses import write
from unlost.cli.table import aligned
from unlost.measure.availability.states import State
from unlost.measure.visits.losses import Lost
from unlost.measure.watching.page import Watched
from unlost.measure.watching.watcher import Visited
from unlost.measure.watching.wording import COLUMNS, cells, look_words, remarks
from unlost.shown.words import printable


def print_survey(watched: Watched) -> None:
    """Print what all visits of a site have shown."""
    lines = [printable(watched.url), *remarks(watched.survey)]
    for lost in watched.losses:
        over = "" if lost.over is None else f", there again {dates.to_local(lost.over)}"
        words = f"{look_words(lost.kind)} ({printable(lost.reason)})"
        lines.append(f"lost since {dates.to_local(lost.since)}, noticed {dates.to_local(lost.noticed)}{over}: {words}")
    lines += ["", *aligned(COLUMNS, [tuple(map(printable, cells(row))) for row in watched.survey.rows]), ""]
    write([line + "\n" for line in lines])


def survey_object(watched: Watched) -> dict[str, object]:
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
                "new": each.fresh,
                **{state.value: each.states[state] for state in State},
            }
            for each in found.visits
        ],
        "lives": [
            {"archive": row.archive or None, "group": row.group or None, **asdict(row.lives)} for row in found.rows
        ],
        "change_rate": found.change_rate,
        "birth_rate": found.birth_rate,
        "losses": [_loss(lost) for lost in watched.losses],
    }


def visit_object(visited: Visited) -> dict[str, object]:
    """Return what one visit came to."""
    figures = visited.checked.figures
    return {
        "site": visited.url,
        "at": visited.checked.now,
        "look": visited.look.look.value,
        "reason": visited.look.reason,
        "lost": None if visited.lost is None else _loss(visited.lost),
        "news": visited.is_news,
        "states": {state.value: figures.states[state] for state in State},
        "score": figures.score.share,
        "interval": None if figures.score.interval is None else list(figures.score.interval),
        "left_over": visited.checked.left_over,
        "undated": visited.struck,
    }


def _loss(lost: Lost) -> dict[str, object]:
    return {
        "kind": lost.kind.value,
        "reason": lost.reason,
        "since": _date(lost.since),
        "noticed": _date(lost.noticed),
        "over": None if lost.over is None else _date(lost.over),
    }


def _date(time: float) -> str:
    return dates.to_iso(dates.from_epoch(str(int(time))))
