"""`unlost watch`: visits sites repeatedly, and detects when one is lost."""

import errno
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import uvloop

from unlost import dates
from unlost.atomic import atomic_file
from unlost.check.availability import AvailabilityState
from unlost.check.checker import CrawledSite, SiteCrawlOptions, SiteSource, containing_folder
from unlost.check.history import VisitHistory
from unlost.check.report import check_headline
from unlost.check.visit_store import VisitDatabase, translate_visit_errors
from unlost.cli.archive_options import select_archives
from unlost.cli.check import DEPTH_OPTIONS, check_depth, crawl_plan, open_archive_access, say_unanswered, with_options
from unlost.cli.inputs import parse_argument
from unlost.cli.messages import say
from unlost.cli.output import check_output_file, format_columns, print_table, write_lines
from unlost.cli.problems import say_crawl_gaps
from unlost.cli.types import AnyPath, DurationType
from unlost.clock import Clock, SystemClock
from unlost.errors import ArchiveError, InputError, OfflineError, UsageError
from unlost.http.connectivity import probe_network
from unlost.http.rate_limit import DEFAULT_SHARE, SHARE_WITHOUT_CONTACT
from unlost.problems import Problems, unreadable_error_for_errno
from unlost.report.format import escape_unprintable, format_count
from unlost.research.plots import plot_watch, validate_plot_path
from unlost.uri.normalize import normalize_input_url, read_url_list
from unlost.watch.lifetimes import survey_site
from unlost.watch.losses import LossHook, LossStore, SiteLoss
from unlost.watch.report import (
    LIFETIME_COLUMNS,
    WatchedSite,
    describe_health,
    lifetime_cells,
    render_watch_page,
    survey_remarks,
)
from unlost.watch.site_health import PolitePageFetcher
from unlost.watch.watcher import QueryEstimate, SiteSize, VisitResult, Watcher, estimate_queries


def print_survey(watched: WatchedSite) -> None:
    """Print the results of all visits of a site."""
    lines = [escape_unprintable(watched.url), *survey_remarks(watched.survey)]
    for loss in watched.losses:
        over = "" if loss.over is None else f", back online {dates.to_local(loss.over)}"
        words = f"{describe_health(loss.kind)} ({escape_unprintable(loss.reason)})"
        lines.append(f"lost since {dates.to_local(loss.since)}, detected {dates.to_local(loss.noticed)}{over}: {words}")
    lines += [
        "",
        *format_columns(
            LIFETIME_COLUMNS, [tuple(map(escape_unprintable, lifetime_cells(row))) for row in watched.survey.rows]
        ),
        "",
    ]
    write_lines([line + "\n" for line in lines])


def survey_object(watched: WatchedSite) -> dict[str, object]:
    """Return the results of all visits of a site as an object for JSON; durations in days, dates in ISO 8601."""
    survey = watched.survey
    return {
        "site": watched.url,
        "visits": [
            {
                "time": _date(each.time),
                "dated": each.is_dated,
                "look": each.health,
                "reason": each.reason,
                "new": each.new_resources,
                **{state.value: each.states[state] for state in AvailabilityState},
            }
            for each in survey.visits
        ],
        "lives": [
            {"archive": row.archive or None, "group": row.group or None, **asdict(row.stats)} for row in survey.rows
        ],
        "change_rate": survey.change_rate,
        "birth_rate": survey.birth_rate,
        "losses": [_loss(loss) for loss in watched.losses],
    }


def visit_object(visited: VisitResult) -> dict[str, object]:
    """Return the result of one visit as an object for JSON."""
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


def _loss(loss: SiteLoss) -> dict[str, object]:
    return {
        "kind": loss.kind.value,
        "reason": loss.reason,
        "since": _date(loss.since),
        "noticed": _date(loss.noticed),
        "over": None if loss.over is None else _date(loss.over),
    }


def _date(time: float) -> str:
    return dates.to_iso(dates.from_epoch(str(int(time))))


_FILE_SUFFIXES = {  # of an argument without a slash, which is then a file name and not a host
    ".txt",
    ".list",
    ".lst",
    ".csv",
    ".tsv",
    ".json",
    ".jsonl",
    ".urls",
    ".md",
    ".xml",
    ".toml",
    ".sqlite",
}
_GUESSED_ROWS = 3  # captures per resource that an archive lists, if no visit has counted them


class WatchRun:
    """One run of `unlost watch`, with the command's options by name."""

    def __init__(self, options: Mapping[str, Any], clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._urls, name = _parse_sites(options["site"])
        self._file: Path = options["history"] or Path(f"{name}.watch.sqlite")
        self._on_loss = LossHook.parse(options["on_loss"]) if options["on_loss"] is not None else None
        self._is_lost = False
        self._is_whole = True

    def once(self) -> tuple[bool, bool]:
        """Visit each site once; return whether one is lost, and whether all archives responded."""

        async def visit_all() -> None:
            async with self._watcher() as watcher:
                for url in self._urls:
                    await watcher.visit(url)

        try:
            uvloop.run(visit_all())
        except OfflineError as error:
            message = f"{error}. No visit was counted: it is not known whether the site is there"
            raise OfflineError(message, error.reason) from None
        self._write_page()
        return self._is_lost, self._is_whole

    def forever(self) -> None:
        """Visit sites on schedule until interrupted."""

        async def watch_all() -> None:
            async with self._watcher() as watcher:
                await watcher.watch(self._urls)

        uvloop.run(watch_all())

    def report(self) -> None:
        """Print the results of the visits so far."""
        for watched in self._read_surveys():
            if self._options["json"]:
                click.echo(dumps(survey_object(watched)))
            else:
                print_survey(watched)
        self._write_page()

    def estimate(self) -> None:
        """Print how many queries archives get per day."""
        archives = select_archives(self._options["archives"], self._options["only"])
        sizes = self._sizes()
        share = DEFAULT_SHARE if self._options["contact"] else SHARE_WITHOUT_CONTACT
        rows = [estimate_queries(each, sizes, self._options["every"], share) for each in archives.values()]
        if self._options["json"]:
            for each in rows:
                click.echo(dumps(_queries_object(each)))
        else:
            cells = [
                (
                    each.archive,
                    f"{each.lists:,}",
                    f"{each.singles:,}",
                    f"{each.daily:,}",
                    "-" if each.quota is None else f"{each.quota:,}",
                )
                for each in rows
            ]
            print_table(("archive", "lists a visit", "pages a visit", "questions a day", "allowed a day"), cells)
        for each in rows:
            if each.exceeds_quota:
                say(
                    f"{each.archive}: {each.daily:,} questions a day are more than the {each.quota:,} it is asked: "
                    "some will go unanswered; --sample, --every or fewer sites make it less",
                    level="warning",
                    archive=each.archive,
                )
        total = sum(each.daily for each in rows)
        pages = sum(size.rows // _GUESSED_ROWS for size in sizes) * 86_400 / self._options["every"]
        to_archives = format_count(total, "question")
        say(f"about {to_archives} a day to archives, and {pages:,.0f} requests a day to the sites", level="info")

    @asynccontextmanager
    async def _watcher(self) -> AsyncIterator[Watcher]:
        options = self._options
        archives = select_archives(options["archives"], options["only"])
        page_fetcher = PolitePageFetcher(
            self._urls, self._clock, options["contact"], options["delay"], proxies=options["proxy"]
        )
        async with page_fetcher, open_archive_access(archives, options, self._clock) as access:
            yield Watcher(
                self._file,
                self._clock,
                _LiveSites(page_fetcher, self._file, options, self._clock),
                access,
                check_depth(options),
                interval=options["every"],
                on_loss=self._on_loss,
                on_visit=self._on_visit,
                check_network=lambda: probe_network(archives.values(), use_proxies=options["proxy"]),
                on_offline=lambda error: say(f"{error}. No site was visited", level="warning"),
            )

    def _on_visit(self, visited: VisitResult) -> None:
        """Print the result of a visit."""
        self._is_whole = self._is_whole and not visited.check.incomplete
        loss = visited.loss
        self._is_lost = self._is_lost or (loss is not None and loss.over is None)
        if self._options["json"]:
            click.echo(dumps(visit_object(visited)))
        else:
            click.echo(
                f"{visited.url}: {describe_health(visited.health.health)}. {check_headline(visited.check.stats.score)}"
            )
        if visited.undated_visits:
            say(
                f"the clock went back: {visited.undated_visits:,} visits have no date any more, and are not "
                "counted in times",
                level="warning",
            )
        if loss is not None and loss.over is None:
            since = dates.to_local(loss.since)
            say(f"{visited.url}: lost since {since}: {describe_health(loss.kind)} ({loss.reason})", level="warning")
        elif loss is not None:
            say(f"{visited.url}: back online", level="info")
        if visited.hook_error is not None:
            say(f"--on-loss: {visited.hook_error}", level="error")
        say_unanswered(visited.check)

    def _read_surveys(self) -> list[WatchedSite]:
        """Return the results for each requested site. Raises InputError for a site that was not visited."""
        sites = []
        with translate_visit_errors(self._file), VisitDatabase(self._file, is_read_only=True) as file:
            numbers = {url: number for number, url in file.sites()}
            for url in self._urls:
                if url not in numbers:
                    raise InputError(f"{self._file}: {url} was not visited yet")
                history = VisitHistory(file, numbers[url])
                sites.append(WatchedSite(url, survey_site(history), LossStore(file, numbers[url]).all_losses()))
        return sites

    def _write_page(self) -> None:
        if self._options["html"] is not None:
            page = render_watch_page(self._read_surveys())
            with atomic_file(self._options["html"]) as output:
                output.write(page.encode())
        if self._options["plot"] is not None:
            plot_watch(self._read_surveys(), self._options["plot"])

    def _sizes(self) -> list[SiteSize]:
        """Return the sizes of the sites: from past visits, else the maximum that the limits allow."""
        limit: int = self._options["limit"]
        max_singles = limit if self._options["all"] else min(limit, self._options["sample"])
        known_counts: dict[str, int] = {}
        if self._file.exists():
            with translate_visit_errors(self._file), VisitDatabase(self._file, is_read_only=True) as file:
                for number, url in file.sites():
                    known_counts[url] = len(VisitHistory(file, number).known_urls(limit))
        new = [url for url in self._urls if not known_counts.get(url)]
        if new:
            say(f"{len(new):,} sites were not visited yet: they are taken to have {limit:,} addresses", level="note")
        sizes = []
        for url in self._urls:
            resources = known_counts.get(url) or limit
            sizes.append(SiteSize(1, min(max_singles, resources), _GUESSED_ROWS * resources))
        return sizes


class _LiveSites:
    """Opens sites to crawl, with a new crawl for each visit."""

    def __init__(self, page_fetcher: PolitePageFetcher, file: Path, options: Mapping[str, Any], clock: Clock) -> None:
        self.page_fetcher = page_fetcher
        self._folder = file.with_name(f"{file.name}.crawl")
        self._options = options
        self._clock = clock

    @asynccontextmanager
    async def open(self, url: str, visit: int, known: Sequence[str]) -> AsyncIterator[SiteSource]:
        """Yield a site to crawl. The crawl's state is deleted after the visit."""
        options = self._options
        folder = self._folder.with_name(f"{self._folder.name}-{visit}")
        crawl_options = SiteCrawlOptions(folder, self._clock, options["contact"], options["proxy"])
        site = CrawledSite(crawl_plan(url, options, tuple(known)), crawl_options, [containing_folder(url)])
        try:
            yield site
        except OfflineError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        say_crawl_gaps(site.result, "--limit sets how many")
        shutil.rmtree(folder, ignore_errors=True)


def _parse_sites(text: str) -> tuple[list[str], str]:
    """Return the URLs of sites, and the name of their history. Raises InputError, UsageError."""
    file = Path(text)
    if not file.is_file():
        if _is_file_name(text):
            number = errno.EISDIR if file.is_dir() else errno.ENOENT
            raise unreadable_error_for_errno(file, number, "give the URL of a site, or a file with URLs, one a line")
        url = parse_argument(text, normalize_input_url)
        host = urlsplit(url).netloc.rpartition("@")[2].lower()
        return [url], host.translate(str.maketrans(":", "_", "[]"))
    problems = Problems()
    urls = read_url_list(file, problems)
    if problems.total:
        raise InputError(str(next(iter(problems.first.values()))))
    if not urls:
        raise InputError(f"{file}: no address is in it")
    return urls, file.name


def _is_file_name(text: str) -> bool:
    """Return whether an argument is spelt like a file name rather than a site.

    >>> [_is_file_name(each) for each in ("sites.txt", "./sites", "/tmp/sites", "example.com/a.txt", "http://a.txt/")]
    [True, True, True, False, False]
    """
    if "://" in text:
        return False
    if text.startswith(("/", "./", "../", "~")) or "\\" in text:
        return True
    first, slash, _ = text.partition("/")
    if slash:
        return "." not in first and ":" not in first and first != "localhost"
    return Path(text).suffix.lower() in _FILE_SUFFIXES


def _queries_object(each: QueryEstimate) -> dict[str, object]:
    return {
        "archive": each.archive,
        "lists_per_visit": each.lists,
        "pages_per_visit": each.singles,
        "questions_per_day": each.daily,
        "allowed_per_day": each.quota,
    }


_FILE = AnyPath(readable=False)


@click.command(name="watch")
@click.argument("site", metavar="URL|FILE")
@click.option(
    "--every",
    type=DurationType(600, 366 * 86_400),
    default="1d",
    show_default=True,
    metavar="DURATION",
    help="Visit each site at this interval, from 10m to 366d, such as 12h, 1d or 1w. The default unit is d.",
)
@click.option(
    "--once", is_flag=True, help="Visit each site once, or resume an interrupted visit, and exit. Intended for cron."
)
@click.option("--history", type=_FILE, metavar="FILE", help="Store the visits in FILE.  [default: HOST.watch.sqlite]")
@click.option(
    "--on-loss",
    metavar="COMMAND",
    help="Run COMMAND, without a shell, when a site is lost. The URL of the site and the kind of loss are appended as "
    "arguments.",
)
@click.option(
    "--dry-run", is_flag=True, help="Send no requests, and print how many queries per day each archive would get."
)
@click.option("--report", is_flag=True, help="Send no requests, and print a report on the visits so far.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write the report as an HTML page to FILE.")
@click.option(
    "--plot",
    type=_FILE,
    metavar="FILE",
    help="Plot the states at all visits to FILE, as PNG, PDF or SVG. Requires unlost[plots].",
)
@with_options(*DEPTH_OPTIONS)
@click.option("--json", is_flag=True, help="Print results as JSON Lines: an object for each visit, site or archive.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  the options, by their names
    """Monitor sites: measure how long resources live in web archives, and detect the loss of a site.

    Visit the site at URL, or each site in FILE (one URL per line), at regular intervals until interrupted. Each visit
    crawls the site, queries archives for its resources, and stores the result in a history file. Run the same command
    again to resume.

    With --once, the exit code is 1 if a site is lost, and 4 if some archives did not respond.

    \b
    Example:
      unlost watch https://example.org/ --every 1d --on-loss 'unlost recover'
      unlost watch https://example.org/ --report
    """
    if sum(map(bool, (options["once"], options["dry_run"], options["report"]))) > 1:
        raise UsageError("--once, --dry-run and --report are three different things: give one of them")
    for name in ("html", "plot"):
        check_output_file(options[name])
    validate_plot_path(options["plot"])
    run = WatchRun(options)
    if options["dry_run"]:
        run.estimate()
    elif options["report"]:
        run.report()
    elif options["once"]:
        is_lost, is_whole = run.once()
        ctx.exit(1 if is_lost else 0 if is_whole else ArchiveError.exit_code)
    else:
        run.forever()
