"""Tests of the whole command against three archives with the reference site."""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.recovery.archives import Archives
from tests.recovery.assertions import assert_recovered, assert_same_bytes, lines_by_name
from tests.recovery.command import Command, CommandResult, options
from tests.recovery.expected import Run, listed_only, outcome
from tests.recovery.recovery_output import listed_only as listed_only_in
from tests.recovery.recovery_output import read_warcs
from tests.recovery.reference_site import reference_site
from tests.recovery.registry import registry
from tests.recovery.site import HOST, ROOT, Held, Site

SPECIAL = f"{ROOT}special/"
SITE: Site = reference_site()
DEFAULT = Run()
STREETS = "/street/"

RUNS = {
    "a folder": Run(start=f"{ROOT}shop/"),
    "as of a date": Run(start=SPECIAL, at="20100101000000"),
    "between dates": Run(start=SPECIAL, first="20090101000000", last="20101231235959"),
    "one page": Run(page=True),
    "letter case ignored": Run(start=SPECIAL, ignore_case=True),
    "requisites of other hosts": Run(start=SPECIAL, requisites=True),
    "included": Run(include=r"/news/|/shop/\w+|robots|/maps/|feed"),
    "excluded": Run(exclude=r"(?i)/street/|/special/[a-o]"),
    "one link deep": Run(depth=1, exclude="damaged"),
    "subdomains": Run(subdomains=True, exclude=STREETS),
    "two archives": Run(start=SPECIAL, only=("a", "b")),
    "everything listed": Run(policy="exhaustive", exclude=STREETS),
    "further addresses": Run(start=f"{ROOT}shop/", urls=(f"{ROOT}forgotten/1.html", f"{ROOT}special/all.html")),
}
_numbers = count()


@pytest.fixture(scope="module")
def new_command(tmp_path_factory: pytest.TempPathFactory, running_archives: Archives) -> Callable[[], Command]:
    """Return a factory of new recoveries."""

    def new() -> Command:
        place = tmp_path_factory.mktemp(f"recovery-{next(_numbers)}")
        return Command(running_archives.registry, place / "reference.recovery", place / "home")

    return new


@pytest.fixture(scope="module")
def full_run(
    new_command: Callable[[], Command], running_archives: Archives
) -> tuple[Command, CommandResult, list[tuple[str, str]]]:
    """Recover the whole site once: the command, its result, and the capture requests."""
    command = new_command()
    running_archives.clear_requests()
    done = command.run(DEFAULT.start)
    assert done.code == 0, done.stderr
    assert {name: len(requested) for name, requested in running_archives.lists().items()} == {"a": 1, "b": 1, "c": 1}
    return command, done, running_archives.replays()


def test_all_resources_match_the_model(full_run: tuple[Command, CommandResult, list[tuple[str, str]]]) -> None:
    """Archive, date and bytes of each resource are as expected, and there are no others."""
    command, _, _ = full_run
    assert_recovered(SITE, DEFAULT, command.folder, command.summary)


def test_unlinked_listed_resources_are_only_recorded(
    full_run: tuple[Command, CommandResult, list[tuple[str, str]]],
) -> None:
    """They are in the state and not fetched."""
    command, _, requested = full_run
    assert listed_only_in(command.folder) == listed_only(SITE, DEFAULT)
    assert not [path for _, path in requested if "forgotten" in path]


def test_capture_requests_are_hardly_more_than_resources(
    full_run: tuple[Command, CommandResult, list[tuple[str, str]]],
) -> None:
    """At most 1.05 requests per resource; none for unlisted ones; one for equal payloads."""
    _, done, requested = full_run
    recovered = [held for held in outcome(SITE, DEFAULT).values() if held is not None]
    assert len(requested) <= 1.05 * len(recovered)
    assert done.requests == len(requested)
    paths = [path for _, path in requested]
    assert not [path for path in paths if "nowhere" in path or "only-404" in path]
    assert not [path for path in paths if "static.example" in path or "other.example" in path or f"blog.{HOST}" in path]
    assert len([path for path in paths if "/img/seal" in path]) == 1
    assert len([path for path in paths if "/special/again" in path]) == 1
    twice = [pair for pair, times in Counter(requested).items() if times > 1]
    assert [path for _, path in twice if "damaged" not in path] == []


def test_events_agree_with_the_summary(full_run: tuple[Command, CommandResult, list[tuple[str, str]]]) -> None:
    """Each listing, each resource and the end have an event."""
    command, done, _ = full_run
    assert {event["archive"]: event["outcome"] for event in done.events_of("listed")} == dict.fromkeys("abc", "done")
    held = Counter(held.archive for resource, held in SITE.captures() if resource.name.partition("/")[0] == HOST)
    assert {event["archive"]: event["captures"] for event in done.events_of("listed")} == held
    found = lines_by_name(SITE, DEFAULT, command.summary)
    recovered = [line for line in found.values() if not line.is_missing]
    events = sorted((event["archive"], event["datetime"]) for event in done.events_of("recovered"))
    assert events == sorted((line.archive, line.date) for line in recovered)
    assert len(done.events_of("missing")) >= len(found) - len(recovered)
    end = done.events[-1]
    assert (end["event"], end["recovered"], end["queued"]) == ("done", len(recovered), 0)


def test_rejected_captures_are_reported_and_stored(
    full_run: tuple[Command, CommandResult, list[tuple[str, str]]],
) -> None:
    """Each rejected capture is fetched once, reported with its verdict and stored."""
    command, done, requested = full_run
    expected = Counter(
        (held.archive, held.date, held.uri, held.rejected) for _, held in SITE.captures() if held.rejected
    )
    events = done.events_of("rejected")
    assert Counter((each["archive"], each["datetime"], each["uri"], each["verdict"]) for each in events) == expected
    assert all(each["reason"] for each in events)
    bodies = {record.body for record in read_warcs(command.folder).values()}
    assert {held.body for _, held in SITE.captures() if held.rejected} <= bodies
    assert [path for _, path in requested if "spam" in path] == []
    assert [each["reason"] for each in done.events_of("missing") if "only-parked" in each["uri"]] == ["rejected"]


def test_rejected_pages_are_doubtful_by_default(new_command: Callable[[], Command]) -> None:
    """A page with only rejected captures is recovered as doubtful, and its links are followed."""
    command = replace(new_command(), is_linked_only=False)
    done = command.run(SPECIAL, "--linked-only", "--no-page-requisites", "--only", "a")
    assert done.code == 0, done.stderr
    found = lines_by_name(SITE, DEFAULT, command.summary)
    assert found[f"{HOST}/special/only-parked.html"].date == "20110601000000"
    assert not found[f"{HOST}/special/spam.html"].is_missing
    assert done.events[-1]["doubtful"] == len([each for each in done.events_of("recovered") if each["doubtful"]]) > 0


@pytest.mark.parametrize("name", ["requisites", "keep-rejected"])
def test_removed_options_are_refused_with_a_hint(name: str, new_command: Callable[[], Command]) -> None:
    """As option, environment variable and setting, they name the replacement."""
    command = new_command()
    done = command.run(ROOT, f"--{name}")
    assert (done.code, "was removed" in done.stderr) == (2, True), done.stderr
    variable = {f"UNLOST_RECOVER_{name.upper().replace('-', '_')}": "1"}
    refused = unlost(*command.arguments(ROOT), env=command.environment | variable)
    assert (refused.returncode, b"was removed" in refused.stderr) == (2, True), refused.stderr
    command.home.mkdir(parents=True, exist_ok=True)
    (command.home / "config.toml").write_text(f"[recover]\n{name.replace('-', '_')} = true\n")
    done = command.run(ROOT)
    assert (done.code, "was removed" in done.stderr) == (2, True), done.stderr


def test_summary_lists_other_archives(full_run: tuple[Command, CommandResult, list[tuple[str, str]]]) -> None:
    """The last field has every other archive that holds the resource, with a date."""
    command, _, _ = full_run
    line = lines_by_name(SITE, DEFAULT, command.summary)[f"{HOST}/special/all.html"]
    assert sorted(line.others.split(",")) == ["a:20100601000000", "c:20110601000000"]
    assert lines_by_name(SITE, DEFAULT, command.summary)[f"{HOST}/special/only-c.html"].others == ""


def test_repeated_command_requests_no_stored_capture(
    full_run: tuple[Command, CommandResult, list[tuple[str, str]]], running_archives: Archives
) -> None:
    """The summary is unchanged."""
    command, _, _ = full_run
    before = read_warcs(command.folder)
    running_archives.clear_requests()
    done = command.run(DEFAULT.start)
    assert done.code == 0, done.stderr
    assert [path for _, path in running_archives.replays() if "damaged" not in path] == []
    assert read_warcs(command.folder) == before
    assert_recovered(SITE, DEFAULT, command.folder, command.summary)


@pytest.mark.parametrize("name", list(RUNS))
def test_options_change_the_outcome_as_expected(name: str, new_command: Callable[[], Command]) -> None:
    """With each set of options exactly the captures of the model are recovered."""
    run, command = RUNS[name], new_command()
    urls = None
    if run.urls:
        urls = command.folder.parent / "urls.txt"
        urls.write_text("".join(f"{uri}\n" for uri in run.urls))
    done = command.run(run.start, *options(run, urls))
    assert done.code == 0, done.stderr
    # Only listings show the letter case, and those of that time do not have these two.
    ambiguous = {f"{HOST}/special/harbour.html", f"{HOST}/special/Twin.html"} if run.first != "0" else set()
    assert_recovered(SITE, run, command.folder, command.summary, except_for=frozenset(ambiguous))


def test_exclude_from_reads_expressions_from_a_file(new_command: Callable[[], Command]) -> None:
    """`--exclude-from` reads a regular expression from each line."""
    command = new_command()
    patterns = command.folder.parent / "patterns.txt"
    patterns.write_text("/street/\n(?i)/special/[a-o]\n")
    done = command.run(ROOT, "--exclude-from", str(patterns))
    assert done.code == 0, done.stderr
    assert_recovered(SITE, RUNS["excluded"], command.folder, command.summary)


@pytest.mark.long
def test_capture_that_always_gives_503_is_replaced(
    new_command: Callable[[], Command], running_archives: Archives
) -> None:
    """An archive responds with 503 for an unreadable record; the capture of another archive is recovered at last."""
    run, command = Run(include="damaged|robots|/maps/|feed"), new_command()
    proxy = running_archives.proxies["a"]
    before = proxy.server.handler
    proxy.server.handler = proxy.handle
    try:
        for _ in range(5):
            done = command.run(run.start, *options(run), timeout=600)
            if done.code != 4:
                break
            shutil.rmtree(command.home)  # as if the time had passed
    finally:
        proxy.server.handler = before
    assert done.code == 0, done.stderr
    assert_recovered(SITE, run, command.folder, command.summary)


@pytest.mark.parametrize("most_recent", [False, True])
def test_migrated_captures_rank_last_unless_most_recent(
    most_recent: bool, new_command: Callable[[], Command], running_archives: Archives
) -> None:
    """An unmodified capture is preferred to a newer migrated one, except with `--most-recent`."""
    run = Run(start=SPECIAL, migrated=("c",), most_recent=most_recent)
    command = new_command()
    entries = [
        running_archives.proxies[name].rewrite_archive(running_archives.servers[name].archive(name)) for name in "abc"
    ]
    entries[2] = replace(entries[2], migrated=("text/html",))
    command = replace(command, registry=registry(command.folder.parent / "archives.toml", *entries))
    assert command.run(run.start, *options(run)).code == 0
    assert_recovered(SITE, run, command.folder, command.summary)


def _last_of_each(site: Site) -> Site:
    """Return the site with only the last capture in each archive."""
    last = Site()
    for resource in site.resources.values():
        newest = {held.archive: held for held in sorted(resource.held, key=lambda held: held.date)}
        last.add(resource.name, *newest.values(), case=resource.case, also=resource.also)
    return last


def test_naive_policy_recovers_linked_resources(new_command: Callable[[], Command], running_archives: Archives) -> None:
    """The naive policy looks up single URLs only, and recovers the best capture of those it is given."""
    run, command = Run(start=SPECIAL, policy="naive"), new_command()
    running_archives.clear_requests()
    done = command.run(run.start, *options(run))
    assert done.code in (0, 4), done.stderr  # 4: an archive's error for a redirect to itself may heal
    assert not [path for paths in running_archives.lists().values() for path in paths if "=exact" not in path]
    # Only listings show default pages, spellings and whether a capture is complete.
    unknown = {
        f"{HOST}/special/{name}" for name in ("root", "folder", "Twin.html", "twin.html", "cut.html", "harbour.html")
    }
    found = lines_by_name(SITE, run, command.summary)
    given, best = outcome(_last_of_each(SITE), run), outcome(SITE, run)
    expected: dict[str, Held | None] = {}
    for name in best.keys() - unknown:
        line = found[name]
        possible = [held for held in (given.get(name), best[name]) if held is not None]
        matching = [held for held in possible if (held.archive, held.date) == (line.archive, line.date)]
        assert matching or (line.is_missing and len(possible) < 2), f"{name}: {line} instead of {possible}"
        expected[name] = matching[0] if matching else None
    assert found.keys() - unknown <= best.keys()
    assert_same_bytes(expected, found, command.folder, is_listed=False)


def test_all_versions_stores_each_payload_once(new_command: Callable[[], Command]) -> None:
    """With `--all-versions` each distinct payload of a page is stored once."""
    command = new_command()
    assert command.run(SPECIAL, "--all-versions").code == 0
    bodies = Counter(
        record.body for record in read_warcs(command.folder).values() if record.uri.endswith("/special/all.html")
    )
    (resource,) = [each for each in SITE.resources.values() if each.name == f"{HOST}/special/all.html"]
    assert bodies == Counter(held.body for held in resource.held)
    one = [
        record for record in read_warcs(command.folder).values() if record.uri.endswith("/special/same-everywhere.html")
    ]
    assert len(one) == 1


def test_limit_recovers_resources_by_priority(new_command: Callable[[], Command]) -> None:
    """`--limit` recovers the home page and nearby resources first, and exits with 4."""
    command = new_command()
    done = command.run(ROOT, "--limit", "20")
    assert done.code == 4, done.stderr
    found = lines_by_name(SITE, DEFAULT, command.summary)
    recovered = {name for name, line in found.items() if not line.is_missing}
    assert len(recovered) == 20
    near = set(outcome(SITE, Run(depth=1)))
    assert recovered <= near
    assert {HOST, f"{HOST}/style/town.css"} <= recovered
    done = command.run(ROOT)
    assert done.code == 0, done.stderr
    assert_recovered(SITE, DEFAULT, command.folder, command.summary)


def test_dry_run_requests_only_listings(new_command: Callable[[], Command], running_archives: Archives) -> None:
    """`--dry-run` fetches no capture; its listings are stored and not requested again."""
    command = new_command()
    running_archives.clear_requests()
    done = command.run(ROOT, "--dry-run")
    assert done.code == 0, done.stderr
    assert running_archives.replays() == []
    running_archives.clear_requests()
    assert command.run(ROOT).code == 0
    assert not any(running_archives.lists().values())
    assert done.events or done.stderr


@pytest.mark.parametrize(
    "wrong",
    [("--include", "("), ("--policy", "bold"), ("--at", "yesterday"), ("--depth", "-1"), ("--only", "d")],
    ids=lambda wrong: wrong[0],
)
def test_invalid_option_is_rejected_before_any_request(
    wrong: tuple[str, str], new_command: Callable[[], Command], running_archives: Archives
) -> None:
    """Exit code 2 and a message that names the value; nothing is requested or written."""
    command = new_command()
    running_archives.clear_requests()
    done = command.run(ROOT, *wrong)
    assert done.code == 2
    assert wrong[1] in done.stderr
    assert running_archives.replays() == []
    assert not any(running_archives.lists().values())
    assert not command.folder.exists()


def test_foreign_folder_is_refused_and_unchanged(new_command: Callable[[], Command], tmp_path: Path) -> None:
    """A folder with another file in place of the state is not changed."""
    command = replace(new_command(), folder=tmp_path / "mine")
    command.folder.mkdir()
    (command.folder / "state.sqlite").write_text("my diary")
    done = command.run(ROOT)
    assert done.code in (2, 3)
    assert (command.folder / "state.sqlite").read_text() == "my diary"
