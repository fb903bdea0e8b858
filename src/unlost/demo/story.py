"""The demonstration, step by step: archives, maps, routing, recovery, comparison, export."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from os import environ
from pathlib import Path

from unlost.aggregate.models import CacheControl, RoutingOptions
from unlost.api.comparison import compare
from unlost.api.loop_thread import LoopThread
from unlost.api.recovery import Recovery, recover
from unlost.comparison.breakdown import breakdowns
from unlost.comparison.compare import Comparison
from unlost.comparison.report import comparison_headline, comparison_remarks
from unlost.demo.archives import DemoHoldings, build_maps, run_fake_archives, run_pywb_archives, write_holdings
from unlost.demo.site import LostSite, lost_site, write_site_warc
from unlost.errors import InputError
from unlost.export.contents import read_contents
from unlost.export.links import LinkResolver, LinkTargetKind
from unlost.export.paths import PathStyle
from unlost.export.site import ExportResult
from unlost.html.links import LinkKind
from unlost.recover.state.queries import ChosenCapture, MissingResourceRow
from unlost.recover.state.reader import RejectedCapture, StateReader
from unlost.registry.models import Archive, ArchiveKind
from unlost.report.format import format_count, format_share
from unlost.report.recovery.stats import RecoveryStats, collect_stats
from unlost.report.recovery.text import format_day, report_strings
from unlost.web.factory import ServiceOptions, build_service

_DEADLINE_SECONDS = 60.0  # seconds for one answer: the machine may be busy, and nobody waits for a page
_FRESH = CacheControl(no_cache=True)


@dataclass(frozen=True, slots=True)
class DemoRouting:
    """What the aggregator did for all addresses together.

    sent: requests to archives, by their maps. not_sent: those that maps have saved. both by archive.
    found: copies that came, with maps. found_by_all: copies that came when everybody was asked for everything.
    failed: answers that did not come.
    """

    urls: int
    sent: Mapping[str, int]
    not_sent: Mapping[str, int]
    found: int
    found_by_all: int
    failed: int

    @property
    def requests(self) -> int:
        """How many were sent."""
        return sum(self.sent.values())

    @property
    def saved(self) -> int:
        """How many were not."""
        return sum(self.not_sent.values())


def measure_routing(
    archives: Mapping[str, Archive], maps: Mapping[str, Path], urls: Sequence[str], folder: Path
) -> DemoRouting:
    """Ask for all addresses twice: those that may have one by their maps, then everybody.

    folder: for the aggregator's own files. Nothing is raised for an archive that fails: it is counted.
    """
    known = [replace(each, mementomap=str(maps[name])) for name, each in archives.items()]
    # Nothing is asked at random, so that the numbers are the same each time.
    options = ServiceOptions(
        known, folder / "state", folder / "cache", _ignore_message, _DEADLINE_SECONDS, exploring=0.0, stays=False
    )
    with LoopThread("unlost.demo") as loop:
        return loop.run(_query_all(options, urls))


async def _query_all(options: ServiceOptions, urls: Sequence[str]) -> DemoRouting:
    sent, not_sent = (Counter({each.id: 0 for each in options.archives}) for _ in range(2))
    found = found_by_all = failed = 0
    async with build_service(options) as parts:
        for address in urls:
            by_maps = await parts.finder.find(address, RoutingOptions(), _FRESH)
            by_all = await parts.finder.find(address, RoutingOptions(broadcast=True), _FRESH)
            sent.update(each.archive for each in by_maps.reports)
            not_sent.update(by_maps.passed_over)
            found += len(by_maps.mementos)
            found_by_all += len(by_all.mementos)
            failed += len(by_maps.failures) + len(by_all.failures)
    return DemoRouting(len(urls), dict(sent), dict(not_sent), found, found_by_all, failed)


def _ignore_message(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class PagePair:
    """One page. outcome: `identical`, `changed` or `missing`.

    original, recovered: its address in each export, relative to its top; None where it is not.
    """

    url: str
    title: str
    outcome: str
    original: str | None
    recovered: str | None


def pair_pages(site: LostSite, original: Path, recovered: Path, comparison: Comparison) -> tuple[PagePair, ...]:
    """Return all pages that the site had. original, recovered: the folders of their recoveries. Raises InputError."""
    outcomes: Mapping[str, str] = {each.uri: each.outcome.value for each in comparison.resources()}
    pages = [(resource.url, resource.title) for resource in site.resources if resource.is_page]
    with _link_resolver(original) as before, _link_resolver(recovered) as after:
        return tuple(
            PagePair(url, title, outcomes[url], _relative_url(before, url), _relative_url(after, url))
            for url, title in pages
        )


@contextmanager
def _link_resolver(recovery: Path) -> Iterator[LinkResolver]:
    with read_contents(recovery) as contents:
        yield LinkResolver(contents, PathStyle(browsable=True, windows=False))


def _relative_url(site: LinkResolver, url: str) -> str | None:
    found = site.resolve(url, LinkKind.PAGE)
    return found.relative_url if found.kind is LinkTargetKind.FILE else None


RECOVER_COMMAND = "unlost recover http://your.example/"
"""What everybody types for their own."""
MessageCallback = Callable[[str], None]
"""Gets what happens, a line at a time; a line that does not begin with a space begins a step."""


@dataclass(frozen=True, slots=True)
class DemoStory:
    """All that happened.

    is_pywb: whether the archives were run by pywb, else by the package itself.
    figures, chosen, missing, rejected: of the recovery. comparison: with the original. exported: as a site.
    page: the folder that is shown; `original/` and `recovered/` are the two sites in it.
    """

    site: LostSite
    is_pywb: bool
    holdings: tuple[DemoHoldings, ...]
    routing: DemoRouting
    recovery: Path
    stats: RecoveryStats
    chosen: tuple[ChosenCapture, ...]
    missing: tuple[MissingResourceRow, ...]
    rejected: tuple[RejectedCapture, ...]
    comparison: Comparison
    exported: ExportResult
    pairs: tuple[PagePair, ...]
    page: Path


@contextmanager
def run_story(folder: Path, pywb: Path | None, on_message: MessageCallback) -> Iterator[DemoStory]:
    """Let it happen in a folder that is there; give what came of it, while the archives still answer.

    pywb: the program `wayback` of one, which runs the archives; None for those of the package itself.
    Raises UsageError for a pywb that does not run, OSError, and KeyboardInterrupt once all was put away.
    """
    site = lost_site()
    with _isolated_home(folder / "home"):
        original = _write_original(site, folder, on_message)
        holdings = _write_archives(site, folder / "archives", on_message)
        with _run_archives(site, holdings, pywb, on_message) as archives:
            _build_maps(holdings, on_message)
            answers = _measure_routing(site, holdings, archives, folder / "aggregator", on_message)
            recovery = folder / f"{site.url.split('/')[2]}.recovery"
            _recover_site(site, archives, recovery, on_message)
            with StateReader(recovery) as state:
                figures = collect_stats(state)
                # In an order of their own: what comes when depends on who answers first.
                chosen = tuple(sorted(state.chosen_captures(), key=lambda each: each.name))
                missing = tuple(sorted(state.missing_resources(), key=lambda each: each.uri))
                rejected = tuple(sorted(state.rejected(), key=lambda each: (each.datetime, each.uri)))
            _report_missing_and_rejected(missing, rejected, on_message)
            comparison = _compare_sites(original, recovery, on_message)
            exported = _export_site(recovery, folder, on_message)
            pairs = pair_pages(site, folder / "original.recovery", recovery, comparison)
            yield DemoStory(
                site, pywb is not None, holdings, answers, recovery, figures, chosen, missing, rejected, comparison,
                exported, pairs, folder / "page",
            )  # fmt: skip


@contextmanager
def _isolated_home(folder: Path) -> Iterator[None]:
    """Have everything that commands keep in the user's own folders kept elsewhere."""
    before = environ.get("UNLOST_HOME")
    environ["UNLOST_HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del environ["UNLOST_HOME"]
        else:
            environ["UNLOST_HOME"] = before


def _write_original(site: LostSite, folder: Path, on_message: MessageCallback) -> Path:
    """Write the site as it last was, as a WARC and as files to look at; return the WARC."""
    copies = [(resource.url, site.ended, answer) for resource, answer in site.final_resources()]
    on_message(f"A site is lost: {site.url}, {len(copies)} addresses, on {format_day(site.ended)}")
    on_message("  pages, pictures, style sheets, a PDF, a program with query strings; all of it made up")
    warc = write_site_warc(folder / "original", copies, site.ended)
    # What is shown beside the recovered site is made in the same way: it differs only in what it was made of.
    own = Archive("original", "The site itself", ArchiveKind.FILES, folder=str(warc.parent))
    whole = recover(site.url, folder / "original.recovery", archives=[own], policy="exhaustive")
    (folder / "page").mkdir()
    whole.export(folder / "page" / "original", external="none")
    return warc


def _write_archives(site: LostSite, folder: Path, on_message: MessageCallback) -> tuple[DemoHoldings, ...]:
    holdings = write_holdings(site, folder)
    on_message("Three archives have parts of it, from different times: WARCs and their indexes are written")
    for each in holdings:
        copies = f"{each.captures} copies of {each.urls} addresses"
        on_message(f"  {each.name}: {copies}, WARC {_file_size(each.warc)}, index {_file_size(each.index)}")
    return holdings


@contextmanager
def _run_archives(
    site: LostSite, holdings: tuple[DemoHoldings, ...], pywb: Path | None, on_message: MessageCallback
) -> Iterator[Mapping[str, Archive]]:
    """Run the archives, and say who runs them."""
    who = "the package itself: real HTTP, real Memento, no pywb" if pywb is None else f"three pywb ({pywb})"
    on_message(f"They answer on this machine, run by {who}")
    running: AbstractContextManager[Mapping[str, Archive]] = (
        run_fake_archives(site) if pywb is None else run_pywb_archives(pywb, holdings)
    )
    with running as archives:
        for each in holdings:
            on_message(f"  {each.name}: {archives[each.id].timegate}")
        yield archives


def _build_maps(holdings: tuple[DemoHoldings, ...], on_message: MessageCallback) -> None:
    build_maps(holdings)
    on_message("Each publishes a map of what it holds")
    for each in holdings:
        on_message(f"  {each.name}: {_file_size(each.map)}, of an index of {_file_size(each.index)}")


def _measure_routing(
    site: LostSite,
    holdings: tuple[DemoHoldings, ...],
    archives: Mapping[str, Archive],
    folder: Path,
    on_message: MessageCallback,
) -> DemoRouting:
    addresses = [resource.url for resource in site.resources]
    maps = {each.id: each.map for each in holdings}
    found = measure_routing(archives, maps, addresses, folder)
    on_message(f"An aggregator with these maps is asked for all {found.urls} addresses that the site ever had")
    on_message(f"  {format_count(found.requests, 'request')} sent, {found.saved} not sent thanks to maps")
    same = "the same as" if found.found == found.found_by_all else f"and {found.found_by_all}"
    on_message(f"  {found.found} copies found, {same} with everybody asked for everything")
    if found.failed:
        on_message(f"  {found.failed} answers did not come")
    return found


def _recover_site(site: LostSite, archives: Mapping[str, Archive], folder: Path, on_message: MessageCallback) -> None:
    on_message(f"The site is recovered from all three, as `unlost recover {site.url}` does it")
    # The story compares with the original, where an error page would count as a page that came back changed.
    done = recover(site.url, folder, archives=archives.values(), contact="demo@example.org", drop_rejected=True)
    counts, run = done.counts(), done.run
    sent = sum(run.requests.values()) if run is not None else 0
    on_message(f"  {counts['recovered']} recovered, {counts['missing']} missing; {format_count(sent, 'request')}")


def _report_missing_and_rejected(
    missing: tuple[MissingResourceRow, ...], rejected: tuple[RejectedCapture, ...], on_message: MessageCallback
) -> None:
    verdict = partial(report_strings("en").word, "verdict")
    for each in rejected:
        on_message(f"  rejected: {each.uri} of {format_day(each.datetime)} in {each.archive}: {verdict(each.kind)}")
    for gap in missing:
        on_message(f"  missing: {gap.uri}")


def _compare_sites(original: Path, recovery: Path, on_message: MessageCallback) -> Comparison:
    comparison = compare(original, recovery)
    on_message(f"Compared with the original: {comparison_headline(comparison.counts)}")
    for row in breakdowns(comparison)[0].rows:
        on_message(
            f"  {row.label}: {format_share(row.share)} ({row.recovered} of {row.original}), {row.identical} unchanged"
        )
    for sentence in comparison_remarks(comparison):
        on_message(f"  {sentence}")
    return comparison


def _export_site(recovery: Path, folder: Path, on_message: MessageCallback) -> ExportResult:
    recovered = Recovery(recovery)
    exported = recovered.export(folder / "page" / "recovered", external="none", hosting=True)
    if not isinstance(exported, ExportResult):
        raise InputError(f"{folder}: expected a site")
    wacz = recovery.with_suffix(".wacz")
    recovered.export(wacz)
    recovered.report(folder / "page" / "report")
    on_message(
        f"Exported: {format_count(exported.files, 'file')} that work offline, with rules for servers, and {wacz.name}"
    )
    on_message(f"  {exported.links['file']} links lead to files, {exported.links['missing']} to what is missing")
    return exported


def _file_size(file: Path) -> str:
    size = file.stat().st_size
    return f"{size / 1000:.1f} KB"
