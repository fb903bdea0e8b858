"""A report as a page for people: one file that needs no script and asks for nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import jinja2

from unlost.recover.report.figures import RecoveryStats
from unlost.recover.report.kinds import RESOURCE_KINDS
from unlost.recover.report.retelling import report_strings, translate_message
from unlost.recover.report.timeline import timeline_bars, describe_timeline, render_timeline
from unlost.recover.report.wording import (
    INCOMPLETE_LISTING_OUTCOMES,
    format_day,
    report_headline,
    listing_text,
    outcome_text,
    report_remarks,
)
from unlost.recover.state.gaps import FAILED_REASON
from unlost.recover.state.reading import StateReader
from unlost.shown.language import LANGUAGES
from unlost.shown.page import make_template_environment

MAX_LISTED_RESOURCES = 500
"""How many resources a list of the page has; a page of more is slow to open, and nobody reads it."""

_MAX_DETAILS = 5  # links or copies that are named for each


@dataclass(frozen=True, slots=True)
class ReportPageOptions:
    """How a report page is rendered.

    has_files: whether `summary.tsv` and `report.json` are next to the page. language: one of `LANGUAGES`.
    names: of archives, by id. back: the URL of the page that links here; None for none.
    lists_all: whether every file is listed, recovered ones, too; if not, lists have at most `MOST_LISTED` rows.
    """

    has_files: bool = False
    language: str = LANGUAGES[0]
    names: Mapping[str, str] = field(default_factory=dict)
    back_url: str | None = None
    lists_all: bool = False


def render_report_page(
    state: StateReader, stats: RecoveryStats, *, has_files: bool, language: str = LANGUAGES[0]
) -> str:
    """Return the page: HTML with everything in it, the same for the same state. Everything in it is escaped.

    figures: of this very state. has_files: whether `summary.tsv` and `report.json` stand beside the page. language: one
    of `LANGUAGES`. Raises InputError, OSError.
    """
    return "".join(render_report(state, stats, ReportPageOptions(has_files=has_files, language=language)))


def render_report(state: StateReader, stats: RecoveryStats, options: ReportPageOptions) -> Iterator[str]:
    """Yield the page in pieces, as `report_page` returns it, in memory that does not grow with the lists.

    Raises InputError, OSError.
    """
    t = report_strings(options.language)
    found = timeline_bars(stats.months)
    failed = stats.reasons[FAILED_REASON]
    most = None if options.lists_all else MAX_LISTED_RESOURCES
    types, (other_types, of_other_types) = stats.top_types()
    uses = ((t("head.pages_row"), *stats.pages), (t("head.parts_row"), *stats.requisites))
    incomplete = [
        (name, listing_text(stats, name, t), message if message and outcome != "unsupported" else "")
        for name, outcome, message in stats.listings
        if outcome in INCOMPLETE_LISTING_OUTCOMES
    ]

    return (
        _jinja_environment()
        .get_template("report.html")
        .stream(
            t=t,
            language=t.language,
            figures=stats,
            has_files=options.has_files,
            back=options.back_url,
            name_of=lambda name: options.names.get(name, name),
            word=partial(outcome_text, stats, t),
            most=most,
            headline=report_headline(stats, t),
            remarks=report_remarks(stats, t),
            uses=[row for row in uses if any(row[1:])],
            kinds=[(t.word("kind", kind), stats.kinds[kind]) for kind in RESOURCE_KINDS if stats.kinds[kind]],
            types=types,
            other_types=other_types,
            of_other_types=of_other_types,
            archives=[(name, listing_text(stats, name, t)) for name in stats.archive_ids()],
            incomplete=incomplete,
            bars=found,
            drawing=render_timeline(found, t),
            described=describe_timeline(found, t),
            reasons=[
                (outcome_text(stats, t, "reason", each), count)
                for each, count in stats.reasons.most_common()
                if each != FAILED_REASON
            ],
            missing=state.most_linked_missing(most or -1, _MAX_DETAILS, is_failed=False),
            missing_in_all=stats.missing - failed,
            failed=state.most_linked_missing(most or -1, _MAX_DETAILS, is_failed=True),
            failed_in_all=failed,
            verdicts=[(t.word("verdict", each), count) for each, count in stats.rejected.most_common()],
            rejected=islice(state.rejected(), most),
            rejected_in_all=stats.rejected.total(),
            retold=lambda text: translate_message(text, t),
            outcomes=[
                (outcome_text(stats, t, "outcome", each), count) for each, count in stats.count_outcomes() if count
            ],
            doubtful=islice(state.doubtful(), most),
            left_out=islice(((uri, why) for uri, why in state.skipped_urls() if why), most),
            left_out_in_all=sum(count for why, count in stats.skipped.items() if why),
            left_out_reasons=[(t.word("left_out", why), count) for why, count in stats.skipped.items() if why],
            unlinked=islice((uri for uri, why in state.skipped_urls() if not why), most),
            unlinked_in_all=stats.skipped.get("", 0),
            recovered=((each.uri, each.chosen) for each in state.finished_resources() if each.chosen)
            if options.lists_all
            else None,
        )
    )


def _jinja_environment() -> jinja2.Environment:
    made = make_template_environment("unlost.recover.report")
    made.filters["day"] = format_day
    return made
