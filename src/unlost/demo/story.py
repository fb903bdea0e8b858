"""The story, step by step: a site is lost, three archives have parts of it, and it comes back."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from os import environ
from pathlib import Path

from unlost.api.comparing import compare
from unlost.api.recovered import Recovery
from unlost.api.recovering import recover
from unlost.archives.archive import Archive, ArchiveKind
from unlost.demo.holding import DemoHoldings, build_maps, run_fake_archives, write_holdings, run_pywb_archives
from unlost.demo.pairs import PagePair, pair_pages
from unlost.demo.routing import DemoRouting, measure_routing
from unlost.demo.site import LostSite, lost_site
from unlost.demo.warcs import write_site_warc
from unlost.errors import InputError
from unlost.measure.breakdown import breakdowns
from unlost.measure.comparison import Comparison
from unlost.measure.wording import comparison_headline, comparison_remarks
from unlost.recover.export.exported import ExportResult
from unlost.recover.report.figures import RecoveryStats, collect_stats
from unlost.recover.report.retelling import report_strings
from unlost.recover.report.wording import format_day
from unlost.recover.state.chosen import ChosenCapture
from unlost.recover.state.gaps import MissingResourceRow
from unlost.recover.state.reading import RejectedCapture, StateReader
from unlost.shown.words import format_count, format_share

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
