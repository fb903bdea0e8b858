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
    for lost in watched.losses:
        over = "" if lost.over is None else f", there again {dates.to_local(lost.over)}"
        words = f"{describe_health(lost.kind)} ({escape_unprintable(lost.reason)})"
        lines.append(f"lost since {dates.to_local(lost.since)}, noticed {dates.to_local(lost.noticed)}{over}: {words}")
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
    found = watched.survey
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
            for each in found.visits
        ],
        "lives": [
            {"archive": row.archive or None, "group": row.group or None, **asdict(row.stats)} for row in found.rows
        ],
        "change_rate": found.change_rate,
        "birth_rate": found.birth_rate,
        "losses": [_loss(lost) for lost in watched.losses],
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


def _loss(lost: SiteLoss) -> dict[str, object]:
    return {
        "kind": lost.kind.value,
        "reason": lost.reason,
        "since": _date(lost.since),
        "noticed": _date(lost.noticed),
        "over": None if lost.over is None else _date(lost.over),
    }


def _date(time: float) -> str:
    return dates.to_iso(dates.from_epoch(str(int(time))))


_FILE_SUFFIXES = {
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

        async def visits() -> None:
            async with self._watcher() as watcher:
                for url in self._urls:
                    await watcher.visit(url)

        try:
            uvloop.run(visits())
        except OfflineError as error:
            message = f"{error}. No visit was counted: it is not known whether the site is there"
            raise OfflineError(message, error.reason) from None
        self._write_page()
        return self._is_lost, self._is_whole

    def forever(self) -> None:
        """Visit sites on schedule until interrupted."""

        async def watching() -> None:
            async with self._watcher() as watcher:
                await watcher.watch(self._urls)

        uvloop.run(watching())

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
        given = self._options
        archives = select_archives(given["archives"], given["only"])
        glances = PolitePageFetcher(self._urls, self._clock, given["contact"], given["delay"], proxies=given["proxy"])
        async with glances, open_archive_access(archives, given, self._clock) as means:
            yield Watcher(
                self._file,
                self._clock,
                _LiveSites(glances, self._file, given, self._clock),
                means,
                check_depth(given),
                interval=given["every"],
                on_loss=self._on_loss,
                on_visit=self._on_visit,
                check_network=lambda: probe_network(archives.values(), use_proxies=given["proxy"]),
                on_offline=lambda error: say(f"{error}. No site was visited", level="warning"),
            )

    def _on_visit(self, visited: VisitResult) -> None:
        """Print the result of a visit."""
        self._is_whole = self._is_whole and not visited.check.incomplete
        lost = visited.loss
        self._is_lost = self._is_lost or (lost is not None and lost.over is None)
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
        if lost is not None and lost.over is None:
            since = dates.to_local(lost.since)
            say(f"{visited.url}: lost since {since}: {describe_health(lost.kind)} ({lost.reason})", level="warning")
        elif lost is not None:
            say(f"{visited.url}: it is there again", level="info")
        if visited.hook_error is not None:
            say(f"--on-loss: {visited.hook_error}", level="error")
        say_unanswered(visited.check)

    def _read_surveys(self) -> list[WatchedSite]:
        """Return the results for each requested site. Raises InputError for a site that was not visited."""
        found = []
        with translate_visit_errors(self._file), VisitDatabase(self._file, is_read_only=True) as file:
            numbers = {url: number for number, url in file.sites()}
            for url in self._urls:
                if url not in numbers:
                    raise InputError(f"{self._file}: {url} was not visited yet")
                history = VisitHistory(file, numbers[url])
                found.append(WatchedSite(url, survey_site(history), LossStore(file, numbers[url]).all_losses()))
        return found

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
        most = limit if self._options["all"] else min(limit, self._options["sample"])
        known: dict[str, int] = {}
        if self._file.exists():
            with translate_visit_errors(self._file), VisitDatabase(self._file, is_read_only=True) as file:
                for number, url in file.sites():
                    known[url] = len(VisitHistory(file, number).known_urls(limit))
        new = [url for url in self._urls if not known.get(url)]
        if new:
            say(f"{len(new):,} sites were not visited yet: they are taken to have {limit:,} addresses", level="note")
        found = []
        for url in self._urls:
            resources = known.get(url) or limit
            found.append(SiteSize(1, min(most, resources), _GUESSED_ROWS * resources))
        return found


class _LiveSites:
    """Opens sites to crawl, with a new crawl for each visit."""

    def __init__(self, glances: PolitePageFetcher, file: Path, given: Mapping[str, Any], clock: Clock) -> None:
        self.page_fetcher = glances
        self._folder = file.with_name(f"{file.name}.crawl")
        self._given = given
        self._clock = clock

    @asynccontextmanager
    async def open(self, url: str, visit: int, known: Sequence[str]) -> AsyncIterator[SiteSource]:
        """Yield a site to crawl. The crawl's state is deleted after the visit."""
        given = self._given
        folder = self._folder.with_name(f"{self._folder.name}-{visit}")
        visiting = SiteCrawlOptions(folder, self._clock, given["contact"], given["proxy"])
        site = CrawledSite(crawl_plan(url, given, tuple(known)), visiting, [containing_folder(url)])
        try:
            yield site
        except OfflineError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        say_crawl_gaps(site.result, "--limit sets how many")
        shutil.rmtree(folder, ignore_errors=True)


def _parse_sites(given: str) -> tuple[list[str], str]:
    """Return the URLs of sites, and the name of their history. Raises InputError, UsageError."""
    file = Path(given)
    if not file.is_file():
        if _is_file_name(given):
            number = errno.EISDIR if file.is_dir() else errno.ENOENT
            raise unreadable_error_for_errno(file, number, "give the URL of a site, or a file with URLs, one a line")
        url = parse_argument(given, normalize_input_url)
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
    metavar="SPAN",
    help="How much time lies between two visits of a site: 12h, 1d, 1w.",
)
@click.option(
    "--once", is_flag=True, help="Make one visit of each site, or go on with one that was interrupted, and end."
)
@click.option("--history", type=_FILE, metavar="FILE", help="Where visits are kept.  [default: HOST.watch.sqlite]")
@click.option(
    "--on-loss", metavar="COMMAND", help="Run this when a site is lost, with its address and the kind of loss."
)
@click.option("--dry-run", is_flag=True, help="Visit nobody, and say how many questions a day it would ask.")
@click.option("--report", is_flag=True, help="Visit nobody, and say what the visits so far have shown.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page with the report there.")
@click.option("--plot", type=_FILE, metavar="FILE", help="Draw the states as PNG, PDF or SVG; needs unlost[plots].")
@with_options(*DEPTH_OPTIONS)
@click.option("--json", is_flag=True, help="As JSON, an object a line.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:  # noqa: ANN401  the options, by their names
    """Check sites again and again: how long resources live in archives, and whether a site is lost.

    FILE has the addresses of sites, one a line. What was seen is kept; the same command goes on. With --once, for cron,
    the exit code is 1 if a site is lost, and 4 if archives did not answer. docs/watch.md explains the numbers.
    """
    if sum(map(bool, (given["once"], given["dry_run"], given["report"]))) > 1:
        raise UsageError("--once, --dry-run and --report are three different things: give one of them")
    for name in ("html", "plot"):
        check_output_file(given[name])
    validate_plot_path(given["plot"])
    run = WatchRun(given)
    if given["dry_run"]:
        run.estimate()
    elif given["report"]:
        run.report()
    elif given["once"]:
        is_lost, is_whole = run.once()
        ctx.exit(1 if is_lost else 0 if is_whole else ArchiveError.exit_code)
    else:
        run.forever()
