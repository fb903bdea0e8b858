"""`unlost map lookup`: whether an archive holds a page, as far as its map tells."""

from pathlib import Path

import click

from unlost.cli import lines
from unlost.cli.addresses import uri_error_line, json_line, report_uri_error, write_lines
from unlost.cli.asked import url_arguments, read_url_batches
from unlost.cli.messages import say, escape_untrusted
from unlost.cli.problems import EXIT_SKIPPED_INPUT
from unlost.cli.readable import READABLE_FILE
from unlost.errors import UriError
from unlost.formats.problems import Problems
from unlost.formats.textfile import is_compressed
from unlost.holdings import Answer, Map


@click.command()
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


def _lookup_row(line: lines.InputLine, answer: Answer) -> str:
    held = "yes" if answer.held else "no"
    return f"{escape_untrusted(line.text, None)}\t{held}\t{answer.matched or '-'}\t{answer.frequency or '-'}\n"


def _lookup_object(line: lines.InputLine, answer: Answer) -> str:
    frequency = answer.frequency
    return json_line(
        uri=line.decode(),
        key=answer.key,
        held=answer.held,
        matched=answer.matched,
        frequency=None if frequency is None else str(frequency),
    )
