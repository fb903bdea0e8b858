"""What `unlost check` prints: a report for people, objects for programs."""

from collections.abc import Iterable
from json import dumps

from unlost.cli.addresses import write_lines
from unlost.cli.table import format_columns
from unlost.measure.availability.checking import CheckResult
from unlost.measure.availability.drawing import STATE_ORDER
from unlost.measure.availability.figures import CheckStats
from unlost.measure.availability.objects import availability_to_json, check_to_json
from unlost.measure.availability.standing import ResourceAvailability
from unlost.measure.availability.wording import STATE_TEXTS, describe_advice, check_headline, check_remarks
from unlost.shown.words import escape_unprintable, format_share

_BATCH_LINES = 500  # written at once


def print_report(figures: CheckStats) -> None:
    """Print what would come back: a sentence, the states, the tables, and what would help."""
    lines = [check_headline(figures.score), *check_remarks(figures), ""]
    states = [state for state in STATE_ORDER if figures.states[state]]
    lines += [f"{figures.states[state]:>7,}  {state.value}: {STATE_TEXTS[state]}" for state in states]
    for table in figures.tables:
        if table.name == "web":
            continue
        heads = [table.title, "would come back", *(state.value for state in states)]
        rows = [
            (escape_unprintable(row.label), format_share(row.share), *(f"{row.states[state]:,}" for state in states))
            for row in table.rows
        ]
        lines += ["", *format_columns(heads, rows)]
    if figures.archives:
        heads = ["archive", "resources", "only here", "copies", "stale", "days in the middle"]
        rows = [
            (
                escape_unprintable(use.archive),
                f"{use.resources:,}",
                f"{use.only:,}",
                f"{use.copies:,}",
                format_share(use.stale.share),
                "n/a" if use.stale.median is None else f"{use.stale.median:.0f}",
            )
            for use in figures.archives
        ]
        lines += ["", *format_columns(heads, rows)]
    if figures.advice:
        lines += ["", "what would help most:"]
        lines += [f"- {describe_advice(each)}" for each in figures.advice]
    write_lines([line + "\n" for line in lines])


def print_json(what: str, checked: CheckResult, standings: Iterable[ResourceAvailability]) -> None:
    """Print an object for each resource, then the summary."""
    waiting: list[str] = []
    for standing in standings:
        waiting.append(dumps(availability_to_json(standing)) + "\n")
        if len(waiting) >= _BATCH_LINES:
            write_lines(waiting)
            waiting.clear()
    summary = check_to_json(what, checked.now, checked.stats, checked.listings, checked.incomplete)
    write_lines([*waiting, dumps(summary) + "\n"])
