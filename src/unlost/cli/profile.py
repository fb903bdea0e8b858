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

_name = click.option("--name", help="What people call the archive.")
_id = click.option("--id", help="The address by which programs know the archive.")
_profiles = click.argument("profiles", type=types.READABLE_FILE, nargs=-1, required=True, metavar="PROFILE...")


@click.group(name="profile")
def command() -> None:
    """Count what an archive holds under URI-Keys; merge, look up and check such profiles.

    A profile has one line for each key that a policy cuts from the addresses of an index, with how many captures lie
    under it. docs/profile.md shows the format.
    """


@command.command()
@click.argument("inputs", type=types.LOCAL_OR_REMOTE, nargs=-1, required=True, metavar="INDEX...")
@click.option(
    "--policy",
    required=True,
    metavar="NAME[,NAME...]|all",
    help="HmPn, DDom, DSub, DPth, DQry, DIni, URIR; `all` for the 23 of the paper.",
)
@click.option(
    "-o",
    "--output",
    type=_FILE,
    required=True,
    help="Where to: a file, `-` for standard output; with several policies a folder, in which each has its file.",
)
@_name
@_id
@click.option(
    "--format",
    type=click.Choice(["cdxj", "json"]),
    default="cdxj",
    show_default=True,
    help="Lines that merge and can be looked up, or one JSON-LD document for other programs.",
)
@click.option(
    "--by",
    type=click.Choice(PART_FIELDS),
    multiple=True,
    help="Tell of each key how much is of which year, or media type (HTML, images, other); may be repeated.",
)
@rules_option
@psl_option
@suffixes_option
@click.option("--threads", type=click.IntRange(min=1), help="How many; as many as there are processors otherwise.")
@click.option("--memory", type=click.IntRange(min=1), metavar="MB", help="How much counting may take.")
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
    """Count the captures of indexes under the keys of one policy or several, in one pass.

    INDEX is whatever `unlost map build` takes, told by its contents. Lines that cannot be read are counted by kind, and
    the exit code is 5. If an input is damaged, cannot be read or has no good line, nothing is written, and the exit
    code is 3.
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
@click.option("-o", "--output", type=_FILE, required=True, help="Where to; `-` is standard output.")
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
    """Make one profile of several of the same policy: frequency, spread and parts of each key are added.

    Without --name and --id, the result has those that all profiles have. `to-map` takes profiles of different policies.
    """
    with open_output(output, profiles, force=force) as target, progress("merging", total_size(profiles)) as bar:
        profile_builder.merge_profiles(profiles, target, name=name, id=id, on_progress=bar.update)


@command.command()
@click.argument("file", type=types.READABLE_FILE, metavar="PROFILE")
@click.argument("addresses", nargs=-1, metavar="URL...")
@click.option("--key", multiple=True, help="The beginning of keys, of which the sum is given; may be repeated.")
@click.option("--year", metavar="YYYY", help="Only captures of that year; of a profile built `--by year`.")
@click.option(
    "--mime",
    type=click.Choice(["HTML", "images", "other"]),
    help="Only captures of such media types; of a profile built `--by mime`.",
)
@psl_option
@click.option("--json", is_flag=True, help="One JSON object a line, errors too.")
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
    """Print how much is held under the key of each URL, and of everything that begins as a --key.

    A line has what was asked for, the key, its frequency (captures), its spread (profiles that contributed; of several
    keys the most) and how many keys there are, between tabs. What is not there has a frequency of 0. `-` reads
    addresses from standard input.
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
@click.option("--json", is_flag=True, help="The result as one JSON object.")
@click.pass_context
def check(ctx: click.Context, file: Path, json: bool) -> None:
    """Say whether a profile is sorted, has each key once and only keys of its policy, and what it comes to.

    The exit code is 1 if anything is wrong with its lines, 3 if it is not a profile.
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
    "-o", "--output", type=_FILE, required=True, help="Where to: a MementoMap (UKVS); `-` is standard output."
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
    """Make a MementoMap of profiles, of whatever policies, in which every page is held that was counted in one.

    Keys that stand for more than one page become wildcards; what they hold is added.
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
