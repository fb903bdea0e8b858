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
_OUTPUT = click.option(
    "-o", "--output", type=_FILE, required=True, metavar="FILE", help="Write the map to FILE; `-` is standard output."
)
_JSON = click.option("--json", is_flag=True, help="Print the result as JSON.")


@click.group(name="map", cls=lazy_group(compact="map_compact", sample="map_sample"))
def command() -> None:
    """Build, compact, merge and query MementoMaps, which summarise an archive's holdings.

    A MementoMap is a sorted text file. Each line has a key, or a wildcard for all keys below it, and the number of
    captures, optionally with the number of pages. An aggregator uses the maps of archives to query only those that may
    hold a page. A map has no false negatives: it covers every page of the indexes from which it was built.

    \b
    Example:
      unlost map build archive.cdxj.gz -o archive.ukvs
      unlost map lookup archive.ukvs http://example.com/
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
    """Merge maps into one that covers every page of each.

    Numbers of captures are added. Numbers of pages are added too and become upper bounds, since maps may cover the same
    pages. An exclusion is dropped if another map says that the archive holds the page. All maps must have the same
    rules and key fields. The exit code is 5 if a map has lines that cannot be read.

    \b
    Example:
      unlost map merge 2023.ukvs 2024.ukvs -o archive.ukvs
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
    """Print the keys with different frequencies in two maps.

    Each line has a mark, the key and its frequencies, separated by tabs. The mark is `-` for a key that only BEFORE
    has, `+` for one that only AFTER has, and `~` for one with another frequency. Headers are not compared.

    The exit code is 0 if the maps are equal, 1 if they differ, and 5 if a map has lines that cannot be read.

    \b
    Example:
      unlost map diff old.ukvs new.ukvs
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
    "--date",
    metavar="DATE",
    help="Report exclusions that have expired on this day, such as 2026-12-31.  [default: SOURCE_DATE_EPOCH, or today]",
)
@_JSON
@click.pass_context
def check(ctx: click.Context, file: Path, date: str | None, json: bool) -> None:
    """Check that a map is valid and none of its exclusions has expired.

    Verifies that the lines are sorted and unique, every frequency can be read, every key can be found by a look-up, the
    total is not less than the sum, and no line is missing at the end.

    The exit code is 1 if the check fails, and 3 if the file is not a map.

    \b
    Example:
      unlost map check archive.ukvs
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
@click.option("--json", is_flag=True, help="Print one JSON object per line, also for invalid URLs.")
@click.pass_context
def lookup(ctx: click.Context, map_file: Path, addresses: tuple[str, ...], batch: Path | None, json: bool) -> None:
    """Look up pages in a map: print whether the archive may hold each of them.

    Each line has the URL or SURT as given, `yes` or `no`, the most specific key of the map that covers the page, and
    the frequency of this key, separated by tabs. Key and frequency are `-` if no key covers the page. `yes` may be
    wrong for pages below a wildcard; `no` is certain for captures that were in the index of the map.

    An invalid URL is reported on standard error, and the other URLs are looked up. The exit code is then 2 if the URL
    is an argument, and 5 if it is from a list. A plain map is searched in place; a compressed one is read into memory.

    \b
    Example:
      unlost map lookup archive.ukvs http://example.com/ http://example.com/about
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
@_OUTPUT
@click.option(
    "--host-weight",
    type=_WEIGHT,
    metavar="WEIGHT",
    help="Compact hosts: replace domains that have many hosts by wildcards. A smaller weight gives a smaller map."
    "  [default: not compacted]",
)
@click.option(
    "--path-weight",
    type=_WEIGHT,
    metavar="WEIGHT",
    help="Compact paths: replace folders that have many entries by wildcards. A smaller weight gives a smaller map."
    "  [default: not compacted]",
)
@click.option(
    "--status",
    multiple=True,
    metavar="CODE",
    help="Count only captures with this HTTP status, such as 200. May be repeated.  [default: all]",
)
@click.option(
    "--mime",
    multiple=True,
    metavar="TYPE",
    help="Count only captures of this media type, such as text/html. May be repeated.  [default: all]",
)
@click.option(
    "--exclude",
    metavar="KIND[,KIND]",
    help=f"Do not count these pages: {' or '.join(EXCLUDABLE_PAGES)}, or both with a comma between them."
    "  [default: none]",
)
@click.option("--by", type=click.Choice(["year"]), help="Write a separate line for each key and year of capture.")
@click.option(
    "--urir",
    is_flag=True,
    help="Also write the number of distinct URLs (URI-Rs) of each key, after a slash: captures/URLs.",
)
@click.option(
    "--rules",
    type=click.Choice(RULE_SETS),
    default=DEFAULT_RULES,
    show_default=True,
    help="Canonicalisation of URLs: as in Wayback and pywb indexes, or as in the papers (case is preserved).",
)
@click.option(
    "--date",
    metavar="DATE",
    help="Build date in the header of the map, such as 2026-12-31.  [default: SOURCE_DATE_EPOCH, or now]",
)
@click.option("--name", metavar="NAME", help="Name of the archive in the header of the map.")
@click.option("--id", metavar="URI", help="URI of the archive in the header of the map.")
@click.option(
    "--input",
    type=click.Choice(INPUT_KINDS),
    help="Format of the inputs: index (CDX, CDXJ), zipnum, archive (WARC, ARC, WACZ), urls (list of URLs), log (access "
    "log), map, or mixed (index rows and URLs)."
    "  [default: detected from the content]",
)
@click.option(
    "--column",
    type=click.IntRange(min=1),
    metavar="N",
    help="Read URLs from column N of a tab-separated list; the first column is 1.",
)
@click.option(
    "--host", metavar="HOST", help="Host name of the site of an access log, if the lines of the log do not contain it."
)
@click.option(
    "--sorted", is_flag=True, help="Require sorted indexes: fail on an unsorted line instead of sorting the rows."
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of threads that read the inputs.  [default: all processors]",
)
@damage_options
@engine_options
@columns_option
@_JSON
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
    """Build a map from indexes of an archive.

    INDEX is a CDX, CDXJ or ZipNum (`.idx`) index, a WARC, ARC or WACZ file, a list of URLs, an access log (successful
    requests are counted) or another map; plain, gzip or zstd; sorted or not. `-` is standard input. The format is
    detected from the first lines of each file. With --engine spark, INDEX is any path or URL that Spark can read: a
    folder, a glob pattern, an object store.

    The exit code is 5 if lines were skipped because they cannot be read; they are counted by kind. If an input is
    damaged, cannot be read or has no valid line, nothing is written, and the exit code is 3.

    \b
    Example:
      unlost map build archive.cdxj.gz --name "My archive" -o archive.ukvs
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
    "--misses",
    type=types.READABLE_FILE,
    multiple=True,
    metavar="FILE",
    help="Exclude the pages that this log or list of URLs reports as not found. May be repeated.",
)
@click.option(
    "--index",
    type=types.READABLE_FILE,
    multiple=True,
    metavar="INDEX",
    help="Complete index of the archive: exclude nothing that it holds, and whole folders that it lacks. May be "
    "repeated, for an index of several files.",
)
@_OUTPUT
@click.option(
    "--expires",
    metavar="DAYS|DATE",
    default=str(DEFAULT_EXPIRY_DAYS),
    show_default=True,
    help="Expiry of the new exclusions: a number of days after --date, or a date such as 2026-12-31.",
)
@click.option(
    "--date",
    metavar="DATE",
    help="Current day, from which the expiry is computed.  [default: SOURCE_DATE_EPOCH, or today]",
)
@click.option(
    "--pages",
    type=click.IntRange(min=1),
    default=DEFAULT_MIN_PAGES,
    show_default=True,
    metavar="N",
    help="With --index: exclude a folder of which the archive holds nothing if at least N of its pages were missed.",
)
@click.option(
    "--archive",
    metavar="ID",
    help="Use only the responses of this archive in a log of upstream responses."
    "  [default: the only archive in the log]",
)
@click.option(
    "--input",
    type=click.Choice(MISS_LOG_KINDS),
    help="Format of the --misses files: answers (log of upstream responses), log (access log) or urls (list of URLs)."
    "  [default: detected from the content]",
)
@click.option(
    "--column",
    type=click.IntRange(min=1),
    metavar="N",
    help="Read URLs from column N of a tab-separated list; the first column is 1.",
)
@click.option(
    "--host", metavar="HOST", help="Host name of the site of an access log, if the lines of the log do not contain it."
)
@click.option(
    "--replay",
    is_flag=True,
    help="Read the access log as that of a web archive: take the pages from its replay URLs.",
)
@force_option
@_JSON
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
    """Exclude pages from a map that were requested and not found.

    Adds an exclusion, a line with the frequency 0 and an expiry date, for each missed page that a wildcard of the map
    covers. The misses are those of an aggregator's log of upstream responses, the requests with status 404 in an access
    log, or a list of URLs. Errors and timeouts do not count as misses.

    A page is never excluded if it has a line of its own in the map, or was found by another request. Expired exclusions
    are dropped, also without --misses. The exit code is 5 if lines of a log or a list cannot be read.

    \b
    Example:
      unlost map exclude archive.ukvs --misses upstream.ndjson -o new.ukvs
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
