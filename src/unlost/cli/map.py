"""`unlost map`: MementoMaps, which summarise the holdings of an archive.

The subcommands `compact` and `sample` are in `map_compact` and `map_sample`.
"""

from dataclasses import asdict, fields
from datetime import date as day
from json import dumps
from os import fspath
from pathlib import Path

import click

from unlost.cli import inputs, types
from unlost.cli.commands import lazy_group
from unlost.cli.inputs import read_url_batches, report_uri_error, uri_error_line, url_arguments
from unlost.cli.messages import escape_untrusted, say
from unlost.cli.options import (
    columns_option,
    damage_options,
    engine_options,
    force_option,
    parquet_columns,
    resolve_build_time,
    resolve_date,
    spark_config,
)
from unlost.cli.output import (
    is_standard_output,
    json_line,
    open_output,
    reject_in_place,
    reject_stdout_conflict,
    write_lines,
)
from unlost.cli.problems import EXIT_SKIPPED_INPUT, format_problem, repaired_keys_note, say_problems
from unlost.cli.progress import progress, total_size
from unlost.cli.types import READABLE_FILE
from unlost.errors import UriError, UsageError
from unlost.mementomap import LookupResult, Map
from unlost.mementomap.builder import EXCLUDABLE_PAGES, MapOptions, build_map
from unlost.mementomap.check import check_map
from unlost.mementomap.exclude import (
    DEFAULT_EXPIRY_DAYS,
    DEFAULT_MIN_PAGES,
    ExclusionOptions,
    ExclusionReport,
    exclude_map,
)
from unlost.mementomap.merge import diff_maps, merge_maps
from unlost.mementomap.query_logs import MISS_LOG_KINDS
from unlost.mementomap.readers import INPUT_KINDS
from unlost.problems import Problems
from unlost.text_lines import is_compressed
from unlost.uri import DEFAULT_RULES, RULE_SETS

_FILE = types.AnyPath()
_EXIT_FAILED_CHECK = 1
_OUTPUT = click.option("-o", "--output", type=_FILE, required=True, help="The map to write; `-` is standard output.")
_JSON = click.option("--json", is_flag=True, help="The result as JSON.")


@click.group(name="map", cls=lazy_group(compact="map_compact", sample="map_sample"))
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
    reject_stdout_conflict(output, json)
    cluster = spark_config(engine, master, spark_conf, keep)
    if cluster is None:
        paths = [Path(file) for file in files]
        with open_output(output, paths, force=force) as target, progress("merging", total_size(paths)) as bar:
            report = merge_maps(paths, target, bar.update)
    else:
        from unlost.research.spark import maps  # noqa: PLC0415  start-up

        with open_output(output) as target, cluster.engine() as cluster_engine:
            report = maps.merge_maps(cluster_engine, files, target)
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
    has_differences = False
    problems = Problems()
    for difference in diff_maps(before, after, problems):
        has_differences = True
        if json:
            click.echo(dumps(asdict(difference)))
            continue
        old, new = difference.before, difference.after
        mark = "+" if old is None else "-" if new is None else "~"
        values = [value for value in (old, new) if value is not None]
        click.echo("\t".join([mark, difference.key, *values]))
    say_problems(problems)
    ctx.exit(EXIT_SKIPPED_INPUT if problems.total else _EXIT_FAILED_CHECK if has_differences else 0)


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
    batches = read_url_batches(addresses, batch, problems)
    holdings = Map.load(map_file) if is_compressed(map_file) else Map.open(map_file)
    for kind, problem in holdings.problems.first.items():
        say(str(problem), level="warning", kind=kind)
    code = 0
    for lines in batches:
        out: list[str] = []
        for line, result in zip(lines, holdings.lookup_many(text for _, text in lines), strict=True):
            if isinstance(result, UriError):
                code = max(code, report_uri_error(line, result))
                if json:
                    out.append(uri_error_line("uri", line, result))
            elif json:
                out.append(_lookup_object(line, result))
            else:
                out.append(_lookup_row(line, result))
        write_lines(out)
    for kind, problem in problems.first.items():
        say(str(problem), kind=kind)
        code = EXIT_SKIPPED_INPUT
    ctx.exit(code)


def _lookup_row(line: inputs.InputLine, result: LookupResult) -> str:
    held = "yes" if result.held else "no"
    return f"{escape_untrusted(line.text, None)}\t{held}\t{result.matched or '-'}\t{result.frequency or '-'}\n"


def _lookup_object(line: inputs.InputLine, result: LookupResult) -> str:
    frequency = result.frequency
    return json_line(
        uri=line.decode(),
        key=result.key,
        held=result.held,
        matched=result.matched,
        frequency=None if frequency is None else str(frequency),
    )


_WEIGHT = click.FloatRange(min=0)


@command.command()
@click.argument("files", type=types.LOCAL_OR_REMOTE, nargs=-1, required=True, metavar="INDEX...")
@click.option("-o", "--output", type=_FILE, required=True, help="The map to write; `-` is standard output.")
@click.option("--host-weight", type=_WEIGHT, help="Compact hosts with this weight.")
@click.option("--path-weight", type=_WEIGHT, help="Compact paths with this weight.")
@click.option("--status", multiple=True, metavar="CODE", help="Only rows with this status; may be repeated.")
@click.option("--mime", multiple=True, metavar="TYPE", help="Only rows of this media type; may be repeated.")
@click.option("--exclude", metavar="KINDS", help=f"Without {' and '.join(EXCLUDABLE_PAGES)}, with a comma between.")
@click.option("--by", type=click.Choice(["year"]), help="One line for each year, with a second key field.")
@click.option("--urir", is_flag=True, help="Count pages with their queries too: copies/pages.")
@click.option("--rules", type=click.Choice(RULE_SETS), default=DEFAULT_RULES, help="How keys are made.")
@click.option("--date", help="When the map is made, for its header; SOURCE_DATE_EPOCH too. Now if not given.")
@click.option("--name", help="The archive's name, for the header.")
@click.option("--id", metavar="URI", help="The archive's address, for the header.")
@click.option("--input", type=click.Choice(INPUT_KINDS), help="What the files are, if looking at them does not tell.")
@click.option("--column", type=click.IntRange(min=1), help="The column of the addresses in a table with tabs.")
@click.option("--host", help="Whose access log it is, if its lines do not tell.")
@click.option("--sorted", is_flag=True, help="The files are promised to be sorted: one that is not is an error.")
@click.option("--threads", type=click.IntRange(min=1), help="How many threads read; all processors if not given.")
@damage_options
@engine_options
@columns_option
@click.option("--json", is_flag=True, help="The result as JSON.")
@click.pass_context
def build(
    ctx: click.Context,
    files: tuple[str, ...],
    output: Path,
    host_weight: float | None,
    path_weight: float | None,
    status: tuple[str, ...],
    mime: tuple[str, ...],
    exclude: str | None,
    by: str | None,
    urir: bool,
    rules: str,
    date: str | None,
    name: str | None,
    id: str | None,  # noqa: A002  options are named after their flags
    input: str | None,  # noqa: A002
    column: int | None,
    host: str | None,
    sorted: bool,  # noqa: A002
    threads: int | None,
    allow_partial: bool,
    max_bad: float | None,
    force: bool,
    engine: str,
    master: str | None,
    spark_conf: tuple[str, ...],
    keep: str | None,
    columns: str | None,
    json: bool,
) -> None:
    """Make a map of what indexes hold.

    INDEX is CDX, CDXJ, ZipNum (its `.idx`), WARC, ARC, WACZ, a list of addresses, an access log (hits are counted) or
    another map; sorted or not, plain, gzip or zstd, any number of them and of any size; `-` is standard input. The
    kind of a file is detected from its first lines; URLs next to an index are refused unless --input is given.
    Lines that cannot be read are counted by kind, and the exit code is 5 then. If an input is damaged, cannot be read
    or has no good line, nothing is written, and the exit code is 3. On a cluster, INDEX is whatever Spark has addresses
    for: folders, patterns, object stores; docs/scale.md says more.
    """
    reject_stdout_conflict(output, json)
    cluster = spark_config(engine, master, spark_conf, keep)
    parquet = parquet_columns(columns, cluster)
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
        built_at=resolve_build_time(date),
        kind=next((kind for kind in INPUT_KINDS if kind == input), None),
        column=column,
        host=host,
        sorted=sorted,
        threads=threads,
        allow_partial=allow_partial,
        max_bad=max_bad,
    )
    if cluster is None:
        paths = [Path(file) for file in files]
        with open_output(output, paths, force=force) as target, progress("counting", total_size(paths)) as bar:
            report = build_map(paths, target, options, bar.update)
    else:
        from unlost.research.spark import engine as spark_engine  # noqa: PLC0415  start-up
        from unlost.research.spark import maps  # noqa: PLC0415

        spark_engine.refuse_partial(options)
        with open_output(output) as target, cluster.engine() as cluster_engine:
            report = maps.build_map(cluster_engine, files, target, options, parquet)
    if json:
        result = {
            "lines": report.lines,
            "counted": report.counted,
            "not_web_pages": report.foreign,
            "left_out": report.filtered,
            "repaired_keys": report.repaired,
            "problems": report.problems.counts,
        }
        click.echo(dumps(result))
    else:
        counted = f"{report.counted} captures counted, {report.foreign} not web pages, {report.filtered} left out"
        say(counted + repaired_keys_note(report.repaired), level="info")
    say_problems(report.problems)
    ctx.exit(EXIT_SKIPPED_INPUT if report.problems.total else 0)


_MAX_DAYS_DIGITS = 5  # a longer value is a date


@command.command()
@click.argument("file", type=types.READABLE_FILE, metavar="MAP")
@click.option(
    "--misses", type=types.READABLE_FILE, multiple=True, metavar="FILE", help="What was asked for; may be repeated."
)
@click.option(
    "--index", type=types.READABLE_FILE, multiple=True, help="What the archive holds, all of it; may be repeated."
)
@click.option("-o", "--output", type=_FILE, required=True, help="The map to write; `-` is standard output.")
@click.option(
    "--expires",
    metavar="DAYS|DATE",
    default=str(DEFAULT_EXPIRY_DAYS),
    show_default=True,
    help="When they are not believed any more.",
)
@click.option("--date", metavar="DATE", help="The day that it is; today if not given. SOURCE_DATE_EPOCH too.")
@click.option(
    "--pages",
    type=click.IntRange(min=1),
    default=DEFAULT_MIN_PAGES,
    show_default=True,
    help="How many pages of a folder must be missed before all of it is excluded.",
)
@click.option("--archive", metavar="ID", help="Whose answers count, in a log of upstream answers.")
@click.option("--input", type=click.Choice(MISS_LOG_KINDS), help="What the logs are, if looking at them does not tell.")
@click.option("--column", type=click.IntRange(min=1), help="The column of the addresses in a table with tabs.")
@click.option("--host", help="Whose access log it is, if its lines do not tell.")
@click.option("--replay", is_flag=True, help="The access log is an archive's: the pages are those in its addresses.")
@force_option
@click.option("--json", is_flag=True, help="The result as JSON.")
@click.pass_context
def exclude(
    ctx: click.Context,
    file: Path,
    misses: tuple[Path, ...],
    index: tuple[Path, ...],
    output: Path,
    expires: str,
    date: str | None,
    pages: int,
    archive: str | None,
    input: str | None,  # noqa: A002  options are named after their flags
    column: int | None,
    host: str | None,
    replay: bool,
    force: bool,
    json: bool,
) -> None:
    """Make a map say no to what was asked for and not found, until that expires.

    FILE is a log of upstream answers (only misses count, no failures), an access log (404) or a list of addresses.
    Pages with a row of their own in the map, or that were found as well as missed, are never excluded. With --index,
    whole subtrees are excluded of which nothing is held, and nothing that is held. Exclusions that have expired are
    dropped, without --misses too.
    """
    reject_in_place([output], [file, *misses, *index], force=force)
    if json and is_standard_output(output):
        raise UsageError("--json and -o - would both be written to standard output: give the map a name")
    options = ExclusionOptions(
        today=resolve_date(date),
        expires=_parse_expiry(expires),
        pages=pages,
        archive=archive,
        kind=next((kind for kind in MISS_LOG_KINDS if kind == input), None),
        column=column,
        host=host,
        replay=replay,
    )
    with open_output(output) as target, progress("excluding") as bar:
        report = exclude_map(file, target, options, misses, index, bar.update)
    if json:
        counts = {each.name: getattr(report, each.name) for each in fields(report) if each.name != "problems"}
        click.echo(dumps({**counts, "problems": report.problems.counts}))
    else:
        say(_format_report(report), level="info")
    say_problems(report.problems)
    ctx.exit(EXIT_SKIPPED_INPUT if report.problems.total else 0)


def _parse_expiry(text: str) -> day | int:
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DAYS_DIGITS:
        return int(text)
    try:
        return day.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--expires: expected days, or a date such as 2026-12-31, found `{text[:40]}`") from None


def _format_report(report: ExclusionReport) -> str:
    added = (
        f"{report.missed} pages missed: {report.added} excluded, {report.wildcards} subtrees, {report.renewed} renewed"
    )
    not_excluded = f"{report.held} held, {report.denied} denied before, {report.queries} asked for only with queries"
    return f"{added}, {not_excluded}; {report.expired} exclusions expired, {report.outweighed} outweighed"
