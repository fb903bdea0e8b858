"""`unlost map sample`: builds maps of archives that publish no index, by querying them."""

import asyncio
import math
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Literal

import click

from unlost.archives.factory import create_client
from unlost.archives.sample_state import ANSWERED_OUTCOMES, SampleState, digest_lines
from unlost.archives.sampler import (
    FIELDS,
    ArchiveSampler,
    EarlyStop,
    FullTextSearch,
    SearchSampler,
    write_sample_log,
    write_sample_map,
)
from unlost.cli import types
from unlost.cli.archive_options import archives_option, contact_option, open_http_client, read_registry, reset_hint
from unlost.cli.messages import say
from unlost.cli.output import is_standard_output, open_output, reject_stdout_conflict
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.cli.progress import ProgressBar, item_counter, progress
from unlost.cli.sampling import (
    OUTPUT_FILE,
    archive_endpoint,
    begin_url_list,
    concurrency_option,
    hint_on_interrupt,
    patience_option,
    restart_option,
    state_option,
)
from unlost.clock import SystemClock
from unlost.dates import from_epoch, to_iso, to_local
from unlost.errors import ArchiveError, InputError, NotNowError, UsageError
from unlost.problems import Problems
from unlost.registry.loader import Registry
from unlost.registry.models import Archive
from unlost.text_lines import read_lines


def page_sample_result(state: SampleState, limit: int | None) -> dict[str, object]:
    """Return the result of querying the pages of a list, with the field names of `--json`."""
    outcomes = state.count_outcomes(limit)
    return {
        "addresses": state.count_pages(limit),
        "found": outcomes.pop("hit", 0),
        "missed": outcomes.pop("miss", 0),
        "excluded": outcomes.pop("excluded", 0),
        "left": outcomes.pop("", 0),
        "failed": outcomes,
        "mementos": state.count_mementos(limit)[0],
    }


def search_sample_result(state: SampleState) -> dict[str, object]:
    """Return the result of searching, with the field names of `--json`."""
    done, waiting, failed = state.count_terms()
    mementos, found = state.count_mementos()
    return {
        "requests": state.requests,
        "searched": done,
        "left": waiting,
        "failed": failed,
        "found": found,
        "mementos": mementos,
    }


def format_sample_result(result: dict[str, object], kind: str) -> str:
    """Return the result as text."""
    failed = result["failed"]
    kinds = ", ".join(f"{each} {count}" for each, count in failed.items()) if isinstance(failed, dict) else ""
    failures = f"failed: {kinds}" if kinds else "none failed"
    if kind == "uris":
        return (
            f"{result['addresses']} addresses: {result['found']} found with {result['mementos']} mementos, "
            f"{result['missed']} not, {result['excluded']} not shown, {result['left']} not asked for yet; {failures}"
        )
    return (
        f"{result['requests']} requests: {result['found']} pages found with {result['mementos']} mementos; "
        f"{result['searched']} searches done, {result['left']} left; {failures}"
    )


def say_how_to_resume(stop: EarlyStop | None, result: dict[str, object]) -> None:
    """Print why the sample is incomplete, and how to resume it."""
    resume_hint = "The same command goes on; the map has what came back so far"
    if stop is None:
        say(f"some could not be asked for. {resume_hint}", level="warning")
    elif isinstance(stop.error, NotNowError):
        until = to_local(stop.error.until, round_up=True)
        reset_note = f". {reset_hint(stop.error.archive)}" if stop.error.reason == "blocked" else ""
        say(
            f"{stop.error}. {resume_hint}: run it again after {until}{reset_note}",
            level="warning",
            until=to_iso(from_epoch(str(math.ceil(stop.error.until)))),
        )
    else:
        say(
            f"{result['archive']} failed {stop.failures} times in a row, at last: {stop.error}. It is not asked any "
            f"further for now. {resume_hint}",
            level="warning",
        )


_MAX_TERM = 500  # characters: a longer text is not a search term
_DEFAULT_REQUESTS = 100


@click.command()
@click.option(
    "--archive", required=True, metavar="ID", help="Query this archive; `unlost archives list --all` prints the IDs."
)
@click.option(
    "--uris",
    type=types.FILE_OR_STDIN,
    metavar="FILE",
    help="Query the URLs in FILE, one per line; `-` is standard input.",
)
@click.option(
    "--search",
    multiple=True,
    metavar="TERMS",
    help="Send these terms to the full-text search of the archive. May be repeated.",
)
@click.option(
    "--terms",
    type=types.READABLE_FILE,
    metavar="FILE",
    help="Send the terms in FILE to the full-text search of the archive, one search per line.",
)
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    required=True,
    metavar="FILE",
    help="Write the map to FILE; `-` is standard output.",
)
@click.option(
    "--by",
    multiple=True,
    type=click.Choice(tuple(FIELDS)),
    help="Write a separate line for each key and year, media type or language. May be repeated.",
)
@click.option(
    "--urir",
    is_flag=True,
    help="Also write the number of distinct URLs (URI-Rs) of each key, after a slash: captures/URLs.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --uris: query only the first N URLs, counted over all runs.  [default: all]",
)
@click.option(
    "--requests",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Send at most N search requests, counted over all runs.  [default: {_DEFAULT_REQUESTS}]",
)
@click.option(
    "--pages",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Read at most N pages of the results of a search.",
)
@click.option(
    "--follow", is_flag=True, help="Also search for words from the titles and snippets of the results, in random order."
)
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of the random order of --follow."
)
@concurrency_option
@patience_option
@click.option(
    "--log",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="With --uris: write all responses to FILE, as a log for `unlost map exclude --misses`.",
)
@state_option("OUTPUT.sample")
@restart_option
@click.option(
    "--name", metavar="NAME", help="Name of the archive in the header of the map.  [default: name in the registry]"
)
@click.option("--id", metavar="URI", help="URI of the archive in the header of the map.")
@archives_option
@contact_option
@click.option("--json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def sample(
    ctx: click.Context,
    archive: str,
    uris: Path | None,
    search: tuple[str, ...],
    terms: Path | None,
    output: Path,
    by: tuple[str, ...],
    urir: bool,
    limit: int | None,
    requests: int | None,
    pages: int,
    follow: bool,
    seed: int,
    concurrency: int,
    patience: float,
    log: Path | None,
    state: Path | None,
    restart: bool,
    name: str | None,
    id: str | None,  # noqa: A002  options are named after their flags
    archives: Path | None,
    contact: str | None,
    json: bool,
) -> None:
    """Build a map of an archive without an index by querying it.

    Queries the archive for each URL of a list (--uris), or uses its full-text search (--search, --terms). Requests stay
    within the rate limits of the archive. All frequencies in the map are lower bounds: a page without a line in the map
    was not queried or not found.

    Responses are stored in a state file. Run the same command again to resume; no query is repeated. The exit code is
    4 if queries failed or are left for another run, and 5 if the list has invalid URLs.

    \b
    Example:
      unlost map sample --archive perma.cc --uris urls.txt -o perma.ukvs
    """
    reject_stdout_conflict(output, json)
    is_search = bool(search) or terms is not None
    _reject_conflicts(uris, is_search, limit, requests, follow, log)
    state_path = _state_path(output, state)
    registry = read_registry(archives)
    entry = registry.get(archive)
    sampler = _ArchiveSampler(entry, contact, patience)
    with open_output(output) as target:
        problems, left_out = Problems(), Problems()
        with SampleState(state_path) as sample_state:
            if restart:
                sample_state.clear()
            kind: Literal["uris", "search"]
            if uris is not None:
                kind = "uris"
                plan = {"archive": entry.id, "address": archive_endpoint(entry), "language": "language" in by}
                begin_url_list(sample_state, uris, problems, sample_state.begin, plan)
                stop = sampler.sample_pages(sample_state, concurrency, limit, "language" in by)
            else:
                kind = "search"
                _begin_search(sample_state, entry, registry, _read_terms(search, terms, problems), pages, follow, seed)
                budget = _DEFAULT_REQUESTS if requests is None else requests
                stop = sampler.sample_search(sample_state, pages, budget, seed if follow else None, left_out)
            lines = write_sample_map(
                sample_state, target, kind=kind, by=by, urir=urir, limit=limit, name=name or entry.name, id=id
            )
            if log is not None:
                write_sample_log(sample_state, log, entry.id, limit)
            result = page_sample_result(sample_state, limit) if kind == "uris" else search_sample_result(sample_state)
    result |= {"archive": entry.id, "lines": lines}
    if stop is not None and isinstance(stop.error, NotNowError):
        result |= {"until": int(stop.error.until) + 1, "reason": stop.error.reason}
    if json:
        click.echo(dumps({**result, "problems": {**problems.counts, **left_out.counts}}))
    else:
        say(format_sample_result(result, kind), level="info")
    for collected in (problems, left_out):
        say_problems(collected)
    is_partial = stop is not None or bool(result["failed"])
    if is_partial:
        say_how_to_resume(stop, result)
        ctx.exit(ArchiveError.exit_code)
    ctx.exit(EXIT_SKIPPED_INPUT if problems.total else 0)


def _reject_conflicts(
    uris: Path | None, is_search: bool, limit: int | None, requests: int | None, follow: bool, log: Path | None
) -> None:
    if (uris is not None) == is_search:
        raise UsageError("expected either --uris, or --search and --terms")
    search_only = {"--requests": requests is not None, "--follow": follow}
    list_only = {"--limit": limit is not None, "--log": log is not None}
    for option, is_given in (list_only if is_search else search_only).items():
        if is_given:
            raise UsageError(f"{option} goes with {'--uris' if is_search else '--search and --terms'} only")


def _state_path(output: Path, state: Path | None) -> Path:
    if state is not None:
        return state
    if is_standard_output(output):
        raise UsageError("-o - leaves no place for the answers: say by --state where to keep them")
    return output.with_name(output.name + ".sample")


def _begin_search(
    state: SampleState, archive: Archive, registry: Registry, terms: list[str], pages: int, follow: bool, seed: int
) -> None:
    if archive.search is None:
        others = ", ".join(each.id for each in registry if each.search is not None) or "none in this registry"
        raise UsageError(f"{archive.id} has no full-text search that we know of. Those that have one: {others}")
    if not terms:
        raise InputError("nothing to search for: expected terms, one a line")
    plan = {
        "archive": archive.id,
        "address": archive.search,
        "terms": digest_lines(terms),
        "pages": pages,
        "follow": follow,
        **({"seed": seed} if follow else {}),
    }
    if state.plan() is None:
        state.begin(lambda: plan, terms=terms)
    state.check_plan(plan)


def _read_terms(searches: tuple[str, ...], file: Path | None, problems: Problems) -> list[str]:
    """Return all search terms in order, without duplicates and with white space normalised. Raises InputError."""
    lines = [] if file is None else [line.text.decode("utf-8", "replace") for line in read_lines(file, problems)]
    terms = list(dict.fromkeys(" ".join(term.split()) for term in (*searches, *lines)))
    for term in terms:
        if len(term) > _MAX_TERM:
            raise InputError(f"a search of more than {_MAX_TERM} characters, which begins with {term[:40]!a}")
    return [term for term in terms if term]


@dataclass(frozen=True, slots=True)
class _ArchiveSampler:
    """Queries one archive."""

    archive: Archive
    contact: str | None
    patience: float

    def sample_pages(self, state: SampleState, concurrency: int, limit: int | None, language: bool) -> EarlyStop | None:
        """Query the pages of a list that have no response yet."""
        outcomes = state.count_outcomes(limit)
        remaining = sum(count for outcome, count in outcomes.items() if outcome not in ANSWERED_OUTCOMES)

        async def run(bar: ProgressBar) -> EarlyStop | None:
            async with open_http_client(self.contact, self.patience) as http_client:
                archive_client = create_client(self.archive, http_client)
                sampler = ArchiveSampler(
                    state, archive_client, SystemClock(), language=language, on_answer=item_counter(bar)
                )
                return await sampler.run(concurrency, limit)

        if not remaining:
            return None
        with progress(f"asking {self.archive.id}", remaining, "addresses") as bar, hint_on_interrupt():
            return asyncio.run(run(bar))

    def sample_search(
        self, state: SampleState, pages: int, requests: int, seed: int | None, problems: Problems
    ) -> EarlyStop | None:
        """Run the searches that are not done yet."""

        async def run(bar: ProgressBar) -> EarlyStop | None:
            async with open_http_client(self.contact, self.patience) as http_client:
                search = FullTextSearch(self.archive, http_client, problems)
                searcher = SearchSampler(state, search, pages=pages, seed=seed, on_answer=item_counter(bar))
                return await searcher.run(requests)

        remaining = max(0, requests - state.requests)
        if not remaining:
            return None
        with progress(f"searching {self.archive.id}", remaining, "searches") as bar, hint_on_interrupt():
            return asyncio.run(run(bar))
