"""The steps of the demonstration: archives, maps, routing, recovery, comparison, export."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from os import environ
from pathlib import Path

from unlost.aggregate.factory import AggregatorConfig, build_aggregator
from unlost.aggregate.models import CacheControl, RoutingOptions
from unlost.api.loop_thread import LoopThread
from unlost.api.recovery import Recovery, compare, recover
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
from unlost.recovery.state.queries import ChosenCapture, MissingResourceRow
from unlost.recovery.state.reader import RejectedCapture, StateReader
from unlost.registry.models import Archive, ArchiveKind
from unlost.report.format import format_count, format_share
from unlost.report.recovery.stats import RecoveryStats, collect_stats
from unlost.report.recovery.text import format_day, report_strings

RECOVER_COMMAND = "unlost recover http://your.example/"
"""Command shown to users for recovering their own site."""
MessageCallback = Callable[[str], None]
"""Receives progress messages, one line each; a line without leading space starts a new step."""
_DEADLINE_SECONDS = 60.0  # of a look-up; generous, because the machine may be busy
_NO_CACHE = CacheControl(no_cache=True)


@dataclass(frozen=True, slots=True)
class DemoRouting:
    """Totals of the aggregator over all URLs.

    Attributes:
        urls: Number of URLs looked up.
        sent: Requests sent with maps, by archive.
        not_sent: Requests saved by maps, by archive.
        found: Mementos found with maps.
        found_by_all: Mementos found when every archive was queried.
        failed: Failed requests.
    """

    urls: int
    sent: Mapping[str, int]
    not_sent: Mapping[str, int]
    found: int
    found_by_all: int
    failed: int

    @property
    def requests(self) -> int:
        """Number of requests sent."""
        return sum(self.sent.values())

    @property
    def saved(self) -> int:
        """Number of requests saved."""
        return sum(self.not_sent.values())


def measure_routing(
    archives: Mapping[str, Archive], maps: Mapping[str, Path], urls: Sequence[str], folder: Path
) -> DemoRouting:
    """Look up all URLs twice: routed by maps, then broadcast to all archives.

    A failed request is counted, not raised.

    Args:
        archives: Registry entries by ID.
        maps: MementoMaps by archive ID.
        urls: URLs to look up.
        folder: Folder for the state and cache of the aggregator.
    """
    entries = [replace(each, mementomap=str(maps[name])) for name, each in archives.items()]
    # No exploration, so that the numbers are reproducible.
    config = AggregatorConfig(
        entries,
        folder / "state",
        folder / "cache",
        _ignore_message,
        _DEADLINE_SECONDS,
        exploration_share=0.0,
        is_long_running=False,
    )
    with LoopThread("unlost.demo") as loop:
        return loop.run(_query_all(config, urls))


async def _query_all(config: AggregatorConfig, urls: Sequence[str]) -> DemoRouting:
    sent, not_sent = (Counter({each.id: 0 for each in config.archives}) for _ in range(2))
    found = found_by_all = failed = 0
    async with build_aggregator(config) as components:
        for url in urls:
            by_maps = await components.aggregator.find(url, RoutingOptions(), _NO_CACHE)
            by_all = await components.aggregator.find(url, RoutingOptions(broadcast=True), _NO_CACHE)
            sent.update(each.archive for each in by_maps.reports)
            not_sent.update(by_maps.passed_over)
            found += len(by_maps.mementos)
            found_by_all += len(by_all.mementos)
            failed += len(by_maps.failures) + len(by_all.failures)
    return DemoRouting(len(urls), dict(sent), dict(not_sent), found, found_by_all, failed)


def _ignore_message(_: str) -> None:
    """Discard a message."""


@dataclass(frozen=True, slots=True)
class PagePair:
    """A page of the site, original and recovered.

    Attributes:
        outcome: `identical`, `changed` or `missing`.
        original: Relative URL in the export of the original; None if absent.
        recovered: Relative URL in the export of the recovery; None if absent.
    """

    url: str
    title: str
    outcome: str
    original: str | None
    recovered: str | None


def pair_pages(site: LostSite, original: Path, recovered: Path, comparison: Comparison) -> tuple[PagePair, ...]:
    """Return the pages of the site with their URLs in both exports.

    Args:
        site: The site.
        original: Recovery folder of the original.
        recovered: Recovery folder of the recovered site.
        comparison: Comparison of both.

    Raises:
        InputError: A recovery folder could not be read.
    """
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
    target = site.resolve(url, LinkKind.PAGE)
    return target.relative_url if target.kind is LinkTargetKind.FILE else None


@dataclass(frozen=True, slots=True)
class DemoStory:
    """Everything that happened in the demonstration.

    Attributes:
        is_pywb: Whether pywb served the archives, not `FakeArchive`.
        stats: Statistics of the recovery; `chosen`, `missing` and `rejected` are its resources.
        comparison: Comparison with the original.
        exported: Result of the export as a static site.
        page: Folder to serve; `original/` and `recovered/` in it are the two sites.
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
    """Run the demonstration in an existing folder; yield its result while the archives still run.

    Args:
        folder: Folder for all files.
        pywb: Path of pywb's `wayback` command; None to serve the archives with `FakeArchive`.
        on_message: Receives progress messages.

    Raises:
        UsageError: pywb does not run.
        OSError: A file could not be written.
        KeyboardInterrupt: The user interrupted the run; raised after clean-up.
    """
    site = lost_site()
    with _isolated_home(folder / "home"):
        original = _write_original(site, folder, on_message)
        holdings = _write_archives(site, folder / "archives", on_message)
        with _run_archives(site, holdings, pywb, on_message) as archives:
            _build_maps(holdings, on_message)
            routing = _measure_routing(site, holdings, archives, folder / "aggregator", on_message)
            recovery = folder / f"{site.url.split('/')[2]}.recovery"
            _recover_site(site, archives, recovery, on_message)
            with StateReader(recovery) as state:
                stats = collect_stats(state)
                # Sorted, because the order of arrival depends on timing.
                chosen = tuple(sorted(state.chosen_captures(), key=lambda each: each.name))
                missing = tuple(sorted(state.missing_resources(), key=lambda each: each.uri))
                rejected = tuple(sorted(state.rejected(), key=lambda each: (each.datetime, each.uri)))
            _report_missing_and_rejected(missing, rejected, on_message)
            comparison = _compare_sites(original, recovery, on_message)
            exported = _export_site(recovery, folder, on_message)
            pairs = pair_pages(site, folder / "original.recovery", recovery, comparison)
            yield DemoStory(
                site, pywb is not None, holdings, routing, recovery, stats, chosen, missing, rejected, comparison,
                exported, pairs, folder / "page",
            )  # fmt: skip


@contextmanager
def _isolated_home(folder: Path) -> Iterator[None]:
    """Redirect the user's configuration, state and cache folders."""
    previous = environ.get("UNLOST_HOME")
    environ["UNLOST_HOME"] = str(folder)
    try:
        yield
    finally:
        if previous is None:
            del environ["UNLOST_HOME"]
        else:
            environ["UNLOST_HOME"] = previous


def _write_original(site: LostSite, folder: Path, on_message: MessageCallback) -> Path:
    """Write the final version of the site as a WARC and as an export for viewing; return the WARC."""
    captures = [(resource.url, site.ended, response) for resource, response in site.final_resources()]
    on_message(f"Lost website: {site.url}, {len(captures)} URLs, offline since {format_day(site.ended)}")
    on_message("  Synthetic content: pages, images, style sheets, a PDF, a script with query strings")
    warc = write_site_warc(folder / "original", captures, site.ended)
    # The original is exported by the same code as the recovered site, so that they differ in content only.
    archive = Archive("original", "The site itself", ArchiveKind.FILES, folder=str(warc.parent))
    recovery = recover(site.url, folder / "original.recovery", archives=[archive], policy="exhaustive")
    (folder / "page").mkdir()
    recovery.export(folder / "page" / "original", external="none")
    return warc


def _write_archives(site: LostSite, folder: Path, on_message: MessageCallback) -> tuple[DemoHoldings, ...]:
    holdings = write_holdings(site, folder)
    on_message("Three archives with captures from different dates: WARC files and indexes written")
    for each in holdings:
        copies = f"{each.captures} captures of {each.urls} URLs"
        on_message(f"  {each.name}: {copies}, WARC {_file_size(each.warc)}, index {_file_size(each.index)}")
    return holdings


@contextmanager
def _run_archives(
    site: LostSite, holdings: tuple[DemoHoldings, ...], pywb: Path | None, on_message: MessageCallback
) -> Iterator[Mapping[str, Archive]]:
    """Run the archives and report how they are served."""
    served_by = "the built-in server (HTTP, Memento; no pywb)" if pywb is None else f"three pywb instances ({pywb})"
    on_message(f"Archives on this machine, run by {served_by}")
    archive_servers: AbstractContextManager[Mapping[str, Archive]] = (
        run_fake_archives(site) if pywb is None else run_pywb_archives(pywb, holdings)
    )
    with archive_servers as archives:
        for each in holdings:
            on_message(f"  {each.name}: {archives[each.id].timegate}")
        yield archives


def _build_maps(holdings: tuple[DemoHoldings, ...], on_message: MessageCallback) -> None:
    build_maps(holdings)
    on_message("MementoMap of each archive")
    for each in holdings:
        on_message(f"  {each.name}: {_file_size(each.map)}, index {_file_size(each.index)}")


def _measure_routing(
    site: LostSite,
    holdings: tuple[DemoHoldings, ...],
    archives: Mapping[str, Archive],
    folder: Path,
    on_message: MessageCallback,
) -> DemoRouting:
    urls = [resource.url for resource in site.resources]
    maps = {each.id: each.map for each in holdings}
    routing = measure_routing(archives, maps, urls, folder)
    on_message(f"Aggregator: all {routing.urls} URLs of the site are looked up with these maps")
    on_message(f"  {format_count(routing.requests, 'request')} sent, {routing.saved} saved by the maps")
    same = "the same as" if routing.found == routing.found_by_all else f"{routing.found_by_all}"
    on_message(f"  {routing.found} captures found, {same} without maps")
    if routing.failed:
        on_message(f"  {format_count(routing.failed, 'request')} failed")
    return routing


def _recover_site(site: LostSite, archives: Mapping[str, Archive], folder: Path, on_message: MessageCallback) -> None:
    on_message(f"Recovery from all three archives, as with `unlost recover {site.url}`")
    # The story compares with the original, where an error page would count as a page that came back changed.
    recovery = recover(site.url, folder, archives=archives.values(), contact="demo@example.org", drop_rejected=True)
    counts, run = recovery.counts(), recovery.run
    sent = sum(run.requests.values()) if run is not None else 0
    on_message(f"  {counts['recovered']} recovered, {counts['missing']} missing; {format_count(sent, 'request')}")


def _report_missing_and_rejected(
    missing: tuple[MissingResourceRow, ...], rejected: tuple[RejectedCapture, ...], on_message: MessageCallback
) -> None:
    verdict = partial(report_strings("en").word, "verdict")
    for each in rejected:
        captured = f"captured {format_day(each.datetime)} by {each.archive}"
        on_message(f"  rejected: {each.uri}, {captured}: {verdict(each.kind)}")
    for resource in missing:
        on_message(f"  missing: {resource.uri}")


def _compare_sites(original: Path, recovery: Path, on_message: MessageCallback) -> Comparison:
    comparison = compare(original, recovery)
    on_message(f"Comparison with the original: {comparison_headline(comparison.counts)}")
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
        f"Export: {format_count(exported.files, 'file')} for offline use, web server configuration, and {wacz.name}"
    )
    on_message(f"  {exported.links['file']} links to recovered files, {exported.links['missing']} to missing ones")
    return exported


def _file_size(file: Path) -> str:
    size = file.stat().st_size
    return f"{size / 1000:.1f} KB"
