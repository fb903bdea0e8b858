"""`unlost stats logs`: what an archive or an aggregator is asked for."""

from json import dumps
from pathlib import Path

import click

from unlost.cli import readable
from unlost.cli.addresses import write_lines
from unlost.cli.messages import say
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.cli.progress import progress
from unlost.cli.statsindex import report_name
from unlost.cli.table import format_tables

_FILE = readable.AnyPath()
_LOG_KINDS = ("access", "upstream", "memgator")


@click.command()
@click.argument("files", type=readable.READABLE_FILE, nargs=-1, required=True, metavar="LOG...")
@click.option("-o", "--output", type=_FILE, help="A folder for the page, the CSV files and the JSON.")
@click.option("--index", type=readable.READABLE_FILE, multiple=True, help="What the archive holds; may be repeated.")
@click.option("--input", type=click.Choice(_LOG_KINDS), help="What the logs are, if looking at them does not tell.")
@click.option("--name", help="What the logs are called on the page; the file's name if not given.")
@click.option("--json", is_flag=True, help="The result as JSON.")
@click.pass_context
def logs(
    ctx: click.Context,
    files: tuple[Path, ...],
    output: Path | None,
    index: tuple[Path, ...],
    input: str | None,  # noqa: A002  options are named after their flags
    name: str | None,
    json: bool,
) -> None:
    """Count requests, hits, misses and errors by archive, and find what is wanted most and missing.

    LOG is an archive's access log (common or combined format), the aggregator's own log of upstream answers, or one of
    MemGator; plain, gzip or zstd. With --index, what is archived is compared with what is asked for.
    """
    from unlost.formats.problems import Problems  # noqa: PLC0415  start-up
    from unlost.holdings.accesses.gathering import LOG_KINDS, collect_access_stats  # noqa: PLC0415
    from unlost.holdings.accesses.matrix import open_request_counter, tabulate_holdings  # noqa: PLC0415
    from unlost.holdings.accesses.tables import access_stats_to_json, access_tables, write_access_report  # noqa: PLC0415

    problems = Problems()
    kind = next((each for each in LOG_KINDS if each == input), None)
    matrix = None
    with progress("reading logs") as bar:
        if index:
            with open_request_counter() as requests:
                accesses = collect_access_stats(
                    files, problems, kind=kind, on_request=requests.add, wrap_urls=bar.lines
                )
                matrix = tabulate_holdings(index, problems, requests.cross_tabulate)
        else:
            accesses = collect_access_stats(files, problems, kind=kind, wrap_urls=bar.lines)
    if json:
        click.echo(dumps(access_stats_to_json(accesses, matrix)))
    else:
        write_lines([f"{line}\n" for line in format_tables(access_tables(accesses, matrix).values())])
    if output is not None:
        written = write_access_report(accesses, matrix, output, report_name(name, files))
        say(f"{len(written)} files in {output}; open {output / 'index.html'}", level="info")
    say_problems(problems)
    ctx.exit(EXIT_SKIPPED_INPUT if problems.total else 0)
