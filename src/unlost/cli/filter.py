"""`unlost filter`: filters that tell whether an archive has a page, at about one byte per page."""

from collections.abc import Callable
from json import dumps
from os import fspath
from pathlib import Path
from typing import Any, TypeVar

import click

from unlost import uri
from unlost.cli import types
from unlost.cli.inputs import InputLine, read_url_batches, report_uri_error, uri_error_line, url_arguments
from unlost.cli.messages import escape_untrusted, say
from unlost.cli.options import (
    allow_partial_option,
    columns_option,
    engine_options,
    force_option,
    max_bad_option,
    parquet_columns,
    resolve_build_time,
    spark_config,
)
from unlost.cli.output import is_standard_output, json_line, open_output, write_lines
from unlost.cli.problems import EXIT_SKIPPED_INPUT, repaired_keys_note, say_problems
from unlost.cli.progress import progress, total_size
from unlost.cli.types import READABLE_FILE
from unlost.errors import UriError, UsageError
from unlost.mementomap.builder import EXCLUDABLE_PAGES
from unlost.mementomap.filter import FILTER_KEY_KINDS, Filter, FilterKeyKind, FilterLayer
from unlost.mementomap.filter_builder import (
    DEFAULT_BITS,
    MAX_BITS,
    MIN_BITS,
    FilterOptions,
    FilterReport,
    add_to_filter,
    build_filter,
    compact_filter,
)
from unlost.mementomap.readers import INPUT_KINDS
from unlost.problems import Problems
from unlost.uri import DEFAULT_RULES, RULE_SETS

_FILE = types.AnyPath()
_EXIT_FAILED_CHECK = 1
_BITS = click.IntRange(MIN_BITS, MAX_BITS)
_JSON = click.option("--json", is_flag=True, help="Print the result as JSON.")
_OUTPUT = click.option(
    "-o",
    "--output",
    type=_FILE,
    required=True,
    metavar="FILE",
    help="Write the filter to FILE; `-` is standard output.",
)
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _reading_options(command: _Command) -> _Command:
    """Add the options that describe the inputs and how they are read."""
    options = (
        click.option(
            "--input",
            type=click.Choice(INPUT_KINDS),
            help="Format of the inputs: index (CDX, CDXJ), zipnum, archive (WARC, ARC, WACZ), urls (list of URLs), "
            "log (access log), map (without wildcards), or mixed (index rows and URLs)."
            "  [default: detected from the content]",
        ),
        click.option(
            "--column",
            type=click.IntRange(min=1),
            metavar="N",
            help="Read URLs from column N of a tab-separated list; the first column is 1.",
        ),
        click.option(
            "--host",
            metavar="HOST",
            help="Host name of the site of an access log, if the lines of the log do not contain it.",
        ),
        allow_partial_option,
        max_bad_option,
        force_option,
        click.option(
            "--date",
            metavar="DATE",
            help="Build date in the header of the filter, such as 2026-12-31.  [default: SOURCE_DATE_EPOCH, or now]",
        ),
        click.option(
            "--threads",
            type=click.IntRange(min=1),
            metavar="N",
            help="Number of threads.  [default: all processors]",
        ),
        _JSON,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(name="filter")
def command() -> None:
    """Build, update and query filters, which say which pages an archive does not hold.

    A filter stores a fingerprint of a few bits for each page of an index: about 9 bits by default. It has no false
    negatives: it never denies a page that was in the index. Its rate of false positives is 1 in 2^bits, by default 1 in
    256. A filter does not know captures made after it was built.

    \b
    Example:
      unlost filter build archive.cdxj.gz -o archive.filter
      unlost filter lookup archive.filter http://example.com/
    """


@command.command()
@click.argument("files", type=types.LOCAL_OR_REMOTE, nargs=-1, required=True, metavar="INDEX...")
@_OUTPUT
@click.option(
    "--bits",
    type=_BITS,
    default=DEFAULT_BITS,
    show_default=True,
    metavar="N",
    help="Size of a fingerprint in bits. The rate of false positives is 1 in 2^N.",
)
@click.option(
    "--key",
    type=click.Choice(FILTER_KEY_KINDS),
    default="hxpx",
    show_default=True,
    help="Keys to store: of URLs without their query strings, as in maps (hxpx), or of whole URLs (urir).",
)
@click.option(
    "--status",
    multiple=True,
    metavar="CODE",
    help="Add only captures with this HTTP status, such as 200. May be repeated.  [default: all]",
)
@click.option(
    "--mime",
    multiple=True,
    metavar="TYPE",
    help="Add only captures of this media type, such as text/html. May be repeated.  [default: all]",
)
@click.option(
    "--exclude",
    metavar="KIND[,KIND]",
    help=f"Do not add these pages: {' or '.join(EXCLUDABLE_PAGES)}, or both with a comma between them."
    "  [default: none]",
)
@click.option(
    "--rules",
    type=click.Choice(RULE_SETS),
    default=DEFAULT_RULES,
    show_default=True,
    help="Canonicalisation of URLs: as in Wayback and pywb indexes, or as in the papers (case is preserved).",
)
@engine_options
@columns_option
@_reading_options
@click.pass_context
def build(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    output: Path,
    bits: int,
    key: FilterKeyKind,
    status: tuple[str, ...],
    mime: tuple[str, ...],
    exclude: str | None,
    rules: str,
    engine: str,
    master: str | None,
    spark_conf: tuple[str, ...],
    keep: str | None,
    columns: str | None,
    force: bool,
    json: bool,
    **reading: Any,  # noqa: ANN401  see `_reading_options`
) -> None:
    """Build a filter from indexes of an archive.

    INDEX is a CDX, CDXJ or ZipNum (`.idx`) index, a WARC, ARC or WACZ file, a list of URLs, an access log (successful
    requests are added) or a map without wildcards; plain, gzip or zstd; sorted or not. `-` is standard input. The
    format is detected from the first lines of each file. With --engine spark, INDEX is any path or URL that Spark can
    read.

    The exit code is 5 if lines were skipped because they cannot be read; they are counted by kind. If an input is
    damaged, cannot be read or has no valid line, nothing is written, and the exit code is 3.

    \b
    Example:
      unlost filter build archive.cdxj.gz -o archive.filter
    """
    _reject_stdout_conflict(output, json)
    options = FilterOptions(
        bits=bits,
        key=key,
        status=frozenset(status),
        mime=frozenset(mime),
        exclude=frozenset(exclude.split(",")) if exclude else frozenset(),
        rules=rules,
        **_parse_reading_options(**reading),
    )
    cluster = spark_config(engine, master, spark_conf, keep)
    parquet = parquet_columns(columns, cluster)
    if cluster is None:
        paths = [Path(file) for file in files]
        with open_output(output, paths, force=force) as target, progress("reading", total_size(paths)) as bar:
            report = build_filter(paths, target, options, bar.update)
    else:
        from unlost.research.spark import engine as spark_engine  # noqa: PLC0415  start-up
        from unlost.research.spark import filters  # noqa: PLC0415

        spark_engine.refuse_partial(options)
        with open_output(output) as target, cluster.engine() as cluster_engine:
            report = filters.build_filter(cluster_engine, files, target, options, parquet)
    ctx.exit(_print_report(report, json))


@command.command()
@click.argument("file", type=types.READABLE_FILE, metavar="FILTER")
@click.argument("files", type=types.READABLE_FILE, nargs=-1, required=True, metavar="INDEX...")
@click.option(
    "-o",
    "--output",
    type=_FILE,
    metavar="FILE",
    help="Write the new filter to FILE; `-` is standard output.  [default: replace FILTER]",
)
@click.option(
    "--bits",
    type=_BITS,
    metavar="N",
    help="Size of the fingerprints of the new pages in bits.  [default: as in FILTER]",
)
@_reading_options
@click.pass_context
def add(
    ctx: click.Context,
    /,
    file: Path,
    files: tuple[Path, ...],
    output: Path | None,
    bits: int | None,
    force: bool,
    json: bool,
    **reading: Any,  # noqa: ANN401
) -> None:
    """Add the new pages of indexes to a filter.

    Appends a layer with the pages of INDEX that FILTER does not have yet. Keys, rules, statuses, media types and
    excluded pages are those of FILTER. Each layer adds its own false positives; `unlost filter compact` rebuilds the
    filter with one layer.

    The exit code is 5 if lines were skipped because they cannot be read. If an input is damaged, cannot be read or has
    no valid line, the filter is not changed, and the exit code is 3.

    \b
    Example:
      unlost filter add archive.filter new.cdxj.gz
    """
    target = output or file
    _reject_stdout_conflict(target, json)
    options = FilterOptions(bits=bits, **_parse_reading_options(**reading))
    # Without -o the filter is replaced on purpose; an index never is.
    inputs = files if output is None else (file, *files)
    with open_output(target, inputs, force=force) as path, progress("reading", total_size(files)) as bar:
        report = add_to_filter(file, files, options, bar.update, output=path)
    ctx.exit(_print_report(report, json, is_all=False))


@command.command()
@click.argument("file", type=types.READABLE_FILE, metavar="FILTER")
@click.option(
    "--index",
    type=types.READABLE_FILE,
    multiple=True,
    required=True,
    metavar="INDEX",
    help="Index of all holdings of the archive. May be repeated, for an index of several files.",
)
@_OUTPUT
@click.option(
    "--bits",
    type=_BITS,
    metavar="N",
    help="Size of a fingerprint in bits. The rate of false positives is 1 in 2^N.  [default: as in FILTER]",
)
@_reading_options
@click.pass_context
def compact(
    ctx: click.Context,
    /,
    file: Path,
    index: tuple[Path, ...],
    output: Path,
    bits: int | None,
    force: bool,
    json: bool,
    **reading: Any,  # noqa: ANN401
) -> None:
    """Rebuild a filter with several layers as one layer.

    Reads the pages from a complete index of the archive, because a filter does not contain its keys. Keys, rules,
    statuses, media types and excluded pages are those of FILTER. A warning is printed if the index has fewer keys than
    the filter. To replace the filter, give its name to -o, and --force.

    The exit code is 5 if lines were skipped because they cannot be read. If an input is damaged, cannot be read or has
    no valid line, nothing is written, and the exit code is 3.

    \b
    Example:
      unlost filter compact archive.filter --index archive.cdxj.gz -o new.filter
    """
    _reject_stdout_conflict(output, json)
    previous_keys = Filter.open(file).keys
    options = FilterOptions(bits=bits, **_parse_reading_options(**reading))
    with open_output(output, (file, *index), force=force) as target, progress("reading", total_size(index)) as bar:
        report = compact_filter(file, index, target, options, bar.update)
    if report.keys < previous_keys:
        counts = f"{previous_keys} keys were in the filter, and {report.keys} are in the index"
        say(f"{counts}: pages that were held are missing from it", level="warning")
    ctx.exit(_print_report(report, json))


@command.command()
@click.argument("file", type=types.READABLE_FILE, metavar="FILTER")
@_JSON
@click.pass_context
def check(ctx: click.Context, file: Path, json: bool) -> None:
    """Describe a filter, and check that the file is not damaged.

    Prints the number of keys, the rules, and the bits and dates of each layer. Reads the whole file and compares it
    with its checksums.

    The exit code is 1 if the file is damaged, and 3 if it is not a filter or its header is damaged.

    \b
    Example:
      unlost filter check archive.filter
    """
    filter_ = Filter.open(file)
    damage = filter_.check()
    if json:
        layers = [_layer_object(layer) for layer in filter_.layers]
        result = {
            "file": fspath(file),
            "bytes": file.stat().st_size,
            "key": filter_.key,
            "rules": filter_.rules,
            "keys": filter_.keys,
            "layers": layers,
            "damage": damage,
        }
        click.echo(dumps(result))
    else:
        click.echo(f"{filter_.keys} keys, {filter_.key} by the rules {filter_.rules}, {file.stat().st_size} bytes")
        for number, layer in enumerate(filter_.layers, 1):
            dates = f"{layer.earliest} to {layer.latest}" if layer.earliest else "no dates"
            built = f", made {layer.built_at}" if layer.built_at else ""
            click.echo(f"layer {number}: {layer.keys} keys, {layer.bits} bits, {dates}{built}")
        for sentence in damage:
            click.echo(sentence)
    ctx.exit(_EXIT_FAILED_CHECK if damage else 0)


def _layer_object(layer: FilterLayer) -> dict[str, object]:
    choices = {name: sorted(getattr(layer, name)) for name in ("status", "mime", "exclude")}
    dates = {"earliest": layer.earliest, "latest": layer.latest, "made": layer.built_at}
    return {"keys": layer.keys, "bits": layer.bits, **dates, **choices}


def _parse_reading_options(
    *,
    input: str | None,  # noqa: A002  options are named after their flags
    column: int | None,
    host: str | None,
    allow_partial: bool,
    max_bad: float | None,
    date: str | None,
    threads: int | None,
) -> dict[str, Any]:
    """Return the values of `_reading_options` as options of the library."""
    kind = next((kind for kind in INPUT_KINDS if kind == input), None)
    partial = {"allow_partial": allow_partial, "max_bad": max_bad}
    return {
        "kind": kind,
        "column": column,
        "host": host,
        "threads": threads,
        "built_at": resolve_build_time(date),
        **partial,
    }


def _reject_stdout_conflict(output: Path, json: bool) -> None:
    """Raise UsageError, before any work, if both the filter and the result would go to standard output."""
    if json and is_standard_output(output):
        raise UsageError("--json and -o - would both be written to standard output: give the filter a name")


def _print_report(report: FilterReport, json: bool, *, is_all: bool = True) -> int:
    """Print the result and return the exit code. `is_all`: whether the counts cover the whole filter."""
    if json:
        result = {
            "lines": report.lines,
            "counted": report.counted,
            "not_web_pages": report.foreign,
            "left_out": report.filtered,
            "repaired_keys": report.repaired,
            "keys": report.keys,
            "bytes": report.bytes,
            "problems": report.problems.counts,
        }
        click.echo(dumps(result))
    else:
        read = f"{report.counted} captures read, {report.foreign} not web pages, {report.filtered} left out"
        say(f"{read}{repaired_keys_note(report.repaired)}; {report.keys} keys, {report.bytes} bytes", level="info")
    if is_all and not report.keys:
        say("nothing was counted: this filter denies every page", level="warning")
    say_problems(report.problems)
    return EXIT_SKIPPED_INPUT if report.problems.total else 0


@command.command()
@click.argument("filter_file", type=READABLE_FILE, metavar="FILTER")
@url_arguments
@click.option("--json", is_flag=True, help="Print one JSON object per line, also for invalid URLs.")
@click.pass_context
def lookup(ctx: click.Context, filter_file: Path, addresses: tuple[str, ...], batch: Path | None, json: bool) -> None:
    """Look up pages in a filter: print whether the archive may hold each of them.

    Each line has the URL or SURT as given, and `yes` or `no`, separated by a tab. `no` is certain for the time at which
    the filter was built. `yes` is wrong for 1 in 2^bits of the pages that the archive does not hold.

    An invalid URL is reported on standard error, and the other URLs are looked up. The exit code is then 2 if the URL
    is an argument, and 5 if it is from a list.

    \b
    Example:
      unlost filter lookup archive.filter http://example.com/ http://example.com/about
    """
    problems = Problems()
    batches = read_url_batches(addresses, batch, problems)
    filter_ = Filter.open(filter_file)
    code = 0
    for lines in batches:
        out: list[str] = []
        for line, is_held in zip(lines, filter_.lookup_many(text for _, text in lines), strict=True):
            if isinstance(is_held, UriError):
                code = max(code, report_uri_error(line, is_held))
                if json:
                    out.append(uri_error_line("uri", line, is_held))
            elif json:
                out.append(json_line(uri=line.decode(), key=_lookup_key(line, filter_), held=is_held))
            else:
                out.append(f"{escape_untrusted(line.text, None)}\t{'yes' if is_held else 'no'}\n")
        write_lines(out)
    for kind, problem in problems.first.items():
        say(str(problem), kind=kind)
        code = EXIT_SKIPPED_INPUT
    ctx.exit(code)


def _lookup_key(line: InputLine, filter_: Filter) -> str:
    """Return the key that is looked up."""
    key = uri.key(line.text, filter_.rules)
    return key.partition("?")[0] if filter_.key == "hxpx" else key
