"""The whole command against three real archives that hold a lost site: each resource comes out as it must."""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.recover.archives import Archives
from tests.recover.assertions import assert_recovered, assert_same_bytes, lines_by_name
from tests.recover.command import Command, Done, options
from tests.recover.expected import Run, listed_only, outcome
from tests.recover.reading import kept
from tests.recover.reading import listed_only as listed_only_in
from tests.recover.reference_site import reference_site
from tests.recover.registry import registry
from tests.recover.site import HOST, ROOT, Held, Site

SPECIAL = f"{ROOT}special/"
SITE: Site = reference_site()
DEFAULT = Run()
NO_STREETS = "/street/"

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
    "subdomains": Run(subdomains=True, exclude=NO_STREETS),
    "two archives": Run(start=SPECIAL, only=("a", "b")),
    "everything listed": Run(policy="exhaustive", exclude=NO_STREETS),
    "further addresses": Run(start=f"{ROOT}shop/", urls=(f"{ROOT}forgotten/1.html", f"{ROOT}special/all.html")),
}
_numbers = count()


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory, running_archives: Archives) -> Callable[[], Command]:
    """Return what makes a new recovery."""

    def new() -> Command:
        place = tmp_path_factory.mktemp(f"recovery-{next(_numbers)}")
        return Command(running_archives.registry, place / "town.recovery", place / "home")

    return new


@pytest.fixture(scope="module")
def whole(make: Callable[[], Command], running_archives: Archives) -> tuple[Command, Done, list[tuple[str, str]]]:
    """Recover the whole site once: the command, how it ended, and which copies were asked for."""
    command = make()
    running_archives.forget()
    done = command.run(DEFAULT.start)
    assert done.code == 0, done.said
    assert {name: len(asked) for name, asked in running_archives.lists().items()} == {"a": 1, "b": 1, "c": 1}
    return command, done, running_archives.replays()


def test_every_resource_comes_out_as_it_must(whole: tuple[Command, Done, list[tuple[str, str]]]) -> None:
    """Archive, date and bytes of each are the expected ones; the missing are missing, and nothing else is there."""
    command, _, _ = whole
    assert_recovered(SITE, DEFAULT, command.folder, command.summary)


def test_what_is_listed_and_not_linked_is_remembered(whole: tuple[Command, Done, list[tuple[str, str]]]) -> None:
    """It is not fetched, but the state knows it."""
    command, _, asked = whole
    assert listed_only_in(command.folder) == listed_only(SITE, DEFAULT)
    assert not [path for _, path in asked if "forgotten" in path]


def test_hardly_more_is_asked_than_recovered(whole: tuple[Command, Done, list[tuple[str, str]]]) -> None:
    """At most 1.05 requests for a resource; none for what is listed nowhere; one for what is in several places."""
    _, done, asked = whole
    recovered = [held for held in outcome(SITE, DEFAULT).values() if held is not None]
    assert len(asked) <= 1.05 * len(recovered)
    assert done.requests == len(asked)
    paths = [path for _, path in asked]
    assert not [path for path in paths if "nowhere" in path or "only-404" in path]
    assert not [path for path in paths if "static.example" in path or "other.example" in path or f"blog.{HOST}" in path]
    assert len([path for path in paths if "/img/seal" in path]) == 1
    assert len([path for path in paths if "/special/again" in path]) == 1
    twice = [pair for pair, times in Counter(asked).items() if times > 1]
    assert [path for _, path in twice if "damaged" not in path] == []


def test_events_say_what_happened(whole: tuple[Command, Done, list[tuple[str, str]]]) -> None:
    """Each list, each resource and the end are an event, and they agree with the summary."""
    command, done, _ = whole
    assert {event["archive"]: event["outcome"] for event in done.of("listed")} == dict.fromkeys("abc", "done")
    held = Counter(held.archive for resource, held in SITE.captures() if resource.name.partition("/")[0] == HOST)
    assert {event["archive"]: event["captures"] for event in done.of("listed")} == held
    found = lines_by_name(SITE, DEFAULT, command.summary)
    recovered = [line for line in found.values() if not line.is_missing]
    events = sorted((event["archive"], event["datetime"]) for event in done.of("recovered"))
    assert events == sorted((line.archive, line.date) for line in recovered)
    assert len(done.of("missing")) >= len(found) - len(recovered)
    end = done.events[-1]
    assert (end["event"], end["recovered"], end["queued"]) == ("done", len(recovered), 0)


def test_what_is_rejected_is_told_and_kept(whole: tuple[Command, Done, list[tuple[str, str]]]) -> None:
    """Each page that says it is none is fetched once, told with its verdict, and stays in the WARCs; no other is."""
    command, done, asked = whole
    expected = Counter(
        (held.archive, held.date, held.uri, held.rejected) for _, held in SITE.captures() if held.rejected
    )
    events = done.of("rejected")
    assert Counter((each["archive"], each["datetime"], each["uri"], each["verdict"]) for each in events) == expected
    assert all(each["reason"] for each in events)
    bodies = {record.body for record in kept(command.folder).values()}
    assert {held.body for _, held in SITE.captures() if held.rejected} <= bodies
    assert [path for _, path in asked if "spam" in path] == []
    assert [each["reason"] for each in done.of("missing") if "only-parked" in each["uri"]] == ["rejected"]


def test_what_is_rejected_is_kept_by_default(make: Callable[[], Command]) -> None:
    """A page of which there are only rejected captures is there, and called doubtful; its links are followed."""
    command = replace(make(), is_linked_only=False)
    done = command.run(SPECIAL, "--linked-only", "--no-page-requisites", "--only", "a")
    assert done.code == 0, done.said
    found = lines_by_name(SITE, DEFAULT, command.summary)
    assert found[f"{HOST}/special/only-parked.html"].date == "20110601000000"
    assert not found[f"{HOST}/special/spam.html"].is_missing
    assert done.events[-1]["doubtful"] == len([each for each in done.of("recovered") if each["doubtful"]]) > 0


@pytest.mark.parametrize("name", ["requisites", "keep-rejected"])
def test_removed_options_are_refused_with_a_hint(name: str, make: Callable[[], Command]) -> None:
    """As flag, variable and setting, they name what to give instead."""
    command = make()
    done = command.run(ROOT, f"--{name}")
    assert (done.code, "was removed" in done.said) == (2, True), done.said
    variable = {f"UNLOST_RECOVER_{name.upper().replace('-', '_')}": "1"}
    refused = unlost(*command.arguments(ROOT), env=command.environment | variable)
    assert (refused.returncode, b"was removed" in refused.stderr) == (2, True), refused.stderr
    command.home.mkdir(parents=True, exist_ok=True)
    (command.home / "config.toml").write_text(f"[recover]\n{name.replace('-', '_')} = true\n")
    done = command.run(ROOT)
    assert (done.code, "was removed" in done.said) == (2, True), done.said


def test_the_summary_names_the_others_that_had_it(whole: tuple[Command, Done, list[tuple[str, str]]]) -> None:
    """The last field has every other archive that holds the resource, with a date."""
    command, _, _ = whole
    line = lines_by_name(SITE, DEFAULT, command.summary)[f"{HOST}/special/all.html"]
    assert sorted(line.others.split(",")) == ["a:20100601000000", "c:20110601000000"]
    assert lines_by_name(SITE, DEFAULT, command.summary)[f"{HOST}/special/only-c.html"].others == ""


def test_again_nothing_is_asked_for_again(
    whole: tuple[Command, Done, list[tuple[str, str]]], running_archives: Archives
) -> None:
    """The same command once more asks for no copy that is there, and says the same."""
    command, _, _ = whole
    before = kept(command.folder)
    running_archives.forget()
    done = command.run(DEFAULT.start)
    assert done.code == 0, done.said
    assert [path for _, path in running_archives.replays() if "damaged" not in path] == []
    assert kept(command.folder) == before
    assert_recovered(SITE, DEFAULT, command.folder, command.summary)


@pytest.mark.parametrize("name", list(RUNS))
def test_each_option_changes_what_it_says(name: str, make: Callable[[], Command]) -> None:
    """With other options, other resources and other captures come: exactly those that they ask for."""
    run, command = RUNS[name], make()
    urls = None
    if run.urls:
        urls = command.folder.parent / "urls.txt"
        urls.write_text("".join(f"{uri}\n" for uri in run.urls))
    done = command.run(run.start, *options(run, urls))
    assert done.code == 0, done.said
    # Which letter case is meant, only lists tell: these two are not in those of that time.
    untold = {f"{HOST}/special/harbour.html", f"{HOST}/special/Twin.html"} if run.first != "0" else set()
    assert_recovered(SITE, run, command.folder, command.summary, except_for=frozenset(untold))


def test_what_is_excluded_may_stand_in_a_file(make: Callable[[], Command]) -> None:
    """`--exclude-from` takes a regular expression from each line."""
    command = make()
    patterns = command.folder.parent / "patterns.txt"
    patterns.write_text("/street/\n(?i)/special/[a-o]\n")
    done = command.run(ROOT, "--exclude-from", str(patterns))
    assert done.code == 0, done.said
    assert_recovered(SITE, RUNS["excluded"], command.folder, command.summary)


@pytest.mark.long
def test_damage_that_an_archive_calls_too_much_work_ends(
    make: Callable[[], Command], running_archives: Archives
) -> None:
    """A record that cannot be read is 503 from pywb, for ever: the other archive's copy is taken at last."""
    run, command = Run(include="damaged|robots|/maps/|feed"), make()
    proxy = running_archives.proxies["a"]
    before = proxy.server.answering
    proxy.server.answering = proxy.answer
    try:
        for _ in range(5):
            done = command.run(run.start, *options(run), timeout=600)
            if done.code != 4:
                break
            shutil.rmtree(command.home)  # as if the time had passed
    finally:
        proxy.server.answering = before
    assert done.code == 0, done.said
    assert_recovered(SITE, run, command.folder, command.summary)


@pytest.mark.parametrize("most_recent", [False, True])
def test_what_an_archive_changed_comes_last(
    most_recent: bool, make: Callable[[], Command], running_archives: Archives
) -> None:
    """A page as it was captured is taken before a newer one that was changed, unless the last one is asked for."""
    run = Run(start=SPECIAL, migrated=("c",), most_recent=most_recent)
    command = make()
    entries = [running_archives.proxies[name].before(running_archives.servers[name].archive(name)) for name in "abc"]
    entries[2] = replace(entries[2], migrated=("text/html",))
    command = replace(command, registry=registry(command.folder.parent / "archives.toml", *entries))
    assert command.run(run.start, *options(run)).code == 0
    assert_recovered(SITE, run, command.folder, command.summary)


def _last_of_each(site: Site) -> Site:
    """Return the site as somebody sees it who asks each archive only for its last copy."""
    last = Site()
    for resource in site.resources.values():
        newest = {held.archive: held for held in sorted(resource.held, key=lambda held: held.date)}
        last.add(resource.name, *newest.values(), case=resource.case, also=resource.also)
    return last


def test_without_lists_links_are_enough(make: Callable[[], Command], running_archives: Archives) -> None:
    """The naive policy asks for lists of single pages only, and gets the best that archives give first, or better."""
    run, command = Run(start=SPECIAL, policy="naive"), make()
    running_archives.forget()
    done = command.run(run.start, *options(run))
    assert done.code in (0, 4), done.said  # 4: an archive's error for a redirect to itself may heal
    assert not [path for paths in running_archives.lists().values() for path in paths if "=exact" not in path]
    # Which page a folder's is, which of two spellings is meant, and whether a copy is whole, only lists tell.
    unknown = {
        f"{HOST}/special/{name}" for name in ("root", "folder", "Twin.html", "twin.html", "cut.html", "harbour.html")
    }
    found = lines_by_name(SITE, run, command.summary)
    modest, best = outcome(_last_of_each(SITE), run), outcome(SITE, run)
    expected: dict[str, Held | None] = {}
    for name in best.keys() - unknown:
        line = found[name]
        possible = [held for held in (modest.get(name), best[name]) if held is not None]
        came = [held for held in possible if (held.archive, held.date) == (line.archive, line.date)]
        assert came or (line.is_missing and len(possible) < 2), f"{name}: {line} instead of {possible}"
        expected[name] = came[0] if came else None
    assert found.keys() - unknown <= best.keys()
    assert_same_bytes(expected, found, command.folder, is_listed=False)


def test_all_versions_are_all_that_differ(make: Callable[[], Command]) -> None:
    """With `--all-versions` there is a copy of each payload that any archive has of a page, and none twice."""
    command = make()
    assert command.run(SPECIAL, "--all-versions").code == 0
    bodies = Counter(
        record.body for record in kept(command.folder).values() if record.uri.endswith("/special/all.html")
    )
    (resource,) = [each for each in SITE.resources.values() if each.name == f"{HOST}/special/all.html"]
    assert bodies == Counter(held.body for held in resource.held)
    one = [record for record in kept(command.folder).values() if record.uri.endswith("/special/same-everywhere.html")]
    assert len(one) == 1


def test_a_limit_ends_it_with_the_most_valuable(make: Callable[[], Command]) -> None:
    """`--limit` recovers so many resources, the front page and what is near it first, and says that there is more."""
    command = make()
    done = command.run(ROOT, "--limit", "20")
    assert done.code == 4, done.said
    found = lines_by_name(SITE, DEFAULT, command.summary)
    recovered = {name for name, line in found.items() if not line.is_missing}
    assert len(recovered) == 20
    near = set(outcome(SITE, Run(depth=1)))
    assert recovered <= near
    assert {HOST, f"{HOST}/style/town.css"} <= recovered
    done = command.run(ROOT)
    assert done.code == 0, done.said
    assert_recovered(SITE, DEFAULT, command.folder, command.summary)


def test_a_dry_run_asks_only_for_lists(make: Callable[[], Command], running_archives: Archives) -> None:
    """`--dry-run` says what it would ask, and asks for no copy; the lists are kept, and not asked for again."""
    command = make()
    running_archives.forget()
    done = command.run(ROOT, "--dry-run")
    assert done.code == 0, done.said
    assert running_archives.replays() == []
    running_archives.forget()
    assert command.run(ROOT).code == 0
    assert not any(running_archives.lists().values())
    assert done.events or done.said


@pytest.mark.parametrize(
    "wrong",
    [("--include", "("), ("--policy", "bold"), ("--at", "yesterday"), ("--depth", "-1"), ("--only", "d")],
    ids=lambda wrong: wrong[0],
)
def test_what_cannot_be_meant_is_said_at_once(
    wrong: tuple[str, str], make: Callable[[], Command], running_archives: Archives
) -> None:
    """A wrong option is exit code 2 with a message that names it, before anybody is asked or anything written."""
    command = make()
    running_archives.forget()
    done = command.run(ROOT, *wrong)
    assert done.code == 2
    assert wrong[1] in done.said
    assert running_archives.replays() == []
    assert not any(running_archives.lists().values())
    assert not command.folder.exists()


def test_a_folder_of_another_recovery_is_refused(make: Callable[[], Command], tmp_path: Path) -> None:
    """A target that holds something else is left as it is."""
    command = replace(make(), folder=tmp_path / "mine")
    command.folder.mkdir()
    (command.folder / "state.sqlite").write_text("my diary")
    done = command.run(ROOT)
    assert done.code in (2, 3)
    assert (command.folder / "state.sqlite").read_text() == "my diary"
