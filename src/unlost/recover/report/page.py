"""A report as a page for people: one file that needs no script and asks for nothing."""

from itertools import islice

import jinja2

from unlost.recover.report.figures import Figures
from unlost.recover.report.kinds import ORDER
from unlost.recover.report.retelling import report_strings, retold
from unlost.recover.report.timeline import bars, describe, drawing
from unlost.recover.report.wording import day, headline, list_words, remarks
from unlost.recover.state.gaps import FAILED
from unlost.recover.state.reading import StateReading
from unlost.shown.language import LANGUAGES
from unlost.shown.page import templates

MOST_LISTED = 500
"""How many resources a list of the page has; a page of more is slow to open, and nobody reads it."""

_MOST_BESIDE = 5  # links or copies that are named for each
_INCOMPLETE = ("cut", "unsupported", "failed", "not-now", "excluded")


def report_page(state: StateReading, figures: Figures, *, has_files: bool, language: str = LANGUAGES[0]) -> str:
    """Return the page: HTML with everything in it, the same for the same state. Everything in it is escaped.

    figures: of this very state. has_files: whether `summary.tsv` and `report.json` stand beside the page. language: one
    of `LANGUAGES`. Raises InputError, OSError.
    """
    t = report_strings(language)
    found = bars(figures.months)
    failed = figures.reasons[FAILED]
    types, (other_types, of_other_types) = figures.most_types()
    uses = ((t("head.pages_row"), *figures.pages), (t("head.parts_row"), *figures.parts))
    return (
        _templates()
        .get_template("report.html")
        .render(
            t=t,
            language=t.language,
            figures=figures,
            has_files=has_files,
            headline=headline(figures, t),
            remarks=remarks(figures, t),
            uses=[row for row in uses if any(row[1:])],
            kinds=[(t.word("kind", kind), figures.kinds[kind]) for kind in ORDER if figures.kinds[kind]],
            types=types,
            other_types=other_types,
            of_other_types=of_other_types,
            archives=[(name, list_words(figures, name, t)) for name in figures.archive_ids()],
            incomplete=[
                (name, list_words(figures, name, t), message if message and outcome != "unsupported" else "")
                for name, outcome, message in figures.lists
                if outcome in _INCOMPLETE
            ],
            bars=found,
            drawing=drawing(found, t),
            described=describe(found, t),
            reasons=[
                (t.word("reason", each), count) for each, count in figures.reasons.most_common() if each != FAILED
            ],
            missing=list(state.most_missed(MOST_LISTED, _MOST_BESIDE, is_failed=False)),
            missing_in_all=figures.missing - failed,
            failed=list(state.most_missed(MOST_LISTED, _MOST_BESIDE, is_failed=True)) if failed else [],
            failed_in_all=failed,
            verdicts=[(t.word("verdict", each), count) for each, count in figures.rejected.most_common()],
            rejected=list(islice(state.rejected(), MOST_LISTED)),
            rejected_in_all=figures.rejected.total(),
            retold=lambda text: retold(text, t),
            outcomes=[(t.word("outcome", each), count) for each, count in figures.outcomes() if count],
            doubtful=list(islice(state.doubtful(), MOST_LISTED)),
            left_out=list(islice(((uri, why) for uri, why in state.left_out() if why), MOST_LISTED)),
            left_out_in_all=sum(count for why, count in figures.left_out.items() if why),
            left_out_reasons=[(t.word("left_out", why), count) for why, count in figures.left_out.items() if why],
            unlinked=list(islice((uri for uri, why in state.left_out() if not why), MOST_LISTED)),
            unlinked_in_all=figures.left_out.get("", 0),
        )
    )


def _templates() -> jinja2.Environment:
    made = templates("unlost.recover.report")
    made.filters["day"] = day
    return made
