"""`unlost harvest`: revisits pages and downloads those that changed."""

import hashlib
import sys
from collections.abc import Iterator, Mapping
from json import dumps
from pathlib import Path
from typing import Any

import click
import uvloop

from unlost.atomic import atomic_file
from unlost.cli import types
from unlost.cli.archive_options import contact_option, delay_option
from unlost.cli.inputs import parse_argument
from unlost.cli.messages import say
from unlost.cli.output import check_output_file
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.cli.progress import ProgressBar, progress
from unlost.clock import SystemClock
from unlost.errors import InputError, UriError, UsageError
from unlost.problems import Problem, Problems
from unlost.refresh.cdxj_history import export_cdxj, import_cdxj
from unlost.refresh.harvest_state import HarvestState
from unlost.refresh.harvester import (
    HarvestOptions,
    HarvestResult,
    HarvestRound,
    add_pages,
    begin_round,
    harvest,
    normalize_visit_url,
)
from unlost.refresh.policy import Policy, read_policy, serialize_policy
from unlost.report.format import format_count
from unlost.text_lines import read_urls

_OUTCOME_WORDS = {
    "new": "new",
    "changed": "changed",
    "unchanged": "downloaded and found the same",
    "not-modified": "not modified, as the server says",
    "skipped": "skipped, as the scheme says",
    "no-success": "answered without success",
    "cut": "cut short",
    "noarchive": "not kept, as they ask",
    "forbidden": "forbidden by robots.txt",
    "failed": "without an answer",
}
_EXIT_PARTIAL = 4
_MIN_AUDIT = 0.01  # share of skips that every harvest audits


class HarvestRun:
    """One run of `unlost harvest`, with the command's options by name."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._clock = SystemClock()
        self._problems = Problems()
        self._urls = [parse_argument(url, normalize_visit_url) for url in options["url"]]
        self._policy = Policy() if options["scheme"] is None else read_policy(options["scheme"])
        # Without audits, hosts whose ETag or Last-Modified cannot be trusted would stay undetected.
        self._policy.audit_share = options["audit"] or max(self._policy.audit_share, _MIN_AUDIT)

    def run(self) -> int:
        """Run the harvest, print the outcomes and write the files; return the exit code."""
        folder: Path = self._options["output"]
        folder.mkdir(exist_ok=True)
        with HarvestState(folder) as state:
            state.set_scheme(_policy_digest(self._policy))
            is_listed = self._enqueue_pages(state)
            self._import_history(state, only_known=is_listed)
            state.commit()
            now = int(self._clock.now() * 1000)
            round_ = begin_round(
                state,
                now,
                only_listed=is_listed,
                min_change_probability=self._options["due"],
                restart=self._options["anew"],
            )
            self._say_begun(round_, is_listed=is_listed)
            result = self._harvest(state, folder, round_)
            if self._options["cdxj"] is not None:
                with atomic_file(self._options["cdxj"]) as file:
                    file.writelines(export_cdxj(state))
        self._print_result(result, round_)
        if result.pending:
            say("the same command goes on", level="info")
            return _EXIT_PARTIAL
        return EXIT_SKIPPED_INPUT if self._problems.total else 0

    def _enqueue_pages(self, state: HarvestState) -> bool:
        """Add the pages given by arguments and --urls to the state; return whether any were given."""
        if not self._urls and self._options["urls"] is None:
            return False
        state.clear_listed()
        add_pages(state, self._urls)
        if self._options["urls"] is not None:
            add_pages(state, self._read_list(self._options["urls"]))
        return True

    def _read_list(self, file: Path) -> Iterator[str]:
        is_stdin = file == Path("-")
        source, name = (sys.stdin.buffer, "<stdin>") if is_stdin else (file, str(file))
        for line in read_urls(source, self._problems, name):
            try:
                yield normalize_visit_url(line.text.decode("utf-8", "surrogateescape"))
            except UriError as error:
                self._problems.add(Problem("bad-uri", name, line.number, line.offset, str(error)))

    def _import_history(self, state: HarvestState, *, only_known: bool) -> None:
        warcs = self._options["warcs"]
        for file in self._options["history"]:
            with progress(f"reading {file.name}", file.stat().st_size) as bar:
                report = import_cdxj(
                    state, file, self._problems, warcs=warcs, only_known=only_known, on_read=bar.update_bytes
                )
            say(
                f"{file}: {report.captures:,} captures; {report.imported:,} taken, {report.outdated:,} not later than "
                "what is"
                f" held, {report.unlisted:,} of other pages, {report.unusable:,} without success or digest",
                level="info",
            )

    def _say_begun(self, round_: HarvestRound, *, is_listed: bool) -> None:
        say_problems(self._problems)
        if round_.is_resumed:
            say(
                f"going on with a round that was interrupted: {format_count(round_.pending, 'page')} left", level="info"
            )
        if not round_.pending and not round_.not_due and not is_listed:
            raise InputError(f"{self._options['output']}: no page is known there: give a URL, --urls or --history")

    def _harvest(self, state: HarvestState, folder: Path, round_: HarvestRound) -> HarvestResult:
        options = self._options
        harvest_options = HarvestOptions(
            options["contact"],
            options["delay"],
            options["hosts"],
            options["proxy"],
            keep_noarchive=options["keep_noarchive"],
        )
        try:
            with progress("harvesting", round_.pending, counted="pages") as bar:
                on_event = _HarvestProgress(bar, is_json=options["json"]).on_event
                return uvloop.run(harvest(state, folder, self._policy, harvest_options, self._clock, on_event=on_event))
        except KeyboardInterrupt:
            say("what was harvested so far is kept: the same command goes on", level="info")
            raise

    def _print_result(self, result: HarvestResult, round_: HarvestRound) -> None:
        summary = {
            "pages": sum(result.outcomes.values()),
            "outcomes": result.outcomes,
            "pending": result.pending,
            "not_due": round_.not_due,
            "audited": result.audited,
            "lies": result.false_claims,
            "waiting": result.suspended_hosts,
        }
        if self._options["json"]:
            click.echo(dumps(summary))
        else:
            for name, words in _OUTCOME_WORDS.items():
                if result.outcomes.get(name):
                    click.echo(f"{result.outcomes[name]:,} {words}")
            if round_.not_due:
                click.echo(f"{round_.not_due:,} not due")
            if result.audited:
                click.echo(f"{result.audited:,} skips audited, {result.false_claims:,} of which had changed")
        for host in result.suspended_hosts:
            say(f"{host}: it said to come back later, or does not answer", level="warning")
        if result.pending:
            say(f"{format_count(result.pending, 'page')} still to be visited", level="warning")


class _HarvestProgress:
    """Shows the progress of a harvest."""

    def __init__(self, bar: ProgressBar, *, is_json: bool) -> None:
        self._bar, self._is_json, self._done = bar, is_json, 0

    def on_event(self, event: str, fields: Mapping[str, object]) -> None:
        """Count an outcome, and print it with --json."""
        if event in _OUTCOME_WORDS:
            self._done += 1
            self._bar.update(self._done, lines=self._done)
            if self._is_json:
                click.echo(dumps({"outcome": event, **fields}))
        elif event == "no-contact":
            say(f"no contact: hosts are asked every {fields['delay']} s; --contact halves that", level="note")


def _policy_digest(policy: Policy) -> str:
    """Return a digest that identifies the policy."""
    digest = hashlib.sha256()
    for line in serialize_policy(policy):
        digest.update(line)
    return digest.hexdigest()


_FILE = types.AnyPath()


@click.command(name="harvest")
@click.argument("url", nargs=-1)
@click.option("--urls", type=types.FILE_OR_STDIN, metavar="FILE", help="These pages, too, one a line; - to read them.")
@click.option(
    "--scheme", type=types.READABLE_FILE, metavar="FILE", help="By which to decide: of `unlost refresh learn`."
)
@click.option("-o", "--output", type=_FILE, required=True, metavar="DIR", help="Where history, log and WARCs are kept.")
@click.option(
    "--history",
    type=types.READABLE_FILE,
    multiple=True,
    metavar="FILE",
    help="An index (CDXJ, CDX) whose last captures are the history; may be repeated.",
)
@click.option(
    "--warcs", type=types.READABLE_FOLDER, metavar="DIR", help="The WARCs that --history names: for tags and dates."
)
@click.option("--cdxj", type=_FILE, metavar="FILE", help="Write what is held of each page there, as CDXJ.")
@click.option(
    "--due",
    type=click.FloatRange(0, 1),
    metavar="CHANCE",
    help="Only pages that have changed with this probability, by how often they did.",
)
@click.option(
    "--audit",
    type=click.FloatRange(0.01, 1),
    metavar="SHARE",
    help="Of skips to download nevertheless, in the place of what the scheme says.",
)
@click.option("--anew", is_flag=True, help="Begin a round, also if one was interrupted.")
@delay_option
@click.option(
    "--hosts", type=click.IntRange(1, 100), default=4, show_default=True, metavar="N", help="To visit at the same time."
)
@click.option("--keep-noarchive", is_flag=True, help="Keep also pages that ask not to be kept: if they are yours.")
@contact_option
@click.option("--proxy", is_flag=True, help="Go through the proxies that HTTP_PROXY and the like name.")
@click.option("--json", is_flag=True, help="As JSON, an object a line: one for each visit, then the summary.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  the options, by their names
    """Visit pages again, and download what changed.

    Without a URL and --urls, all pages that DIR knows are visited. Without a scheme everything is downloaded, and what
    is the same is kept as a revisit. The log in DIR, visits.ndjson, is what `unlost refresh learn` learns from. The
    exit code is 4 if hosts are to be visited later: the same command goes on; 5 if a list or an index could not be read
    to its end. docs/refresh.md explains it.
    """
    if options["warcs"] is not None and not options["history"]:
        raise UsageError("--warcs are those that --history names: give that, too")
    check_output_file(options["cdxj"])
    ctx.exit(HarvestRun(options).run())
