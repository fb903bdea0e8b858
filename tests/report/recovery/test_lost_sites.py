"""Reports about the generated sites, recovered from archives: every number is told by the sites' own data."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import unlost
from tests.recover.archives import Archives
from tests.recover.assertions import GUESSED
from tests.recover.command import Command
from tests.recover.expected import Run, outcome
from tests.recover.reading import summary
from tests.recover.reference_site import reference_site
from tests.recover.site import HOST, ROOT, Held, Site, bare
from tests.recover.village import running, village

SPECIAL = Run(start=f"{ROOT}special/")


def report(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the summary of a report, and the objects of all resources but those that are only guessed."""
    done = unlost("report", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    *resources, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last["event"] == "summary"
    return last, [each for each in resources if bare(each["uri"]) not in GUESSED]


def kind(held: Held) -> str:
    """Return what a copy is, for the few types that the generated sites have."""
    if held.status != 200:
        return "redirects"
    kinds = {"text/html": "pages", "application/xhtml+xml": "pages", "text/css": "style sheets"}
    kinds |= {"text/plain": "plain text", "application/pdf": "documents"}
    mime = held.mime.partition(";")[0]
    if "javascript" in mime:
        return "scripts"
    if mime.startswith("image/"):
        return "images"
    return "feeds and data" if "xml" in mime and mime not in kinds else kinds.get(mime, "other")


def check(site: Site, run: Run, folder: Path) -> dict[str, Any]:
    """Compare all numbers with what the site's data say; return the summary."""
    expected = outcome(site, run)
    back = {name: held for name, held in expected.items() if held is not None}
    told, resources = report(folder)
    assert told["url"] == run.start
    assert told["resources"]["recovered"] == len(back)
    assert len([each for each in resources if each["outcome"] == "missing"]) == len(expected) - len(back)
    assert {name: each["recovered"] for name, each in told["archives"].items() if each["recovered"]} == Counter(
        held.archive for held in back.values()
    )
    assert told["kinds"] == Counter(map(kind, back.values()))
    assert told["types"] == Counter(held.mime.partition(";")[0] for held in back.values())
    dates = [held.date for held in back.values()]
    assert told["copies"] == {"first": min(dates), "last": max(dates)}
    years = Counter(date[:4] for date in dates)
    by_year: Counter[str] = Counter()
    for label, count in told["timeline"].items():
        by_year[label[:4]] += count
    assert +by_year == years
    return told


def test_a_village(tmp_path: Path) -> None:
    """The numbers are right, the page says who links to what is missing, and the lines are those of the recovery."""
    site = village()
    with running(site) as lost:
        command = Command(lost.registry(tmp_path), tmp_path / "village.recovery", tmp_path / "home")
        assert command.run(ROOT).code == 0
        base = lost.archives["a"].fake.base
        asked = len(lost.asked)
    told = check(site, Run(), command.folder)
    assert told["requests"] == asked
    assert told["reasons"]["not-held"] >= 1
    done = unlost("report", str(command.folder))
    assert done.returncode == 0
    folder = command.folder / "report"
    assert sorted(each.name for each in folder.iterdir()) == ["index.html", "report.json", "summary.tsv"]
    assert (folder / "summary.tsv").read_bytes() == command.summary.read_bytes()
    assert summary(folder / "summary.tsv") == summary(command.summary)
    page = (folder / "index.html").read_text()
    missing = page[page.index('id="missing"') :]
    assert f"<bdi>{ROOT}nowhere.html</bdi><small>no archive has it</small>" in missing
    assert f'linked from <a href="{base}/web/20100101000000/{ROOT}"' in missing.replace("\n", "")
    lines = unlost("report", str(command.folder), "--list", "missing").stdout.decode().splitlines()
    assert f"{ROOT}nowhere.html\tnot-held\t1\t{ROOT}" in lines


@pytest.fixture(scope="module")
def special(running_archives: Archives, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recover the quarter of the town that has all special cases."""
    place = tmp_path_factory.mktemp("special")
    command = Command(running_archives.registry, place / "town.recovery", place / "home")
    assert command.run(SPECIAL.start).code == 0
    return command.folder


def test_a_quarter_of_a_town(special: Path) -> None:
    """Revisits, redirects, spellings, several archives: every number is as the data say."""
    check(reference_site(), SPECIAL, special)


def test_what_was_rejected_in_it(special: Path) -> None:
    """Each copy that says it is none is told with its verdict, in the list and on the page, with its copy's address."""
    expected = Counter(
        (held.uri, held.archive, held.date, held.rejected)
        for resource, held in reference_site().captures()
        if held.rejected and resource.name.startswith(f"{HOST}/special/")
    )
    assert expected
    lines = unlost("report", str(special), "--list", "rejected").stdout.decode().splitlines()
    rows = [line.split("\t") for line in lines]
    assert Counter((uri, archive, date, kind) for uri, archive, date, kind, _, _ in rows) == expected
    assert all(reason for *_, reason, _ in rows)
    told, _ = report(special)
    assert told["rejected"] == Counter(verdict for *_, verdict in expected.elements())
    assert unlost("report", str(special), "--html", str(special / "page.html")).returncode == 0
    page = (special / "page.html").read_text()
    for *_, urim in rows:
        assert urim.startswith("http://127.0.0.1:")
        assert f'href="{urim}"' in page.replace("&amp;", "&")
