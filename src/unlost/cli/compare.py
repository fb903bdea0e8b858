"""`unlost compare`: measures how much of a site was recovered."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from threading import Event

import click

from unlost.atomic import atomic_file
from unlost.capture import normalize_digest
from unlost.cli import types as cli_types
from unlost.cli.messages import command_line, say, say_next
from unlost.cli.output import check_output_file, format_columns, write_lines
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.cli.progress import ProgressBar, is_progress_visible, progress
from unlost.comparison.breakdown import BreakdownRow, breakdowns
from unlost.comparison.compare import ComparedResource, Comparison, ComparisonOutcome, TextComparer, compare_sites
from unlost.comparison.difference import Penalties, PenaltyRules, SiteDifference
from unlost.comparison.file_site import has_manifest
from unlost.comparison.report import (
    LEVEL_TEXTS,
    UNREAD_REASONS,
    comparison_headline,
    comparison_remarks,
    describe_skipped,
    render_comparison_page,
)
from unlost.comparison.site import Site, SiteKind, SiteResource, detect_site_kind
from unlost.comparison.site_readers import open_site, readable_bytes
from unlost.errors import InputError, UsageError
from unlost.report.format import escape_unprintable, format_share
from unlost.sqlite import STATE_FILE_NAME


@dataclass(frozen=True, slots=True)
class ComparisonRun:
    """Two sites, their names, and the result of comparing them."""

    names: tuple[str, str]
    sites: tuple[Site, Site]
    comparison: Comparison


def compare_paths(
    paths: tuple[Path, Path], bases: tuple[str | None, str | None], similar_at: float, *, ignore_case: bool
) -> ComparisonRun:
    """Read two sites and compare them.

    Args:
        paths: The original site, then the recovered one.
        bases: Base URL of each, if it is a folder that is not named after its host.
        similar_at: Similarity from 0 to 1 from which two texts count as similar.
        ignore_case: Whether URLs that differ only in case are the same.

    Raises:
        InputError: A site cannot be read, or the original has no resources.
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
    paths: tuple[Path, Path], own_bases: tuple[str | None, str | None], shared: str | None
) -> tuple[str | None, str | None]:
    """Return the base URL of each site: its own, else `both` if the site is a folder that needs one.

    Raises:
        UsageError: `both` is given and neither site needs it.
        InputError: A path is not a site.
    """
    if shared is None:
        return own_bases
    folder_bases = [shared if needs_base(path) else None for path in paths]
    if folder_bases == [None, None]:
        raise UsageError("--base is for folders of files, and neither is one: leave it out")
    return own_bases[0] or folder_bases[0], own_bases[1] or folder_bases[1]


def needs_base(path: Path) -> bool:
    """Return whether the URLs of a site's files are unknown: a folder, or a package without a manifest."""
    kind = detect_site_kind(path)[0]
    return kind is SiteKind.FOLDER or (kind is SiteKind.PACKAGE and not has_manifest(path))


def _read(paths: tuple[Path, Path], bases: tuple[str | None, str | None], *, ignore_case: bool) -> tuple[Site, Site]:
    """Read both sites, each in its own thread."""
    stop = Event()
    total = sum(readable_bytes(path) for path in paths) if is_progress_visible() else None
    with progress("reading", total) as bar, ThreadPoolExecutor(2, "read") as pool:
        progress_of = _read_progress(bar, stop)
        try:
            futures = [
                pool.submit(open_site, path, base=bases[number], ignore_case=ignore_case, on_read=progress_of(number))
                for number, path in enumerate(paths)
            ]
            # Errors of the original are reported first, whichever site is read faster.
            first, second = (each.result() for each in futures)
        except BaseException:
            stop.set()  # the other site need not be read to its end
            raise
    return first, second


def _read_progress(bar: ProgressBar, stop: Event) -> Callable[[int], Callable[[int], None]]:
    """Return a function that creates a progress callback for each site; the bar shows the sum of both."""
    done = [0, 0]

    def for_site(number: int) -> Callable[[int], None]:
        def on_read(count: int) -> None:
            if stop.is_set():
                raise InputError("not read to its end: it is not needed any more")
            done[number] = count
            bar.update_bytes(sum(done))

        return on_read

    return for_site


def _check_resources(names: tuple[str, str], sites: tuple[Site, Site]) -> None:
    """Print what makes the comparison meaningless: a site without resources, or no URL in common."""
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


def say_next_step(run: ComparisonRun) -> None:
    """Print the command that lists missing resources."""
    if run.comparison.counts.missing and run.comparison.counts.back:
        say_next(f"{command_line('compare', *run.names, '--list', 'missing')} names what is missing")


def say_unread(run: ComparisonRun) -> int:
    """Print what could not be read and which texts could not be compared; return the number of unreadable items."""
    total = 0
    for name, site in zip(run.names, run.sites, strict=True):
        total += site.problems.total
        say_problems(site.problems, name, "warning")
    for reason, (count, first) in run.comparison.unread.items():
        why = UNREAD_REASONS.get(reason, reason)
        texts = "text was" if count == 1 else "texts were"
        say(f"{count:,} {texts} not compared: {why}; first: {first[:200]}", level="warning", kind=reason, count=count)
        total += count if reason == "unreadable" else 0
    if run.comparison.partial:
        count = run.comparison.partial
        texts = "text is" if count == 1 else "texts are"
        say(f"{count:,} {texts} so long that only the beginning was compared", level="warning", count=count)
    return total


def write_page(file: Path, run: ComparisonRun, weighted: SiteDifference | None) -> None:
    """Write the HTML page atomically."""
    damage = [(name, site.problems.total) for name, site in zip(run.names, run.sites, strict=True)]
    page = render_comparison_page(run.comparison, *run.names, weighted, [each for each in damage if each[1]])
    with atomic_file(file) as output:
        output.write(page.encode())


_BATCH_LINES = 1_000  # lines per write


def print_report(comparison: Comparison, weighted: SiteDifference | None) -> None:
    """Print the report: a headline, the difference, the levels, and the tables."""
    lines = [comparison_headline(comparison.counts), *comparison_remarks(comparison), ""]
    rows = [("difference", *_vector(comparison.difference))]
    rows += [("with penalties", *_vector(weighted))] if weighted is not None else []
    lines += format_columns(("", "changed", "missing", "added", "sum"), rows)
    lines += ["", "lower is better:"]
    lines += [f"{level.name}  {level.success:.3f}  {LEVEL_TEXTS[level.name]}" for level in comparison.levels]
    lines += ["", f"almost identical among changed texts: {format_share(comparison.almost_identical)}"]
    for table in breakdowns(comparison):
        heads = [table.title, "original", "recovered", "share", "identical", "changed", "almost identical", "missing"]
        heads += ["same format", "other format"] if table.has_formats else []
        if table.rows:
            lines += ["", *format_columns(heads, [_cells(row, has_formats=table.has_formats) for row in table.rows])]
    write_lines([line + "\n" for line in lines])


def _vector(difference: SiteDifference) -> tuple[str, str, str, str]:
    parts = (difference.changed, difference.missing, difference.added, difference.success)
    changed, missing, added, success = (f"{part:.3f}" for part in parts)
    return changed, missing, added, success


def _cells(row: BreakdownRow, *, has_formats: bool) -> tuple[str, ...]:
    numbers = (row.identical, row.changed, row.similar, row.missing)
    formats = (row.canonical, row.migrated) if has_formats else ()
    cells = tuple(f"{number:,}" for number in (*numbers, *formats))
    return (escape_unprintable(row.label), f"{row.original:,}", f"{row.recovered:,}", format_share(row.share), *cells)


def print_list(comparison: Comparison, listed: Sequence[str]) -> None:
    """Print a TSV line for each resource with one of these outcomes: outcome, text similarity, media type, URL."""
    outcomes = set(ComparisonOutcome) if "all" in listed else {ComparisonOutcome(word) for word in listed}
    lines: list[str] = []
    for each in comparison.resources():
        if each.outcome in outcomes:
            lines.append(
                "\t".join(
                    (
                        each.outcome.value,
                        _format_similarity(each),
                        escape_unprintable(each.mime),
                        escape_unprintable(each.uri),
                    )
                )
                + "\n"
            )
        if len(lines) >= _BATCH_LINES:
            write_lines(lines)
            lines.clear()
    write_lines(lines)


def _format_similarity(each: ComparedResource) -> str:
    if each.similarity is None:
        return "-"
    return f"{each.similarity.share:.3f}" if each.similarity.share is not None else str(each.similarity.reason)


def print_json(run: "ComparisonRun", weighted: SiteDifference | None) -> None:
    """Print a JSON object per resource, then the summary."""
    lines: list[str] = []
    for each in run.comparison.resources():
        lines.append(dumps({"event": "resource", **_resource(each)}) + "\n")
        if len(lines) >= _BATCH_LINES:
            write_lines(lines)
            lines.clear()
    write_lines([*lines, dumps({"event": "summary", **_summary(run, weighted)}) + "\n"])


def _resource(each: ComparedResource) -> dict[str, object]:
    similarity = each.similarity
    return {
        "outcome": each.outcome.value,
        "uri": each.uri,
        "name": each.name,
        "mime": each.resource.mime,
        "textual": each.textual,
        "similarity": similarity.share if similarity else None,
        "similar": each.similar,
        "reason": similarity.reason if similarity else None,
        "partial": similarity.partial if similarity else False,
        "migrated": each.migrated,
        "held": each.held,
        "original": _version(each.original),
        "recovered": _version(each.recovered),
    }


def _version(resource: SiteResource | None) -> dict[str, object] | None:
    if resource is None:
        return None
    return {
        "uri": resource.uri,
        "mime": resource.mime,
        "size": resource.size,
        "digest": normalize_digest(f"sha1:{resource.digest.hex()}"),
        "datetime": resource.datetime,
        "modified": resource.modified,
    }


def _summary(run: "ComparisonRun", weighted: SiteDifference | None) -> dict[str, object]:
    comparison, counts = run.comparison, run.comparison.counts
    return {
        "original": run.names[0],
        "recovered": run.names[1],
        "resources": {
            "original": counts.original,
            "recovered": counts.recovered,
            "identical": counts.identical,
            "changed": counts.changed,
            "missing": counts.missing,
            "added": counts.added,
            "held": comparison.held,
            "migrated": comparison.migrated,
        },
        "difference": _difference(comparison.difference),
        "weighed": _difference(weighted) if weighted is not None else None,
        "levels": {level.name: level.success for level in comparison.levels},
        "similar_at": comparison.similar_at,
        "changed_texts": comparison.changed_texts,
        "similar": comparison.similar,
        "almost_identical": comparison.almost_identical,
        "requests": comparison.requests,
        "efficiency": comparison.efficiency,
        "efficiency_without_added": comparison.efficiency_without_added,
        "breakdowns": {table.name: list(_rows(table.rows)) for table in breakdowns(comparison)},
        "unread": {reason: count for reason, (count, _) in comparison.unread.items()},
        "partial": comparison.partial,
        "left_out": _by_site([site.skipped for site in run.sites]),
        "problems": _by_site([site.problems.counts for site in run.sites]),
    }


def _difference(difference: SiteDifference) -> dict[str, float]:
    return {
        "changed": difference.changed,
        "missing": difference.missing,
        "added": difference.added,
        "success": difference.success,
    }


def _rows(rows: Sequence[BreakdownRow]) -> Iterator[dict[str, object]]:
    names = ("label", "original", "recovered", "share", "identical", "changed", "similar", "missing", "held")
    for row in rows:
        yield {name: getattr(row, name) for name in (*names, "canonical", "migrated")}


def _by_site(values: Sequence[Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {name: dict(sorted(value.items())) for name, value in zip(("original", "recovered"), values, strict=True)}


NOTHING_IN_COMMON = 1
"""Exit code if no resource of the original is in the other site."""

_FILE = cli_types.AnyPath()


@click.command(name="compare")
@click.argument("original", type=cli_types.FILE_OR_FOLDER)
@click.argument("recovered", type=cli_types.FILE_OR_FOLDER)
@click.option(
    "--base",
    metavar="URL",
    help="Base URL of ORIGINAL and RECOVERED, if they are folders of files that have no subfolder for each host.",
)
@click.option(
    "--original-base",
    metavar="URL",
    help="Base URL of ORIGINAL, a folder of files that has no subfolder for each host. Overrides --base.",
)
@click.option(
    "--recovered-base",
    metavar="URL",
    help="Base URL of RECOVERED, a folder of files that has no subfolder for each host. Overrides --base.",
)
@click.option("--ignore-case", is_flag=True, help="Treat URLs that differ only in letter case as the same page.")
@click.option(
    "--penalties",
    metavar="C,M,A",
    help="Also print the difference with changed, missing and added resources weighted by C, M and A, from 0 to 1, "
    "such as 0.5,1,0.",
)
@click.option(
    "--type-penalties",
    multiple=True,
    metavar="TYPE=C,M,A",
    help="Weights for resources of a media type, such as `image/*=0.2,1,0`. May be repeated; the last match wins.",
)
@click.option(
    "--uri-penalties",
    multiple=True,
    metavar="REGEX=C,M,A",
    help="Weights for resources in whose URL REGEX is found, such as `/old/=0.5,1,0`. May be repeated; the last match "
    "wins. Overrides --type-penalties.",
)
@click.option(
    "--similar",
    type=click.FloatRange(0, 100),
    default=75,
    show_default=True,
    metavar="PERCENT",
    help="Count a changed text as almost identical if it shares at least PERCENT of its text with the original.",
)
@click.option(
    "--list",
    multiple=True,
    type=click.Choice(["identical", "changed", "missing", "added", "all"]),
    help="Print a tab-separated line for each resource with this outcome instead of the report. May be repeated.",
)
@click.option("--html", type=_FILE, metavar="FILE", help="Write an HTML page with the result and a diagram to FILE.")
@click.option(
    "--json", is_flag=True, help="Print a JSON object for each resource and one for the summary, one per line."
)
@click.pass_context
def command(
    ctx: click.Context,
    original: Path,
    recovered: Path,
    base: str | None,
    original_base: str | None,
    recovered_base: str | None,
    ignore_case: bool,
    penalties: str | None,
    type_penalties: tuple[str, ...],
    uri_penalties: tuple[str, ...],
    similar: float,
    list: tuple[str, ...],  # noqa: A002  as the option is called
    html: Path | None,
    json: bool,
) -> None:
    """Compare a site with its recovery: count identical, changed, missing and added resources.

    ORIGINAL and RECOVERED are each a WARC or WACZ file, a folder of files, the folder of a recovery, or the output of
    `unlost export`: a folder, a zip or a tar file. Any two versions of a site can be compared.

    The exit code is 1 if the two have no resource in common, and 5 if some of their content cannot be read; the rest is
    compared.

    \b
    Example:
      unlost compare original.warc.gz lost.example.recovery --html report.html
    """
    rules = _penalty_rules(penalties, type_penalties, uri_penalties)
    if list and json:
        raise UsageError("--list and --json say different things: give one of them")
    _check_paths(original, recovered, html)
    paths = (original, recovered)
    bases = resolve_bases(paths, (original_base, recovered_base), base)
    run = compare_paths(paths, bases, similar / 100, ignore_case=ignore_case)
    weighted = run.comparison.weigh(rules) if rules is not None else None
    if html is not None:
        write_page(html, run, weighted)
    if json:
        print_json(run, weighted)
    elif list:
        print_list(run.comparison, list)
    else:
        print_report(run.comparison, weighted)
    is_damaged = bool(say_unread(run))
    if not json and not list:
        say_next_step(run)
    if is_damaged:
        ctx.exit(EXIT_SKIPPED_INPUT)
    ctx.exit(0 if run.comparison.counts.back else NOTHING_IN_COMMON)


def _penalty_rules(penalties: str | None, types: tuple[str, ...], uris: tuple[str, ...]) -> "PenaltyRules | None":
    """Return the penalties to weigh differences with, or None if none were given. Raises UsageError."""
    if penalties is None and not types and not uris:
        return None

    rules = PenaltyRules(Penalties.parse(penalties) if penalties is not None else Penalties())
    for text in types:
        rules = rules.with_type_rule(text)
    for text in uris:
        rules = rules.with_uri_rule(text)
    return rules


def _check_paths(original: Path, recovered: Path, html: Path | None) -> None:
    """Raise an error before any work if the paths cannot be compared or the HTML page cannot be written."""
    if original.samefile(recovered):
        raise UsageError(f"{original} and {recovered} are the same: name the original and what was recovered")
    check_output_file(html)
    for path in (original, recovered):
        if html is not None and _is_part_of(html, path):
            raise UsageError(f"{html}: belongs to {path}, which is compared: write the page to another place")


def _is_part_of(page: Path, site: Path) -> bool:
    """Return whether writing `page` would overwrite a part of a site or add one.

    A new page at the top level of a recovery folder is allowed, unless its name begins with that of the state file.
    """
    page_path, site_path = page.resolve(), site.resolve()
    if page_path == site_path or (page.exists() and page.samefile(site)):
        return True
    if site_path not in page_path.parents:
        return False
    return (
        page_path.parent != site_path
        or page_path.name.startswith(STATE_FILE_NAME)
        or detect_site_kind(site)[0] is not SiteKind.RECOVERY
    )
