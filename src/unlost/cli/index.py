"""`unlost index`: reads, builds, checks and converts CDX and CDXJ indexes of archives."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Any, TypeVar

import click

from unlost import uri
from unlost.atomic import atomic_file
from unlost.capture import Capture
from unlost.cli import types as cli_types
from unlost.cli.inputs import parse_argument
from unlost.cli.messages import escape_untrusted, say
from unlost.cli.options import allow_partial_option, damage_options, force_option
from unlost.cli.output import is_standard_output, open_output, reject_in_place
from unlost.cli.problems import EXIT_SKIPPED_INPUT, format_problem, say_problems
from unlost.cli.progress import ProgressBar, progress
from unlost.errors import InputError, UsageError
from unlost.index import cdx, warc_index
from unlost.index import cdx as index_cdx
from unlost.index.cdx import IndexRow, RowError
from unlost.index.external_sort import sort_lines
from unlost.index.reader import find_index_captures, read_index_captures, read_index_rows
from unlost.index.zipnum import write_zipnum, zipnum_paths
from unlost.mementomap.readers import InputReport
from unlost.problems import Problem, Problems

_Item = TypeVar("_Item")
_FILE = cli_types.AnyPath()
_EXIT_FAILED_CHECK = 1
_COMPRESSED = (".gz", ".zst")  # rejected suffixes of output files, which are written uncompressed


@click.group(name="index")
def command() -> None:
    """Build, read, check and convert CDX, CDXJ and ZipNum indexes.

    Reads CDX with 9, 10 or 11 fields or any header line, CDXJ of pywb, OpenWayback, ipwb and Common Crawl, and ZipNum
    by its `.idx` file; plain, gzip or zstd. Lines that cannot be read are skipped and counted by kind.

    \b
    Example:
      unlost index build *.warc.gz -o archive.cdxj
      unlost index show archive.cdxj --url http://example.com/
    """


@command.command()
@click.argument("files", type=cli_types.LOCAL_OR_REMOTE, nargs=-1, required=True, metavar="WARC...")
@click.option(
    "-o",
    "--output",
    type=_FILE,
    required=True,
    metavar="FILE",
    help="Write the index to FILE: ZipNum if its name ends in .idx, otherwise CDXJ; `-` is standard output.",
)
@allow_partial_option
@force_option
@click.pass_context
def build(ctx: click.Context, files: tuple[str, ...], output: Path, allow_partial: bool, force: bool) -> None:
    """Build a sorted CDXJ index of WARC, ARC and WACZ files.

    Writes one row for each response, revisit and resource record, as pywb does. An output that ends in .idx is written
    as ZipNum, with its .cdx.gz and .loc files.

    If a file is damaged or cannot be read, nothing is written, and the exit code is 3. With --allow-partial, damaged
    files are indexed as far as they can be read, unreadable ones are skipped, and the exit code is 5.

    \b
    Example:
      unlost index build *.warc.gz -o archive.cdxj
    """
    paths = [Path(file) for file in files]
    reject_in_place([output], paths, force=force)
    # Report all unreadable files before hours of work.
    problems = Problems()
    unreadable = {path: error for path in paths if (error := _unreadable_error(path))}
    if allow_partial and len(unreadable) < len(paths):
        for path, error in unreadable.items():
            problems.add_unreadable(str(path), error)
        paths = [path for path in paths if path not in unreadable]
    elif unreadable:
        for error in unreadable.values():
            say(str(error))
        ctx.exit(InputError.exit_code)
    with progress("building", sum(map(_size, paths))) as bar:
        lines = index_cdx.write_cdxj(bar.lines(_archive_rows(paths, problems, bar)))
        sound_lines = _reject_damage(lines, problems, allow_partial=allow_partial)
        _write(sort_lines(sound_lines), output, zipnum=output.suffix == ".idx")
    say_problems(problems)
    ctx.exit(EXIT_SKIPPED_INPUT if problems.total else 0)


@command.command()
@click.argument("file", type=cli_types.READABLE_FILE)
@click.option(
    "--filter",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Print only captures with this value, such as status=200. An empty value matches captures without the field. "
    "May be repeated; all filters must match.",
)
@click.option("--url", metavar="URL", help="Print only captures of this page.  [default: all]")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N printed captures.  [default: all]")
@click.pass_context
def show(
    ctx: click.Context,
    file: Path,
    filter: tuple[str, ...],  # noqa: A002  options are named after their flags
    url: str | None,
    limit: int | None,
) -> None:
    """Print the captures of an index or of a WARC, ARC or WACZ file.

    Each line is a JSON object; fields without a value are omitted. --filter accepts every field that is printed. In a
    ZipNum index, --url finds the captures without reading the whole index.

    The exit code is 5 if lines were skipped because they cannot be read, and 3 if no line can be read.

    \b
    Example:
      unlost index show archive.cdxj --url http://example.com/ --filter status=200
    """
    filters = [_parse_filter(text) for text in filter]
    problems = Problems()
    count = 0
    is_read = False
    for capture in _captures(file, url, problems):
        is_read = True
        fields = _fields(capture)
        if all(_format_value(fields.get(name, "")) == value for name, value in filters):
            sys.stdout.write(dumps(fields) + "\n")
            count += 1
            if count == limit:
                break
    say_problems(problems)
    ctx.exit(0 if not problems.total else EXIT_SKIPPED_INPUT if is_read or url else InputError.exit_code)


@command.command()
@click.argument("file", type=cli_types.READABLE_FILE)
@click.option("--json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def check(ctx: click.Context, file: Path, json: bool) -> None:
    """Check an index or a WARC, ARC or WACZ file.

    For an index, prints the number of captures, whether the lines are sorted, and the problems of lines that cannot be
    read: the number of each kind, and the first one. For a WARC, ARC or WACZ file, prints the number of records of each
    type and the problems of damaged ones.

    The exit code is 1 if the file has problems, is not sorted, or is empty.

    \b
    Example:
      unlost index check archive.cdxj
    """
    problems = Problems()
    check_file = _check_archive if warc_index.is_archive_file(file) else _check_index
    result = {"file": str(file), **check_file(file, problems)}
    if json:
        firsts = {kind: {"count": count, "first": str(problems.first[kind])} for kind, count in problems.counts.items()}
        click.echo(dumps({**result, "problems": firsts}))
    else:
        if "records" in result:
            types = ", ".join(f"{count} {escape_untrusted(kind.encode())}" for kind, count in result["records"].items())
            click.echo(f"{sum(result['records'].values())} records: {types}")
        click.echo(f"{result['captures']} captures, {result['not_web_pages']} of them not web pages")
        if "sorted" in result:
            line = result["first_unsorted_line"]
            click.echo("sorted" if line is None else f"not sorted: line {line} belongs before the one above it")
        for kind, count in problems.counts.items():
            click.echo(format_problem(kind, count, problems.first[kind]))
    ctx.exit(_EXIT_FAILED_CHECK if problems.total or not result.get("sorted", True) else 0)


def _check_index(file: Path, problems: Problems) -> dict[str, Any]:
    captures, foreign_count, first_unsorted = 0, 0, None
    last: bytes | None = None
    for row in read_index_rows(file, problems):
        # Files without keys are sorted by URL.
        line = f"{row.key or row.fields.get('url', '')} {row.timestamp}".encode("utf-8", "surrogateescape")
        if first_unsorted is None and last is not None and line < last:
            first_unsorted = row.number
        last = line
        try:
            foreign_count += row.to_capture().key is None
            captures += 1
        except RowError as error:
            problems.add(Problem(error.kind, str(file), row.number, row.offset, str(error)))
    _report_empty(file, problems, is_empty=last is None)
    return {
        "captures": captures,
        "not_web_pages": foreign_count,
        "sorted": first_unsorted is None,
        "first_unsorted_line": first_unsorted,
    }


def _report_empty(file: Path, problems: Problems, *, is_empty: bool) -> None:
    """Add a problem for a file without rows or records that has no other problem."""
    if is_empty and not problems.total:
        problems.add(Problem("no-rows", str(file), None, 0, "nothing in it: expected rows of an index, or records"))


def _check_archive(file: Path, problems: Problems) -> dict[str, Any]:
    type_counts: Counter[str] = Counter()
    captures, foreign_count = 0, 0
    for capture in warc_index.read_archive_captures(file, problems, type_counts=type_counts):
        captures += 1
        foreign_count += capture.key is None
    _report_empty(file, problems, is_empty=not type_counts)
    return {"records": dict(type_counts.most_common()), "captures": captures, "not_web_pages": foreign_count}


@command.command()
@click.argument("file", type=cli_types.READABLE_FILE)
@click.option(
    "-o",
    "--output",
    type=_FILE,
    required=True,
    metavar="FILE",
    help="Write the index to FILE; `-` is standard output.",
)
@click.option(
    "--format",
    type=click.Choice(["cdx9", "cdx10", "cdx11", "cdxj", "zipnum"]),
    help="Output format."
    "  [default: from the extension of the output: .cdx (11 fields), .cdxj or .idx (ZipNum); cdxj for `-`]",
)
@click.option("--sort", is_flag=True, help="Sort the rows by bytes, and remove duplicate rows.")
@damage_options
@click.pass_context
def convert(
    ctx: click.Context,
    file: Path,
    output: Path,
    format: str | None,  # noqa: A002  the option's name
    sort: bool,
    allow_partial: bool,
    max_bad: float | None,
    force: bool,
) -> None:
    """Convert an index to CDX, CDXJ or ZipNum.

    FILE is an index, or a WARC, ARC or WACZ file, whose captures are written in their order unless --sort is given.
    Keys and dates are copied unchanged. A ZipNum index is written as three files: .idx, .cdx.gz and .loc.

    The exit code is 5 if lines were skipped because they cannot be read; they are counted by kind. If the file is
    damaged or has no valid line, nothing is written, and the exit code is 3.

    \b
    Example:
      unlost index convert archive.cdx -o archive.cdxj --sort
    """
    reject_in_place(zipnum_paths(output) if output.suffix == ".idx" else [output], [file], force=force)
    problems = Problems()
    form = format or {".cdx": "cdx11", ".cdxj": "cdxj", ".idx": "zipnum"}.get(output.suffix)
    if form is None and is_standard_output(output):
        form = "cdxj"
    if form is None:
        raise UsageError(
            f"{output}: its ending does not tell the format: expected .cdx, .cdxj or .idx, or give --format"
        )
    if (form == "zipnum") != (output.suffix == ".idx"):
        raise UsageError(f"{output}: a ZipNum, and nothing else, has a name that ends in .idx")
    read = warc_index.read_archive_rows if warc_index.is_archive_file(file) else read_index_rows
    layouts = {"cdx9": cdx.CDX9, "cdx10": cdx.CDX10, "cdx11": cdx.CDX11}
    # The size of a ZipNum's .idx file does not tell how much there is to read.
    with progress("converting", None if file.suffix == ".idx" else _size(file) or None) as bar:
        rows = _reject_damage(
            bar.lines(read(file, problems, bar.update_bytes)),
            problems,
            allow_partial=allow_partial,
            max_bad=max_bad,
            index=file if read is read_index_rows else None,
        )
        lines = cdx.write_cdx(rows, layouts[form]) if form in layouts else index_cdx.write_cdxj(rows)
        lines = sort_lines(lines) if sort else lines
        _write(lines, output, zipnum=form == "zipnum")
    say_problems(problems)
    ctx.exit(EXIT_SKIPPED_INPUT if problems.total else 0)


def _captures(file: Path, url: str | None, problems: Problems) -> Iterator[Capture]:
    key = None if url is None else parse_argument(url, uri.key)
    if warc_index.is_archive_file(file):
        captures = warc_index.read_archive_captures(file, problems)
        return captures if url is None else (capture for capture in captures if capture.key == key)
    return read_index_captures(file, problems) if url is None else find_index_captures(file, url, problems)


def _archive_rows(files: Iterable[Path], problems: Problems, bar: ProgressBar) -> Iterator[IndexRow]:
    for file in files:
        yield from warc_index.read_archive_rows(file, problems, bar.update_bytes)
        bar.finish_file(_size(file))


def _reject_damage(
    rows: Iterable[_Item],
    problems: Problems,
    *,
    allow_partial: bool,
    max_bad: float | None = None,
    index: Path | None = None,
) -> Iterator[_Item]:
    """Yield the rows, and raise InputError at their end if the input is damaged.

    Input is damaged if it is truncated or corrupt, has too many bad lines, or has no good one.
    """
    report = InputReport(problems=problems)
    for row in rows:
        report.counted += 1
        yield row
    report.refuse_damage(allow_partial=allow_partial, index=index)
    report.refuse_bad(max_bad)
    if problems.total:
        report.refuse_empty(())


def _unreadable_error(file: Path) -> InputError | None:
    """Return why an archive file cannot be read at all; None if it can."""
    try:
        warc_index.check_archive_readable(file)
    except InputError as error:
        return error
    return None


def _size(file: Path) -> int:
    """Return a file's size in bytes; 0 if it has none or does not exist, which the reader reports."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _write(lines: Iterable[bytes], output: Path, *, zipnum: bool) -> None:
    if output.suffix in _COMPRESSED:
        raise UsageError(f"{output}: what is written is not compressed: expected a name without {output.suffix}")
    with open_output(output) as path:
        if zipnum:
            write_zipnum(lines, path)
        else:
            with atomic_file(path) as target:
                target.writelines(lines)


def _parse_filter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    known = Capture.__slots__
    if not equals or name not in known:
        raise UsageError(f"{text}: expected FIELD=VALUE with a field of {', '.join(known)}")
    return name, value


def _fields(capture: Capture) -> dict[str, object]:
    # Not `in (None, "", False)`: 0 equals False, and a record may begin at byte 0.
    return {name: value for name, value in asdict(capture).items() if value not in (None, "") and value is not False}


def _format_value(value: object) -> str:
    """Return a value as printed: strings without quotes."""
    return value if isinstance(value, str) else dumps(value)
