"""`unlost filter lookup`: whether an archive holds a page, as far as its filter tells."""

from pathlib import Path

import click

from unlost import uri
from unlost.cli.addresses import error_object, json_line, report, write
from unlost.cli.asked import ask, asked
from unlost.cli.lines import Line
from unlost.cli.messages import say, shown
from unlost.cli.problems import SKIPPED_INPUT
from unlost.cli.readable import FILE
from unlost.errors import UriError
from unlost.formats.problems import Problems
from unlost.holdings.filter import Filter


@click.command()
@click.argument("filter_file", type=FILE, metavar="FILTER")
@ask
@click.option("--json", is_flag=True, help="One JSON object a line, errors too.")
@click.pass_context
def lookup(ctx: click.Context, filter_file: Path, addresses: tuple[str, ...], batch: Path | None, json: bool) -> None:
    """Say whether the archive of a filter holds each page.

    A line for each URL, or SURT in its place: the URL, and `yes` or `no`, between tabs. No is sure for the day on which
    the filter was made; yes is wrong for one of 2^bits pages that are not held. What is no address is reported in one
    line and the rest goes on (exit code 2 if it was an argument, 5 if it was read).
    """
    problems = Problems()
    questions = asked(addresses, batch, problems)
    opened = Filter.open(filter_file)
    code = 0
    for batched in questions:
        out: list[str] = []
        for line, answer in zip(batched, opened.lookup_many(text for _, text in batched), strict=True):
            if isinstance(answer, UriError):
                code = max(code, report(line, answer))
                if json:
                    out.append(error_object("uri", line, answer))
            elif json:
                out.append(json_line(uri=line.decoded(), key=_key(line, opened), held=answer))
            else:
                out.append(f"{shown(line.text, None)}\t{'yes' if answer else 'no'}\n")
        write(out)
    for kind, problem in problems.first.items():
        say(str(problem), kind=kind)
        code = SKIPPED_INPUT
    ctx.exit(code)


def _key(line: Line, opened: Filter) -> str:
    """Return the key that was looked for."""
    key = uri.key(line.text, opened.rules)
    return key.partition("?")[0] if opened.key == "hxpx" else key
