"""Renders a report as HTML and writes its files atomically, in one pass over the database."""

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
from unlost.recovery.state.queries import FAILED_REASON, FinishedResource
from unlost.recovery.state.reader import StateReader
from unlost.report.format import LANGUAGES
from unlost.report.html_templates import make_template_environment
from unlost.report.recovery.serializers import recovery_summary_json, resource_json, summary_row
from unlost.report.recovery.stats import (
    RESOURCE_KINDS,
    RecoveryStats,
    collect_stats,
    describe_timeline,
    render_timeline,
    timeline_bars,
)
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

MAX_LISTED_RESOURCES = 500
"""Maximum number of resources in each list of the page; longer pages are slow to open."""
_MAX_DETAILS = 5  # links or captures that are listed for a missing resource


@dataclass(frozen=True, slots=True)
class ReportPageOptions:
    """How a report page is rendered.

    Attributes:
        has_files: Whether `summary.tsv` and `report.json` are next to the page.
        language: One of `LANGUAGES`.
        names: Names of archives, by id.
        back_url: URL of the page that links here; None for none.
        lists_all: Whether all files are listed, including recovered ones. Otherwise lists have at most
            `MAX_LISTED_RESOURCES` rows.
    """

    has_files: bool = False
    language: str = LANGUAGES[0]
    names: Mapping[str, str] = field(default_factory=dict)
    back_url: str | None = None
    lists_all: bool = False


def render_report_page(
    state: StateReader, stats: RecoveryStats, *, has_files: bool, language: str = LANGUAGES[0]
) -> str:
    """Return the page as self-contained HTML. The same database yields the same page.

    Args:
        state: The database.
        stats: The statistics of this database.
        has_files: Whether `summary.tsv` and `report.json` are next to the page.
        language: One of `LANGUAGES`.

    Raises:
        InputError: The database is invalid.
        OSError: The database cannot be read.
    """
    return "".join(render_report(state, stats, ReportPageOptions(has_files=has_files, language=language)))


def render_report(state: StateReader, stats: RecoveryStats, options: ReportPageOptions) -> Iterator[str]:
    """Yield the page in pieces, as `render_report_page` returns it, in bounded memory.

    Raises:
        InputError: The database is invalid.
        OSError: The database cannot be read.
    """
    t = report_strings(options.language)
    bars = timeline_bars(stats.months)
    failed = stats.reasons[FAILED_REASON]
    max_rows = None if options.lists_all else MAX_LISTED_RESOURCES
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
            most=max_rows,
            headline=report_headline(stats, t),
            remarks=report_remarks(stats, t),
            uses=[row for row in uses if any(row[1:])],
            kinds=[(t.word("kind", kind), stats.kinds[kind]) for kind in RESOURCE_KINDS if stats.kinds[kind]],
            types=types,
            other_types=other_types,
            of_other_types=of_other_types,
            archives=[(name, listing_text(stats, name, t)) for name in stats.archive_ids()],
            incomplete=incomplete,
            bars=bars,
            drawing=render_timeline(bars, t),
            described=describe_timeline(bars, t),
            reasons=[
                (outcome_text(stats, t, "reason", each), count)
                for each, count in stats.reasons.most_common()
                if each != FAILED_REASON
            ],
            missing=state.most_linked_missing(max_rows or -1, _MAX_DETAILS, is_failed=False),
            missing_in_all=stats.missing - failed,
            failed=state.most_linked_missing(max_rows or -1, _MAX_DETAILS, is_failed=True),
            failed_in_all=failed,
            verdicts=[(t.word("verdict", each), count) for each, count in stats.rejected.most_common()],
            rejected=islice(state.rejected(), max_rows),
            rejected_in_all=stats.rejected.total(),
            retold=lambda text: translate_message(text, t),
            outcomes=[
                (outcome_text(stats, t, "outcome", each), count) for each, count in stats.count_outcomes() if count
            ],
            doubtful=islice(state.doubtful(), max_rows),
            left_out=islice(((uri, reason) for uri, reason in state.skipped_urls() if reason), max_rows),
            left_out_in_all=sum(count for reason, count in stats.skipped.items() if reason),
            left_out_reasons=[(t.word("left_out", reason), count) for reason, count in stats.skipped.items() if reason],
            unlinked=islice((uri for uri, reason in state.skipped_urls() if not reason), max_rows),
            unlinked_in_all=stats.skipped.get("", 0),
            recovered=((each.uri, each.chosen) for each in state.finished_resources() if each.chosen)
            if options.lists_all
            else None,
        )
    )


def _jinja_environment() -> jinja2.Environment:
    environment = make_template_environment("unlost.report.recovery")
    environment.filters["day"] = format_day
    return environment


REPORT_FOLDER = "report"
"""Folder of a recovery that contains its report."""
LineWriter = Callable[[bytes], object]
"""Receives a line with its line end."""


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Paths of the HTML page, the TSV summary and the JSON report; None for those that are not written."""

    html: Path | None = None
    tsv: Path | None = None
    json: Path | None = None

    @classmethod
    def in_folder(cls, folder: Path | None, recovery: Path) -> Self:
        """Return the files in a folder, by default in that of the recovery. Raises InputError for a symbolic link."""
        report_folder = recovery / REPORT_FOLDER if folder is None else folder
        if folder is None and report_folder.is_symlink():
            raise InputError(f"{report_folder}: a link, which is not followed: remove it, or give another folder by -o")
        files = cls(report_folder / "index.html", report_folder / "summary.tsv", report_folder / "report.json")
        for each in files.paths():
            if each.is_symlink():
                raise InputError(f"{each}: a link, which is not followed: remove it, or give another folder by -o")
        return files

    def paths(self) -> list[Path]:
        """Return the paths that are written."""
        return [each for each in (self.html, self.tsv, self.json) if each is not None]


def write_report(
    state: StateReader,
    files: ReportFiles,
    *,
    tsv_writers: Sequence[LineWriter] = (),
    json_writers: Sequence[LineWriter] = (),
    language: str = LANGUAGES[0],
) -> RecoveryStats:
    """Write the requested files in one pass over the resources, and return the statistics.

    Args:
        state: The database.
        files: The files to write.
        tsv_writers: Receive the lines of the TSV summary, in addition to the file.
        json_writers: Receive the lines of the JSON report, in addition to the file.
        language: Language of the page.

    Raises:
        InputError: The database is invalid.
        OSError: A file cannot be read or written.
    """
    with ExitStack() as stack:
        paths = files.paths()
        if paths:
            stack.enter_context(ensure_directory(paths[0].parent))
        opened = dict(zip(paths, stack.enter_context(atomic_files(paths)) if paths else (), strict=True))
        write_tsv = [*tsv_writers, *([opened[files.tsv].write] if files.tsv else [])]
        write_json = [*json_writers, *([opened[files.json].write] if files.json else [])]
        handlers: list[Callable[[FinishedResource], object]] = []
        if write_tsv:
            handlers.append(lambda each: _write_all(write_tsv, _tsv_line(each)))
        if write_json:
            handlers.append(lambda each: _write_all(write_json, _json_line(resource_json(each))))
        stats = collect_stats(state, lambda each: [handle(each) for handle in handlers])
        _write_all(write_json, _json_line(recovery_summary_json(stats)))
        if files.html is not None:
            page = render_report_page(state, stats, has_files=files.tsv is not None, language=language)
            opened[files.html].write(page.encode())
        state.check_unchanged()
    return stats


def _write_all(writes: Sequence[LineWriter], text: bytes) -> None:
    for write in writes:
        write(text)


def _tsv_line(resource: FinishedResource) -> bytes:
    return summary_row(resource).to_tsv().encode("utf-8", "surrogateescape") + b"\n"


def _json_line(value: dict[str, object]) -> bytes:
    return dumps(value).encode() + b"\n"
