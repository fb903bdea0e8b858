"""`unlost map lookup`: whether an archive holds a page, as far as its map tells."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click

from unlost.cli import lines
from unlost.cli.addresses import error_object, json_line, report, write
from unlost.cli.messages import say, shown
from unlost.errors import InputError, UriError, UsageError
from unlost.formats.problems import Problems
from unlost.formats.textfile import is_compressed, read_lines
from unlost.holdings import Answer, Map

_BATCH = 20_000  # addresses at a time: enough to keep all processors busy, and little memory
_BOM = b"\xef\xbb\xbf"


@click.command()
@click.argument("map_file", type=click.Path(path_type=Path), metavar="MAP")
@click.argument("addresses", metavar="[URL...]", nargs=-1)
@click.option(
    "--batch",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A list of addresses, one a line, plain, gzip or zstd; `-` for standard input.",
)
@click.option("--json", is_flag=True, help="One JSON object a line, errors too.")
@click.pass_context
def lookup(ctx: click.Context, map_file: Path, addresses: tuple[str, ...], batch: Path | None, json: bool) -> None:
    """Say whether the archive of a map holds each page.

    A line for each URL, or SURT in its place: the URL, `yes` or `no`, the key of the map that says so, and how much is
    held under it (`-` where no key of the map covers the page), between tabs. The most specific key answers. What is
    no address is reported in one line and the rest goes on (exit code 3).

    The map is searched where it lies; one that is compressed is read into memory first.
    """
    if not addresses and batch is None:
        raise UsageError("nothing to look up: expected URLs, or a list of them with --batch")
    holdings = Map.load(map_file) if is_compressed(map_file) else Map.open(map_file)
    for kind, problem in holdings.problems.first.items():
        say(str(problem), level="warning", kind=kind)
    problems = Problems()
    code = 0
    for asked in _asked(addresses, batch, problems):
        out: list[str] = []
        for line, answer in zip(asked, holdings.lookup_many(text for _, text in asked), strict=True):
            if isinstance(answer, UriError):
                code = max(code, report(line, answer))
                if json:
                    out.append(error_object("uri", line, answer))
            elif json:
                out.append(_object(line, answer))
            else:
                out.append(_row(line, answer))
        write(out)
    for kind, problem in problems.first.items():
        say(str(problem), kind=kind)
        code = InputError.exit_code
    ctx.exit(code)


def _asked(addresses: tuple[str, ...], batch: Path | None, problems: Problems) -> Iterator[list[lines.Line]]:
    from_stdin = batch == Path("-")
    for each in lines.batches((*addresses, "-") if from_stdin else addresses):
        yield [line for line in each if not line.text.startswith(b"#")]
    if batch is not None and not from_stdin:
        found = _listed(batch, problems)
        while some := list(islice(found, _BATCH)):
            yield some


def _listed(file: Path, problems: Problems) -> Iterator[lines.Line]:
    """Yield the addresses of a list; blank lines and those that begin with `#` are passed over."""
    for line in read_lines(file, problems):
        text = (line.text.removeprefix(_BOM) if line.number == 1 else line.text).strip()
        if text and not text.startswith(b"#"):
            yield lines.Line(f"{file}:{line.number}: ", text)


def _row(line: lines.Line, answer: Answer) -> str:
    held = "yes" if answer.held else "no"
    return f"{shown(line.text, None)}\t{held}\t{answer.matched or '-'}\t{answer.frequency or '-'}\n"


def _object(line: lines.Line, answer: Answer) -> str:
    frequency = answer.frequency
    return json_line(
        uri=line.decoded(),
        key=answer.key,
        held=answer.held,
        matched=answer.matched,
        frequency=None if frequency is None else str(frequency),
    )
