"""Tests of reports about generated sites: all figures agree with the data of the sites."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import unlost
from tests.recovery.archives import Archives
from tests.recovery.assertions import GUESSED
from tests.recovery.command import Command
from tests.recovery.expected import Run, outcome
from tests.recovery.recovery_output import summary
from tests.recovery.reference_site import reference_site
from tests.recovery.sample_site import sample_site, serve_site
from tests.recovery.site import HOST, ROOT, Held, Site, bare

SPECIAL = Run(start=f"{ROOT}special/")


def run_report(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the summary of a report, and the objects of all resources except guessed ones."""
    done = unlost("report", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    *resources, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last["event"] == "summary"
    return last, [each for each in resources if bare(each["uri"]) not in GUESSED]


def kind_of(held: Held) -> str:
    """Return the kind of a capture, for the media types of the generated sites."""
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


def assert_figures(site: Site, run: Run, folder: Path) -> dict[str, Any]:
    """Compare all figures with the data of the site; return the summary."""
    expected = outcome(site, run)
    back = {name: held for name, held in expected.items() if held is not None}
    figures, resources = run_report(folder)
    assert figures["url"] == run.start
    assert figures["resources"]["recovered"] == len(back)
    assert len([each for each in resources if each["outcome"] == "missing"]) == len(expected) - len(back)
    assert {name: each["recovered"] for name, each in figures["archives"].items() if each["recovered"]} == Counter(
        held.archive for held in back.values()
    )
    assert figures["kinds"] == Counter(map(kind_of, back.values()))
    assert figures["types"] == Counter(held.mime.partition(";")[0] for held in back.values())
    dates = [held.date for held in back.values()]
    assert figures["copies"] == {"first": min(dates), "last": max(dates)}
    years = Counter(date[:4] for date in dates)
    by_year: Counter[str] = Counter()
    for label, count in figures["timeline"].items():
        by_year[label[:4]] += count
    assert +by_year == years
    return figures


def test_report_of_sample_site(tmp_path: Path) -> None:
    """Figures, referring pages and the summary are those of the recovery."""
    site = sample_site()
    with serve_site(site) as lost:
        command = Command(lost.registry(tmp_path), tmp_path / "sample.recovery", tmp_path / "home")
        assert command.run(ROOT).code == 0
        base = lost.archives["a"].fake.base
        requests = len(lost.requests)
    figures = assert_figures(site, Run(), command.folder)
    assert figures["requests"] == requests
    assert figures["reasons"]["not-held"] >= 1
    done = unlost("report", str(command.folder))
    assert done.returncode == 0
    folder = command.folder / "report"
    assert sorted(each.name for each in folder.iterdir()) == ["index.html", "report.json", "summary.tsv"]
    assert (folder / "summary.tsv").read_bytes() == command.summary.read_bytes()
    assert summary(folder / "summary.tsv") == summary(command.summary)
    page = (folder / "index.html").read_text()
    missing = page[page.index('id="missing"') :]
    assert f"<bdi>{ROOT}nowhere.html</bdi><small>not archived</small>" in missing
    assert f'linked from <a href="{base}/web/20100101000000/{ROOT}"' in missing.replace("\n", "")
    lines = unlost("report", str(command.folder), "--list", "missing").stdout.decode().splitlines()
    assert f"{ROOT}nowhere.html\tnot-held\t1\t{ROOT}" in lines


@pytest.fixture(scope="module")
def special_recovery(running_archives: Archives, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recover the special cases of the reference site."""
    place = tmp_path_factory.mktemp("special")
    command = Command(running_archives.registry, place / "reference.recovery", place / "home")
    assert command.run(SPECIAL.start).code == 0
    return command.folder


def test_report_of_special_cases(special_recovery: Path) -> None:
    """Revisits, redirects, spellings and several archives: all figures agree with the data."""
    assert_figures(reference_site(), SPECIAL, special_recovery)


def test_rejected_captures_are_listed_with_their_urim(special_recovery: Path) -> None:
    """Each rejected capture has its verdict in the list and on the page."""
    expected = Counter(
        (held.uri, held.archive, held.date, held.rejected)
        for resource, held in reference_site().captures()
        if held.rejected and resource.name.startswith(f"{HOST}/special/")
    )
    assert expected
    lines = unlost("report", str(special_recovery), "--list", "rejected").stdout.decode().splitlines()
    rows = [line.split("\t") for line in lines]
    assert Counter((uri, archive, date, kind_of) for uri, archive, date, kind_of, _, _ in rows) == expected
    assert all(reason for *_, reason, _ in rows)
    figures, _ = run_report(special_recovery)
    assert figures["rejected"] == Counter(verdict for *_, verdict in expected.elements())
    assert unlost("report", str(special_recovery), "--html", str(special_recovery / "page.html")).returncode == 0
    page = (special_recovery / "page.html").read_text()
    for *_, urim in rows:
        assert urim.startswith("http://127.0.0.1:")
        assert f'href="{urim}"' in page.replace("&amp;", "&")
