"""Options of `unlost recover` and `unlost jobs submit` that say what to recover."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import click
from click.core import ParameterSource

from unlost import dates
from unlost.cli import types
from unlost.cli.inputs import parse_argument
from unlost.cli.messages import escape_untrusted
from unlost.errors import DateError, InputError, UsageError
from unlost.problems import Problems
from unlost.recovery.options import MAX_REQUISITE_FILES, SELECTABLE_POLICIES, RecoverOptions, RecoverPolicy
from unlost.recovery.scope import RecoveryScope
from unlost.report.format import parse_byte_size
from unlost.text_lines import read_lines
from unlost.uri.normalize import normalize_input_url, read_url_list

OptionDecorator: TypeAlias = Callable[[Callable[..., None]], Callable[..., None]]
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


def _removed_option(name: str, hint: str) -> OptionDecorator:
    """Return an option of an earlier version that is rejected with a hint, also as a setting or variable."""

    def refuse(ctx: click.Context, param: click.Parameter, _value: bool) -> None:
        source = ctx.get_parameter_source(param.name or "")
        if source not in (None, ParameterSource.DEFAULT):
            raise UsageError(f"{name} was removed: {hint}")

    return click.option(name, is_flag=True, hidden=True, callback=refuse, help=f"Removed: {hint}.")


# Regular expressions of an anonymous user could occupy a worker for hours: services do not accept them.
_expression_options = (
    click.option(
        "--include",
        multiple=True,
        metavar="REGEX",
        help="Recover only URLs in which REGEX is found. May be repeated; one match is enough.",
    ),
    click.option(
        "--exclude", multiple=True, metavar="REGEX", help="Skip URLs in which REGEX is found. May be repeated."
    ),
    click.option(
        "--exclude-from",
        type=types.READABLE_FILE,
        metavar="FILE",
        help="Skip URLs in which a regular expression in FILE is found, one per line. Lines that begin with # are "
        "comments.",
    ),
)
recover_options = (
    click.option(
        "--linked-only",
        is_flag=True,
        help="Fetch only URLs that recovered pages link to. By default, everything that archives list is fetched.",
    ),
    click.option(
        "--policy",
        type=click.Choice([each.value for each in SELECTABLE_POLICIES]),
        help="Find pages as in the original study. naive: follow links, and query every archive for every page. "
        "knowledgeable: follow links, and query only archives that list the page. exhaustive: fetch everything "
        "listed.  [default: everything listed except crawl traps and duplicates]",
    ),
    click.option(
        "--include-left-out",
        is_flag=True,
        help="Also fetch listed URLs that look like crawl traps or duplicates.",
    ),
    click.option(
        "--at",
        callback=_parse_date,
        metavar="DATE",
        help="Recover the site as of DATE, such as 2014, 2014-05 or 20140501.  [default: latest captures]",
    ),
    click.option(
        "--from",
        callback=_parse_date,
        metavar="DATE",
        help="Use no captures before DATE, such as 2014, 2014-05 or 20140501.  [default: no limit]",
    ),
    click.option(
        "--to",
        callback=_parse_date,
        metavar="DATE",
        help="Use no captures after DATE, such as 2014, 2014-05 or 20140501.  [default: no limit]",
    ),
    click.option(
        "--most-recent",
        is_flag=True,
        help="Prefer the latest capture, even if its archive converted it to another format.",
    ),
    click.option(
        "--all-versions", is_flag=True, help="Recover all versions of each page instead of only the best capture."
    ),
    click.option(
        "--drop-rejected",
        is_flag=True,
        help="Report a page as missing if all its captures look like error pages, parked domains or login walls. By "
        "default, the best of them is stored and marked as doubtful.",
    ),
    _removed_option("--keep-rejected", "doubtful pages are kept by default: leave it out, or see --drop-rejected"),
    click.option(
        "--page", is_flag=True, help="Recover only the page at URL with its page requisites, and follow no links."
    ),
    click.option("--subdomains", is_flag=True, help="Include all subdomains of the host."),
    click.option(
        "--depth",
        type=click.IntRange(min=0),
        metavar="N",
        help="Recover only pages that are at most N links away from URL.  [default: no limit]",
    ),
    click.option(
        "--limit",
        type=_COUNT,
        metavar="N",
        help="Recover at most N resources, over all runs.  [default: no limit]",
    ),
    *_expression_options,
    click.option("--ignore-case", is_flag=True, help="Treat URLs that differ only in letter case as the same page."),
    click.option(
        "--page-requisites/--no-page-requisites",
        default=True,
        show_default=True,
        help="Fetch style sheets, scripts, fonts, images and media that pages load from other hosts.",
    ),
    click.option(
        "--requisite-files",
        type=click.IntRange(min=0),
        default=MAX_REQUISITE_FILES,
        show_default=True,
        metavar="N",
        help="Fetch at most N page requisites from other hosts, over all runs.",
    ),
    click.option(
        "--requisite-bytes",
        default="1GB",
        show_default=True,
        metavar="SIZE",
        help="Store at most SIZE of page requisites from other hosts, over all runs, such as 500MB or 2GB.",
    ),
    click.option(
        "--requisite-lookups",
        type=_COUNT,
        default=1,
        show_default=True,
        metavar="N",
        help="Query at most N archives for each page requisite on another host, until one has it.",
    ),
    _removed_option("--requisites", "it is called --page-requisites now, and on by default"),
    click.option(
        "--urls", type=types.READABLE_FILE, metavar="FILE", help="Read further start URLs from FILE, one per line."
    ),
)
"""Options that say what to recover, for `parse_recover_options`."""
order_options = tuple(each for each in recover_options if each not in _expression_options)
"""Those of them that a service accepts in an order."""


def with_options(options: Iterable[OptionDecorator]) -> OptionDecorator:
    """Return a decorator that adds options to a command, in the given order."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(tuple(options)):
            command = option(command)
        return command

    return decorate


def parse_recover_options(url: str, options: Mapping[str, Any]) -> RecoverOptions:
    """Return what to recover, from the values of `recover_options` or `order_options`.

    Raises:
        UsageError, click.UsageError: An option is invalid, or options contradict each other.
        InputError: A file of URLs or expressions cannot be read.
    """
    first = dates.pad(options["from"]) if options["from"] else None
    last = dates.pad(options["to"], round_up=True) if options["to"] else None
    if options["most_recent"] and options["at"]:
        raise UsageError("--most-recent and --at say different things: give one of them")
    if first and last and first > last:
        raise UsageError("--from is later than --to: nothing lies between")
    if options["policy"] and options["linked_only"]:
        raise UsageError("--policy and --linked-only exclude each other: --linked-only is --policy knowledgeable")
    policy = (
        RecoverPolicy.KNOWLEDGEABLE
        if options["linked_only"]
        else RecoverPolicy(options["policy"] or RecoverPolicy.COMPLETE)
    )
    plan = RecoverOptions(
        parse_argument(url, normalize_input_url),
        urls=_read_urls(options["urls"]),
        page=options["page"],
        subdomains=options["subdomains"],
        depth=options["depth"],
        limit=options["limit"],
        include=options.get("include", ()),
        exclude=(*options.get("exclude", ()), *_read_expressions(options.get("exclude_from"))),
        ignore_case=options["ignore_case"],
        page_requisites=options["page_requisites"],
        requisite_files=options["requisite_files"],
        requisite_bytes=parse_byte_size(options["requisite_bytes"]),
        requisite_lookups=options["requisite_lookups"],
        include_left_out=options["include_left_out"],
        policy=policy,
        at=options["at"],
        first=first,
        last=last,
        most_recent=options["most_recent"],
        all_versions=options["all_versions"],
        drop_rejected=options["drop_rejected"],
    )
    RecoveryScope.of(plan)  # raises for invalid expressions
    return plan


def _read_urls(file: Path | None) -> tuple[str, ...]:
    """Return the URLs in a file, one per line. Raises InputError, also for a line that is not a URL."""
    if file is None:
        return ()

    problems = Problems()
    found = read_url_list(file, problems)
    if problems.total:
        raise InputError(str(next(iter(problems.first.values()))))
    return tuple(found)


def _read_expressions(file: Path | None) -> list[str]:
    """Return the lines of a file, except those that are empty or begin with `#`. Raises InputError."""
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
