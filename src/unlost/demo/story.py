"""The story, step by step: a site is lost, three archives have parts of it, and it comes back."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from os import environ
from pathlib import Path

from unlost.api.comparing import compare
from unlost.api.recovered import Recovered
from unlost.api.recovering import recover
from unlost.archives.archive import Archive, Kind
from unlost.demo.holding import Holding, build_maps, faked, held_by, served
from unlost.demo.pairs import Pair, pairs_of
from unlost.demo.routing import Routed, routed
from unlost.demo.site import LostSite, lost_site
from unlost.demo.warcs import write_warc
from unlost.errors import InputError
from unlost.measure.breakdown import breakdowns
from unlost.measure.comparison import Comparison
from unlost.measure.wording import headline, remarks
from unlost.recover.export.exported import Exported
from unlost.recover.report.figures import Figures, figures_of
from unlost.recover.report.retelling import report_strings
from unlost.recover.report.wording import day
from unlost.recover.state.chosen import Chosen
from unlost.recover.state.gaps import Missing
from unlost.recover.state.reading import Rejected, StateReading
from unlost.shown.words import counted, share

OWN_SITE = "unlost recover http://your.example/"
"""What everybody types for their own."""

Tell = Callable[[str], None]
"""Gets what happens, a line at a time; a line that does not begin with a space begins a step."""


@dataclass(frozen=True, slots=True)
class Story:
    """All that happened.

    is_pywb: whether the archives were run by pywb, else by the package itself.
    figures, chosen, missing, rejected: of the recovery. comparison: with the original. exported: as a site.
    page: the folder that is shown; `original/` and `recovered/` are the two sites in it.
    """

    site: LostSite
    is_pywb: bool
    holdings: tuple[Holding, ...]
    routed: Routed
    recovery: Path
    figures: Figures
    chosen: tuple[Chosen, ...]
    missing: tuple[Missing, ...]
    rejected: tuple[Rejected, ...]
    comparison: Comparison
    exported: Exported
    pairs: tuple[Pair, ...]
    page: Path


@contextmanager
def told_story(folder: Path, pywb: Path | None, tell: Tell) -> Iterator[Story]:
    """Let it happen in a folder that is there; give what came of it, while the archives still answer.

    pywb: the program `wayback` of one, which runs the archives; None for those of the package itself.
    Raises UsageError for a pywb that does not run, OSError, and KeyboardInterrupt once all was put away.
    """
    site = lost_site()
    with _own_home(folder / "home"):
        original = _original(site, folder, tell)
        holdings = _held(site, folder / "archives", tell)
        with _running(site, holdings, pywb, tell) as archives:
            _maps(holdings, tell)
            answers = _routed(site, holdings, archives, folder / "aggregator", tell)
            recovery = folder / f"{site.url.split('/')[2]}.recovery"
            _recovered(site, archives, recovery, tell)
            with StateReading(recovery) as state:
                figures = figures_of(state)
                # In an order of their own: what comes when depends on who answers first.
                chosen = tuple(sorted(state.chosen(), key=lambda each: each.name))
                missing = tuple(sorted(state.missing(), key=lambda each: each.uri))
                rejected = tuple(sorted(state.rejected(), key=lambda each: (each.datetime, each.uri)))
            _tell_of(missing, rejected, tell)
            comparison = _compared(original, recovery, tell)
            exported = _exported(recovery, folder, tell)
            pairs = pairs_of(site, folder / "original.recovery", recovery, comparison)
            yield Story(
                site, pywb is not None, holdings, answers, recovery, figures, chosen, missing, rejected, comparison,
                exported, pairs, folder / "page",
            )  # fmt: skip


@contextmanager
def _own_home(folder: Path) -> Iterator[None]:
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


def _original(site: LostSite, folder: Path, tell: Tell) -> Path:
    """Write the site as it last was, as a WARC and as files to look at; return the WARC."""
    copies = [(resource.url, site.ended, answer) for resource, answer in site.originals()]
    tell(f"A site is lost: {site.url}, {len(copies)} addresses, on {day(site.ended)}")
    tell("  pages, pictures, style sheets, a PDF, a program with query strings; all of it made up")
    warc = write_warc(folder / "original", copies, site.ended)
    # What is shown beside the recovered site is made in the same way: it differs only in what it was made of.
    own = Archive("original", "The site itself", Kind.FILES, folder=str(warc.parent))
    whole = recover(site.url, folder / "original.recovery", archives=[own], policy="exhaustive")
    (folder / "page").mkdir()
    whole.export(folder / "page" / "original", external="none")
    return warc


def _held(site: LostSite, folder: Path, tell: Tell) -> tuple[Holding, ...]:
    holdings = held_by(site, folder)
    tell("Three archives have parts of it, from different times: WARCs and their indexes are written")
    for each in holdings:
        copies = f"{each.captures} copies of {each.addresses} addresses"
        tell(f"  {each.name}: {copies}, WARC {_bytes(each.warc)}, index {_bytes(each.index)}")
    return holdings


@contextmanager
def _running(
    site: LostSite, holdings: tuple[Holding, ...], pywb: Path | None, tell: Tell
) -> Iterator[Mapping[str, Archive]]:
    """Run the archives, and say who runs them."""
    who = "the package itself: real HTTP, real Memento, no pywb" if pywb is None else f"three pywb ({pywb})"
    tell(f"They answer on this machine, run by {who}")
    running: AbstractContextManager[Mapping[str, Archive]] = faked(site) if pywb is None else served(pywb, holdings)
    with running as archives:
        for each in holdings:
            tell(f"  {each.name}: {archives[each.id].timegate}")
        yield archives


def _maps(holdings: tuple[Holding, ...], tell: Tell) -> None:
    build_maps(holdings)
    tell("Each publishes a map of what it holds")
    for each in holdings:
        tell(f"  {each.name}: {_bytes(each.map)}, of an index of {_bytes(each.index)}")


def _routed(
    site: LostSite, holdings: tuple[Holding, ...], archives: Mapping[str, Archive], folder: Path, tell: Tell
) -> Routed:
    addresses = [resource.url for resource in site.resources]
    maps = {each.id: each.map for each in holdings}
    found = routed(archives, maps, addresses, folder)
    tell(f"An aggregator with these maps is asked for all {found.addresses} addresses that the site ever had")
    tell(f"  {counted(found.requests, 'request')} sent, {found.saved} not sent thanks to maps")
    same = "the same as" if found.found == found.found_by_all else f"and {found.found_by_all}"
    tell(f"  {found.found} copies found, {same} with everybody asked for everything")
    if found.failed:
        tell(f"  {found.failed} answers did not come")
    return found


def _recovered(site: LostSite, archives: Mapping[str, Archive], folder: Path, tell: Tell) -> None:
    tell(f"The site is recovered from all three, as `unlost recover {site.url}` does it")
    # The story compares with the original, where an error page would count as a page that came back changed.
    done = recover(site.url, folder, archives=archives.values(), contact="demo@example.org", drop_rejected=True)
    counts, run = done.counts(), done.run
    sent = sum(run.requests.values()) if run is not None else 0
    tell(f"  {counts['recovered']} recovered, {counts['missing']} missing; {counted(sent, 'request')}")


def _tell_of(missing: tuple[Missing, ...], rejected: tuple[Rejected, ...], tell: Tell) -> None:
    verdict = partial(report_strings("en").word, "verdict")
    for each in rejected:
        tell(f"  rejected: {each.uri} of {day(each.datetime)} in {each.archive}: {verdict(each.kind)}")
    for gap in missing:
        tell(f"  missing: {gap.uri}")


def _compared(original: Path, recovery: Path, tell: Tell) -> Comparison:
    comparison = compare(original, recovery)
    tell(f"Compared with the original: {headline(comparison.counts)}")
    for row in breakdowns(comparison)[0].rows:
        tell(f"  {row.label}: {share(row.share)} ({row.recovered} of {row.original}), {row.identical} unchanged")
    for sentence in remarks(comparison):
        tell(f"  {sentence}")
    return comparison


def _exported(recovery: Path, folder: Path, tell: Tell) -> Exported:
    recovered = Recovered(recovery)
    exported = recovered.export(folder / "page" / "recovered", external="none", hosting=True)
    if not isinstance(exported, Exported):
        raise InputError(f"{folder}: expected a site")
    wacz = recovery.with_suffix(".wacz")
    recovered.export(wacz)
    recovered.report(folder / "page" / "report")
    tell(f"Exported: {counted(exported.files, 'file')} that work offline, with rules for servers, and {wacz.name}")
    tell(f"  {exported.links['file']} links lead to files, {exported.links['missing']} to what is missing")
    return exported


def _bytes(file: Path) -> str:
    size = file.stat().st_size
    return f"{size / 1000:.1f} KB"
