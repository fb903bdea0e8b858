"""`unlost map build`: builds maps from indexes."""

from json import dumps
from pathlib import Path

import click

from unlost.cli import types
from unlost.cli.messages import say
from unlost.cli.options import (
    columns_option,
    damage_options,
    engine_options,
    parquet_columns,
    resolve_build_time,
    spark_config,
)
from unlost.cli.output import open_output, reject_stdout_conflict
from unlost.cli.problems import EXIT_SKIPPED_INPUT, repaired_keys_note, say_problems
from unlost.cli.progress import progress, total_size
from unlost.mementomap.builder import EXCLUDABLE_PAGES, MapOptions, build_map
from unlost.mementomap.readers import INPUT_KINDS
from unlost.uri import DEFAULT_RULES, RULE_SETS

_FILE = types.AnyPath()
_WEIGHT = click.FloatRange(min=0)


@click.command()
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
        with open_output(output) as target, cluster.engine() as engine_there:
            report = maps.build_map(engine_there, files, target, options, parquet)
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
