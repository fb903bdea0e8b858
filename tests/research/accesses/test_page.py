"""The page of logs in a browser; each check is shown to detect its fault."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.report.axe import axe_faults_of_file
from tests.report.browser_page import EVIL, HIDDEN, LONG, RIGHT_TO_LEFT, PageVisit, phone_page
from unlost.problems import Problems
from unlost.research import access_stats_to_json, access_tables, collect_access_stats, render_access_page

# Half a pair of surrogates is no text, and such a line is refused.
_NAMES = (EVIL, HIDDEN.rstrip("\udcff"), RIGHT_TO_LEFT, LONG, "ia")
_MATRIX = ((0, 3, 2, 1, 0, 0, 0), (5, 1, 0, 0, 0, 0, 0), *(((0,) * 7,) * 5))


def _page(folder: Path) -> str:
    """Return the page of a log with hostile archive names and URLs."""
    log = folder / "upstream.ndjson"
    result = {"time": "2026-01-31T12:00:00Z", "endpoint": "timemap", "reason": "routed"}
    rows = [
        {**result, "archive": name, "uri": f"http://a.example/{name}", "outcome": outcome}
        for name in _NAMES
        for outcome in ("hit", "miss", "miss", "timeout")
    ]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    problems = Problems()
    accesses = collect_access_stats([log], problems)
    assert problems.total == 0, problems
    assert accesses.total.requests == 4 * len(_NAMES)
    return render_access_page(accesses, _MATRIX, EVIL)


@pytest.mark.browser
def test_page_is_self_contained(browser: Browser, tmp_path: Path) -> None:
    """No requests, no console errors; it fits a phone, and hostile names are text."""
    text = _page(tmp_path)
    with phone_page(browser) as page:
        visit = PageVisit(page, tmp_path / "page.html", text)
        assert visit.faults == []
        assert visit.external_requests() == []
        assert not visit.overflows()
        assert not visit.has_injected_markup()
        assert page.locator("figure svg").count() == 1
        assert page.locator("table").count() == 3
        assert page.get_by_text("20 requests to archives").count() == 1


@pytest.mark.browser
def test_page_shows_missing_pages(browser: Browser, tmp_path: Path) -> None:
    """A picture from elsewhere, a script and a line that is too wide are found."""
    planted = '<img src="http://elsewhere.example/x.png"><div style="width: 2000px">wide</div><script></script>'
    text = _page(tmp_path).replace("<main>", f"<main>{planted}")
    with phone_page(browser) as page:
        visit = PageVisit(page, tmp_path / "page.html", text)
        assert visit.faults != []
        assert visit.overflows()
        assert visit.has_injected_markup()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_accessible(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """axe-core objects to nothing, and does object to a button without a name and to pale words."""
    file, text = tmp_path / "page.html", _page(tmp_path)
    planted = text.replace("<main>", '<main><button></button><p style="color: #999; background: #aaa">pale</p>')
    assert axe_faults_of_file(browser, file, text, scheme) == []
    assert {each.partition(":")[0] for each in axe_faults_of_file(browser, file, planted, scheme)} == {
        "button-name",
        "color-contrast",
    }


def test_number_of_archive_names_is_bounded(tmp_path: Path) -> None:
    """What is remembered of archives and addresses is cut, and numbers stay numbers."""
    log = tmp_path / "upstream.ndjson"
    row = {"time": "2026-01-31T12:00:00Z", "endpoint": "timemap", "reason": "routed", "outcome": "miss"}
    log.write_text(json.dumps({**row, "archive": LONG, "uri": f"http://a.example/{LONG}"}) + "\n")
    accesses = collect_access_stats([log], Problems())
    (name,) = accesses.archives
    assert len(name) == 200
    assert len(accesses.missing.first(1)[0][0]) == 2000
    assert access_tables(accesses)["archives"].rows[0][1] == "1"
    assert json.loads(json.dumps(access_stats_to_json(accesses)))["misses"] == 1
