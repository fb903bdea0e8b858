"""`unlost overlap`: measures which archives hold the pages of a list."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from unlost.archives.factory import create_client
from unlost.archives.sampler import EarlyStop
from unlost.atomic import atomic_file
from unlost.cli import types
from unlost.cli.archive_options import (
    archives_option,
    contact_option,
    delay_option,
    only_option,
    open_http_client,
    read_registry,
    reset_hint,
)
from unlost.cli.messages import say
from unlost.cli.output import check_output_file, format_tables, write_lines
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.cli.progress import ProgressBar, item_counter, progress
from unlost.cli.sampling import (
    OUTPUT_FILE,
    archive_endpoint,
    begin_url_list,
    concurrency_option,
    hint_on_interrupt,
    is_standard_input,
    patience_option,
    restart_option,
    state_option,
)
from unlost.clock import SystemClock
from unlost.dates import from_epoch, to_iso, to_local
from unlost.documents import DocumentReader
from unlost.errors import ArchiveError, NotNowError, UsageError
from unlost.problems import Problems
from unlost.registry.models import Archive
from unlost.report.format import escape_unprintable, format_count
from unlost.research.overlap_report import (
    capture_tables,
    draw_overlap,
    holdings_tables,
    overlap_headline,
    overlap_remarks,
    overlap_to_json,
    render_overlap_page,
)
from unlost.research.overlap_state import OverlapState
from unlost.research.overlap_stats import OverlapStats, compute_overlap_stats
from unlost.research.overlap_survey import OverlapSurvey, PoliteLiveWebClient
from unlost.research.plots import plot_overlap, validate_plot_path


@dataclass(frozen=True, slots=True)
class OverlapOptions:
    """Values of the command's options, by name."""

    urls: Path
    archives: Path | None
    only: tuple[str, ...]
    sample: int | None
    seed: int
    fetch: int
    live: bool
    delay: float
    dry_run: bool
    concurrency: int
    patience: float
    state: Path | None
    restart: bool
    html: Path | None
    svg: Path | None
    plot: Path | None
    contact: str | None
    json: bool

    @property
    def is_stdin(self) -> bool:
        """Whether the list comes from standard input."""
        return is_standard_input(self.urls)


def run_overlap(options: OverlapOptions) -> int:
    """Query the archives, print and write the result; return the exit code. Raises UsageError, InputError, OSError."""
    archives = read_registry(options.archives).only(options.only)
    if not archives:
        raise UsageError("no archive is on: name some by --only")
    problems = Problems()
    with _open_state(options) as state:
        if options.restart and not options.dry_run:
            state.clear()
        begin_url_list(
            state,
            options.urls,
            problems,
            lambda plan, pages: state.begin(plan, pages, options.seed, options.sample),
            {"sample": options.sample, "seed": options.seed},
        )
        for archive in archives:
            state.register_archive(archive.id, archive_endpoint(archive) or archive.timegate or "")
        if options.dry_run:
            _say_request_count(state, archives, options)
            stops: dict[str, EarlyStop] = {}
        else:
            stops = _query_archives(state, archives, options)
            stats = compute_overlap_stats(state, [archive.id for archive in archives], options.fetch)
            _print_result(stats, options)
            postponed = state.count_postponed() if options.live else 0
    say_problems(problems)
    if not options.dry_run:
        is_whole = _say_remaining(stats, stops, postponed)
        if not is_whole:
            return ArchiveError.exit_code
    return EXIT_SKIPPED_INPUT if problems.total else 0


@contextmanager
def _open_state(options: OverlapOptions) -> Iterator[OverlapState]:
    """Yield the state; for a dry run that has none yet, a temporary one."""
    if options.state is None and options.is_stdin and not options.dry_run:
        raise UsageError("--urls - leaves no place for the answers: say by --state where to keep them")
    path = options.state or options.urls.with_name(f"{options.urls.name}.overlap")
    if options.dry_run and (options.restart or not path.exists()):
        with TemporaryDirectory(prefix="unlost-") as folder, OverlapState(Path(folder, "state")) as state:
            yield state
    else:
        with OverlapState(path) as state:
            yield state


def _say_request_count(state: OverlapState, archives: Sequence[Archive], options: OverlapOptions) -> None:
    """Print how many requests are left: an upper bound, except that a TimeMap in several pages takes more."""
    rows = []
    for archive in archives:
        lists = state.count_unanswered(archive.id)
        # It is not yet known which of the unqueried pages have captures.
        copies = min(options.fetch, lists + len(state.unfetched(archive.id, options.fetch)))
        rows.append({"archive": archive.id, "lists": lists, "copies": copies})
    total = sum(int(str(row["lists"])) + int(str(row["copies"])) for row in rows)
    # Plus a robots.txt per site. It is not yet known which of the unqueried pages have captures.
    live = min(state.size, options.fetch * len(archives)) if options.live else 0
    if options.json:
        write_lines([dumps({"pages": state.size, "archives": rows, "questions": total, "live_pages": live}) + "\n"])
        return
    for row in rows:
        write_lines([f"{row['archive']}\t{row['lists']} lists\t{row['copies']} copies at most\n"])
    say(
        f"{state.size} pages, {len(archives)} archives: {total} questions at most; long lists take more. "
        "None was asked",
        level="info",
    )
    if options.live:
        say(f"{live} live pages at most, and robots.txt of each site, would be looked at", level="info")


def _query_archives(state: OverlapState, archives: Sequence[Archive], options: OverlapOptions) -> dict[str, EarlyStop]:
    """Send the remaining queries; return the archives that stopped early, and why."""
    remaining = sum(
        state.count_unanswered(archive.id) + len(state.unfetched(archive.id, options.fetch)) for archive in archives
    )

    async def run_survey(bar: ProgressBar) -> dict[str, EarlyStop]:
        with DocumentReader() as documents:
            async with AsyncExitStack() as stack:
                http_client = await stack.enter_async_context(open_http_client(options.contact, options.patience))
                live = None
                if options.live:
                    web = PoliteLiveWebClient(SystemClock(), options.contact, options.delay, documents)
                    live = await stack.enter_async_context(web)
                survey = OverlapSurvey(
                    state,
                    [create_client(archive, http_client) for archive in archives],
                    max_fetches=options.fetch,
                    live_client=live,
                    concurrency=options.concurrency,
                    documents=documents,
                    on_done=item_counter(bar),
                )
                return await survey.run()

    with progress("asking archives", remaining, "questions") as bar, hint_on_interrupt():
        return asyncio.run(run_survey(bar))


def _print_result(stats: OverlapStats, options: OverlapOptions) -> None:
    name = "standard input" if options.is_stdin else options.urls.name
    if options.html is not None:
        with atomic_file(options.html) as file:
            file.write(render_overlap_page(stats, name).encode("utf-8", "backslashreplace"))
    if options.svg is not None:
        with atomic_file(options.svg) as file:
            file.write(draw_overlap(stats.membership).encode("utf-8", "backslashreplace") + b"\n")
    if options.plot is not None:
        plot_overlap(stats, options.plot)
    if options.json:
        write_lines([dumps(overlap_to_json(stats)) + "\n"])
        return
    lines = [overlap_headline(stats), *(escape_unprintable(each) for each in overlap_remarks(stats))]
    lines += format_tables([*holdings_tables(stats), *capture_tables(stats)])
    write_lines([line + "\n" for line in lines])


def _say_remaining(stats: OverlapStats, stops: dict[str, EarlyStop], postponed: int) -> bool:
    """Print why the result is incomplete and how to resume; return whether it is complete."""
    for archive, stop in stops.items():
        _say_stop(archive, stop)
    remaining = postponed + sum(each.failed.total() + each.failed_fetches.total() for each in stats.archives)
    if remaining or stops:
        say(f"left to ask: {format_count(remaining, 'question')}: the same command goes on", level="warning")
    return not remaining and not stops


def _say_stop(archive: str, stop: EarlyStop) -> None:
    if isinstance(stop.error, NotNowError):
        until = to_local(stop.error.until, round_up=True)
        reset_note = f". {reset_hint(stop.error.archive)}" if stop.error.reason == "blocked" else ""
        say(
            f"{stop.error}: run it again after {until}{reset_note}",
            level="warning",
            archive=archive,
            until=to_iso(from_epoch(str(math.ceil(stop.error.until)))),
        )
    elif stop.failures:
        message = f"{archive} failed {stop.failures} times in a row, at last: {stop.error}. It is not asked any further"
        say(message, level="warning", archive=archive)
    else:
        say(f"{archive}: {stop.error}", level="warning", archive=archive)


@click.command(name="overlap")
@click.option(
    "--urls",
    type=types.FILE_OR_STDIN,
    required=True,
    metavar="FILE",
    help="Query the URLs in FILE, one per line; `-` is standard input.",
)
@archives_option
@only_option
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Query only a random sample of N URLs.  [default: all]",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random numbers that select the sample and the captures to fetch.",
)
@click.option(
    "--fetch",
    type=click.IntRange(min=0, max=100_000),
    default=30,
    show_default=True,
    metavar="N",
    help="Fetch up to N random captures of each archive, one per page, to check that they are delivered.",
)
@click.option("--live", is_flag=True, help="Also visit the live pages of the fetched captures, and compare both.")
@delay_option
@click.option("--dry-run", is_flag=True, help="Print the number of requests that are left, and send none.")
@concurrency_option
@patience_option
@state_option("URLS.overlap")
@restart_option
@click.option("--html", type=OUTPUT_FILE, metavar="FILE", help="Write an HTML report with charts to FILE.")
@click.option("--svg", type=OUTPUT_FILE, metavar="FILE", help="Write the chart of the overlaps to FILE as SVG.")
@click.option(
    "--plot",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Draw the chart of the overlaps with matplotlib, as PNG, PDF or SVG by the extension of FILE. Requires the "
    "extra unlost[plots].",
)
@contact_option
@click.option("--json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    urls: Path,
    archives: Path | None,
    only: tuple[str, ...],
    sample: int | None,
    seed: int,
    fetch: int,
    live: bool,
    delay: float,
    dry_run: bool,
    concurrency: int,
    patience: float,
    state: Path | None,
    restart: bool,
    html: Path | None,
    svg: Path | None,
    plot: Path | None,
    contact: str | None,
    json: bool,
) -> None:
    """Measure which archives hold the pages of a list, and how much they overlap.

    Queries every archive for every page, within its rate limits, and fetches a sample of the captures. Prints how many
    pages each archive and each combination of archives holds, the smallest sets of archives with most pages, and how
    many of the listed captures are delivered.

    Responses are stored in a state file. Run the same command again to resume; no query is repeated. The exit code is 4
    if queries failed or are left for another run, and 5 if the list has invalid URLs.

    \b
    Example:
      unlost overlap --urls pages.txt --sample 1000 --html overlap.html
    """
    validate_plot_path(plot)
    for file in (html, svg, plot):
        check_output_file(file)
    options = OverlapOptions(
        urls, archives, only, sample, seed, fetch, live, delay, dry_run, concurrency, patience, state, restart,
        html, svg, plot, contact, json,
    )  # fmt: skip
    ctx.exit(run_overlap(options))
