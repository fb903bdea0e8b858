"""The lost site itself: what is expected of it is really in the archives, and what is missing is in none."""

import gzip

import brotli

from tests.neighbours.pywb import Pywb
from tests.recover.archives import Archives
from tests.recover.expected import MISSING, Run, listed_only, outcome
from tests.recover.reference_site import reference_site
from tests.recover.site import HOST, Held
from tests.recover.special_cases import WINS


def test_the_model_chooses_what_was_written_by_hand() -> None:
    """In every special case the capture that the model expects is the one that stands beside the case."""
    found = outcome(reference_site(), Run())
    forgotten = listed_only(reference_site(), Run())
    told = {
        name: None if found.get(name) is None else (found[name].archive, int(found[name].date[:4]))  # type: ignore[union-attr]
        for name in WINS
        if name not in forgotten
    }
    assert told == {name: wins for name, wins in WINS.items() if name not in forgotten}


def test_there_is_enough_of_everything() -> None:
    """Some hundred resources are recovered, some missing, some only listed, and all archives are needed."""
    found = outcome(reference_site(), Run())
    recovered = [held for held in found.values() if held is not None]
    assert len(recovered) >= 300
    assert {held.archive for held in recovered} == {"a", "b", "c"}
    assert sorted(name for name, held in found.items() if held is MISSING) == [
        f"{HOST}/img/nowhere.gif",
        f"{HOST}/special/nowhere.html",
        f"{HOST}/special/nowhere.html?x=1",
        f"{HOST}/special/only-404.html",
        f"{HOST}/special/only-parked.html",
    ]
    forgotten = {f"{HOST}/forgotten/{number}.html" for number in range(5)}
    assert listed_only(reference_site(), Run()) == {
        *forgotten,
        f"{HOST}/forms/commented.html",
        f"{HOST}/special/spam.html",
    }


def fault(server: Pywb, held: Held) -> str | None:
    """Return how an archive gives a capture otherwise than is expected; None if it does not."""
    answer = server.fetch(held.date, held.uri)
    if answer.status != held.status or "memento-datetime" not in answer.headers:
        return f"{held.uri} of {held.date}: {answer.status} {answer.body[:200]!r}"
    body = answer.body
    if answer.headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    elif answer.headers.get("content-encoding") == "br":
        body = bytes(brotli.decompress(body))
    town_of = answer.headers.get("x-town")
    if body != held.body or town_of != f"{held.archive} {held.date}":
        return f"{held.uri} of {held.date}: {town_of} {body[:200]!r}"
    return None


def test_what_is_expected_is_served(running_archives: Archives) -> None:
    """Each capture that must be recovered, in whichever run, comes from its archive with its bytes."""
    runs = [Run(), Run(at="20080101000000"), Run(policy="exhaustive", requisites=True, subdomains=True)]
    wanted = {
        (held.archive, held.date, held.uri): held
        for run in runs
        for held in outcome(reference_site(), run).values()
        if held
    }
    faults = [fault(running_archives.servers[held.archive], held) for held in wanted.values()]
    assert [each for each in faults if each] == []


def test_what_is_missing_is_in_no_archive(running_archives: Archives) -> None:
    """What is linked and archived nowhere is 404 everywhere."""
    missing = [
        name for name, held in outcome(reference_site(), Run()).items() if held is MISSING and "/only-" not in name
    ]
    for server in running_archives.servers.values():
        for name in missing:
            answer = server.fetch("20100101000000", f"http://{name}")
            assert (answer.status, "memento-datetime" in answer.headers) == (404, False)


def test_what_is_damaged_is_listed_and_never_served(running_archives: Archives) -> None:
    """An index names a capture, and its archive has only an error for it, or serves other bytes as if all were well."""
    (cut,) = [held for _, held in reference_site().captures() if held.damaged == "cut"]
    answer = running_archives.servers[cut.archive].fetch(cut.date, cut.uri)
    assert (answer.status, answer.headers["x-town"]) == (200, f"{cut.archive} {cut.date}")
    assert answer.body[:1000] == cut.body[:1000]
    assert answer.body != cut.body

    (held,) = [held for _, held in reference_site().captures() if held.damaged == "lost"]
    server = running_archives.servers[held.archive]
    assert [row["timestamp"] for row in server.rows(held.uri)] == [held.date]
    answer = server.fetch(held.date, held.uri)
    assert answer.status >= 400
    assert "memento-datetime" not in answer.headers


def test_each_archive_lists_exactly_what_it_holds(running_archives: Archives) -> None:
    """The list of the whole host has a row for every capture, in the archive's own spelling."""
    for name, server in running_archives.servers.items():
        rows = [*server.rows(f"{HOST}&matchType=domain")]
        held = [
            (held.uri, held.date)
            for _, held in reference_site().captures()
            if held.archive == name and HOST in held.uri
        ]
        assert sorted((row["url"], row["timestamp"]) for row in rows) == sorted(
            each for each in held if "evil" not in each[0]
        )
