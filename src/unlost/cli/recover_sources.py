"""The options of `unlost recover` that name sources, and what they name."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from unlost.cli.asking import delay_option
from unlost.cli.messages import say
from unlost.cli.readable import READABLE_FILE, READABLE_FOLDER, FILE_OR_FOLDER
from unlost.cli.registry_options import select_archives
from unlost.errors import InputError, UsageError

if TYPE_CHECKING:
    from unlost.archives.archive import Archive
    from unlost.recover.plan import RecoverOptions

_AUTO = "auto"  # `--browser-cache` without a value


def _check_profiles(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str | Path, ...]:
    """Check the folders of profiles. Raises InputError for one that is not there."""
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
            # It may be a URL without a scheme, which an option with an optional value takes for its own.
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
    """Return what to recover from, by id: local sources, then archives, then the live site.

    Raises UsageError for options that contradict each other, InputError for a source that cannot be read.
    """
    from unlost.archives.local.local_archives import local_source_archives  # noqa: PLC0415  start-up
    from unlost.recover.live_site import LIVE_ARCHIVE  # noqa: PLC0415

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
