"""`unlost recover`: recovers a lost site from archives, local sources and the live site."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from json import dumps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import click
import uvloop
from click.core import ParameterSource

from unlost import dates
from unlost.archives.local_sources import local_source_archives
from unlost.atomic import atomic_file, ensure_directory
from unlost.cli import types
from unlost.cli.archive_options import (
    LIMIT_WAIT_SECONDS,
    archives_option,
    contact_option,
    delay_option,
    only_option,
    open_http_client,
    select_archives,
    track_connectivity,
)
from unlost.cli.messages import command_line, say, say_next
from unlost.cli.output import check_output_file, print_table
from unlost.cli.problems import say_problems
from unlost.cli.progress import is_progress_visible
from unlost.cli.recover_options import parse_recover_options, recover_options, with_options
from unlost.cli.types import FILE_OR_FOLDER, READABLE_FILE, READABLE_FOLDER
from unlost.clock import SystemClock
from unlost.errors import ArchiveError, InputError, OfflineError, UsageError
from unlost.http.connectivity import Connectivity
from unlost.http.rate_limit import DEFAULT_SHARE, SHARE_WITHOUT_CONTACT
from unlost.problems import Problems
from unlost.recovery.estimate import ArchiveCost
from unlost.recovery.events import (
    ArchiveSuspended,
    CaptureFailed,
    CaptureRejected,
    CaseVariantsMerged,
    EventListener,
    ListingEnded,
    ProgressCounted,
    RecoveryEvent,
    ResourceMissing,
    ResourceRecovered,
    ResourceSubstituted,
    StartPageMissing,
    WarcBytesLost,
)
from unlost.recovery.listings import SKIP_REASONS
from unlost.recovery.options import (
    CONFIRMATION_THRESHOLD,
    RecoverOptions,
    RecoverPolicy,
    RunOptions,
)
from unlost.recovery.scheduler import RecoveryRunResult
from unlost.recovery.session import RecoverySession
from unlost.recovery.sources import LIVE_ARCHIVE
from unlost.recovery.state.reader import StateReader
from unlost.recovery.state.resources import ResourceStatus
from unlost.recovery.state.schema import explain_sqlite_errors
from unlost.recovery.state.store import RecoveryState, RequestsSent
from unlost.registry.models import Archive
from unlost.report.recovery.serializers import summary_rows
from unlost.sqlite import STATE_FILE_NAME

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


_FAILURE_EVENTS = (CaptureFailed, ArchiveSuspended)
_MAX_BUFFERED = 1000  # events; without a network, a run ends after a few per archive
_SILENT_EVENTS = (ResourceRecovered, ResourceMissing, CaptureRejected, ResourceSubstituted, ListingEnded)


class RecoverDisplay:
    """Shows what happens: a progress display, messages, or JSON events. A context manager.

    Attributes:
        sent: Requests sent so far; set once the client that counts them exists.
    """

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json
        self._rows: dict[str, TaskID] = {}
        self._display: Progress | None = None
        self.sent: RequestsSent = {}

    def __enter__(self) -> Self:
        """Start the display, on a terminal."""
        if is_progress_visible() and not self._is_json:
            self._display = _create_display()
            self._display.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Stop the display. After Ctrl-C, print that nothing is lost."""
        if self._display is not None:
            self._display.stop()
        if kind is KeyboardInterrupt:
            say("what came back so far is kept: the same command goes on", level="info")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the display, so that the user can be prompted."""
        if self._display is not None:
            self._display.stop()
        try:
            yield
        finally:
            if self._display is not None:
                self._display.start()

    def on_event(self, event: RecoveryEvent) -> None:
        """Show an event."""
        if self._is_json:
            rounded = {"until": int(event.until) + 1} if isinstance(event, ArchiveSuspended) else {}
            click.echo(dumps({**event.to_json(), **rounded}))
        if isinstance(event, ProgressCounted):
            self._draw(event.counts)
        elif not isinstance(event, _SILENT_EVENTS) and not self._is_json:
            say(_format_event(event), level="note")

    def _draw(self, counts: Mapping[ResourceStatus, int]) -> None:
        if self._display is None:
            return
        recovered, substituted = counts[ResourceStatus.RECOVERED], counts[ResourceStatus.SUBSTITUTED]
        missing, queued = counts[ResourceStatus.MISSING], counts[ResourceStatus.QUEUED]
        done = recovered + substituted + missing
        self._row("all", f"{recovered:,} recovered, {missing:,} missing, {queued:,} queued", done, done + queued)
        totals: dict[str, int] = {}
        for (archive, _), count in self.sent.items():
            totals[archive] = totals.get(archive, 0) + count
        for archive, count in totals.items():
            self._row(archive, f"{count:,} requests", 0, None)

    def _row(self, name: str, text: str, done: int, total: int | None) -> None:
        if self._display is None:
            return
        if name not in self._rows:
            self._rows[name] = self._display.add_task(name, total=total, text=text)
        self._display.update(self._rows[name], completed=done, total=total, text=text)


class BufferedEvents:
    """Buffers failures until an archive has been reached: without a network, one message replaces them all."""

    def __init__(self, on_event: EventListener, connectivity: Connectivity) -> None:
        self._on_event = on_event
        self._connectivity = connectivity
        self._buffer: list[RecoveryEvent] = []

    def on_event(self, event: RecoveryEvent) -> None:
        """Forward an event, or buffer it until an archive has been reached."""
        if isinstance(event, _FAILURE_EVENTS) and self._connectivity.is_undecided:
            if len(self._buffer) < _MAX_BUFFERED:
                self._buffer.append(event)
            return
        for each in self._buffer:
            self._on_event(each)
        self._buffer.clear()
        self._on_event(event)


def _format_event(event: RecoveryEvent) -> str:
    match event:
        case ArchiveSuspended():
            when = dates.to_local(event.until, round_up=True)
            return f"{event.archive}: not queried before {when}: {event.reason}; the others go on"
        case WarcBytesLost():
            return f"{event.file}: {event.bytes} bytes at its end are gone: what was in them is asked for again"
        case StartPageMissing():
            return f"no archive has {event.uri[:200]}, nor anything that it leads to: all that is listed is taken"
        case CaseVariantsMerged():
            return f"the server ignores letter case: {event.merged} URLs that differ only in it were merged"
        case CaptureFailed():
            return f"{event.archive}: {event.uri[:200]}: {event.message}"
        case _:
            return str(event)


def _create_display() -> "Progress":
    from rich import progress as rich_progress  # noqa: PLC0415  only for the display
    from rich.console import Console  # noqa: PLC0415

    columns = (
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.TextColumn("{task.fields[text]}", markup=False),
        rich_progress.BarColumn(bar_width=20),
        rich_progress.TimeRemainingColumn(compact=True),
    )
    return rich_progress.Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    )


EXIT_NOTHING_RECOVERED = 1
"""Exit code of a finished recovery that recovered nothing in any run.

It is 0 as soon as any run has recovered something, so that a recovery that a timer repeats is not reported as
failed."""
_DATE_OPTIONS = ("at", "first", "last", "most_recent")  # fields of `RecoverOptions` that select captures by date


class RecoverRun:
    """A run of `unlost recover`.

    Args:
        plan: Options of the recovery.
        folder: Folder of the recovery.
        archives: The sources by id.
        options: The command's options by name.
        previous: Options of the last run; None for a new recovery.
    """

    def __init__(
        self,
        plan: RecoverOptions,
        folder: Path,
        archives: Mapping[str, Archive],
        options: Mapping[str, Any],
        previous: RecoverOptions | None,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._archives = archives
        self._options = options
        self._before = previous
        self._connectivity = track_connectivity(archives.values())

    def recover(self) -> int:
        """Recover what can be recovered now; return the exit code.

        Returns:
            0 or EXIT_NOTHING_RECOVERED if nothing is left to do, else the exit code of ArchiveError.
        """
        self._warn_of_other_dates()
        with self._remove_if_offline(), RecoverDisplay(is_json=self._options["json"]) as display:
            session = self._create_session(display)
            result = uvloop.run(session.run())
        self._print_result(result, session.source_problems)
        if not result.is_done or result.is_stopped:
            return ArchiveError.exit_code
        return 0 if result.counts[ResourceStatus.RECOVERED] else EXIT_NOTHING_RECOVERED

    def _warn_of_other_dates(self) -> None:
        previous, plan = self._before, self._plan
        if previous is not None and any(getattr(previous, name) != getattr(plan, name) for name in _DATE_OPTIONS):
            message = "what was recovered before stays, though other dates were asked for then"
            say(f"{message}: give another folder by -o to have all of it for these", level="warning")

    def estimate(self) -> int:
        """Print the estimated number of requests per archive; return the exit code."""
        with self._remove_if_offline(), RecoverDisplay(is_json=False) as display:
            estimate = uvloop.run(self._create_session(display).estimate(self._limit_share()))
            # Archives without listings were not queried; those with listings show whether there is a network.
            if all(each.folder is None for each in self._archives.values()):
                self._raise_if_offline()
        self._say_offline()
        for name, message in estimate.unknown.items():
            if self._should_report(name):
                text = f"{name}: no whole list, so what it would be asked is not known: {message}"
                say(text, level="warning", archive=name)
        rows = [each for each in estimate.costs if each.capture_queries or each.fetches]
        if self._options["json"]:
            for each in rows:
                numbers = {
                    "index": each.capture_queries,
                    "replay": each.fetches,
                    "days": each.days,
                    "seconds": round(each.seconds),
                }
                click.echo(dumps({"archive": each.archive, **numbers}))
        else:
            self._print_costs(rows)
        return 0

    def write_summary(self, file: Path) -> None:
        """Write a TSV line for each resource."""
        with StateReader(self._folder) as state, atomic_file(file) as output:
            for entry in summary_rows(state):
                output.write(entry.to_tsv().encode("utf-8", "surrogateescape") + b"\n")

    def _create_session(self, display: RecoverDisplay) -> RecoverySession:
        options = self._options
        stop: Path | None = options["stop_file"]
        http_client = open_http_client(
            options["contact"],
            LIMIT_WAIT_SECONDS,
            options["connections"],
            options["proxy"],
            connectivity=self._connectivity,
        )
        display.sent = http_client.request_counts
        run_options = RunOptions(
            options["connections"],
            options["wait"],
            options["until_done"],
            options["delay"],
            options["contact"],
            options["proxy"],
        )
        return RecoverySession(
            self._folder,
            self._plan,
            self._archives,
            http_client,
            SystemClock(),
            run_options,
            BufferedEvents(display.on_event, self._connectivity).on_event,
            should_stop=lambda: stop is not None and stop.exists(),
            confirm=lambda count, costs, is_begun: self._confirm(count, costs, display, is_begun=is_begun),
        )

    @contextmanager
    def _remove_if_offline(self) -> Iterator[None]:
        """Remove the files of a first run that found no network."""
        try:
            yield
        except OfflineError:
            if self._before is None:
                for name in (f"{STATE_FILE_NAME}{ending}" for ending in ("", "-wal", "-shm", "-journal")):
                    (self._folder / name).unlink(missing_ok=True)
                with suppress(OSError):
                    (self._folder / "warc").rmdir()  # fails if the folder is not empty
            raise

    def _raise_if_offline(self) -> None:
        if (error := self._connectivity.offline_error()) is not None:
            raise error

    def _say_offline(self) -> None:
        """Print one message if no remote archive was reached, although local sources were read."""
        if (error := self._connectivity.offline_error()) is not None:
            say(str(error), level="warning")

    def _should_report(self, archive: str) -> bool:
        """Return whether to report an archive's failure: not that of a remote one if no remote one was reached."""
        return self._connectivity.offline_error() is None or self._archives[archive].folder is not None

    def _confirm(
        self, count: int, costs: Callable[[float], list[ArchiveCost]], display: RecoverDisplay, *, is_begun: bool
    ) -> bool:
        """Print what fetching many listed URLs costs, and ask for confirmation, unless --yes was given.

        Args:
            count: Number of listed URLs.
            costs: Returns the costs for a share of the archives' limits.
            display: Display to pause during the prompt.
            is_begun: Whether files are already being fetched. Then the prompt waits until the next run.

        Raises:
            UsageError: Confirmation is needed, but there is no terminal.
        """
        if is_begun and not self._options["yes"]:
            return False
        estimated_costs = costs(self._limit_share())
        total = sum(each.capture_queries + each.fetches for each in estimated_costs)
        duration = _format_costs_duration(estimated_costs)
        message = f"archives list {count:,} URLs of this site: {_format_requests(total)}{duration}"
        if self._options["yes"]:
            say(message, level="info")
            return True
        hint = "give --yes to fetch them, or --limit, --include, --exclude or --linked-only to fetch less"
        if not (sys.stdin.isatty() and sys.stderr.isatty()) or self._options["json"]:
            raise UsageError(f"{message}: {hint}; the listings are stored")
        with display.paused():
            return click.confirm(f"{message}. Fetch them?", err=True)

    def _limit_share(self) -> float:
        return DEFAULT_SHARE if self._options["contact"] else SHARE_WITHOUT_CONTACT

    def _print_costs(self, costs: list[ArchiveCost]) -> None:
        if self._plan.policy is RecoverPolicy.NAIVE:
            say("without lists, each page costs one request to each archive, and one more for its copy", level="note")
        rows = [
            (each.archive, f"{each.capture_queries:,}", f"{each.fetches:,}", f"{each.days:,}" if each.days else "-")
            for each in costs
        ]
        print_table(("archive", "index queries", "captures", "days"), rows)
        # Files on this machine take no requests.
        total = sum(
            each.capture_queries + each.fetches for each in costs if self._archives[each.archive].folder is None
        )
        needed = (
            f"about {_format_requests(total)}{_format_costs_duration(costs)}"
            if total
            else "no requests: the files are on this machine"
        )
        say(f"{needed}; the listings are stored, and not requested again", level="info")
        if self._plan.page_requisites:
            most = f"at most {self._plan.requisite_files:,} files and {self._options['requisite_bytes']} of other hosts"
            say(
                f"what pages need from other hosts is not included: {most} (--no-page-requisites for none)",
                level="info",
            )
        say_next("the same command without --dry-run recovers the site")

    def _print_result(self, result: RecoveryRunResult, source_problems: Mapping[str, Problems]) -> None:
        counts = result.counts
        requests: dict[str, dict[str, int]] = {}
        for (archive, work), count in result.requests.items():
            requests.setdefault(archive, {})[work.value] = count
        if self._options["json"]:
            suspended = {
                name: {"until": int(each.until) + 1, "reason": each.reason} for name, each in result.suspended.items()
            }
            totals = {**{status.value: count for status, count in counts.items()}, "doubtful": result.doubtful}
            counters = {
                "requests": requests,
                "closed": suspended,
                "unlisted": result.unlisted,
                "trapped": result.skipped_links,
            }
            counters |= {
                "left_out": result.left_out,
                "unlistable": result.unlistable,
                "unconfirmed": result.unconfirmed,
            }
            counters |= {"other_host_lookups": result.other_host_lookups, "session_ids": result.session_ids}
            counters["problems"] = {
                name: each_problems.counts for name, each_problems in source_problems.items() if each_problems.counts
            }
            click.echo(
                dumps({"event": "done", "folder": str(self._folder), **totals, "failed": result.failed, **counters})
            )
        self._say_offline()
        for name, message in result.unlisted.items():
            if self._should_report(name):
                say(f"{name}: no whole list: {message}", level="warning", archive=name)
        for name, problems in source_problems.items():
            say_problems(problems, name, "warning", archive=name)
        for reason, count in result.skipped_links.items():
            say(f"{count:,} links were not followed: {reason}", level="note")
        for name, suspension in result.suspended.items():
            if self._should_report(name):
                when = dates.to_local(suspension.until, round_up=True)
                say(f"{name}: goes on at {when} ({suspension.message})", level="warning", archive=name)
        total = sum(result.requests.values())
        self._say_counts(result, total)
        self._say_what_next(result)
        if result.unlistable and self._connectivity.offline_error() is None:
            say(unlistable_sentence(result.unlistable), level="info")

    def _say_counts(self, result: RecoveryRunResult, total: int) -> None:
        for reason, count in result.left_out.items():
            say(f"{count:,} listed URL{'' if count == 1 else 's'} left out: {SKIP_REASONS[reason]}", level="note")
        if result.session_ids:
            say(f"{result.session_ids:,} listed URLs with session ids: taken for the URL without them", level="note")
        left_out = sum(result.left_out.values())
        not_linked = result.counts[ResourceStatus.LISTED] - left_out
        parts = [
            f"{result.counts[ResourceStatus.RECOVERED]:,} recovered"
            + (f" ({result.doubtful:,} doubtful)" if result.doubtful else ""),
            f"{result.counts[ResourceStatus.SUBSTITUTED]:,} substituted"
            if result.counts[ResourceStatus.SUBSTITUTED]
            else "",
            f"{result.counts[ResourceStatus.MISSING]:,} missing",
            f"{result.counts[ResourceStatus.QUEUED]:,} queued" if result.counts[ResourceStatus.QUEUED] else "",
            f"{not_linked:,} listed, but not linked" if not_linked else "",
            f"{left_out:,} left out" if left_out else "",
        ]
        say(f"{', '.join(filter(None, parts))}; {_format_requests(total)}; in {self._folder}", level="info")

    def _say_what_next(self, result: RecoveryRunResult) -> None:
        self._say_how_it_ended(result)
        if result.counts[ResourceStatus.RECOVERED] and not self._options["json"]:
            say_next(f"{command_line('report', self._folder)} lists recovered and missing resources")
            say_next(f"{command_line('export', self._folder, '-o', 'SITE')} writes the recovered site")

    def _say_how_it_ended(self, result: RecoveryRunResult) -> None:
        if result.unconfirmed:
            hint = "run the same command again with --yes to fetch them"
            say(f"{result.unconfirmed:,} listed URLs were not fetched: {hint}", level="info")
        elif result.has_reached_limit and not result.is_done:
            say("as many as --limit allows: a higher one goes on", level="info")
        elif not result.is_done or result.is_stopped:
            say("the same command goes on", level="info")
        elif not result.counts[ResourceStatus.RECOVERED]:
            why = f"{command_line('report', self._folder, '--list', 'missing')} says why"
            say(f"nothing came back: look at how the address is written; {why}", level="warning")


def unlistable_sentence(archives: Mapping[str, str]) -> str:
    """Return a sentence about the archives that may have more, since they gave no complete listing.

    >>> unlistable_sentence({"archive.today": "unsupported", "web.archive.org": "cut"})
    'there may be more: archive.today has no listing API; the listing of web.archive.org was cut off'
    """
    without = [name for name, outcome in archives.items() if outcome == "unsupported"]
    cut = [name for name, outcome in archives.items() if outcome == "cut"]
    parts = [f"{', '.join(without)} {'has' if len(without) == 1 else 'have'} no listing API"] if without else []
    parts += [f"the listing of {name} was cut off" for name in cut]
    return f"there may be more: {'; '.join(parts)}"


def _format_costs_duration(costs: Sequence[ArchiveCost]) -> str:
    """Return how long requests take within the archives' limits, after a comma; empty if unknown."""
    days = max((each.days for each in costs), default=0)
    if days > 1:
        return f", {days:,} days within the daily limits"
    minutes = math.ceil(max((each.seconds for each in costs), default=0.0) / 60)
    if not minutes:
        return ""
    return f", about {minutes // 60} h {minutes % 60} min within the rate limits"


def _format_requests(count: int) -> str:
    return f"{count:,} request{'' if count == 1 else 's'}"


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
        help="Also recover from this WARC, ARC or WACZ file, or from all such files in a folder. May be repeated.",
    ),
    click.option(
        "--har",
        multiple=True,
        type=READABLE_FILE,
        metavar="FILE",
        help="Also recover from this HAR file. May be repeated.",
    ),
    click.option(
        "--browser-cache",
        multiple=True,
        is_flag=False,
        flag_value=_AUTO,
        type=click.UNPROCESSED,
        callback=_check_profiles,
        metavar="[PROFILE]",
        help="Also recover from the cache of this browser profile. Without a value, use all profiles of Chromium, "
        "Chrome, Brave, Edge and Firefox on this machine. May be repeated.",
    ),
    click.option(
        "--live", is_flag=True, help="Request URLs from the live site if no archive lists a good capture of them."
    ),
    delay_option,
    click.option(
        "--no-archives",
        is_flag=True,
        help="Query no archives. Recover only from --warc, --har, --browser-cache and --live.",
    ),
)


def select_sources(ctx: click.Context, options: Mapping[str, Any], plan: "RecoverOptions") -> "dict[str, Archive]":
    """Return the sources to recover from, by id: local sources, then archives, then the live site.

    Raises:
        UsageError: Options contradict each other.
        InputError: A source cannot be read.
    """
    _check_dates(options, plan)
    sources: dict[str, Archive] = {}
    if options["warc"] or options["har"] or options["browser_cache"]:
        on_message = partial(say, level="note")
        sources |= local_source_archives(options["warc"], options["har"], options["browser_cache"], on_message)
    if options["no_archives"]:
        for name in ("archives", "only"):
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise UsageError(f"--no-archives and --{name} exclude each other: give one of them")
        if not sources and not options["live"]:
            raise UsageError("--no-archives needs a source: give --warc, --har, --browser-cache or --live")
    else:
        sources |= select_archives(options["archives"], options["only"])
    return sources | ({LIVE_ARCHIVE.id: LIVE_ARCHIVE} if options["live"] else {})


def _check_dates(options: Mapping[str, Any], plan: "RecoverOptions") -> None:
    now = dates.from_epoch(str(int(SystemClock().now())))
    if options["live"] and plan.last is not None and plan.last < now:
        raise UsageError("--live and --to exclude each other: what the live site responds now is later than --to")


_FILE = types.AnyPath()


_OPTIONS = (
    click.option(
        "-o", "--output", type=_FILE, metavar="DIR", help="Store the recovery in DIR.  [default: HOST.recovery]"
    ),
    *recover_options,
    click.option(
        "--dry-run",
        is_flag=True,
        help="Fetch only listings, and print the estimated number of requests and days for the rest.",
    ),
    click.option(
        "--yes", is_flag=True, help=f"Fetch more than {CONFIRMATION_THRESHOLD:,} listed URLs without confirmation."
    ),
    click.option(
        "--wait",
        type=click.FloatRange(min=0),
        default=0,
        show_default=True,
        metavar="SECONDS",
        help="Send one request at a time to each archive, with an average pause of SECONDS. 0 disables the pause.",
    ),
    click.option(
        "--connections",
        type=click.IntRange(1, 20),
        default=6,
        show_default=True,
        metavar="N",
        help="Send at most N concurrent requests to each archive, within its rate limits.",
    ),
    click.option(
        "--until-done",
        is_flag=True,
        help="Wait until archives can be queried again, however long, instead of exiting with code 4.",
    ),
    click.option(
        "--stop-file",
        type=_FILE,
        metavar="FILE",
        help="Stop gracefully when FILE exists. Run the same command again to resume.",
    ),
    click.option("--summary", type=_FILE, metavar="FILE", help="Write a tab-separated line for each resource to FILE."),
    click.option("--proxy", is_flag=True, help="Use the proxies in HTTP_PROXY, HTTPS_PROXY and NO_PROXY."),
    *source_options,
    archives_option,
    only_option,
    contact_option,
    click.option("--json", is_flag=True, help="Print events and the result as JSON Lines."),
)


@click.command(name="recover")
@click.argument("url", metavar="URL")
@with_options(_OPTIONS)
@click.pass_context
def command(ctx: click.Context, /, url: str, **options: Any) -> None:  # noqa: ANN401  the options, by their names
    """Recover a lost website from web archives.

    Query all archives for the site at URL, fetch the best capture of each page and of its images, style sheets and
    scripts, and store them in a folder as WARC files. If URL has a path, only its folder is recovered. Other sources
    are WARC and HAR files, browser caches and the live site.

    Run the same command again to resume: it retries failed requests and looks for new captures. The exit code is 4 if
    the recovery is incomplete, and 1 if it is complete but nothing was recovered.

    \b
    Example:
      unlost recover http://lost.example/ --contact you@example.org
      unlost export lost.example.recovery -o site
    """
    plan = parse_recover_options(url, options)
    folder = options["output"] or Path(_default_folder(plan.url))
    before = None
    if (folder / STATE_FILE_NAME).is_file():
        # Report conflicts with the state before anything about archives.
        with explain_sqlite_errors(folder / STATE_FILE_NAME), RecoveryState(folder) as state:
            state.check_options(plan)
            before = state.options()
            plan = _inherit_options(ctx, plan, state.inherited_options())
    run = RecoverRun(plan, folder, select_sources(ctx, options, plan), options, before)
    check_output_file(options["summary"])
    with ensure_directory(folder):
        code = run.estimate() if options["dry_run"] else run.recover()
        if options["summary"] is not None:
            run.write_summary(options["summary"])
    ctx.exit(code)


def _inherit_options(ctx: click.Context, plan: RecoverOptions, stored_options: RecoverOptions | None) -> RecoverOptions:
    """Return the plan with the defaults of the version that began the recovery, unless options override them."""
    if stored_options is None:
        return plan
    options = {
        "policy": ("policy", "linked_only"),
        "page_requisites": ("page_requisites",),
        "drop_rejected": ("drop_rejected",),
    }
    stored = {
        name: getattr(stored_options, name)
        for name, params in options.items()
        if all(ctx.get_parameter_source(each) is ParameterSource.DEFAULT for each in params)
    }
    return replace(plan, **stored)


def _default_folder(url: str) -> str:
    host = urlsplit(url).netloc.rpartition("@")[2].lower()
    return f"{host.translate(str.maketrans(':', '_', '[]'))}.recovery"
