"""One run of `unlost compare`: reads both sites at once, compares them, says what could not be read."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from unlost.cli.messages import command_line, say, say_next
from unlost.cli.problems import say_problems
from unlost.cli.progress import ProgressBar, is_progress_visible, progress
from unlost.errors import InputError, UsageError
from unlost.formats.output import atomic_file
from unlost.measure.comparison import Comparison, compare_sites
from unlost.measure.comparison_page import render_comparison_page
from unlost.measure.difference import SiteDifference
from unlost.measure.resource import Site
from unlost.measure.sites.kinds import SiteKind, detect_site_kind
from unlost.measure.sites.opening import open_site, readable_bytes
from unlost.measure.sites.packed_site import has_manifest
from unlost.measure.texts import TextComparer
from unlost.measure.wording import UNREAD_REASONS, describe_skipped


@dataclass(frozen=True, slots=True)
class ComparisonRun:
    """Two sites that were compared, what they were called, and what came of it."""

    names: tuple[str, str]
    sites: tuple[Site, Site]
    comparison: Comparison


def compare_paths(
    paths: tuple[Path, Path], bases: tuple[str | None, str | None], similar_at: float, *, ignore_case: bool
) -> ComparisonRun:
    """Read two sites and compare them: the original, then the recovered one.

    bases: the address of the top of each, if it is a folder whose name is not that of a host. Raises InputError if one
    cannot be read, or there is nothing to compare with.
    """
    sites = _read(paths, bases, ignore_case=ignore_case)
    names = (str(paths[0]), str(paths[1]))
    _check_resources(names, sites)
    with progress("comparing texts", counted="texts") as bar, TextComparer(*sites) as texts:
        comparison = compare_sites(
            *sites, texts.similarity, similar_at=similar_at, on_pair=lambda done, _: bar.update(done, lines=done)
        )
    return ComparisonRun(names, sites, comparison)


def resolve_bases(
    paths: tuple[Path, Path], own: tuple[str | None, str | None], both: str | None
) -> tuple[str | None, str | None]:
    """Return the address of the top of each: its own, else the one for both if it is a folder that needs one.

    Raises UsageError if the one for both is for neither, InputError for what is no site.
    """
    if both is None:
        return own
    of_folders = [both if needs_base(path) else None for path in paths]
    if of_folders == [None, None]:
        raise UsageError("--base is for folders of files, and neither is one: leave it out")
    return own[0] or of_folders[0], own[1] or of_folders[1]


def needs_base(path: Path) -> bool:
    """Return whether a site does not tell the URLs of its files: a folder or package without a manifest."""
    kind = detect_site_kind(path)[0]
    return kind is SiteKind.FOLDER or (kind is SiteKind.PACKAGE and not has_manifest(path))


def _read(paths: tuple[Path, Path], bases: tuple[str | None, str | None], *, ignore_case: bool) -> tuple[Site, Site]:
    """Read both sites, each in a thread of its own."""
    stop = Event()
    total = sum(readable_bytes(path) for path in paths) if is_progress_visible() else None
    with progress("reading", total) as bar, ThreadPoolExecutor(2, "read") as pool:
        told = _read_progress(bar, stop)
        try:
            waiting = [
                pool.submit(open_site, path, base=bases[number], ignore_case=ignore_case, on_read=told(number))
                for number, path in enumerate(paths)
            ]
            # What is wrong with the original is said first, whichever is read faster.
            first, second = (each.result() for each in waiting)
        except BaseException:
            stop.set()  # the other one need not be read to its end
            raise
    return first, second


def _read_progress(bar: ProgressBar, stop: Event) -> Callable[[int], Callable[[int], None]]:
    """Return who is told how far each of the two has come: what the bar shows is the sum."""
    done = [0, 0]

    def of(number: int) -> Callable[[int], None]:
        def read(count: int) -> None:
            if stop.is_set():
                raise InputError("not read to its end: it is not needed any more")
            done[number] = count
            bar.update_bytes(sum(done))

        return read

    return of


def _check_resources(names: tuple[str, str], sites: tuple[Site, Site]) -> None:
    """Say what makes numbers meaningless: nothing in one of the two, or nothing in common."""
    for name, site in zip(names, sites, strict=True):
        if site.skipped:
            reasons = ", ".join(describe_skipped(*each) for each in sorted(site.skipped.items()))
            say(f"{name}: not counted, since they are no resources: {reasons}", level="note")
    original, recovered = sites
    if not original.resources:
        say_problems(original.problems, names[0], "warning")
        raise InputError(f"{names[0]}: no resource of a site is in it, so there is nothing to compare with")
    if not recovered.resources:
        say(f"{names[1]}: no resource of a site is in it", level="warning")
    elif original.resources.keys().isdisjoint(recovered.resources):
        first, second = next(iter(original.resources)), next(iter(recovered.resources))
        hint = "check that both are the same site; for a folder without folders named after hosts, --base gives its URL"
        say(f"the two have no URL in common, such as {first} and {second}: {hint}", level="warning")


def say_next_step(both: ComparisonRun) -> None:
    """Say how to learn which resources are missing."""
    if both.comparison.counts.missing and both.comparison.counts.back:
        say_next(f"{command_line('compare', *both.names, '--list', 'missing')} names what is missing")


def say_unread(both: ComparisonRun) -> int:
    """Say what could not be read of the sites, and which texts could not be compared; return how much of the former."""
    total = 0
    for name, site in zip(both.names, both.sites, strict=True):
        total += site.problems.total
        say_problems(site.problems, name, "warning")
    for reason, (count, first) in both.comparison.unread.items():
        why = UNREAD_REASONS.get(reason, reason)
        texts = "text was" if count == 1 else "texts were"
        say(f"{count:,} {texts} not compared: {why}; first: {first[:200]}", level="warning", kind=reason, count=count)
        total += count if reason == "unreadable" else 0
    if both.comparison.partial:
        count = both.comparison.partial
        texts = "text is" if count == 1 else "texts are"
        say(f"{count:,} {texts} so long that only the beginning was compared", level="warning", count=count)
    return total


def write_page(file: Path, both: ComparisonRun, weighed: SiteDifference | None) -> None:
    """Write the page, whole or not at all."""
    damage = [(name, site.problems.total) for name, site in zip(both.names, both.sites, strict=True)]
    page = render_comparison_page(both.comparison, *both.names, weighed, [each for each in damage if each[1]])
    with atomic_file(file) as output:
        output.write(page.encode())
