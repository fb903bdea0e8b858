"""`unlost map`: MementoMaps, which summarise the holdings of an archive: merge, diff, check and look-up.

The subcommands build, compact, exclude and sample are in modules of their own.
"""

from dataclasses import asdict
from json import dumps
from os import fspath
from pathlib import Path

import click

from unlost.cli import inputs, types
from unlost.cli.commands import lazy_group
from unlost.cli.inputs import read_url_batches, report_uri_error, uri_error_line, url_arguments
from unlost.cli.messages import escape_untrusted, say
from unlost.cli.options import engine_options, force_option, spark_config
from unlost.cli.output import json_line, open_output, reject_stdout_conflict, write_lines
from unlost.cli.problems import EXIT_SKIPPED_INPUT, format_problem, say_problems
from unlost.cli.progress import progress, total_size
from unlost.cli.types import READABLE_FILE
from unlost.errors import UriError
from unlost.mementomap import LookupResult, Map
from unlost.problems import Problems
from unlost.text_lines import is_compressed

_FILE = types.AnyPath()
_EXIT_FAILED_CHECK = 1
_OUTPUT = click.option("-o", "--output", type=_FILE, required=True, help="The map to write; `-` is standard output.")
_JSON = click.option("--json", is_flag=True, help="The result as JSON.")


@click.group(
    name="map", cls=lazy_group(build="map_build", compact="map_compact", exclude="map_exclude", sample="map_sample")
)
def command() -> None:
    """Make, compact, merge, compare, check and ask MementoMaps, which say what an archive holds.

    A map is a sorted text file: a key, or a wildcard for all that lies below it, and how many copies of how many pages
    are held there. No page that went into a map is ever denied by it.
    """


@command.command()
@click.argument("files", type=types.LOCAL_OR_REMOTE, nargs=-1, required=True, metavar="MAP...")
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
    from unlost.mementomap.merge import merge_maps  # noqa: PLC0415  start-up

    reject_stdout_conflict(output, json)
    cluster = spark_config(engine, master, spark_conf, keep)
    if cluster is None:
        paths = [Path(file) for file in files]
        with open_output(output, paths, force=force) as target, progress("merging", total_size(paths)) as bar:
            report = merge_maps(paths, target, bar.update)
    else:
        from unlost.research.spark import maps  # noqa: PLC0415  start-up

        with open_output(output) as target, cluster.engine() as engine_there:
            report = maps.merge_maps(engine_there, files, target)
    if json:
        click.echo(dumps({"lines": report.merged, "exclusions_dropped": report.dropped}))
    else:
        say(f"{report.merged} lines, {report.dropped} exclusions dropped", level="info")
    say_problems(report.problems)
    ctx.exit(EXIT_SKIPPED_INPUT if report.problems.total else 0)


@command.command()
@click.argument("before", type=types.READABLE_FILE)
@click.argument("after", type=types.READABLE_FILE)
@_JSON
@click.pass_context
def diff(ctx: click.Context, before: Path, after: Path, json: bool) -> None:
    """Print the keys whose frequency is not the same in two maps: `-` only before, `+` only after, `~` changed.

    The exit code is 1 if there are any, 5 if lines could not be read. Headers are not compared.
    """
    from unlost.mementomap.merge import diff_maps  # noqa: PLC0415
    from unlost.problems import Problems  # noqa: PLC0415  start-up

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
@click.argument("file", type=types.READABLE_FILE)
@click.option(
    "--date", metavar="DATE", help="The day, for what has expired; today if not given. SOURCE_DATE_EPOCH too."
)
@_JSON
@click.pass_context
def check(ctx: click.Context, file: Path, date: str | None, json: bool) -> None:
    """Say whether a map is sorted, its keys unique and such as look-ups find, its total right and nothing expired.

    The exit code is 1 if anything is wrong.
    """
    from unlost.cli.options import resolve_date  # noqa: PLC0415  start-up
    from unlost.mementomap.check import check_map  # noqa: PLC0415

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


@command.command()
@click.argument("map_file", type=READABLE_FILE, metavar="MAP")
@url_arguments
@click.option("--json", is_flag=True, help="One JSON object a line, errors too.")
@click.pass_context
def lookup(ctx: click.Context, map_file: Path, addresses: tuple[str, ...], batch: Path | None, json: bool) -> None:
    """Say whether the archive of a map holds each page.

    A line for each URL, or SURT in its place: the URL, `yes` or `no`, the key of the map that says so, and how much is
    held under it (`-` where no key of the map covers the page), between tabs. The most specific key answers. What is
    no address is reported in one line and the rest goes on (exit code 2 if it was an argument, 5 if it was read).

    The map is searched where it lies; one that is compressed is read into memory first.
    """
    problems = Problems()
    questions = read_url_batches(addresses, batch, problems)
    holdings = Map.load(map_file) if is_compressed(map_file) else Map.open(map_file)
    for kind, problem in holdings.problems.first.items():
        say(str(problem), level="warning", kind=kind)
    code = 0
    for batched in questions:
        out: list[str] = []
        for line, answer in zip(batched, holdings.lookup_many(text for _, text in batched), strict=True):
            if isinstance(answer, UriError):
                code = max(code, report_uri_error(line, answer))
                if json:
                    out.append(uri_error_line("uri", line, answer))
            elif json:
                out.append(_lookup_object(line, answer))
            else:
                out.append(_lookup_row(line, answer))
        write_lines(out)
    for kind, problem in problems.first.items():
        say(str(problem), kind=kind)
        code = EXIT_SKIPPED_INPUT
    ctx.exit(code)


def _lookup_row(line: inputs.InputLine, answer: LookupResult) -> str:
    held = "yes" if answer.held else "no"
    return f"{escape_untrusted(line.text, None)}\t{held}\t{answer.matched or '-'}\t{answer.frequency or '-'}\n"


def _lookup_object(line: inputs.InputLine, answer: LookupResult) -> str:
    frequency = answer.frequency
    return json_line(
        uri=line.decode(),
        key=answer.key,
        held=answer.held,
        matched=answer.matched,
        frequency=None if frequency is None else str(frequency),
    )
