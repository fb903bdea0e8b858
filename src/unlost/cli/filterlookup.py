"""`unlost filter lookup`: whether an archive holds a page, as far as its filter tells."""

from pathlib import Path

import click

from unlost import uri
from unlost.cli.addresses import uri_error_line, json_line, report_uri_error, write_lines
from unlost.cli.asked import url_arguments, read_url_batches
from unlost.cli.lines import InputLine
from unlost.cli.messages import say, escape_untrusted
from unlost.cli.problems import EXIT_SKIPPED_INPUT
from unlost.cli.readable import READABLE_FILE
from unlost.errors import UriError
from unlost.formats.problems import Problems
from unlost.holdings.filter import Filter


@click.command()
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
    questions = read_url_batches(addresses, batch, problems)
    opened = Filter.open(filter_file)
    code = 0
    for batched in questions:
        out: list[str] = []
        for line, answer in zip(batched, opened.lookup_many(text for _, text in batched), strict=True):
            if isinstance(answer, UriError):
                code = max(code, report_uri_error(line, answer))
                if json:
                    out.append(uri_error_line("uri", line, answer))
            elif json:
                out.append(json_line(uri=line.decode(), key=_lookup_key(line, opened), held=answer))
            else:
                out.append(f"{escape_untrusted(line.text, None)}\t{'yes' if answer else 'no'}\n")
        write_lines(out)
    for kind, problem in problems.first.items():
        say(str(problem), kind=kind)
        code = EXIT_SKIPPED_INPUT
    ctx.exit(code)


def _lookup_key(line: InputLine, opened: Filter) -> str:
    """Return the key that was looked for."""
    key = uri.key(line.text, opened.rules)
    return key.partition("?")[0] if opened.key == "hxpx" else key
