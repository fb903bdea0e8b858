"""`unlost map`: MementoMaps, which say what an archive holds."""

from collections.abc import Sequence
from dataclasses import asdict
from json import dumps
from os import fspath
from pathlib import Path

import click

from unlost.cli.messages import say
from unlost.cli.progress import progress, size_of
from unlost.cli.target import is_standard_output, writable
from unlost.errors import InputError, UsageError
from unlost.formats.output import whole_file
from unlost.holdings.build import EXCLUDABLE, MapOptions, build_map
from unlost.holdings.compaction import NO_LIMIT, Compaction, compact_map
from unlost.holdings.inputs import KINDS
from unlost.holdings.report import Report
from unlost.uri import DEFAULT_RULES, RULE_SETS

_FILE = click.Path(path_type=Path)
_WANTING = 1
_OUTPUT = click.option("-o", "--output", type=_FILE, required=True, help="The map to write; `-` is standard output.")
_JSON = click.option("--json", is_flag=True, help="The result as JSON.")
_WEIGHT = click.FloatRange(min=0)


class _Group(click.Group):
    """Imports some commands only when they are asked for: what a command does not need costs it start-up time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in their order."""
        return sorted([*super().list_commands(ctx), "exclude", "lookup"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import it if it has a module of its own."""
        if cmd_name == "exclude":
            from unlost.cli.mapexclude import exclude  # noqa: PLC0415

            return exclude
        if cmd_name == "lookup":
            from unlost.cli.maplookup import lookup  # noqa: PLC0415

            return lookup
        return super().get_command(ctx, cmd_name)


@click.group(name="map", cls=_Group)
def command() -> None:
    """Make, compact, merge, compare, check and ask MementoMaps, which say what an archive holds.

    A map is a sorted text file: a key, or a wildcard for all that lies below it, and how many copies of how many pages
    are held there. No page that went into a map is ever denied by it.
    """


@command.command()
@click.argument("files", type=_FILE, nargs=-1, required=True, metavar="INDEX...")
@_OUTPUT
@click.option("--host-weight", type=_WEIGHT, help="Compact hosts with this weight.")
@click.option("--path-weight", type=_WEIGHT, help="Compact paths with this weight.")
@click.option("--status", multiple=True, metavar="CODE", help="Only rows with this status; may be repeated.")
@click.option("--mime", multiple=True, metavar="TYPE", help="Only rows of this media type; may be repeated.")
@click.option("--exclude", metavar="KINDS", help=f"Without {' and '.join(EXCLUDABLE)}, with a comma between.")
@click.option("--by", type=click.Choice(["year"]), help="One line for each year, with a second key field.")
@click.option("--urir", is_flag=True, help="Count pages with their queries too: copies/pages.")
@click.option("--rules", type=click.Choice(RULE_SETS), default=DEFAULT_RULES, help="How keys are made.")
@click.option("--name", help="The archive's name, for the header.")
@click.option("--id", metavar="URI", help="The archive's address, for the header.")
@click.option("--input", type=click.Choice(KINDS), help="What the files are, if looking at them does not tell.")
@click.option("--column", type=click.IntRange(min=1), help="The column of the addresses in a table with tabs.")
@click.option("--host", help="Whose access log it is, if its lines do not tell.")
@click.option("--sorted", is_flag=True, help="The files are promised to be sorted: one that is not is an error.")
@click.option("--threads", type=click.IntRange(min=1), help="How many threads read; all processors if not given.")
@_JSON
@click.pass_context
def build(
    ctx: click.Context,
    files: tuple[Path, ...],
    output: Path,
    host_weight: float | None,
    path_weight: float | None,
    status: tuple[str, ...],
    mime: tuple[str, ...],
    exclude: str | None,
    by: str | None,
    urir: bool,
    rules: str,
    name: str | None,
    id: str | None,  # noqa: A002  options are named after their flags
    input: str | None,  # noqa: A002
    column: int | None,
    host: str | None,
    sorted: bool,  # noqa: A002
    threads: int | None,
    json: bool,
) -> None:
    """Make a map of what indexes hold.

    INDEX is CDX, CDXJ, ZipNum (its `.idx`), WARC, ARC, WACZ, a list of addresses, an access log (hits are counted) or
    another map; sorted or not, plain, gzip or zstd, any number of them and of any size. What cannot be read is counted
    by kind, and the exit code is 3 then. Nothing is written under the final name until all of it is.
    """
    _refuse_both(output, json)
    options = MapOptions(
        host_weight=host_weight,
        path_weight=path_weight,
        by_year=by is not None,
        urir=urir,
        status=frozenset(status),
        mime=frozenset(mime),
        exclude=frozenset(exclude.split(",")) if exclude else frozenset(),
        rules=rules,
        name=name,
        id=id,
        kind=next((kind for kind in KINDS if kind == input), None),
        column=column,
        host=host,
        sorted=sorted,
        threads=threads,
    )
    with writable(output) as target, progress("counting", size_of(files)) as bar:
        report = build_map(files, target, options, bar.at)
    if json:
        result = {
            "lines": report.lines,
            "counted": report.counted,
            "not_web_pages": report.foreign,
            "left_out": report.filtered,
            "problems": report.problems.counts,
        }
        click.echo(dumps(result))
    else:
        say(
            f"{report.counted} captures counted, {report.foreign} not web pages, {report.filtered} left out",
            level="info",
        )
    _report_problems(report)
    ctx.exit(InputError.exit_code if report.problems.total else 0)


@command.command()
@click.argument("file", type=_FILE)
@_OUTPUT
@click.option("--host-weight", type=_WEIGHT, default=1.0, show_default=True, help="The smaller, the fewer lines.")
@click.option("--path-weight", type=_WEIGHT, default=1.0, show_default=True, help="The smaller, the fewer lines.")
@click.option("--no-hosts", is_flag=True, help="Roll up no hosts, whatever the weight.")
@click.option("--no-paths", is_flag=True, help="Roll up no paths, whatever the weight.")
@click.option("--host-a", type=_WEIGHT, default=Compaction().host_a, show_default=True, help="Power law of hosts.")
@click.option("--host-k", type=_WEIGHT, default=Compaction().host_k, show_default=True, help="Its exponent.")
@click.option("--path-a", type=_WEIGHT, default=Compaction().path_a, show_default=True, help="Power law of paths.")
@click.option("--path-k", type=_WEIGHT, default=Compaction().path_k, show_default=True, help="Its exponent.")
@click.option("--host-depth", type=click.IntRange(1, 64), default=8, show_default=True, help="Levels of hosts.")
@click.option("--path-depth", type=click.IntRange(1, 64), default=9, show_default=True, help="Levels of paths.")
@click.option("--fit", type=_FILE, metavar="INDEX", help="Fit the power laws to this index or map, and print them.")
@click.option("--rollup", multiple=True, metavar="KEY", help="Roll up this wildcard in any case; may be repeated.")
@click.option("--trace", type=_FILE, help="Write lines read against lines left, as CSV.")
@_JSON
@click.pass_context
def compact(
    ctx: click.Context,
    file: Path,
    output: Path,
    host_weight: float,
    path_weight: float,
    no_hosts: bool,
    no_paths: bool,
    host_a: float,
    host_k: float,
    path_a: float,
    path_k: float,
    host_depth: int,
    path_depth: int,
    fit: Path | None,
    rollup: tuple[str, ...],
    trace: Path | None,
    json: bool,
) -> None:
    """Make a map smaller: where its tree branches too much, one wildcard stands for a subtree.

    Every page that the map covers stays covered. Compacting a compacted map again with smaller weights gives what
    compacting once would have given.
    """
    _refuse_both(output, json)
    how = Compaction(
        NO_LIMIT if no_hosts else host_weight,
        NO_LIMIT if no_paths else path_weight,
        host_a,
        host_k,
        path_a,
        path_k,
        host_depth,
        path_depth,
        rollup,
    )
    if fit is not None:
        from unlost.holdings.fit import fit_index  # noqa: PLC0415  start-up

        how = fit_index(fit, how)
        laws = f"hosts {how.host_a:.3f} x^-{how.host_k:.3f}, paths {how.path_a:.3f} x^-{how.path_k:.3f}"
        say(f"fitted: {laws}", level="info")
    with writable(output) as target, progress("compacting", size_of([file])) as bar:
        report = compact_map(file, target, how, bar.at)
    shape = report.shape
    if shape is not None:
        if trace is not None:
            with whole_file(trace) as curve:
                rows = [("lines_in", "lines_out"), *shape.trace]
                curve.write("".join(f"{a},{b}\n" for a, b in rows).encode())
        levels = _levels(shape.rollups, shape.host_levels)
        if json:
            sizes = {"lines_in": shape.lines_in, "lines_out": shape.lines_out}
            click.echo(dumps({**sizes, "rollups": levels, "compaction": asdict(how)}))
        else:
            rolled = ", ".join(f"{name} {count}" for name, count in levels.items()) or "none"
            say(f"{shape.lines_in} lines became {shape.lines_out}; rolled up by depth: {rolled}", level="info")
    _report_problems(report)
    ctx.exit(InputError.exit_code if report.problems.total else 0)


@command.command()
@click.argument("files", type=_FILE, nargs=-1, required=True, metavar="MAP...")
@_OUTPUT
@_JSON
@click.pass_context
def merge(ctx: click.Context, files: tuple[Path, ...], output: Path, json: bool) -> None:
    """Make one map of several, which covers whatever any of them covers.

    Copies add up, pages to an upper bound; exclusions lose against what another map holds. docs/map.md has a table.
    """
    from unlost.holdings.merging import merge_maps  # noqa: PLC0415  start-up

    _refuse_both(output, json)
    with writable(output) as target, progress("merging", size_of(files)) as bar:
        report = merge_maps(files, target, bar.at)
    if json:
        click.echo(dumps({"lines": report.merged, "exclusions_dropped": report.dropped}))
    else:
        say(f"{report.merged} lines, {report.dropped} exclusions dropped", level="info")
    _report_problems(report)
    ctx.exit(InputError.exit_code if report.problems.total else 0)


@command.command()
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
@_JSON
@click.pass_context
def diff(ctx: click.Context, before: Path, after: Path, json: bool) -> None:
    """Print the keys whose frequency is not the same in two maps: `-` only before, `+` only after, `~` changed.

    The exit code is 1 if there are any, 3 if lines could not be read. Headers are not compared.
    """
    from unlost.formats.problems import Problems  # noqa: PLC0415  start-up
    from unlost.holdings.merging import diff_maps  # noqa: PLC0415

    found = False
    problems = Problems()
    for difference in diff_maps(before, after, problems):
        found = True
        if json:
            click.echo(dumps(asdict(difference)))
            continue
        old, new = difference.before, difference.after
        mark = "+" if old is None else "-" if new is None else "~"
        values = [value for value in (old, new) if value is not None]
        click.echo("\t".join([mark, difference.key, *values]))
    _report_problems(Report(problems=problems))
    ctx.exit(InputError.exit_code if problems.total else _WANTING if found else 0)


@command.command()
@click.argument("file", type=_FILE)
@click.option(
    "--date", metavar="DATE", help="The day, for what has expired; today if not given. SOURCE_DATE_EPOCH too."
)
@_JSON
@click.pass_context
def check(ctx: click.Context, file: Path, date: str | None, json: bool) -> None:
    """Say whether a map is sorted, its keys unique and such as look-ups find, its total right and nothing expired.

    The exit code is 1 if anything is wrong.
    """
    from unlost.cli.today import the_day  # noqa: PLC0415  start-up
    from unlost.holdings.checking import check_map  # noqa: PLC0415

    checked = check_map(file, the_day(date))
    problems = checked.problems
    result = {
        "file": fspath(file),
        "lines": checked.lines,
        "wildcards": checked.wildcards,
        "exclusions": checked.exclusions,
        "expiring": checked.expiring,
        "first_expiry": None if checked.first_expiry is None else checked.first_expiry.isoformat(),
        "sum": str(checked.sum),
        "total": None if checked.stated is None else str(checked.stated),
        "keys": list(checked.header.keys),
        "problems": {
            kind: {"count": count, "first": str(problems.first[kind])} for kind, count in problems.counts.items()
        },
    }
    if json:
        click.echo(dumps(result))
    else:
        click.echo(f"{checked.lines} lines, {checked.wildcards} of them wildcards, {checked.exclusions} exclusions")
        if checked.first_expiry:
            click.echo(f"{checked.expiring} exclusions expire, the first on {checked.first_expiry}")
        click.echo(f"sum {checked.sum}, total {'not stated' if checked.stated is None else checked.stated}")
        for kind, count in problems.counts.items():
            click.echo(f"{count} {kind}, first: {problems.first[kind]}")
    ctx.exit(_WANTING if problems.total else 0)


def _refuse_both(output: Path, json: bool) -> None:
    """Raise UsageError, before any work, if the map and the result would be written to the same place."""
    if json and is_standard_output(output):
        raise UsageError("--json and -o - would both be written to standard output: give the map a name")


def _levels(rollups: Sequence[int], host_levels: int) -> dict[str, int]:
    """Return how many nodes were rolled up at which depth, as the papers name them: H2, P0 and so on."""
    names = [f"H{level + 1}" if level < host_levels else f"P{level - host_levels}" for level in range(len(rollups))]
    return {name: count for name, count in zip(names, rollups, strict=True) if count}


def _report_problems(report: Report) -> None:
    for kind, count in report.problems.counts.items():
        say(f"{count} {kind}, first: {report.problems.first[kind]}", kind=kind, count=count)
