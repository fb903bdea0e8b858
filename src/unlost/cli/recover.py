"""`unlost recover`: recovers a lost site from archives, local sources and the live site. Options and their checks."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from unlost import dates
from unlost.atomic import ensure_directory
from unlost.cli import types
from unlost.cli.archive_options import archives_option, contact_option, delay_option, only_option, select_archives
from unlost.cli.inputs import parse_argument
from unlost.cli.messages import escape_untrusted, say
from unlost.cli.output import check_output_file
from unlost.cli.types import FILE_OR_FOLDER, READABLE_FILE, READABLE_FOLDER
from unlost.errors import DateError, InputError, UsageError
from unlost.recover.options import (
    CONFIRMATION_THRESHOLD,
    MAX_REQUISITE_FILES,
    SELECTABLE_POLICIES,
    RecoverOptions,
    RecoverPolicy,
)

if TYPE_CHECKING:
    from unlost.registry.models import Archive


_AUTO = "auto"  # `--browser-cache` without a value


def _check_profiles(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str | Path, ...]:
    """Check the folders of browser profiles. Raises InputError for a missing one."""
    checked: list[str | Path] = []
    for value in values:
        if value == _AUTO:
            checked.append(value)
            continue
        if "://" in value:
            raise click.BadParameter("expected a profile, found a URL: write --browser-cache after the URL")
        try:
            checked.append(READABLE_FOLDER.convert(Path(value).expanduser() if value else "", None, None))
        except InputError as error:
            # It may be a URL without a scheme, which click took for the optional value of this option.
            raise InputError(f"{error}; to search for profiles, write --browser-cache after the URL") from None
    return tuple(checked)


source_options = (
    click.option(
        "--warc",
        multiple=True,
        type=FILE_OR_FOLDER,
        metavar="PATH",
        help="Also recover from this WARC, ARC or WACZ file, or a folder of them; may be repeated.",
    ),
    click.option(
        "--har",
        multiple=True,
        type=READABLE_FILE,
        metavar="FILE",
        help="Also recover from this HAR file; may be repeated.",
    ),
    click.option(
        "--browser-cache",
        multiple=True,
        is_flag=False,
        flag_value=_AUTO,
        type=click.UNPROCESSED,
        callback=_check_profiles,
        metavar="[PROFILE]",
        help="Also recover from the cache of this browser profile; without a value, of all profiles of Chromium, "
        "Chrome, Brave, Edge and Firefox that are found.",
    ),
    click.option(
        "--live", is_flag=True, help="Also request from the live site what no archive lists a good capture of."
    ),
    delay_option,
    click.option("--no-archives", is_flag=True, help="Query no archive: recover from the sources above alone."),
)


def select_sources(ctx: click.Context, given: Mapping[str, Any], plan: "RecoverOptions") -> "dict[str, Archive]":
    """Return the sources to recover from, by id: local sources, then archives, then the live site.

    Raises:
        UsageError: Options contradict each other.
        InputError: A source cannot be read.
    """
    from unlost.archives.local_sources import local_source_archives  # noqa: PLC0415  start-up
    from unlost.recover.sources import LIVE_ARCHIVE  # noqa: PLC0415

    _check_dates(given, plan)
    found: dict[str, Archive] = {}
    if given["warc"] or given["har"] or given["browser_cache"]:
        tell = partial(say, level="note")
        found |= local_source_archives(given["warc"], given["har"], given["browser_cache"], tell)
    if given["no_archives"]:
        for name in ("archives", "only"):
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise UsageError(f"--no-archives and --{name} exclude each other: give one of them")
        if not found and not given["live"]:
            raise UsageError("--no-archives needs a source: give --warc, --har, --browser-cache or --live")
    else:
        found |= select_archives(given["archives"], given["only"])
    return found | ({LIVE_ARCHIVE.id: LIVE_ARCHIVE} if given["live"] else {})


def _check_dates(given: Mapping[str, Any], plan: "RecoverOptions") -> None:
    from unlost import dates  # noqa: PLC0415  start-up
    from unlost.clock import SystemClock  # noqa: PLC0415

    now = dates.from_epoch(str(int(SystemClock().now())))
    if given["live"] and plan.last is not None and plan.last < now:
        raise UsageError("--live and --to exclude each other: what the live site responds now is later than --to")


_FILE = types.AnyPath()
_COUNT = click.IntRange(min=1)


def _parse_date(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Return a date of 1 to 14 digits, also for one with the dashes of ISO 8601."""
    if value is None:
        return None
    digits = value.replace("-", "")
    try:
        dates.pad(digits)
    except DateError:
        found = escape_untrusted(value.encode("utf-8", "surrogateescape"), 40)
        raise click.BadParameter(f"expected a date such as 2014, 2014-05 or 20140510, found `{found}`") from None
    return digits


def _removed_option(name: str, hint: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return an option of an earlier version that is rejected with a hint, also as a setting or variable."""

    def refuse(ctx: click.Context, param: click.Parameter, _value: bool) -> None:
        source = ctx.get_parameter_source(param.name or "")
        if source not in (None, ParameterSource.DEFAULT):
            raise UsageError(f"{name} was removed: {hint}")

    return click.option(name, is_flag=True, hidden=True, callback=refuse, help=f"Removed: {hint}.")


_OPTIONS = (
    click.option("-o", "--output", type=_FILE, metavar="DIR", help="Where to keep it.  [default: HOST.recovery]"),
    click.option(
        "--linked-only", is_flag=True, help="Fetch only what links lead to, not everything that archives list."
    ),
    click.option(
        "--policy",
        type=click.Choice([each.value for each in SELECTABLE_POLICIES]),
        help="How the study finds pages: by links alone; by links, querying only archives that list them; or all that "
        "is listed, crawl traps and duplicates included.",
    ),
    click.option(
        "--include-left-out",
        is_flag=True,
        help="Also fetch listed URLs that look like crawl traps or duplicates of others.",
    ),
    click.option("--at", callback=_parse_date, metavar="DATE", help="The site as of a date: 2014, 2014-05, 20140501."),
    click.option("--from", callback=_parse_date, metavar="DATE", help="No captures before."),
    click.option("--to", callback=_parse_date, metavar="DATE", help="No captures after."),
    click.option("--most-recent", is_flag=True, help="The last capture, also if the archive changed its format."),
    click.option("--all-versions", is_flag=True, help="Every version of every page."),
    click.option(
        "--drop-rejected",
        is_flag=True,
        help="Count a page as missing if all its captures look like error pages, parked domains or walls.",
    ),
    _removed_option("--keep-rejected", "doubtful pages are kept by default: leave it out, or see --drop-rejected"),
    click.option("--page", is_flag=True, help="Only this page, with what is needed to show it."),
    click.option("--subdomains", is_flag=True, help="The hosts below the host, too."),
    click.option("--depth", type=click.IntRange(min=0), metavar="N", help="At most N links away from URL."),
    click.option("--limit", type=_COUNT, metavar="N", help="At most N resources, over all runs."),
    click.option("--include", multiple=True, metavar="REGEX", help="Only addresses in which this is found."),
    click.option("--exclude", multiple=True, metavar="REGEX", help="No addresses in which this is found."),
    click.option("--exclude-from", type=types.READABLE_FILE, metavar="FILE", help="The same, one a line."),
    click.option("--ignore-case", is_flag=True, help="Addresses that differ in letter case only are one page."),
    click.option(
        "--page-requisites/--no-page-requisites",
        default=True,
        show_default=True,
        help="Fetch style sheets, scripts, fonts, images and media that pages need from other hosts.",
    ),
    click.option(
        "--requisite-files",
        type=click.IntRange(min=0),
        default=MAX_REQUISITE_FILES,
        show_default=True,
        metavar="N",
        help="At most N files of other hosts, over all runs.",
    ),
    click.option(
        "--requisite-bytes",
        default="1GB",
        show_default=True,
        metavar="SIZE",
        help="At most so many bytes of other hosts, as stored, over all runs: 500MB, 2GB.",
    ),
    click.option(
        "--requisite-lookups",
        type=_COUNT,
        default=1,
        show_default=True,
        metavar="N",
        help="Query at most N archives for each file of another host, until one holds it.",
    ),
    _removed_option("--requisites", "it is called --page-requisites now, and on by default"),
    click.option(
        "--urls", type=types.READABLE_FILE, metavar="FILE", help="Further addresses to begin from, one a line."
    ),
    click.option("--dry-run", is_flag=True, help="Fetch only listings, and estimate the cost of the rest."),
    click.option("--yes", is_flag=True, help=f"Fetch more than {CONFIRMATION_THRESHOLD:,} listed URLs without asking."),
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
    from unlost.cli.recover_run import RecoverRun  # noqa: PLC0415  start-up
    from unlost.recover.state.schema import explain_sqlite_errors  # noqa: PLC0415
    from unlost.recover.state.store import RecoveryState  # noqa: PLC0415
    from unlost.sqlite import STATE_FILE_NAME  # noqa: PLC0415

    plan = _recover_options(url, given)
    folder = given["output"] or Path(_default_folder(plan.url))
    if (folder / STATE_FILE_NAME).is_file():
        # Report conflicts with the state before anything about archives.
        with explain_sqlite_errors(folder / STATE_FILE_NAME), RecoveryState(folder) as state:
            state.check_options(plan)
            plan = _inherit_options(ctx, plan, state.inherited_options())
    archives = select_sources(ctx, given, plan)
    check_output_file(given["summary"])
    with ensure_directory(folder), explain_sqlite_errors(folder / STATE_FILE_NAME), RecoveryState(folder) as state:
        run = RecoverRun(plan, folder, state, archives, given)
        code = run.estimate() if given["dry_run"] else run.recover()
        if given["summary"] is not None:
            run.write_summary(given["summary"])
    ctx.exit(code)


def _inherit_options(ctx: click.Context, plan: RecoverOptions, before: RecoverOptions | None) -> RecoverOptions:
    """Return a plan with the defaults of the version that began the recovery, unless options override them."""
    if before is None:
        return plan
    options = {
        "policy": ("policy", "linked_only"),
        "page_requisites": ("page_requisites",),
        "drop_rejected": ("drop_rejected",),
    }
    stored = {
        name: getattr(before, name)
        for name, params in options.items()
        if all(ctx.get_parameter_source(each) is ParameterSource.DEFAULT for each in params)
    }
    return replace(plan, **stored)


def _recover_options(url: str, given: Mapping[str, Any]) -> RecoverOptions:
    from unlost.recover.scope import RecoveryScope  # noqa: PLC0415
    from unlost.report.format import parse_byte_size  # noqa: PLC0415
    from unlost.uri.normalize import normalize_input_url  # noqa: PLC0415  start-up

    if given["most_recent"] and given["at"]:
        raise UsageError("--most-recent and --at say different things: give one of them")
    if given["policy"] and given["linked_only"]:
        raise UsageError("--policy and --linked-only exclude each other: --linked-only is --policy knowledgeable")
    policy = (
        RecoverPolicy.KNOWLEDGEABLE
        if given["linked_only"]
        else RecoverPolicy(given["policy"] or RecoverPolicy.COMPLETE)
    )
    first, last = given["from"], given["to"]
    plan = RecoverOptions(
        parse_argument(url, normalize_input_url),
        urls=_read_urls(given["urls"]),
        page=given["page"],
        subdomains=given["subdomains"],
        depth=given["depth"],
        limit=given["limit"],
        include=given["include"],
        exclude=(*given["exclude"], *_read_expressions(given["exclude_from"])),
        ignore_case=given["ignore_case"],
        page_requisites=given["page_requisites"],
        requisite_files=given["requisite_files"],
        requisite_bytes=parse_byte_size(given["requisite_bytes"]),
        requisite_lookups=given["requisite_lookups"],
        include_left_out=given["include_left_out"],
        policy=policy,
        at=given["at"],
        first=dates.pad(first) if first else None,
        last=dates.pad(last, round_up=True) if last else None,
        most_recent=given["most_recent"],
        all_versions=given["all_versions"],
        drop_rejected=given["drop_rejected"],
    )
    if plan.first and plan.last and plan.first > plan.last:
        raise UsageError("--from is later than --to: nothing lies between")
    RecoveryScope.of(plan)  # raises for invalid expressions
    return plan


def _read_urls(file: Path | None) -> tuple[str, ...]:
    """Return the URLs in a file, one per line. Raises InputError, also for a line that is not a URL."""
    if file is None:
        return ()
    from unlost.problems import Problems  # noqa: PLC0415
    from unlost.uri.normalize import read_url_list  # noqa: PLC0415  start-up

    problems = Problems()
    found = read_url_list(file, problems)
    if problems.total:
        raise InputError(str(next(iter(problems.first.values()))))
    return tuple(found)


def _read_expressions(file: Path | None) -> list[str]:
    """Return the lines of a file, except those that are empty or begin with `#`. Raises InputError."""
    import re  # noqa: PLC0415  start-up

    from unlost.problems import Problems  # noqa: PLC0415
    from unlost.text_lines import read_lines  # noqa: PLC0415

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


def _default_folder(url: str) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415

    host = urlsplit(url).netloc.rpartition("@")[2].lower()
    return f"{host.translate(str.maketrans(':', '_', '[]'))}.recovery"
