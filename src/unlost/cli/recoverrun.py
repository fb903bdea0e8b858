"""One run of `unlost recover`: puts its parts together, and says what came of it."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import uvloop

from unlost import dates
from unlost._core import VERSION
from unlost.archives.archive import Archive
from unlost.archives.asking.courier import Courier
from unlost.archives.complaints import complaints_about
from unlost.archives.manners.admission import SHARE, SHARE_WITHOUT_CONTACT
from unlost.archives.repository import Repository
from unlost.cli.asking import PATIENCE_SECONDS, connectivity_of, open_courier
from unlost.cli.messages import command_line, say, say_next
from unlost.cli.problems import say_problems
from unlost.cli.recovershown import HeldEvents, Shown
from unlost.cli.table import print_table
from unlost.clock import SystemClock
from unlost.errors import ArchiveError, OfflineError, UsageError
from unlost.formats.output import whole_file
from unlost.recover.estimate import Cost
from unlost.recover.listing_filter import LEFT_OUT
from unlost.recover.plan import Plan, Policy
from unlost.recover.recovery import Recovery
from unlost.recover.result import Result
from unlost.recover.sources import note_paths, open_repositories
from unlost.recover.state.resources import Standing
from unlost.recover.state.state import Sent, State
from unlost.recover.summary import entries
from unlost.recover.warcs import Warcs
from unlost.state_file import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unlost.formats.problems import Problems

NOTHING = 1
"""The exit code of a recovery that is done and never brought anything."""

_DATES = ("at", "first", "last", "most_recent")  # of a plan: which captures are taken


class Run:
    """A run of a plan in a folder, with the options that were given, by their names."""

    def __init__(
        self, plan: Plan, folder: Path, state: State, archives: Mapping[str, Archive], given: Mapping[str, Any]
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._state = state
        self._archives = archives
        self._given = given
        self._clock = SystemClock()
        self._complaints: dict[str, Problems] = {}
        self._network = connectivity_of(archives.values())
        self._is_new = state.plan() is None

    def whole(self) -> int:
        """Recover what can be recovered now; return the exit code: 0 or NOTHING if there is nothing left to do."""
        self._warn_of_other_dates()
        with self._clean_up(), Shown(is_json=self._given["json"]) as shown, self._warcs() as warcs:
            result, sent = uvloop.run(self._recover(warcs, shown))
        self._say(result, sent)
        if not result.is_done or result.is_stopped:
            return ArchiveError.exit_code
        return 0 if result.counts[Standing.RECOVERED] else NOTHING

    def _warn_of_other_dates(self) -> None:
        before, plan = self._state.plan(), self._plan
        if before is not None and any(getattr(before, name) != getattr(plan, name) for name in _DATES):
            message = "what was recovered before stays, though other dates were asked for then"
            say(f"{message}: give another folder by -o to have all of it for these", level="warning")

    def dry(self) -> int:
        """Print what it would cost; return the exit code."""
        with self._clean_up(), Shown(is_json=False) as shown, self._warcs() as warcs:
            costs, unknown = uvloop.run(self._estimate(warcs, shown))
        self._say_offline()
        for name, message in unknown.items():
            if not self._is_worth_saying(name):
                continue
            say(
                f"{name}: no whole list, so what it would be asked is not known: {message}",
                level="warning",
                archive=name,
            )
        rows = [each for each in costs if each.lists or each.copies]
        if self._given["json"]:
            for each in rows:
                numbers = {
                    "index": each.lists,
                    "replay": each.copies,
                    "days": each.days,
                    "seconds": round(each.seconds),
                }
                click.echo(dumps({"archive": each.archive, **numbers}))
        else:
            self._print_costs(rows)
        return 0

    def write_summary(self, file: Path) -> None:
        """Write a line for each resource."""
        with whole_file(file) as output:
            for entry in entries(self._state):
                output.write(entry.line().encode("utf-8", "surrogateescape") + b"\n")

    @contextmanager
    def _warcs(self) -> "Iterator[Warcs]":
        warcs = Warcs(self._folder / "warc", self._clock, f"unlost/{VERSION}")
        try:
            yield warcs
        finally:
            warcs.close()

    @contextmanager
    def _clean_up(self) -> "Iterator[None]":
        """Leave nothing behind of a first run that found no network."""
        try:
            yield
        except OfflineError:
            if self._is_new:
                for name in (f"{NAME}{ending}" for ending in ("", "-wal", "-shm", "-journal")):
                    (self._folder / name).unlink(missing_ok=True)
                with suppress(OSError):
                    (self._folder / "warc").rmdir()  # stays if there is something in it
            raise

    def _say_offline(self) -> None:
        """Say in one message that no archive on the network was reached, if so; others were."""
        if (error := self._network.error()) is not None:
            say(str(error), level="warning")

    def _is_worth_saying(self, archive: str) -> bool:
        """Return whether the failure of an archive is to be said: not if none on the network was reached."""
        return self._network.error() is None or self._archives[archive].folder is not None

    def _courier(self) -> Courier:
        given = self._given
        return open_courier(
            given["contact"], PATIENCE_SECONDS, given["connections"], given["proxy"], network=self._network
        )

    def _repositories(self, courier: Courier) -> AbstractAsyncContextManager[dict[str, Repository]]:
        note_paths(self._state, self._archives)
        given = self._given
        return open_repositories(
            self._archives,
            courier,
            self._plan,
            self._clock,
            contact=given["contact"],
            delay=given["delay"],
            proxies=given["proxy"],
        )

    def _recovery(self, repositories: Mapping[str, Repository], warcs: Warcs, shown: Shown, sent: Sent) -> Recovery:
        given = self._given
        stop: Path | None = given["stop_file"]
        return Recovery(
            self._plan,
            self._state,
            warcs,
            repositories,
            self._clock,
            HeldEvents(shown.tell, self._network).tell,
            connections=given["connections"],
            wait=given["wait"],
            until_done=given["until_done"],
            should_stop=lambda: stop is not None and stop.exists(),
            sent=sent,
            confirm=lambda count, costs, is_begun: self._confirm(count, costs, shown, is_begun=is_begun),
        )

    def _confirm(self, count: int, costs: Callable[[float], list[Cost]], shown: Shown, *, is_begun: bool) -> bool:
        """Say what fetching many listed URLs costs, and ask, unless --yes was given. Raises UsageError.

        is_begun: nobody is asked while files are fetched; the next run does.
        """
        if is_begun and not self._given["yes"]:
            return False
        found = costs(self._share())
        total = sum(each.lists + each.copies for each in found)
        message = f"archives list {count:,} URLs of this site: {_requests(total)}{_duration(found)}"
        if self._given["yes"]:
            say(message, level="info")
            return True
        hint = "give --yes to fetch them, or --limit, --include, --exclude or --linked-only to fetch less"
        if not (sys.stdin.isatty() and sys.stderr.isatty()) or self._given["json"]:
            raise UsageError(f"{message}: {hint}; the listings are stored")
        with shown.paused():
            return click.confirm(f"{message}. Fetch them?", err=True)

    def _share(self) -> float:
        return SHARE if self._given["contact"] else SHARE_WITHOUT_CONTACT

    async def _recover(self, warcs: Warcs, shown: Shown) -> tuple[Result, Sent]:
        async with self._courier() as courier, self._repositories(courier) as repositories:
            shown.sent = courier.sent
            result = await self._recovery(repositories, warcs, shown, courier.sent).run()
            self._complaints = {name: await complaints_about(each) for name, each in repositories.items()}
            return result, courier.sent

    async def _estimate(self, warcs: Warcs, shown: Shown) -> tuple[list[Cost], dict[str, str]]:
        async with self._courier() as courier, self._repositories(courier) as repositories:
            recovery = self._recovery(repositories, warcs, shown, courier.sent)
            try:
                found = await recovery.costs(self._share())
            except BaseExceptionGroup as group:
                raise group.exceptions[0] from None
        # Archives without listings were not queried: those that were say whether there is a network.
        if all(each.folder is None for each in self._archives.values()) and (error := self._network.error()):
            raise error
        return found

    def _print_costs(self, costs: list[Cost]) -> None:
        if self._plan.policy is Policy.NAIVE:
            say("without lists, each page costs one request to each archive, and one more for its copy", level="note")
        rows = [
            (each.archive, f"{each.lists:,}", f"{each.copies:,}", f"{each.days:,}" if each.days else "-")
            for each in costs
        ]
        print_table(("archive", "index queries", "captures", "days"), rows)
        # Files on this machine take no requests.
        total = sum(each.lists + each.copies for each in costs if self._archives[each.archive].folder is None)
        needed = (
            f"about {_requests(total)}{_duration(costs)}" if total else "no requests: the files are on this machine"
        )
        say(f"{needed}; the listings are stored, and not requested again", level="info")
        if self._plan.page_requisites:
            most = f"at most {self._plan.requisite_files:,} files and {self._given['requisite_bytes']} of other hosts"
            say(
                f"what pages need from other hosts is not included: {most} (--no-page-requisites for none)",
                level="info",
            )
        say_next("the same command without --dry-run recovers the site")

    def _say(self, result: Result, sent: Sent) -> None:
        counts = result.counts
        asked: dict[str, dict[str, int]] = {}
        for (archive, work), count in sent.items():
            asked.setdefault(archive, {})[work.value] = count
        if self._given["json"]:
            closed = {
                name: {"until": int(each.until) + 1, "reason": each.reason} for name, each in result.closed.items()
            }
            numbers = {**{standing.value: count for standing, count in counts.items()}, "doubtful": result.doubtful}
            more = {"requests": asked, "closed": closed, "unlisted": result.unlisted, "trapped": result.trapped}
            more |= {"left_out": result.left_out, "unlistable": result.unlistable, "unconfirmed": result.unconfirmed}
            more |= {"other_host_lookups": result.other_host_lookups, "session_ids": result.session_ids}
            more["problems"] = {name: found.counts for name, found in self._complaints.items() if found.counts}
            click.echo(
                dumps({"event": "done", "folder": str(self._folder), **numbers, "failed": result.failed, **more})
            )
        self._say_offline()
        for name, message in result.unlisted.items():
            if self._is_worth_saying(name):
                say(f"{name}: no whole list: {message}", level="warning", archive=name)
        for name, problems in self._complaints.items():
            say_problems(problems, name, "warning", archive=name)
        for reason, count in result.trapped.items():
            say(f"{count:,} links were not followed: {reason}", level="note")
        for name, closing in result.closed.items():
            if self._is_worth_saying(name):
                when = dates.to_local(closing.until, up=True)
                say(f"{name}: goes on at {when} ({closing.message})", level="warning", archive=name)
        total = sum(sent.values())
        self._say_counts(result, total)
        self._say_what_next(result)
        if result.unlistable and self._network.error() is None:
            say(unlistable_sentence(result.unlistable), level="info")

    def _say_counts(self, result: Result, total: int) -> None:
        for reason, count in result.left_out.items():
            say(f"{count:,} listed URL{'' if count == 1 else 's'} left out: {LEFT_OUT[reason]}", level="note")
        if result.session_ids:
            say(f"{result.session_ids:,} listed URLs with session ids: taken for the URL without them", level="note")
        left_out = sum(result.left_out.values())
        not_linked = result.counts[Standing.LISTED] - left_out
        parts = [
            f"{result.counts[Standing.RECOVERED]:,} recovered"
            + (f" ({result.doubtful:,} doubtful)" if result.doubtful else ""),
            f"{result.counts[Standing.SUBSTITUTED]:,} substituted" if result.counts[Standing.SUBSTITUTED] else "",
            f"{result.counts[Standing.MISSING]:,} missing",
            f"{result.counts[Standing.QUEUED]:,} queued" if result.counts[Standing.QUEUED] else "",
            f"{not_linked:,} listed, but not linked" if not_linked else "",
            f"{left_out:,} left out" if left_out else "",
        ]
        say(f"{', '.join(filter(None, parts))}; {_requests(total)}; in {self._folder}", level="info")

    def _say_what_next(self, result: Result) -> None:
        self._say_how_it_ended(result)
        if result.counts[Standing.RECOVERED] and not self._given["json"]:
            say_next(f"{command_line('report', self._folder)} says what came back and what did not")
            say_next(f"{command_line('export', self._folder, '--to', 'SITE')} makes a site of it")

    def _say_how_it_ended(self, result: Result) -> None:
        if result.unconfirmed:
            hint = "run the same command again with --yes to fetch them"
            say(f"{result.unconfirmed:,} listed URLs were not fetched: {hint}", level="info")
        elif result.is_enough and not result.is_done:
            say("as many as --limit allows: a higher one goes on", level="info")
        elif not result.is_done or result.is_stopped:
            say("the same command goes on", level="info")
        elif not result.counts[Standing.RECOVERED]:
            why = f"{command_line('report', self._folder, '--list', 'missing')} says why"
            say(f"nothing came back: look at how the address is written; {why}", level="warning")


def unlistable_sentence(archives: Mapping[str, str]) -> str:
    """Return which archives may hold more than what was found, since they gave no whole listing.

    >>> unlistable_sentence({"archive.today": "unsupported", "web.archive.org": "cut"})
    'there may be more: archive.today has no listing API; the listing of web.archive.org was cut off'
    """
    without = [name for name, outcome in archives.items() if outcome == "unsupported"]
    cut = [name for name, outcome in archives.items() if outcome == "cut"]
    parts = [f"{', '.join(without)} {'has' if len(without) == 1 else 'have'} no listing API"] if without else []
    parts += [f"the listing of {name} was cut off" for name in cut]
    return f"there may be more: {'; '.join(parts)}"


def _duration(costs: Sequence[Cost]) -> str:
    """Return how long requests take within the limits of archives, after a comma; nothing if that is not known."""
    days = max((each.days for each in costs), default=0)
    if days > 1:
        return f", {days:,} days within the daily limits"
    minutes = math.ceil(max((each.seconds for each in costs), default=0.0) / 60)
    if not minutes:
        return ""
    return f", about {minutes // 60} h {minutes % 60} min within the rate limits"


def _requests(count: int) -> str:
    return f"{count:,} request{'' if count == 1 else 's'}"
