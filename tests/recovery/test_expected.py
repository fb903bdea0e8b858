"""Tests of the reference site: expected captures are served by the archives, and missing ones are in none."""

import gzip

import brotli

from tests.external.pywb import Pywb
from tests.recovery.archives import Archives
from tests.recovery.expected import MISSING, Run, listed_only, outcome
from tests.recovery.reference_site import reference_site
from tests.recovery.site import HOST, Held
from tests.recovery.special_cases import WINS


def test_model_agrees_with_handwritten_expectations() -> None:
    """In every special case the model chooses the capture that is declared with the case."""
    found = outcome(reference_site(), Run())
    forgotten = listed_only(reference_site(), Run())
    chosen = {
        name: None if found.get(name) is None else (found[name].archive, int(found[name].date[:4]))  # type: ignore[union-attr]
        for name in WINS
        if name not in forgotten
    }
    assert chosen == {name: wins for name, wins in WINS.items() if name not in forgotten}


def test_reference_site_covers_all_outcomes() -> None:
    """Hundreds of resources are recovered from all archives, some are missing, and some are only listed."""
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
    """Return how a served capture differs from the expected one; None if it does not."""
    response = server.fetch(held.date, held.uri)
    if response.status != held.status or "memento-datetime" not in response.headers:
        return f"{held.uri} of {held.date}: {response.status} {response.body[:200]!r}"
    body = response.body
    if response.headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    elif response.headers.get("content-encoding") == "br":
        body = bytes(brotli.decompress(body))
    served_by = response.headers.get("x-capture")
    if body != held.body or served_by != f"{held.archive} {held.date}":
        return f"{held.uri} of {held.date}: {served_by} {body[:200]!r}"
    return None


def test_expected_captures_are_served(running_archives: Archives) -> None:
    """Each capture that some run must recover is served by its archive with its bytes."""
    runs = [Run(), Run(at="20080101000000"), Run(policy="exhaustive", requisites=True, subdomains=True)]
    expected = {
        (held.archive, held.date, held.uri): held
        for run in runs
        for held in outcome(reference_site(), run).values()
        if held
    }
    faults = [fault(running_archives.servers[held.archive], held) for held in expected.values()]
    assert [each for each in faults if each] == []


def test_missing_resources_are_in_no_archive(running_archives: Archives) -> None:
    """Resources that are linked and not archived are 404 in every archive."""
    missing = [
        name for name, held in outcome(reference_site(), Run()).items() if held is MISSING and "/only-" not in name
    ]
    for server in running_archives.servers.values():
        for name in missing:
            response = server.fetch("20100101000000", f"http://{name}")
            assert (response.status, "memento-datetime" in response.headers) == (404, False)


def test_damaged_captures_are_listed_but_not_served_intact(running_archives: Archives) -> None:
    """The index lists them; the archive returns an error or other bytes."""
    (cut,) = [held for _, held in reference_site().captures() if held.damaged == "cut"]
    response = running_archives.servers[cut.archive].fetch(cut.date, cut.uri)
    assert (response.status, response.headers["x-capture"]) == (200, f"{cut.archive} {cut.date}")
    assert response.body[:1000] == cut.body[:1000]
    assert response.body != cut.body

    (held,) = [held for _, held in reference_site().captures() if held.damaged == "lost"]
    server = running_archives.servers[held.archive]
    assert [row["timestamp"] for row in server.rows(held.uri)] == [held.date]
    response = server.fetch(held.date, held.uri)
    assert response.status >= 400
    assert "memento-datetime" not in response.headers


def test_archives_list_exactly_their_captures(running_archives: Archives) -> None:
    """The listing of the host has a row for every capture, with the archive's spelling."""
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
