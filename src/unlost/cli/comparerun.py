"""One run of `unlost compare`: reads both sites at once, compares them, says what could not be read."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from unlost.cli.messages import command_line, say, say_next
from unlost.cli.problems import say_problems
from unlost.cli.progress import Bar, is_wanted, progress
from unlost.errors import InputError, UsageError
from unlost.formats.output import whole_file
from unlost.measure.comparison import Comparison, compare
from unlost.measure.comparison_page import comparison_page
from unlost.measure.difference import Difference
from unlost.measure.resource import Site
from unlost.measure.sites.kinds import Kind, kind_of
from unlost.measure.sites.opening import open_site, size_of
from unlost.measure.sites.packed_site import has_manifest
from unlost.measure.texts import Texts
from unlost.measure.wording import UNREAD, not_counted


@dataclass(frozen=True, slots=True)
class Both:
    """Two sites that were compared, what they were called, and what came of it."""

    names: tuple[str, str]
    sites: tuple[Site, Site]
    comparison: Comparison


def compared(
    paths: tuple[Path, Path], bases: tuple[str | None, str | None], similar_at: float, *, ignore_case: bool
) -> Both:
    """Read two sites and compare them: the original, then the recovered one.

    bases: the address of the top of each, if it is a folder whose name is not that of a host. Raises InputError if one
    cannot be read, or there is nothing to compare with.
    """
    sites = _read(paths, bases, ignore_case=ignore_case)
    names = (str(paths[0]), str(paths[1]))
    _check(names, sites)
    with progress("comparing texts", counted="texts") as bar, Texts(*sites) as texts:
        comparison = compare(
            *sites, texts.likeness, similar_at=similar_at, on_pair=lambda done, _: bar.at(done, lines=done)
        )
    return Both(names, sites, comparison)


def bases_of(
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
    kind = kind_of(path)[0]
    return kind is Kind.FOLDER or (kind is Kind.PACKAGE and not has_manifest(path))


def _read(paths: tuple[Path, Path], bases: tuple[str | None, str | None], *, ignore_case: bool) -> tuple[Site, Site]:
    """Read both sites, each in a thread of its own."""
    stop = Event()
    total = sum(size_of(path) for path in paths) if is_wanted() else None
    with progress("reading", total) as bar, ThreadPoolExecutor(2, "read") as pool:
        told = _told(bar, stop)
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


def _told(bar: Bar, stop: Event) -> Callable[[int], Callable[[int], None]]:
    """Return who is told how far each of the two has come: what the bar shows is the sum."""
    done = [0, 0]

    def of(number: int) -> Callable[[int], None]:
        def read(count: int) -> None:
            if stop.is_set():
                raise InputError("not read to its end: it is not needed any more")
            done[number] = count
            bar.read(sum(done))

        return read

    return of


def _check(names: tuple[str, str], sites: tuple[Site, Site]) -> None:
    """Say what makes numbers meaningless: nothing in one of the two, or nothing in common."""
    for name, site in zip(names, sites, strict=True):
        if site.left_out:
            reasons = ", ".join(not_counted(*each) for each in sorted(site.left_out.items()))
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


def say_what_next(both: Both) -> None:
    """Say how to learn which resources are missing."""
    if both.comparison.counts.missing and both.comparison.counts.back:
        say_next(f"{command_line('compare', *both.names, '--list', 'missing')} names what is missing")


def say_what_was_not_read(both: Both) -> int:
    """Say what could not be read of the sites, and which texts could not be compared; return how much of the former."""
    total = 0
    for name, site in zip(both.names, both.sites, strict=True):
        total += site.problems.total
        say_problems(site.problems, name, "warning")
    for reason, (count, first) in both.comparison.unread.items():
        why = UNREAD.get(reason, reason)
        texts = "text was" if count == 1 else "texts were"
        say(f"{count:,} {texts} not compared: {why}; first: {first[:200]}", level="warning", kind=reason, count=count)
        total += count if reason == "unreadable" else 0
    if both.comparison.partial:
        count = both.comparison.partial
        texts = "text is" if count == 1 else "texts are"
        say(f"{count:,} {texts} so long that only the beginning was compared", level="warning", count=count)
    return total


def write_page(file: Path, both: Both, weighed: Difference | None) -> None:
    """Write the page, whole or not at all."""
    damage = [(name, site.problems.total) for name, site in zip(both.names, both.sites, strict=True)]
    page = comparison_page(both.comparison, *both.names, weighed, [each for each in damage if each[1]])
    with whole_file(file) as output:
        output.write(page.encode())
