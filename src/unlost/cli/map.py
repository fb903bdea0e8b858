"""`unlost map`: MementoMaps, which say what an archive holds."""

from dataclasses import asdict
from json import dumps
from os import fspath
from pathlib import Path

import click

from unlost.cli import readable
from unlost.cli.apart import lazy_group
from unlost.cli.engine_options import engine_options, spark_config
from unlost.cli.input_options import force_option
from unlost.cli.mapresult import reject_stdout_conflict
from unlost.cli.messages import say
from unlost.cli.problems import EXIT_SKIPPED_INPUT, format_problem, say_problems
from unlost.cli.progress import progress, total_size
from unlost.cli.target import open_output

_FILE = readable.AnyPath()
_EXIT_FAILED_CHECK = 1
_OUTPUT = click.option("-o", "--output", type=_FILE, required=True, help="The map to write; `-` is standard output.")
_JSON = click.option("--json", is_flag=True, help="The result as JSON.")


@click.group(name="map", cls=lazy_group("map", "build", "compact", "exclude", "lookup", "sample"))
def command() -> None:
    """Make, compact, merge, compare, check and ask MementoMaps, which say what an archive holds.

    A map is a sorted text file: a key, or a wildcard for all that lies below it, and how many copies of how many pages
    are held there. No page that went into a map is ever denied by it.
    """


@command.command()
@click.argument("files", type=readable.LOCAL_OR_REMOTE, nargs=-1, required=True, metavar="MAP...")
@_OUTPUT
@force_option
@engine_options
@_JSON
@click.pass_context
def merge(
    ctx: click.Context,
    files: tuple[str, ...],
    output: Path,
    force: bool,
    engine: str,
    master: str | None,
    spark_conf: tuple[str, ...],
    keep: str | None,
    json: bool,
) -> None:
    """Make one map of several, which covers whatever any of them covers.

    Copies add up, pages to an upper bound; exclusions lose against what another map holds. docs/map.md has a table.
    """
    from unlost.holdings.merging import merge_maps  # noqa: PLC0415  start-up

    reject_stdout_conflict(output, json)
    cluster = spark_config(engine, master, spark_conf, keep)
    if cluster is None:
        paths = [Path(file) for file in files]
        with open_output(output, paths, force=force) as target, progress("merging", total_size(paths)) as bar:
            report = merge_maps(paths, target, bar.update)
    else:
        from unlost.holdings.spark import merging  # noqa: PLC0415  start-up

        with open_output(output) as target, cluster.engine() as engine_there:
            report = merging.merge_maps(engine_there, files, target)
    if json:
        click.echo(dumps({"lines": report.merged, "exclusions_dropped": report.dropped}))
    else:
        say(f"{report.merged} lines, {report.dropped} exclusions dropped", level="info")
    say_problems(report.problems)
    ctx.exit(EXIT_SKIPPED_INPUT if report.problems.total else 0)


@command.command()
@click.argument("before", type=readable.READABLE_FILE)
@click.argument("after", type=readable.READABLE_FILE)
@_JSON
@click.pass_context
def diff(ctx: click.Context, before: Path, after: Path, json: bool) -> None:
    """Print the keys whose frequency is not the same in two maps: `-` only before, `+` only after, `~` changed.

    The exit code is 1 if there are any, 5 if lines could not be read. Headers are not compared.
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
    say_problems(problems)
    ctx.exit(EXIT_SKIPPED_INPUT if problems.total else _EXIT_FAILED_CHECK if found else 0)


@command.command()
@click.argument("file", type=readable.READABLE_FILE)
@click.option(
    "--date", metavar="DATE", help="The day, for what has expired; today if not given. SOURCE_DATE_EPOCH too."
)
@_JSON
@click.pass_context
def check(ctx: click.Context, file: Path, date: str | None, json: bool) -> None:
    """Say whether a map is sorted, its keys unique and such as look-ups find, its total right and nothing expired.

    The exit code is 1 if anything is wrong.
    """
    from unlost.cli.today import resolve_date  # noqa: PLC0415  start-up
    from unlost.holdings.checking import check_map  # noqa: PLC0415

    with progress("checking", total_size([file])) as bar:
        checked = check_map(file, resolve_date(date), bar.update_bytes)
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
            click.echo(format_problem(kind, count, problems.first[kind]))
    ctx.exit(_EXIT_FAILED_CHECK if problems.total else 0)
