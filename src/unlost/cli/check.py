"""`unlost check`: estimates how much of a site could be recovered if it were lost now."""

import hashlib
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import uvloop

from unlost.aggregate.hit_rates import LearnedStats
from unlost.aggregate.holdings_store import HoldingsStore
from unlost.aggregate.router import ArchiveRouter
from unlost.aggregate.upstream import UpstreamClient
from unlost.archives.factory import create_client
from unlost.atomic import atomic_file
from unlost.check.archives import ArchiveAccess
from unlost.check.availability import STATE_ORDER, AvailabilityState, ResourceAvailability
from unlost.check.checker import (
    CheckOptions,
    CheckResult,
    CopiedSite,
    CrawledSite,
    SiteCrawlOptions,
    SiteSource,
    check_site,
    containing_folder,
    read_copied_resources,
    resume_or_begin_visit,
)
from unlost.check.history import VisitHistory
from unlost.check.report import (
    STATE_TEXTS,
    availability_to_json,
    check_headline,
    check_remarks,
    check_to_json,
    describe_advice,
    render_check_page,
)
from unlost.check.summary import CheckStats
from unlost.check.visit_store import ListingResult, VisitDatabase, VisitStage, translate_visit_errors
from unlost.cli import config, types
from unlost.cli.archive_options import (
    LIMIT_WAIT_SECONDS,
    archives_option,
    contact_option,
    delay_option,
    only_option,
    open_http_client,
    select_archives,
    track_connectivity,
)
from unlost.cli.inputs import parse_argument
from unlost.cli.messages import command_line, say, say_next
from unlost.cli.output import check_output_file, format_columns, write_lines
from unlost.cli.problems import say_crawl_gaps, say_problems
from unlost.cli.progress import ProgressBar, crawl_progress, progress
from unlost.clock import Clock, SystemClock
from unlost.crawl.models import CrawlConfig, ScopeType
from unlost.errors import ArchiveError, InputError, OfflineError, UsageError
from unlost.http.connectivity import probe_network
from unlost.problems import Problems
from unlost.registry.loader import Registry
from unlost.report.format import escape_unprintable, format_share
from unlost.uri.normalize import normalize_input_url, read_url_list

if TYPE_CHECKING:
    from unlost.registry.models import Archive


@asynccontextmanager
async def open_archive_access(
    archives: "Mapping[str, Archive]", options: Mapping[str, Any], clock: Clock
) -> AsyncIterator[ArchiveAccess]:
    """Yield the clients that query archives, and close them afterwards. `options`: the command's options by name."""
    registry = Registry(tuple(archives.values()))
    connectivity = track_connectivity(archives.values())
    async with open_http_client(
        options["contact"], LIMIT_WAIT_SECONDS, use_proxies=options["proxy"], connectivity=connectivity
    ) as http_client:
        holdings = HoldingsStore(registry, http_client, _map_cache_folder(), clock, warn=partial(say, level="note"))
        await holdings.load()
        router = ArchiveRouter(registry, holdings, LearnedStats(registry), exploration_share=0.0)
        clients = {name: create_client(each, http_client) for name, each in archives.items()}
        listing_clients = {name: each for name, each in clients.items() if _has_listing(archives[name])}
        yield ArchiveAccess(archives, listing_clients, UpstreamClient(http_client, clock), router, clients)


def _has_listing(archive: "Archive") -> bool:
    return archive.lister is not None or archive.folder is not None


def _map_cache_folder() -> Path:
    return config.cache_folder() / "maps"


_BATCH_LINES = 500  # lines per write


def print_report(stats: CheckStats) -> None:
    """Print the report: a headline, the counts per state, the tables, and the advice."""
    lines = [check_headline(stats.score), *check_remarks(stats), ""]
    states = [state for state in STATE_ORDER if stats.states[state]]
    lines += [f"{stats.states[state]:>7,}  {state.value}: {STATE_TEXTS[state]}" for state in states]
    for table in stats.tables:
        if table.name == "web":
            continue
        heads = [table.title, "recoverable", *(state.value for state in states)]
        rows = [
            (escape_unprintable(row.label), format_share(row.share), *(f"{row.states[state]:,}" for state in states))
            for row in table.rows
        ]
        lines += ["", *format_columns(heads, rows)]
    if stats.archives:
        heads = ["archive", "resources", "only here", "captures", "stale", "median days stale"]
        rows = [
            (
                escape_unprintable(use.archive),
                f"{use.resources:,}",
                f"{use.only:,}",
                f"{use.copies:,}",
                format_share(use.stale.share),
                "n/a" if use.stale.median is None else f"{use.stale.median:.0f}",
            )
            for use in stats.archives
        ]
        lines += ["", *format_columns(heads, rows)]
    if stats.advice:
        lines += ["", "recommendations:"]
        lines += [f"- {describe_advice(each)}" for each in stats.advice]
    write_lines([line + "\n" for line in lines])


def print_json(target: str, result: CheckResult, availabilities: Iterable[ResourceAvailability]) -> None:
    """Print a JSON object per resource, then the summary."""
    lines: list[str] = []
    for availability in availabilities:
        lines.append(dumps(availability_to_json(availability)) + "\n")
        if len(lines) >= _BATCH_LINES:
            write_lines(lines)
            lines.clear()
    summary = check_to_json(target, result.now, result.stats, result.listings, result.incomplete)
    write_lines([*lines, dumps(summary) + "\n"])


class CheckRun:
    """One run of `unlost check`, with the command's options by name."""

    def __init__(self, options: Mapping[str, Any], clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._problems = Problems()
        url = options["url"]
        self._target = (
            str(options["warc"] or options["urls"]) if url is None else parse_argument(url, normalize_input_url)
        )

    def run(self) -> tuple[bool, float | None]:
        """Run the check, print the result and write the files.

        Returns:
            Whether all archives responded, and the share of the site that could be recovered.
        """
        archives = select_archives(self._options["archives"], self._options["only"])
        with (
            self._folder() as folder,
            translate_visit_errors(folder / "visits.sqlite"),
            VisitDatabase(folder / "visits.sqlite") as file,
        ):
            history = VisitHistory(file, file.get_or_add_site(self._target))
            checked = uvloop.run(self._check(history, folder, archives))
            self._print_result(checked)
            if not checked.incomplete:
                history.finish_visit(checked.visit, checked.archives)
        if not checked.incomplete:
            shutil.rmtree(folder, ignore_errors=True)
        return not checked.incomplete, checked.stats.score.share

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """Yield the folder with the state of this check. Its name depends on target and options, for resuming."""
        names = ("sitemap", "subdomains", "limit", "sample", "all", "thorough", "beside", "judge", "only")
        identity = dumps([self._target, [str(self._options[name]) for name in names], str(self._options["archives"])])
        host = (urlsplit(self._target).hostname or Path(self._target).name)[:60]
        safe_host = "".join(char if char.isalnum() or char in "-." else "_" for char in host)
        folder = config.state_folder() / "checks" / f"{safe_host}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
        if self._options["anew"]:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder

    async def _check(self, history: VisitHistory, folder: Path, archives: Mapping[str, Any]) -> CheckResult:
        visit, _ = await resume_or_begin_visit(history, self._clock)
        with progress("checking", counted="addresses") as bar:
            site = self._site(folder / f"crawl-{visit.id}", bar)
            depth = check_depth(self._options)
            try:
                async with open_archive_access(archives, self._options, self._clock) as access:
                    checked = await check_site(history, visit, site, access, depth, _CheckProgress(bar))
            except (InputError, OfflineError) as error:
                offline = await self._offline_error(error, site, archives)
                if visit.stage is VisitStage.BEGUN and offline is not None:
                    shutil.rmtree(folder, ignore_errors=True)  # unreachable is not the same as missing
                raise (offline or error) from None
        if isinstance(site, CrawledSite):
            say_crawl_gaps(site.result, "--limit sets how many")
        if not checked.stats.total:
            raise InputError(f"{self._target}: nothing of a site is there")
        return checked

    async def _offline_error(
        self, error: Exception, site: SiteSource, archives: Mapping[str, Any]
    ) -> OfflineError | None:
        """Return an OfflineError if the network is down and the site failed to respond because of it, else None."""
        if isinstance(error, OfflineError):
            return error
        if not isinstance(site, CrawledSite):
            return None
        return await probe_network(archives.values(), use_proxies=self._options["proxy"])

    def _site(self, folder: Path, bar: ProgressBar) -> SiteSource:
        options = self._options
        if options["warc"] is not None:
            resources, self._problems = read_copied_resources(options["warc"])
            return CopiedSite(list(resources))
        crawl_options = SiteCrawlOptions(folder, self._clock, options["contact"], options["proxy"], crawl_progress(bar))
        if options["urls"] is not None:
            urls = read_url_list(options["urls"], self._problems)
            say_problems(self._problems, level="warning")
            if not urls:
                raise InputError(f"{options['urls']}: no address is in it")
            plan = CrawlConfig((), extra=tuple(urls), links=False, parts=False, sitemaps=False, delay=options["delay"])
            return CrawledSite(plan, crawl_options)
        plan, prefixes = crawl_plan(self._target, options), [containing_folder(self._target)]
        return CrawledSite(plan, crawl_options, prefixes, must_answer=True, is_sitemap=options["sitemap"])

    def _print_result(self, checked: CheckResult) -> None:
        options = self._options
        if options["save"] is not None:
            self._save(options["save"], checked)
        if options["html"] is not None:
            standings = checked.current.availabilities(checked.archives)
            page = render_check_page(self._target, checked.now, checked.stats, standings, checked.incomplete)
            with atomic_file(options["html"]) as output:
                output.write(page.encode())
        if options["json"]:
            print_json(self._target, checked, checked.current.availabilities(checked.archives))
        else:
            print_report(checked.stats)
        say_unanswered(checked)
        if checked.incomplete:
            say("the same command goes on", level="info")
        elif not options["json"]:
            self._say_next(checked)

    def _say_next(self, checked: CheckResult) -> None:
        """Print the next step: what to do about URLs that no archive has, or else how to watch the site for loss."""
        if checked.stats.states[AvailabilityState.VULNERABLE]:
            where = self._options["save"]
            listed = f"the URLs in {where}" if where else "--save FILE writes the URLs that no archive has: these"
            say_next(f"{listed} can be given to https://web.archive.org/save, or kept by `unlost vault`")
        elif self._options["url"] is not None:
            say_next(f"{command_line('watch', self._target)} notices when the site is lost")

    def _save(self, file: Path, checked: CheckResult) -> None:
        """Write the URLs that no archive has. They are written only to this file, and sent to no service."""
        count = 0
        with atomic_file(file) as output:
            for availability in checked.current.availabilities(checked.archives):
                if availability.state is AvailabilityState.VULNERABLE:
                    count += 1
                    output.write(availability.live.uri.encode("utf-8", "surrogateescape") + b"\n")
        say(f"{count:,} addresses that no archive has are in {file}", level="info")


class _CheckProgress:
    """Shows the progress of the archive queries."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar = bar

    def listing_finished(self, listed: ListingResult) -> None:
        """Do nothing: the bar counts single queries."""

    def queries_done(self, done: int, total: int) -> None:  # noqa: ARG002  a bar has no room for it
        """Update the bar with the number of queries done."""
        self._bar.update(done, lines=done)


def check_depth(options: Mapping[str, Any]) -> CheckOptions:
    """Return how many queries archives get, from the command's options."""
    sample = None if options["all"] else options["sample"]
    return CheckOptions(sample, options["thorough"], options.get("beside", 0), options.get("judge", 0))


def crawl_plan(url: str, options: Mapping[str, Any], known: tuple[str, ...] = ()) -> CrawlConfig:
    """Return the crawl configuration for a site.

    Args:
        url: URL of the site. A folder in its path limits the crawl to that folder.
        options: The command's options by name.
        known: URLs that are visited even if no page links to them.
    """
    has_folder = urlsplit(containing_folder(url)).path != "/"
    scope = ScopeType.DOMAIN if options["subdomains"] else ScopeType.PREFIX if has_folder else ScopeType.HOST
    sitemap_only = bool(options.get("sitemap"))
    return CrawlConfig(
        (url,),
        scope,
        extra=known,
        resources=options["limit"],
        delay=options["delay"],
        links=not sitemap_only,
        parts=not sitemap_only,
    )


def say_unanswered(checked: CheckResult) -> None:
    """Print a warning for each archive whose queries are incomplete."""
    for archive, message in checked.incomplete.items():
        say(f"{archive}: not asked to the end: {message}", level="warning", archive=archive)


_FILE = types.AnyPath()
_COUNT = click.IntRange(min=1)

DEPTH_OPTIONS = (
    click.option(
        "--limit",
        type=_COUNT,
        default=1_000,
        show_default=True,
        metavar="N",
        help="Visit at most N URLs of each site.",
    ),
    click.option("--subdomains", is_flag=True, help="Include all subdomains of the host."),
    delay_option,
    click.option(
        "--sample",
        type=_COUNT,
        default=200,
        show_default=True,
        metavar="N",
        help="Query archives without a listing for at most N URLs, drawn at random.",
    ),
    click.option("--all", is_flag=True, help="Query archives without a listing for all URLs instead of a sample."),
    click.option(
        "--thorough",
        is_flag=True,
        help="Query every archive for every URL. By default, URLs that one archive lists are not queried in others.",
    ),
    archives_option,
    only_option,
    contact_option,
    click.option("--proxy", is_flag=True, help="Use the proxies in HTTP_PROXY, HTTPS_PROXY and NO_PROXY."),
)
"""Options for how much of a site is crawled and how many requests archives get. `watch` has them, too."""


def with_options(*options: Callable[[Callable[..., None]], Callable[..., None]]) -> Callable[..., Callable[..., None]]:
    """Return a decorator that adds options to a command, in this order."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.command(name="check")
@click.argument("url", metavar="[URL]", required=False)
@click.option(
    "--warc",
    type=types.FILE_OR_FOLDER,
    metavar="PATH",
    help="Check the content of a WARC or WACZ file, or of a folder of them, instead of visiting a site.",
)
@click.option("--urls", type=types.READABLE_FILE, metavar="FILE", help="Check exactly the URLs in FILE, one per line.")
@click.option("--sitemap", is_flag=True, help="Check the URLs in the site's sitemaps, and follow no links.")
@click.option(
    "--beside",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    metavar="N",
    help="Visit at most N URLs that archives list and no page of the site links to.",
)
@click.option(
    "--judge",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Fetch captures of N pages, drawn at random, and check whether they are good captures or, for example, error "
    "pages or parked domains.",
)
@with_options(*DEPTH_OPTIONS)
@click.option("--anew", is_flag=True, help="Start a new check instead of resuming an interrupted one.")
@click.option(
    "--least",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="Exit with code 1 if less than PERCENT of the site could be recovered.",
)
@click.option(
    "--save",
    type=_FILE,
    metavar="FILE",
    help="Write the URLs that no archive has to FILE, one per line. They are not sent to any service.",
)
@click.option("--html", type=_FILE, metavar="FILE", help="Write an HTML page with the result to FILE.")
@click.option(
    "--json", is_flag=True, help="Print a JSON object for each resource and one for the summary, one per line."
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  the options, by their names
    """Estimate how much of a site could be recovered from web archives if it were lost now.

    Crawl the live site at URL, query archives for its resources, and advise what to improve. A resource is replicated
    (on the web and in an archive), vulnerable (only on the web), endangered (only in an archive) or unrecoverable (in
    neither). Nothing is submitted to archives.

    The exit code is 1 if the result is below --least, and 4 if some archives did not respond: run the same command
    again to resume.

    \b
    Example:
      unlost check https://example.org/ --save missing.txt
    """
    targets = [name for name in ("url", "warc", "urls") if options[name] is not None]
    if len(targets) != 1:
        raise UsageError("expected one of URL, --warc and --urls: what is to be checked")
    if options["sitemap"] and options["url"] is None:
        raise UsageError("--sitemap is about the site at URL: leave it out with --warc and --urls")
    for name in ("save", "html"):
        check_output_file(options[name])
    is_whole, share = CheckRun(options).run()
    if options["least"] is not None and share is not None and share * 100 < options["least"]:
        ctx.exit(1)
    ctx.exit(0 if is_whole else ArchiveError.exit_code)
