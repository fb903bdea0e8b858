"""What `unlost check` prints: a report for people, objects for programs."""

from collections.abc import Iterable
from json import dumps

from unlost.cli.addresses import write
from unlost.cli.table import aligned
from unlost.measure.availability.checking import Checked
from unlost.measure.availability.drawing import ORDER
from unlost.measure.availability.figures import Figures
from unlost.measure.availability.objects import resource_object, summary_object
from unlost.measure.availability.standing import Standing
from unlost.measure.availability.wording import STATES, change, headline, remarks
from unlost.shown.words import printable, share

_LINES = 500  # written at once


def print_report(figures: Figures) -> None:
    """Print what would come back: a sentence, the states, the tables, and what would help."""
    lines = [headline(figures.score), *remarks(figures), ""]
    states = [state for state in ORDER if figures.states[state]]
    lines += [f"{figures.states[state]:>7,}  {state.value}: {STATES[state]}" for state in states]
    for table in figures.tables:
        if table.name == "web":
            continue
        heads = [table.title, "would come back", *(state.value for state in states)]
        rows = [
            (printable(row.label), share(row.share), *(f"{row.states[state]:,}" for state in states))
            for row in table.rows
        ]
        lines += ["", *aligned(heads, rows)]
    if figures.archives:
        heads = ["archive", "resources", "only here", "copies", "stale", "days in the middle"]
        rows = [
            (
                printable(use.archive),
                f"{use.resources:,}",
                f"{use.only:,}",
                f"{use.copies:,}",
                share(use.stale.share),
                "n/a" if use.stale.median is None else f"{use.stale.median:.0f}",
            )
            for use in figures.archives
        ]
        lines += ["", *aligned(heads, rows)]
    if figures.advice:
        lines += ["", "what would help most:"]
        lines += [f"- {change(each)}" for each in figures.advice]
    write([line + "\n" for line in lines])


def print_json(what: str, checked: Checked, standings: Iterable[Standing]) -> None:
    """Print an object for each resource, then the summary."""
    waiting: list[str] = []
    for standing in standings:
        waiting.append(dumps(resource_object(standing)) + "\n")
        if len(waiting) >= _LINES:
            write(waiting)
            waiting.clear()
    summary = summary_object(what, checked.now, checked.figures, checked.lists, checked.left_over)
    write([*waiting, dumps(summary) + "\n"])
