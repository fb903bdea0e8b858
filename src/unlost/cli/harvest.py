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
@click.option(
    "--urls",
    type=types.FILE_OR_STDIN,
    metavar="FILE",
    help="Visit the pages in FILE, one URL per line. - reads standard input.",
)
@click.option(
    "--scheme",
    type=types.READABLE_FILE,
    metavar="FILE",
    help="Decide which pages to download by this scheme file of `unlost refresh learn`.  [default: download all]",
)
@click.option(
    "-o", "--output", type=_FILE, required=True, metavar="DIR", help="Store the history, the log and WARC files in DIR."
)
@click.option(
    "--history",
    type=types.READABLE_FILE,
    multiple=True,
    metavar="FILE",
    help="Import the history of pages from a CDXJ or CDX index of earlier captures. May be repeated.",
)
@click.option(
    "--warcs",
    type=types.READABLE_FOLDER,
    metavar="DIR",
    help="With --history: read ETag, Last-Modified and bodies from the WARC files in DIR that the index names.",
)
@click.option("--cdxj", type=_FILE, metavar="FILE", help="Write the current capture of each page to FILE, as CDXJ.")
@click.option(
    "--due",
    type=click.FloatRange(0, 1),
    metavar="PROBABILITY",
    help="Visit only pages that have changed with at least this probability, from 0 to 1, according to their history.  "
    "[default: all pages]",
)
@click.option(
    "--audit",
    type=click.FloatRange(0.01, 1),
    metavar="SHARE",
    help="Download this share of skipped pages anyway, from 0.01 to 1, to detect wrong headers.  [default: the share "
    "in the scheme, at least 0.01]",
)
@click.option("--anew", is_flag=True, help="Start a new round instead of resuming an interrupted one.")
@delay_option
@click.option(
    "--hosts",
    type=click.IntRange(1, 100),
    default=4,
    show_default=True,
    metavar="N",
    help="Visit at most N hosts at the same time.",
)
@click.option(
    "--keep-noarchive", is_flag=True, help="Store pages marked `noarchive`, too. Use this only for your own site."
)
@contact_option
@click.option("--proxy", is_flag=True, help="Use the proxies in HTTP_PROXY, HTTPS_PROXY and NO_PROXY.")
@click.option("--json", is_flag=True, help="Print a JSON object for each visit and one for the summary, one per line.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  the options, by their names
    """Revisit pages, and download those that changed to WARC files.

    Visit each URL and the pages in --urls; if none is given, all pages in the history of DIR. Unchanged pages are
    stored as revisit records. `unlost refresh learn` learns a scheme from the log, DIR/visits.ndjson; with --scheme,
    pages that have probably not changed are skipped.

    The exit code is 4 if some hosts are unreachable or ask to come back later: run the same command again to resume.
    It is 5 if some lines of a list or an index are invalid.

    \b
    Example:
      unlost harvest --urls pages.txt -o site.harvest
      unlost refresh learn site.harvest/visits.ndjson -o scheme
      unlost harvest -o site.harvest --scheme scheme
    """
    if options["warcs"] is not None and not options["history"]:
        raise UsageError("--warcs are those that --history names: give that, too")
    check_output_file(options["cdxj"])
    ctx.exit(HarvestRun(options).run())
