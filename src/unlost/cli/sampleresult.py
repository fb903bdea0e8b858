"""What came of a sample, for people and programs."""

import math

from unlost.archives.sampling.sampler import EarlyStop
from unlost.archives.sampling.state import SampleState
from unlost.cli.asking import reset_hint
from unlost.cli.messages import say
from unlost.dates import from_epoch, to_iso, to_local
from unlost.errors import NotNowError


def page_sample_result(state: SampleState, limit: int | None) -> dict[str, object]:
    """Return what came of asking for the pages of a list, with the names that `--json` has."""
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
    """Return what came of searching."""
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
    """Return the same for people."""
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
    """Say why not all was asked, and how to go on."""
    go_on = "The same command goes on; the map has what came back so far"
    if stop is None:
        say(f"some could not be asked for. {go_on}", level="warning")
    elif isinstance(stop.error, NotNowError):
        until = to_local(stop.error.until, round_up=True)
        forget = f". {reset_hint(stop.error.archive)}" if stop.error.reason == "blocked" else ""
        say(
            f"{stop.error}. {go_on}: run it again after {until}{forget}",
            level="warning",
            until=to_iso(from_epoch(str(math.ceil(stop.error.until)))),
        )
    else:
        say(
            f"{result['archive']} failed {stop.failures} times in a row, at last: {stop.error}. It is not asked any "
            f"further for now. {go_on}",
            level="warning",
        )
