"""`unlost recover`: crawls the archives for a lost site."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from unlost import dates
from unlost.cli import readable
from unlost.cli.addresses import meant
from unlost.cli.asking import contact_option
from unlost.cli.messages import shown
from unlost.cli.recover_sources import source_options, sources_of
from unlost.cli.registry_options import archives_option, only_option
from unlost.cli.target import check_new_file
from unlost.errors import DateError, InputError, UsageError
from unlost.formats.folders import made
from unlost.recover.plan import Plan, Policy

_FILE = readable.Named()
_COUNT = click.IntRange(min=1)


def _date(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Check a date of 1 to 14 digits, also with the dashes of ISO."""
    if value is None:
        return None
    digits = value.replace("-", "")
    try:
        dates.pad(digits)
    except DateError:
        found = shown(value.encode("utf-8", "surrogateescape"), 40)
        raise click.BadParameter(f"expected a date such as 2014, 2014-05 or 20140510, found `{found}`") from None
    return digits


_OPTIONS = (
    click.option("-o", "--output", type=_FILE, metavar="DIR", help="Where to keep it.  [default: HOST.recovery]"),
    click.option(
        "--policy",
        type=click.Choice([each.value for each in Policy]),
        default=Policy.KNOWLEDGEABLE.value,
        show_default=True,
        help="How to find pages: by links alone; by links, asking only archives that list them; or all that is listed.",
    ),
    click.option("--at", callback=_date, metavar="DATE", help="The site as of a date: 2014, 2014-05, 20140501."),
    click.option("--from", callback=_date, metavar="DATE", help="No captures before."),
    click.option("--to", callback=_date, metavar="DATE", help="No captures after."),
    click.option("--most-recent", is_flag=True, help="The last capture, also if the archive changed its format."),
    click.option("--all-versions", is_flag=True, help="Every version of every page."),
    click.option("--keep-rejected", is_flag=True, help="Also pages that say they are none: not found, parked, walls."),
    click.option("--page", is_flag=True, help="Only this page, with what is needed to show it."),
    click.option("--subdomains", is_flag=True, help="The hosts below the host, too."),
    click.option("--depth", type=click.IntRange(min=0), metavar="N", help="At most N links away from URL."),
    click.option("--limit", type=_COUNT, metavar="N", help="At most N resources, over all runs."),
    click.option("--include", multiple=True, metavar="REGEX", help="Only addresses in which this is found."),
    click.option("--exclude", multiple=True, metavar="REGEX", help="No addresses in which this is found."),
    click.option("--exclude-from", type=readable.FILE, metavar="FILE", help="The same, one a line."),
    click.option("--ignore-case", is_flag=True, help="Addresses that differ in letter case only are one page."),
    click.option("--requisites", is_flag=True, help="Images, style sheets and scripts on other hosts, too."),
    click.option("--urls", type=readable.FILE, metavar="FILE", help="Further addresses to begin from, one a line."),
    click.option("--dry-run", is_flag=True, help="Ask only what there is, and say what the rest would cost."),
    click.option("--wait", type=click.FloatRange(min=0), default=0, metavar="SECONDS", help="Between two requests."),
    click.option(
        "--connections",
        type=click.IntRange(1, 20),
        default=6,
        show_default=True,
        metavar="N",
        help="To one archive at once, as far as its limits allow.",
    ),
    click.option("--until-done", is_flag=True, help="Sleep until archives can be asked again, however long."),
    click.option("--stop-file", type=_FILE, metavar="FILE", help="End in order when this file appears."),
    click.option("--summary", type=_FILE, metavar="FILE", help="Write a line for each resource there."),
    click.option("--proxy", is_flag=True, help="Go through the proxies that HTTP_PROXY and the like name."),
    *source_options,
    archives_option,
    only_option,
    contact_option,
    click.option("--json", is_flag=True, help="What happens, as JSON, an object a line."),
)


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(name="recover")
@click.argument("url", metavar="URL")
@_with_options
@click.pass_context
def command(ctx: click.Context, /, url: str, **given: Any) -> None:  # noqa: ANN401  the options, by their names
    """Bring a lost website back from all archives together.

    What comes back is kept in a folder, as WARC. The same command again goes on where the last one ended: it asks for
    what failed, and for what archives have gained. The exit code is 4 if there is more to do, 1 if all was asked and
    nothing ever came back.
    """
    from unlost.cli.recoverrun import Run  # noqa: PLC0415  start-up
    from unlost.recover.state.file import explained  # noqa: PLC0415
    from unlost.recover.state.state import State  # noqa: PLC0415
    from unlost.state_file import NAME  # noqa: PLC0415

    plan = _plan(url, given)
    folder = given["output"] or Path(_folder_of(plan.url))
    if (folder / NAME).is_file():
        # Before anything is said about archives.
        with explained(folder / NAME), State(folder) as state:
            state.check_plan(plan)
    archives = sources_of(ctx, given, plan)
    check_new_file(given["summary"])
    with made(folder), explained(folder / NAME), State(folder) as state:
        run = Run(plan, folder, state, archives, given)
        code = run.dry() if given["dry_run"] else run.whole()
        if given["summary"] is not None:
            run.write_summary(given["summary"])
    ctx.exit(code)


def _plan(url: str, given: Mapping[str, Any]) -> Plan:
    from unlost.archives.spelling import asked  # noqa: PLC0415  start-up
    from unlost.recover.scope import Scope  # noqa: PLC0415

    if given["most_recent"] and given["at"]:
        raise UsageError("--most-recent and --at say different things: give one of them")
    first, last = given["from"], given["to"]
    plan = Plan(
        meant(url, asked),
        urls=_addresses(given["urls"]),
        page=given["page"],
        subdomains=given["subdomains"],
        depth=given["depth"],
        limit=given["limit"],
        include=given["include"],
        exclude=(*given["exclude"], *_expressions(given["exclude_from"])),
        ignore_case=given["ignore_case"],
        requisites=given["requisites"],
        policy=Policy(given["policy"]),
        at=given["at"],
        first=dates.pad(first) if first else None,
        last=dates.pad(last, up=True) if last else None,
        most_recent=given["most_recent"],
        all_versions=given["all_versions"],
        keep_rejected=given["keep_rejected"],
    )
    if plan.first and plan.last and plan.first > plan.last:
        raise UsageError("--from is later than --to: nothing lies between")
    Scope.of(plan)  # raises for expressions that are none
    return plan


def _addresses(file: Path | None) -> tuple[str, ...]:
    """Return the URLs in a file, one per line. Raises InputError, also for a line that is not a URL."""
    if file is None:
        return ()
    from unlost.archives.spelling import read_url_list  # noqa: PLC0415  start-up
    from unlost.formats.problems import Problems  # noqa: PLC0415

    problems = Problems()
    found = read_url_list(file, problems)
    if problems.total:
        raise InputError(str(next(iter(problems.first.values()))))
    return tuple(found)


def _expressions(file: Path | None) -> list[str]:
    """Return the lines of a file without those that are empty or begin with `#`. Raises InputError."""
    import re  # noqa: PLC0415  start-up

    from unlost.formats.problems import Problems  # noqa: PLC0415
    from unlost.formats.textfile import read_lines  # noqa: PLC0415

    if file is None:
        return []
    problems = Problems()
    found: list[str] = []
    for line in read_lines(file, problems):
        text = line.text.decode("utf-8", "surrogateescape").strip()
        if not text or text.startswith("#"):
            continue
        try:
            re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            raise InputError(f"{file}:{line.number}: expected a regular expression: {error}") from None
        found.append(text)
    if problems.total:
        raise InputError(str(next(iter(problems.first.values()))))
    return found


def _folder_of(url: str) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415

    host = urlsplit(url).netloc.rpartition("@")[2].lower()
    return f"{host.translate(str.maketrans(':', '_', '[]'))}.recovery"
