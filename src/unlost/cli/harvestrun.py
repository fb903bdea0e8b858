"""One run of `unlost harvest`: puts its parts together, and says what came of it."""

import hashlib
import sys
from collections.abc import Iterator, Mapping
from json import dumps
from pathlib import Path
from typing import Any

import click
import uvloop

from unlost.cli.addresses import meant
from unlost.cli.messages import say
from unlost.cli.problems import SKIPPED_INPUT, say_problems
from unlost.cli.progress import Bar, progress
from unlost.clock import SystemClock
from unlost.errors import InputError, UriError
from unlost.formats.output import whole_file
from unlost.formats.problems import Problem, Problems
from unlost.formats.urllist import read_urls
from unlost.refresh.harvest.archive_history import export_lines, import_cdxj
from unlost.refresh.harvest.harvesting import Harvested, Manners, harvest
from unlost.refresh.harvest.rounds import Round, add_pages, begin_round, visitable
from unlost.refresh.harvest.state import HarvestState
from unlost.refresh.policy import Policy, policy_lines, read_policy
from unlost.shown.words import counted

_WORDS = {
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
_PARTLY = 4
_LEAST_AUDIT = 0.01


class HarvestRun:
    """A harvest, with the options that were given, by their names."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._clock = SystemClock()
        self._problems = Problems()
        self._urls = [meant(url, visitable) for url in given["url"]]
        self._policy = Policy() if given["scheme"] is None else read_policy(given["scheme"])
        # Without audits, liars would stay unseen.
        self._policy.audit = given["audit"] or max(self._policy.audit, _LEAST_AUDIT)

    def run(self) -> int:
        """Harvest, print and write; return the exit code."""
        folder: Path = self._given["output"]
        folder.mkdir(exist_ok=True)
        with HarvestState(folder) as state:
            state.for_scheme(_digest_of(self._policy))
            is_listed = self._add(state)
            self._import(state, only_known=is_listed)
            state.commit()
            now = int(self._clock.now() * 1000)
            begun = begin_round(state, now, only_listed=is_listed, due=self._given["due"], anew=self._given["anew"])
            self._say_begun(begun, is_listed=is_listed)
            done = self._harvest(state, folder, begun)
            if self._given["cdxj"] is not None:
                with whole_file(self._given["cdxj"]) as file:
                    file.writelines(export_lines(state))
        self._show(done, begun)
        if done.pending:
            say("the same command goes on", level="info")
            return _PARTLY
        return SKIPPED_INPUT if self._problems.total else 0

    def _add(self, state: HarvestState) -> bool:
        """Take the pages that were given; return whether any were."""
        if not self._urls and self._given["urls"] is None:
            return False
        state.unlist()
        add_pages(state, self._urls)
        if self._given["urls"] is not None:
            add_pages(state, self._listed(self._given["urls"]))
        return True

    def _listed(self, file: Path) -> Iterator[str]:
        is_stdin = file == Path("-")
        source, name = (sys.stdin.buffer, "<stdin>") if is_stdin else (file, str(file))
        for line in read_urls(source, self._problems, name):
            try:
                yield visitable(line.text.decode("utf-8", "surrogateescape"))
            except UriError as error:
                self._problems.add(Problem("bad-uri", name, line.number, line.offset, str(error)))

    def _import(self, state: HarvestState, *, only_known: bool) -> None:
        warcs = self._given["warcs"]
        for file in self._given["history"]:
            with progress(f"reading {file.name}", file.stat().st_size) as bar:
                found = import_cdxj(state, file, self._problems, warcs=warcs, only_known=only_known, on_read=bar.read)
            say(
                f"{file}: {found.captures:,} captures; {found.taken:,} taken, {found.older:,} not later than what is"
                f" held, {found.others:,} of other pages, {found.unusable:,} without success or digest",
                level="info",
            )

    def _say_begun(self, begun: Round, *, is_listed: bool) -> None:
        say_problems(self._problems)
        if begun.is_resumed:
            say(f"going on with a round that was interrupted: {counted(begun.wanted, 'page')} left", level="info")
        if not begun.wanted and not begun.not_due and not is_listed:
            raise InputError(f"{self._given['output']}: no page is known there: give a URL, --urls or --history")

    def _harvest(self, state: HarvestState, folder: Path, begun: Round) -> Harvested:
        given = self._given
        manners = Manners(
            given["contact"], given["delay"], given["hosts"], given["proxy"], keep_noarchive=given["keep_noarchive"]
        )
        try:
            with progress("harvesting", begun.wanted, counted="pages") as bar:
                tell = _Told(bar, is_json=given["json"]).tell
                return uvloop.run(harvest(state, folder, self._policy, manners, self._clock, tell=tell))
        except KeyboardInterrupt:
            say("what was harvested so far is kept: the same command goes on", level="info")
            raise

    def _show(self, done: Harvested, begun: Round) -> None:
        summary = {
            "pages": sum(done.outcomes.values()),
            "outcomes": done.outcomes,
            "pending": done.pending,
            "not_due": begun.not_due,
            "audited": done.audited,
            "lies": done.lies,
            "waiting": done.waiting,
        }
        if self._given["json"]:
            click.echo(dumps(summary))
        else:
            for name, words in _WORDS.items():
                if done.outcomes.get(name):
                    click.echo(f"{done.outcomes[name]:,} {words}")
            if begun.not_due:
                click.echo(f"{begun.not_due:,} not due")
            if done.audited:
                click.echo(f"{done.audited:,} skips audited, {done.lies:,} of which had changed")
        for host in done.waiting:
            say(f"{host}: it said to come back later, or does not answer", level="warning")
        if done.pending:
            say(f"{counted(done.pending, 'page')} still to be visited", level="warning")


class _Told:
    """Shows how far a harvest has come."""

    def __init__(self, bar: Bar, *, is_json: bool) -> None:
        self._bar, self._is_json, self._done = bar, is_json, 0

    def tell(self, event: str, fields: Mapping[str, object]) -> None:
        """Take what happened."""
        if event in _WORDS:
            self._done += 1
            self._bar.at(self._done, lines=self._done)
            if self._is_json:
                click.echo(dumps({"outcome": event, **fields}))
        elif event == "no-contact":
            say(f"no contact: hosts are asked every {fields['delay']} s; --contact halves that", level="note")


def _digest_of(policy: Policy) -> str:
    """Return what tells one scheme from another."""
    hashed = hashlib.sha256()
    for line in policy_lines(policy):
        hashed.update(line)
    return hashed.hexdigest()
