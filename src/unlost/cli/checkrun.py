"""One run of `unlost check`: puts its parts together, and says what came of it."""

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop

from unlost.archives.asking.connectivity import probe_network
from unlost.archives.spelling import asked, read_url_list
from unlost.cli import config
from unlost.cli.addresses import meant
from unlost.cli.checkshown import print_json, print_report
from unlost.cli.means import opened_means
from unlost.cli.messages import command_line, say, say_next
from unlost.cli.problems import say_problems
from unlost.cli.progress import Bar, progress, telling
from unlost.cli.registry_options import archives_of
from unlost.cli.visited import say_visited
from unlost.clock import Clock, SystemClock
from unlost.crawl.plan import Plan, Reach
from unlost.errors import InputError, OfflineError
from unlost.formats.output import whole_file
from unlost.formats.problems import Problems
from unlost.measure.availability.checking import Checked, Depth, LiveSite, begun, check_site
from unlost.measure.availability.crawled import CopiedSite, CrawledSite, Visiting
from unlost.measure.availability.page import check_page
from unlost.measure.availability.sources import of_copy, prefix_of
from unlost.measure.availability.states import State
from unlost.measure.visits.file import VisitsFile, explained
from unlost.measure.visits.history import History
from unlost.measure.visits.present import Listed, Stage


class CheckRun:
    """A check, with the options that were given, by their names."""

    def __init__(self, given: Mapping[str, Any], clock: Clock | None = None) -> None:
        self._given = given
        self._clock = clock or SystemClock()
        self._problems = Problems()
        url = given["url"]
        self._what = str(given["warc"] or given["urls"]) if url is None else meant(url, asked)

    def run(self) -> tuple[bool, float | None]:
        """Check, print and write; return whether all archives answered, and the share that would come back."""
        archives = archives_of(self._given["archives"], self._given["only"])
        with (
            self._folder() as folder,
            explained(folder / "visits.sqlite"),
            VisitsFile(folder / "visits.sqlite") as file,
        ):
            history = History(file, file.site(self._what))
            checked = uvloop.run(self._check(history, folder, archives))
            self._show(checked)
            if not checked.left_over:
                history.end(checked.visit, checked.archives)
        if not checked.left_over:
            shutil.rmtree(folder, ignore_errors=True)
        return not checked.left_over, checked.figures.score.share

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """Give the folder for what is known so far of just this check."""
        names = ("sitemap", "subdomains", "limit", "sample", "all", "thorough", "beside", "judge", "only")
        plan = dumps([self._what, [str(self._given[name]) for name in names], str(self._given["archives"])])
        host = (urlsplit(self._what).hostname or Path(self._what).name)[:60]
        safe = "".join(char if char.isalnum() or char in "-." else "_" for char in host)
        folder = config.state() / "checks" / f"{safe}-{hashlib.sha256(plan.encode()).hexdigest()[:12]}"
        if self._given["anew"]:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder

    async def _check(self, history: History, folder: Path, archives: Mapping[str, Any]) -> Checked:
        visit, _ = await begun(history, self._clock)
        with progress("checking", counted="addresses") as bar:
            site = self._site(folder / f"crawl-{visit.id}", bar)
            depth = depth_of(self._given)
            try:
                async with opened_means(archives, self._given, self._clock) as means:
                    checked = await check_site(history, visit, site, means, depth, _Told(bar))
            except (InputError, OfflineError) as error:
                offline = await self._explained(error, site, archives)
                if visit.stage is Stage.BEGUN and offline is not None:
                    shutil.rmtree(folder, ignore_errors=True)  # what was not reached is not what the site lacks
                raise (offline or error) from None
        if isinstance(site, CrawledSite):
            say_visited(site.result, "--limit sets how many")
        if not checked.figures.total:
            raise InputError(f"{self._what}: nothing of a site is there")
        return checked

    async def _explained(self, error: Exception, site: LiveSite, archives: Mapping[str, Any]) -> OfflineError | None:
        """Return that there is no network, if that is why a site did not respond; None if it is not."""
        if isinstance(error, OfflineError):
            return error
        if not isinstance(site, CrawledSite):
            return None
        return await probe_network(archives.values(), proxies=self._given["proxy"])

    def _site(self, folder: Path, bar: Bar) -> LiveSite:
        given = self._given
        if given["warc"] is not None:
            found, self._problems = of_copy(given["warc"])
            return CopiedSite(list(found))
        visiting = Visiting(folder, self._clock, given["contact"], given["proxy"], telling(bar))
        if given["urls"] is not None:
            urls = read_url_list(given["urls"], self._problems)
            say_problems(self._problems, level="warning")
            if not urls:
                raise InputError(f"{given['urls']}: no address is in it")
            plan = Plan((), extra=tuple(urls), links=False, parts=False, sitemaps=False, delay=given["delay"])
            return CrawledSite(plan, visiting)
        plan, prefixes = plan_of(self._what, given), [prefix_of(self._what)]
        return CrawledSite(plan, visiting, prefixes, must_answer=True, is_sitemap=given["sitemap"])

    def _show(self, checked: Checked) -> None:
        given = self._given
        if given["save"] is not None:
            self._save(given["save"], checked)
        if given["html"] is not None:
            standings = checked.present.standings(checked.archives)
            page = check_page(self._what, checked.now, checked.figures, standings, checked.left_over)
            with whole_file(given["html"]) as output:
                output.write(page.encode())
        if given["json"]:
            print_json(self._what, checked, checked.present.standings(checked.archives))
        else:
            print_report(checked.figures)
        say_left_over(checked)
        if checked.left_over:
            say("the same command goes on", level="info")
        elif not given["json"]:
            self._say_next(checked)

    def _say_next(self, checked: Checked) -> None:
        """Say what to do about URLs that no archive has; else, how to notice a loss."""
        if checked.figures.states[State.VULNERABLE]:
            where = self._given["save"]
            listed = f"the URLs in {where}" if where else "--save FILE writes the URLs that no archive has: these"
            say_next(f"{listed} can be given to https://web.archive.org/save, or kept by `unlost vault`")
        elif self._given["url"] is not None:
            say_next(f"{command_line('watch', self._what)} notices when the site is lost")

    def _save(self, file: Path, checked: Checked) -> None:
        """Write the addresses that no archive has; nobody else gets them."""
        count = 0
        with whole_file(file) as output:
            for standing in checked.present.standings(checked.archives):
                if standing.state is State.VULNERABLE:
                    count += 1
                    output.write(standing.live.uri.encode("utf-8", "surrogateescape") + b"\n")
        say(f"{count:,} addresses that no archive has are in {file}", level="info")


class _Told:
    """Shows how far archives were asked."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar

    def listed(self, listed: Listed) -> None:
        """Take how a list ended."""

    def asked(self, done: int, total: int) -> None:  # noqa: ARG002  a bar has no room for it
        """Take how many single questions were asked."""
        self._bar.at(done, lines=done)


def depth_of(given: Mapping[str, Any]) -> Depth:
    """Return how thoroughly archives are asked, by the options."""
    sample = None if given["all"] else given["sample"]
    return Depth(sample, given["thorough"], given.get("beside", 0), given.get("judge", 0))


def plan_of(url: str, given: Mapping[str, Any], known: tuple[str, ...] = ()) -> Plan:
    """Return how a site is crawled, by the options. known: addresses that are visited, whatever leads to them."""
    has_folder = urlsplit(prefix_of(url)).path != "/"
    reach = Reach.DOMAIN if given["subdomains"] else Reach.PREFIX if has_folder else Reach.HOST
    is_sitemap = bool(given.get("sitemap"))
    return Plan(
        (url,),
        reach,
        extra=known,
        resources=given["limit"],
        delay=given["delay"],
        links=not is_sitemap,
        parts=not is_sitemap,
    )


def say_left_over(checked: Checked) -> None:
    """Say which archives did not answer."""
    for archive, message in checked.left_over.items():
        say(f"{archive}: not asked to the end: {message}", level="warning", archive=archive)
