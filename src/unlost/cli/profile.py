"""`unlost profile`: counts what an archive holds per URI-Key."""

import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict
from json import dumps
from pathlib import Path

import click

from unlost import uri
from unlost.cli import inputs as cli_inputs
from unlost.cli import types
from unlost.cli.inputs import report_uri_error, uri_error_line
from unlost.cli.messages import escape_untrusted
from unlost.cli.options import (
    columns_option,
    damage_options,
    engine_options,
    force_option,
    load_suffix_list,
    parquet_columns,
    psl_option,
    rules_option,
    spark_config,
    suffixes_option,
)
from unlost.cli.output import is_standard_output, open_output, reject_in_place, write_lines
from unlost.cli.problems import EXIT_SKIPPED_INPUT, format_problem, say_problems
from unlost.cli.progress import progress, total_size
from unlost.errors import InputError, UriError, UsageError
from unlost.mementomap import profile_builder
from unlost.mementomap.profile_builder import PART_FIELDS, PartField, build_profiles_by_part
from unlost.problems import Problems

_FILE = types.AnyPath()
_EXIT_FAILED_CHECK = 1

_name = click.option("--name", metavar="NAME", help="Name of the archive in the header of the output.")
_id = click.option("--id", metavar="URI", help="URI of the archive in the header of the output.")
_profiles = click.argument("profiles", type=types.READABLE_FILE, nargs=-1, required=True, metavar="PROFILE...")


@click.group(name="profile")
def command() -> None:
    """Build, merge and query archive profiles, which count captures by URI-Key.

    A profile is a sorted text file in CDXJ. A policy says which part of a URL is its key: H3P1, for example, is three
    labels of the host and one segment of the path. The profile has one line for each key, with the number of captures
    (frequency) and the number of merged profiles that contain the key (spread).

    \b
    Example:
      unlost profile build archive.cdxj.gz --policy H3P1 -o archive.profile
      unlost profile lookup archive.profile http://example.com/
    """


@command.command()
@click.argument("inputs", type=types.LOCAL_OR_REMOTE, nargs=-1, required=True, metavar="INDEX...")
@click.option(
    "--policy",
    required=True,
    metavar="NAME[,NAME...]|all",
    help="URI-Key policies: HmPn with numbers of host labels and path segments (H3P1, HxP2), DDom, DSub, DPth, DQry, "
    "DIni, URIR, or `all` for the 23 policies of the paper.",
)
@click.option(
    "-o",
    "--output",
    type=_FILE,
    required=True,
    metavar="FILE|FOLDER",
    help="Write the profile to FILE; `-` is standard output. With several policies, write one file for each to FOLDER.",
)
@_name
@_id
@click.option(
    "--format",
    type=click.Choice(["cdxj", "json"]),
    default="cdxj",
    show_default=True,
    help="Output format: cdxj, which other commands of unlost read, or json, one JSON-LD document.",
)
@click.option(
    "--by",
    type=click.Choice(PART_FIELDS),
    multiple=True,
    help="Also count the captures of each key by year, or by media type (HTML, images, other). May be repeated.",
)
@rules_option
@psl_option
@suffixes_option
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of threads.  [default: all processors]",
)
@click.option(
    "--memory",
    type=click.IntRange(min=1),
    metavar="N",
    help="Use at most N MiB of memory for the counts, and temporary files beyond that.  [default: 64]",
)
@damage_options
@engine_options
@columns_option
@click.pass_context
def build(
    ctx: click.Context,
    inputs: tuple[str, ...],
    policy: str,
    output: Path,
    name: str | None,
    id: str | None,  # noqa: A002  options are named after their flags
    format: str,  # noqa: A002
    by: tuple[PartField, ...],
    rules: str,
    psl: Path | None,
    suffixes: str,
    threads: int | None,
    memory: int | None,
    allow_partial: bool,
    max_bad: float | None,
    force: bool,
    engine: str,
    master: str | None,
    spark_conf: tuple[str, ...],
    keep: str | None,
    columns: str | None,
) -> None:
    """Build profiles from indexes of an archive.

    Counts the captures of each key in one pass, for one policy or several. INDEX is a CDX, CDXJ or ZipNum (`.idx`)
    index, a WARC, ARC or WACZ file, a list of URLs, an access log or a map; plain, gzip or zstd; sorted or not. `-` is
    standard input. The format is detected from the first lines of each file. With --engine spark, INDEX is any path or
    URL that Spark can read.

    The exit code is 5 if lines were skipped because they cannot be read; they are counted by kind. If an input is
    damaged, cannot be read or has no valid line, nothing is written, and the exit code is 3.

    \b
    Example:
      unlost profile build archive.cdxj.gz --policy H3P1 -o archive.profile
    """
    names = _policy_names(policy)
    header = profile_builder.ProfileHeader(names[0], name, id, rules, suffixes)
    suffix = load_suffix_list(psl, suffixes)
    problems = Problems()
    if by and format == "json":
        raise UsageError("--by goes with lines: leave out --format json")
    cluster = spark_config(engine, master, spark_conf, keep)
    parquet = parquet_columns(columns, cluster)
    if cluster is not None and (by or format != "cdxj"):
        raise UsageError("--engine spark writes plain lines: leave out --by and --format json")
    if cluster is not None and (allow_partial or max_bad is not None):
        raise UsageError("--allow-partial and --max-bad are for one machine: leave out --engine spark")
    if len(names) > 1 and is_standard_output(output):
        raise UsageError("several policies make several files: give a folder for them")
    is_created = _make_folder(output) if len(names) > 1 else False
    try:
        with ExitStack() as stack:
            if len(names) > 1:
                _check_folder(output, output)
                outputs = {each: output / f"{each}.{format}" for each in names}
                reject_in_place(outputs.values(), inputs, force=force)
            else:
                outputs = {names[0]: stack.enter_context(open_output(output, inputs, force=force))}
            memory_limit = None if memory is None else memory << 20
            if cluster is not None:
                from unlost.research.spark.profiles import build_profiles  # noqa: PLC0415  start-up

                spark_engine = stack.enter_context(cluster.engine())
                text = None if psl is None else psl.read_bytes()
                build_profiles(spark_engine, inputs, outputs, header, problems, suffixes=text, columns=parquet)
            elif by:
                paths = [Path(file) for file in inputs]
                build_profiles_by_part(
                    paths,
                    outputs,
                    header,
                    problems,
                    by,
                    suffixes=suffix,
                    allow_partial=allow_partial,
                    max_bad=max_bad,
                    memory=memory_limit,
                )
            else:
                paths = [Path(file) for file in inputs]
                bar = stack.enter_context(progress("counting", total_size(paths)))
                profile_builder.build_profiles(
                    paths,
                    outputs,
                    header,
                    problems,
                    suffixes=suffix,
                    as_json=format == "json",
                    allow_partial=allow_partial,
                    max_bad=max_bad,
                    threads=threads,
                    memory=memory_limit,
                    on_progress=bar.update,
                )
    except BaseException:
        if is_created:
            with suppress(OSError):
                output.rmdir()
        raise
    say_problems(problems)
    ctx.exit(EXIT_SKIPPED_INPUT if problems.total else 0)


@command.command()
@_profiles
@click.option(
    "-o",
    "--output",
    type=_FILE,
    required=True,
    metavar="FILE",
    help="Write the profile to FILE; `-` is standard output.",
)
@_name
@_id
@force_option
def merge(
    profiles: tuple[Path, ...],
    output: Path,
    name: str | None,
    id: str | None,  # noqa: A002  options are named after their flags
    force: bool,
) -> None:
    """Merge profiles of the same policy into one.

    Adds the frequency and the spread of each key, and the counts by year and media type if the profiles have them.
    Without --name and --id, the header has the name and the URI that all profiles share. The profiles must have the
    same policy, rules and suffixes; otherwise nothing is written, and the exit code is 3.

    \b
    Example:
      unlost profile merge 2023.profile 2024.profile -o archive.profile
    """
    with open_output(output, profiles, force=force) as target, progress("merging", total_size(profiles)) as bar:
        profile_builder.merge_profiles(profiles, target, name=name, id=id, on_progress=bar.update)


@command.command()
@click.argument("file", type=types.READABLE_FILE, metavar="PROFILE")
@click.argument("addresses", nargs=-1, metavar="URL...")
@click.option(
    "--key",
    multiple=True,
    metavar="PREFIX",
    help="Print the sum of all keys that begin with PREFIX, such as uk,co, for all of .co.uk. May be repeated.",
)
@click.option(
    "--year",
    metavar="YYYY",
    help="Count only captures of this year. The profile must have been built with --by year.  [default: all]",
)
@click.option(
    "--mime",
    type=click.Choice(["HTML", "images", "other"]),
    help="Count only captures of this group of media types. The profile must have been built with --by mime."
    "  [default: all]",
)
@psl_option
@click.option("--json", is_flag=True, help="Print one JSON object per line, also for invalid URLs.")
@click.pass_context
def lookup(
    ctx: click.Context,
    file: Path,
    addresses: tuple[str, ...],
    key: tuple[str, ...],
    year: str | None,
    mime: str | None,
    psl: Path | None,
    json: bool,
) -> None:
    """Look up URLs or prefixes of keys in a profile.

    Each line has the URL or prefix as given, its key, the number of captures (frequency), the number of merged profiles
    that contain the key (spread; the largest one for a prefix) and the number of keys, separated by tabs. A key that is
    not in the profile has the frequency 0. The URL `-` reads URLs from standard input, one per line.

    An invalid URL is reported on standard error, and the other URLs are looked up. The exit code is then 2 if the URL
    is an argument, and 5 if it is from standard input.

    \b
    Example:
      unlost profile lookup archive.profile http://example.com/ --key uk,co,
    """
    if not addresses and not key:
        raise UsageError("expected a URL, or --key with the beginning of a key: --key uk,co,")
    header = profile_builder.ProfileHeader.read(file)
    profile = profile_builder.UriKeyProfile.open(file, load_suffix_list(psl, header.suffixes))
    for prefix in key:
        _print_holding(prefix, profile.lookup_key(prefix, year=year, mime=mime), json)
    code = 0
    for batch in cli_inputs.read_batches(addresses):
        for line in batch:
            try:
                _print_holding(line.decode(), profile.lookup(line.text, year=year, mime=mime), json)
            except UriError as error:
                code = max(code, report_uri_error(line, error))
                if json:
                    write_lines([uri_error_line("asked", line, error)])
        sys.stdout.flush()
    ctx.exit(code)


@command.command()
@click.argument("file", type=types.READABLE_FILE, metavar="PROFILE")
@click.option("--json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def check(ctx: click.Context, file: Path, json: bool) -> None:
    """Check that a profile is valid, and print its totals.

    Verifies that the keys are sorted, unique and keys of the policy of the profile. Prints the number of keys, the
    number of captures and the largest spread.

    The exit code is 1 if a line is invalid, and 3 if the file is not a profile.

    \b
    Example:
      unlost profile check archive.profile
    """
    with progress("checking", total_size([file])) as bar:
        report = profile_builder.check_profile(file, bar.update)
    problems = report.problems
    if json:
        kinds = {kind: {"count": count, "first": str(problems.first[kind])} for kind, count in problems.counts.items()}
        result = {
            "file": str(file),
            "policy": report.header.policy,
            "rules": report.header.rules,
            "keys": report.keys,
            "frequency": report.frequency,
            "spread": report.spread,
            "sound": report.is_sound,
            "problems": kinds,
        }
        click.echo(dumps(result))
    else:
        total = "more than 18 digits of" if report.frequency is None else report.frequency
        click.echo(f"{report.header.policy}, rules {report.header.rules}")
        click.echo(f"{report.keys} keys, {total} captures, a spread of {report.spread} at most")
        for kind, count in problems.counts.items():
            click.echo(format_problem(kind, count, problems.first[kind]))
        if report.is_sound:
            click.echo("sound")
    ctx.exit(0 if report.is_sound else _EXIT_FAILED_CHECK)


@command.command(name="to-map")
@_profiles
@click.option(
    "-o", "--output", type=_FILE, required=True, metavar="FILE", help="Write the map to FILE; `-` is standard output."
)
@_name
@_id
@force_option
def to_map(
    profiles: tuple[Path, ...],
    output: Path,
    name: str | None,
    id: str | None,  # noqa: A002  options are named after their flags
    force: bool,
) -> None:
    """Convert profiles to a MementoMap.

    The map covers every page that was counted in one of the profiles, which may have different policies. A key that
    stands for several pages becomes a wildcard; the frequencies of equal keys are added.

    \b
    Example:
      unlost profile to-map archive.profile -o archive.ukvs
    """
    with open_output(output, profiles, force=force) as target, progress("mapping", total_size(profiles)) as bar:
        profile_builder.profiles_to_map(profiles, target, name=name, id=id, on_progress=bar.update)


def _policy_names(text: str) -> list[str]:
    names: list[str] = []
    for name in text.split(","):
        names += uri.POLICIES if name.strip().lower() == "all" else [uri.policy_name(name.strip())]
    return list(dict.fromkeys(names))


def _make_folder(path: Path) -> bool:
    """Create a folder if it does not exist; return whether it was created."""
    if path.exists():
        return False
    _check_folder(path.parent, path)
    path.mkdir()
    return True


def _check_folder(folder: Path, output: Path) -> None:
    if not folder.is_dir():
        reason = "not a folder, but several policies need one" if folder == output else "no such folder"
        raise InputError(f"{output}: cannot be written: {reason}")


def _print_holding(query: str, result: profile_builder.ProfileLookupResult, json: bool) -> None:
    if json:
        _write(dumps({"asked": query, **asdict(result)}))
    else:
        text = escape_untrusted(query.encode("utf-8", "surrogateescape"), None)
        _write(f"{text}\t{result.key}\t{result.frequency}\t{result.spread}\t{result.keys}")


def _write(line: str) -> None:
    sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape") + b"\n")
