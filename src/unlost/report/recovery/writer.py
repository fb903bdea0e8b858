"""Renders a report as HTML and writes its files, all in one pass, atomically."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from json import dumps
from pathlib import Path
from typing import Self

import jinja2

from unlost.atomic import atomic_files, ensure_directory
from unlost.errors import InputError
from unlost.recover.state.queries import FAILED_REASON, FinishedResource
from unlost.recover.state.reader import StateReader
from unlost.report.format import LANGUAGES
from unlost.report.html_templates import make_template_environment
from unlost.report.recovery.serializers import resource_json, summary_json, summary_row
from unlost.report.recovery.stats import RESOURCE_KINDS, RecoveryStats, collect_stats
from unlost.report.recovery.text import (
    INCOMPLETE_LISTING_OUTCOMES,
    format_day,
    listing_text,
    outcome_text,
    report_headline,
    report_remarks,
    report_strings,
    translate_message,
)
from unlost.report.recovery.timeline import describe_timeline, render_timeline, timeline_bars

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
    made = make_template_environment("unlost.report.recovery")
    made.filters["day"] = format_day
    return made


REPORT_FOLDER = "report"
"""Of a recovery: where its report is written."""
LineWriter = Callable[[bytes], object]
"""Gets a line."""


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where to write a page, lines with tabs, and objects; None where nobody wants them."""

    html: Path | None = None
    tsv: Path | None = None
    json: Path | None = None

    @classmethod
    def in_folder(cls, folder: Path | None, recovery: Path) -> Self:
        """Return the files of a folder; None for that of a recovery. Raises InputError if one is a link."""
        place = recovery / REPORT_FOLDER if folder is None else folder
        if folder is None and place.is_symlink():
            raise InputError(f"{place}: a link, which is not followed: remove it, or give another folder by -o")
        files = cls(place / "index.html", place / "summary.tsv", place / "report.json")
        for each in files.paths():
            if each.is_symlink():
                raise InputError(f"{each}: a link, which is not followed: remove it, or give another folder by -o")
        return files

    def paths(self) -> list[Path]:
        """Return those that are wanted."""
        return [each for each in (self.html, self.tsv, self.json) if each is not None]


def write_report(
    state: StateReader,
    files: ReportFiles,
    *,
    tsv_writers: Sequence[LineWriter] = (),
    json_writers: Sequence[LineWriter] = (),
    language: str = LANGUAGES[0],
) -> RecoveryStats:
    """Read all resources once: write the files that are wanted, and return the numbers.

    lines, objects: who gets the lines with tabs, and the objects, beside the files. language: of the page; what is for
    programs has none. Raises InputError, OSError.
    """
    with ExitStack() as stack:
        named = files.paths()
        if named:
            stack.enter_context(ensure_directory(named[0].parent))
        opened = dict(zip(named, stack.enter_context(atomic_files(named)) if named else (), strict=True))
        for_lines = [*tsv_writers, *([opened[files.tsv].write] if files.tsv else [])]
        for_objects = [*json_writers, *([opened[files.json].write] if files.json else [])]
        told: list[Callable[[FinishedResource], object]] = []
        if for_lines:
            told.append(lambda each: _write_all(for_lines, _tsv_line(each)))
        if for_objects:
            told.append(lambda each: _write_all(for_objects, _json_line(resource_json(each))))
        figures = collect_stats(state, lambda each: [tell(each) for tell in told])
        _write_all(for_objects, _json_line(summary_json(figures)))
        if files.html is not None:
            page = render_report_page(state, figures, has_files=files.tsv is not None, language=language)
            opened[files.html].write(page.encode())
        state.check_unchanged()
    return figures


def _write_all(writes: Sequence[LineWriter], text: bytes) -> None:
    for write in writes:
        write(text)


def _tsv_line(ended: FinishedResource) -> bytes:
    return summary_row(ended).to_tsv().encode("utf-8", "surrogateescape") + b"\n"


def _json_line(found: dict[str, object]) -> bytes:
    return dumps(found).encode() + b"\n"
