"""A report as a page for people: one file that needs no script and asks for nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import jinja2

from unlost.recover.report.figures import Figures
from unlost.recover.report.kinds import ORDER
from unlost.recover.report.retelling import report_strings, retold
from unlost.recover.report.timeline import bars, describe, drawing
from unlost.recover.report.wording import INCOMPLETE, day, headline, list_words, outcome_word, remarks
from unlost.recover.state.gaps import FAILED
from unlost.recover.state.reading import StateReading
from unlost.shown.language import LANGUAGES
from unlost.shown.page import templates

MOST_LISTED = 500
"""How many resources a list of the page has; a page of more is slow to open, and nobody reads it."""

_MOST_BESIDE = 5  # links or copies that are named for each


@dataclass(frozen=True, slots=True)
class PageOptions:
    """How a report page is rendered.

    has_files: whether `summary.tsv` and `report.json` are next to the page. language: one of `LANGUAGES`.
    names: of archives, by id. back: the URL of the page that links here; None for none.
    lists_all: whether every file is listed, recovered ones, too; if not, lists have at most `MOST_LISTED` rows.
    """

    has_files: bool = False
    language: str = LANGUAGES[0]
    names: Mapping[str, str] = field(default_factory=dict)
    back: str | None = None
    lists_all: bool = False


def report_page(state: StateReading, figures: Figures, *, has_files: bool, language: str = LANGUAGES[0]) -> str:
    """Return the page: HTML with everything in it, the same for the same state. Everything in it is escaped.

    figures: of this very state. has_files: whether `summary.tsv` and `report.json` stand beside the page. language: one
    of `LANGUAGES`. Raises InputError, OSError.
    """
    return "".join(render_report(state, figures, PageOptions(has_files=has_files, language=language)))


def render_report(state: StateReading, figures: Figures, options: PageOptions) -> Iterator[str]:
    """Yield the page in pieces, as `report_page` returns it, in memory that does not grow with the lists.

    Raises InputError, OSError.
    """
    t = report_strings(options.language)
    found = bars(figures.months)
    failed = figures.reasons[FAILED]
    most = None if options.lists_all else MOST_LISTED
    types, (other_types, of_other_types) = figures.most_types()
    uses = ((t("head.pages_row"), *figures.pages), (t("head.parts_row"), *figures.parts))
    incomplete = [
        (name, list_words(figures, name, t), message if message and outcome != "unsupported" else "")
        for name, outcome, message in figures.lists
        if outcome in INCOMPLETE
    ]

    return (
        _templates()
        .get_template("report.html")
        .stream(
            t=t,
            language=t.language,
            figures=figures,
            has_files=options.has_files,
            back=options.back,
            name_of=lambda name: options.names.get(name, name),
            word=partial(outcome_word, figures, t),
            most=most,
            headline=headline(figures, t),
            remarks=remarks(figures, t),
            uses=[row for row in uses if any(row[1:])],
            kinds=[(t.word("kind", kind), figures.kinds[kind]) for kind in ORDER if figures.kinds[kind]],
            types=types,
            other_types=other_types,
            of_other_types=of_other_types,
            archives=[(name, list_words(figures, name, t)) for name in figures.archive_ids()],
            incomplete=incomplete,
            bars=found,
            drawing=drawing(found, t),
            described=describe(found, t),
            reasons=[
                (outcome_word(figures, t, "reason", each), count)
                for each, count in figures.reasons.most_common()
                if each != FAILED
            ],
            missing=state.most_missed(most or -1, _MOST_BESIDE, is_failed=False),
            missing_in_all=figures.missing - failed,
            failed=state.most_missed(most or -1, _MOST_BESIDE, is_failed=True),
            failed_in_all=failed,
            verdicts=[(t.word("verdict", each), count) for each, count in figures.rejected.most_common()],
            rejected=islice(state.rejected(), most),
            rejected_in_all=figures.rejected.total(),
            retold=lambda text: retold(text, t),
            outcomes=[
                (outcome_word(figures, t, "outcome", each), count) for each, count in figures.outcomes() if count
            ],
            doubtful=islice(state.doubtful(), most),
            left_out=islice(((uri, why) for uri, why in state.left_out() if why), most),
            left_out_in_all=sum(count for why, count in figures.left_out.items() if why),
            left_out_reasons=[(t.word("left_out", why), count) for why, count in figures.left_out.items() if why],
            unlinked=islice((uri for uri, why in state.left_out() if not why), most),
            unlinked_in_all=figures.left_out.get("", 0),
            recovered=((each.uri, each.chosen) for each in state.ended() if each.chosen) if options.lists_all else None,
        )
    )


def _templates() -> jinja2.Environment:
    made = templates("unlost.recover.report")
    made.filters["day"] = day
    return made
