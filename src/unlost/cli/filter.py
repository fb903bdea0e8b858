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
_JSON = click.option("--json", is_flag=True, help="The result as JSON.")
_OUTPUT = click.option("-o", "--output", type=_FILE, required=True, help="The filter to write; `-` is standard output.")
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _reading_options(command: _Command) -> _Command:
    """Add the options that describe the inputs and how they are read."""
    options = (
        click.option(
            "--input", type=click.Choice(INPUT_KINDS), help="What the files are, if looking at them does not tell."
        ),
        click.option("--column", type=click.IntRange(min=1), help="The column of the addresses in a table with tabs."),
        click.option("--host", help="Whose access log it is, if its lines do not tell."),
        allow_partial_option,
        max_bad_option,
        force_option,
        click.option(
            "--date",
            metavar="DATE",
            help="When the filter is made, for its header; SOURCE_DATE_EPOCH too. Now if not given.",
        ),
        click.option(
            "--threads", type=click.IntRange(min=1), help="How many threads work; all processors if not given."
        ),
        _JSON,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(name="filter")
def command() -> None:
    """Make, extend, compact, check and ask filters, which tell pages that an archive does not hold.

    A filter has a fingerprint of some bits for each page. It never denies a page that went into it; of the others it
    takes one in 2^bits for one that did.
    """


@command.command()
@click.argument("files", type=types.LOCAL_OR_REMOTE, nargs=-1, required=True, metavar="INDEX...")
@_OUTPUT
@click.option("--bits", type=_BITS, default=DEFAULT_BITS, show_default=True, help="Of a fingerprint.")
@click.option(
    "--key",
    type=click.Choice(FILTER_KEY_KINDS),
    default="hxpx",
    show_default=True,
    help="The keys of maps, or with queries.",
)
@click.option("--status", multiple=True, metavar="CODE", help="Only rows with this status; may be repeated.")
@click.option("--mime", multiple=True, metavar="TYPE", help="Only rows of this media type; may be repeated.")
@click.option("--exclude", metavar="KINDS", help=f"Without {' and '.join(EXCLUDABLE_PAGES)}, with a comma between.")
@click.option("--rules", type=click.Choice(RULE_SETS), default=DEFAULT_RULES, help="How keys are made.")
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
    """Make a filter of what indexes hold.

    INDEX is whatever `unlost map build` takes, sorted or not, any number of them and of any size; maps only without
    wildcards. Lines that cannot be read are counted by kind, and the exit code is 5 then. If an input is damaged,
    cannot be read or has no good line, nothing is written, and the exit code is 3.
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
@click.option("-o", "--output", type=_FILE, help="The filter to write; in the place of the old one if not given.")
@click.option("--bits", type=_BITS, help="Of a fingerprint; as in the filter if not given.")
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
    """Chain a small filter of what is new in indexes to a filter.

    Keys, rules, statuses, media types and what is left out are as in the filter. What it knows already takes no room.
    The more often something is added, the more often the filter is wrong: `compact` makes one of all.
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
    help="What the archive holds, all of it; may be repeated.",
)
@_OUTPUT
@click.option("--bits", type=_BITS, help="Of a fingerprint; as in the filter if not given.")
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
    """Make one filter of one to which others were chained, from the index.

    Nothing can be read out of a filter, so the index has to list all that is held. Where it has fewer keys than the
    filter, that is said.
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
    """Read a filter to its end, say what is in it, and whether any bit has changed since it was written.

    The exit code is 1 if any has, 3 if it is no filter or its header is damaged.
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
@click.option("--json", is_flag=True, help="One JSON object a line, errors too.")
@click.pass_context
def lookup(ctx: click.Context, filter_file: Path, addresses: tuple[str, ...], batch: Path | None, json: bool) -> None:
    """Say whether the archive of a filter holds each page.

    A line for each URL, or SURT in its place: the URL, and `yes` or `no`, between tabs. No is sure for the day on which
    the filter was made; yes is wrong for one of 2^bits pages that are not held. What is no address is reported in one
    line and the rest goes on (exit code 2 if it was an argument, 5 if it was read).
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
