"""One run of `unlost watch`: puts its parts together, and says what came of it."""

import errno
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from json import dumps
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import uvloop

from unlost import dates
from unlost.archives.asking.connectivity import probe_network
from unlost.archives.manners.admission import DEFAULT_SHARE, SHARE_WITHOUT_CONTACT
from unlost.archives.spelling import normalize_input_url, read_url_list
from unlost.cli.addresses import parse_argument
from unlost.cli.checkrun import check_depth, crawl_plan, say_unanswered
from unlost.cli.means import open_archive_access
from unlost.cli.messages import say
from unlost.cli.registry_options import select_archives
from unlost.cli.table import print_table
from unlost.cli.visited import say_crawl_gaps
from unlost.cli.watchshown import print_survey, survey_object, visit_object
from unlost.clock import Clock, SystemClock
from unlost.errors import InputError, OfflineError
from unlost.formats.output import atomic_file
from unlost.formats.problems import Problems
from unlost.formats.unread import unreadable_error_for_errno
from unlost.measure.availability.checking import SiteSource
from unlost.measure.availability.crawled import CrawledSite, SiteCrawlOptions
from unlost.measure.availability.sources import folder_url
from unlost.measure.availability.wording import check_headline
from unlost.measure.plots import plot_watch
from unlost.measure.visits.file import VisitDatabase, translate_sqlite_errors
from unlost.measure.visits.history import VisitHistory
from unlost.measure.visits.losses import LossStore
from unlost.measure.watching.glancing import PolitePageFetcher
from unlost.measure.watching.on_loss import LossHook
from unlost.measure.watching.page import WatchedSite, render_watch_page
from unlost.measure.watching.queries import QueryEstimate, SiteSize, estimate_queries
from unlost.measure.watching.survey import survey_site
from unlost.measure.watching.watcher import VisitResult, Watcher
from unlost.measure.watching.wording import describe_health
from unlost.shown.words import format_count

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
_GUESSED_ROWS = 3  # captures of a resource that an archive lists, if nobody has seen yet


class WatchRun:
    """A watch, with the options that were given, by their names."""

    def __init__(self, options: Mapping[str, Any], clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._urls, name = _parse_sites(options["site"])
        self._file: Path = options["history"] or Path(f"{name}.watch.sqlite")
        self._on_loss = LossHook.parse(options["on_loss"]) if options["on_loss"] is not None else None
        self._is_lost = False
        self._is_whole = True

    def once(self) -> tuple[bool, bool]:
        """Visit each site once; return whether one is lost, and whether all archives answered."""

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
        """Visit sites whenever it is time, until somebody ends it."""

        async def watching() -> None:
            async with self._watcher() as watcher:
                await watcher.watch(self._urls)

        uvloop.run(watching())

    def report(self) -> None:
        """Print what the visits so far have shown."""
        for watched in self._read_surveys():
            if self._options["json"]:
                click.echo(dumps(survey_object(watched)))
            else:
                print_survey(watched)
        self._write_page()

    def estimate(self) -> None:
        """Print how many questions archives are asked in a day."""
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
        """Say what a visit came to."""
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
                f"the clock went back: {visited.undated_visits:,} visits have no date any more, and are not counted in times",
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
        """Return what is known of each site that was asked for."""
        found = []
        with translate_sqlite_errors(self._file), VisitDatabase(self._file, is_read_only=True) as file:
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
        """Return how large the sites are: as the last visits saw them, else as the limits allow."""
        limit: int = self._options["limit"]
        most = limit if self._options["all"] else min(limit, self._options["sample"])
        known: dict[str, int] = {}
        if self._file.exists():
            with translate_sqlite_errors(self._file), VisitDatabase(self._file, is_read_only=True) as file:
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
    """Opens sites that are crawled, each visit anew."""

    def __init__(self, glances: PolitePageFetcher, file: Path, given: Mapping[str, Any], clock: Clock) -> None:
        self.page_fetcher = glances
        self._folder = file.with_name(f"{file.name}.crawl")
        self._given = given
        self._clock = clock

    @asynccontextmanager
    async def open(self, url: str, visit: int, known: Sequence[str]) -> AsyncIterator[SiteSource]:
        """Give a site to crawl; what the crawl remembers goes when the visit is over."""
        given = self._given
        folder = self._folder.with_name(f"{self._folder.name}-{visit}")
        visiting = SiteCrawlOptions(folder, self._clock, given["contact"], given["proxy"])
        site = CrawledSite(crawl_plan(url, given, tuple(known)), visiting, [folder_url(url)])
        try:
            yield site
        except OfflineError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        say_crawl_gaps(site.result, "--limit sets how many")
        shutil.rmtree(folder, ignore_errors=True)


def _parse_sites(given: str) -> tuple[list[str], str]:
    """Return the URLs of sites, and what their history is called. Raises InputError, UsageError."""
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
    """Return whether an argument names a file rather than a site, by how it is written.

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
