"""The page of statistics in a browser; each check is shown to detect its fault."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.report.axe import axe_faults_of_file
from tests.report.browser_page import EVIL, HIDDEN, LONG, RIGHT_TO_LEFT, PageVisit, phone_page
from unlost.report import ReportTable
from unlost.research import (
    DomainCounts,
    IndexCounts,
    IndexMetrics,
    TopHost,
    TopPage,
    count_index,
    render_index_page,
    table_to_csv,
    write_index_report,
)

_NAMES = (EVIL, HIDDEN, RIGHT_TO_LEFT, LONG, "com,a)/")


def _figures(folder: Path) -> IndexMetrics:
    """Return metrics with every table and hostile names."""
    lines = [
        f"com,h{n % 5})/a/b{n % 17}?q={n % 3} {2000 + n % 9}{n % 12 + 1:02}02030405 "
        f"http://h{n % 5}.com/a text/html 200 X - - 5 6 f\n"
        for n in range(500)
    ]
    file = folder / "a.cdx"
    file.write_text("".join(sorted(lines)))
    counted, _ = count_index([file])
    evil = IndexCounts(
        captures=5,
        foreign=dict.fromkeys(_NAMES, 1),
        kinds=dict.fromkeys([(name, name) for name in _NAMES], 1),
        domains={name: DomainCounts(1, 1, 1, 1, 1) for name in _NAMES},
        busy_pages=tuple(TopPage(name, 10**6, 10**6 + 10, 10) for name in _NAMES),
        busy_hosts=tuple(TopHost(name, 1, 1) for name in _NAMES),
        samples=tuple(("20140101000000", name) for name in _NAMES),
    )
    return IndexMetrics(counted.merge(evil))


@pytest.mark.browser
def test_page_is_self_contained(browser: Browser, tmp_path: Path) -> None:
    """No requests, no console errors; it fits a phone, and hostile names are text."""
    figures = _figures(tmp_path)
    with phone_page(browser) as page:
        visit = PageVisit(page, tmp_path / "page.html", render_index_page(figures, EVIL))
        assert visit.faults == []
        assert visit.external_requests() == []
        assert not visit.overflows()
        assert not visit.has_injected_markup()
        assert page.locator("figure svg").count() >= 6
        assert page.get_by_text("505 mementos").count() == 1


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_accessible(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """axe-core reports nothing, and reports a planted button without name and pale text."""
    file, text = tmp_path / "page.html", render_index_page(_figures(tmp_path), "a.cdx")
    planted = text.replace("<main>", '<main><button></button><p style="color: #999; background: #aaa">pale</p>')
    assert axe_faults_of_file(browser, file, text, scheme) == []
    assert {each.partition(":")[0] for each in axe_faults_of_file(browser, file, planted, scheme)} == {
        "button-name",
        "color-contrast",
    }


def test_report_files_are_deterministic(tmp_path: Path) -> None:
    """JSON, CSV and page."""
    figures = _figures(tmp_path)
    first = write_index_report(figures, tmp_path / "one", "x")
    write_index_report(figures, tmp_path / "two", "x")
    assert {"statistics.json", "index.html", "years.csv", "depths.csv", "growth.csv"} <= {file.name for file in first}
    for file in first:
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_csv_cells_are_never_formulas() -> None:
    """Untrusted text that begins like one gets a quote."""
    rows = [('=HYPERLINK("http://evil")', "1"), ("-2+cmd|' /C calc'!A0", "1"), ("text/html", "-5"), ("-", "-1e-05")]
    table = ReportTable("", ("type", "mementos"), rows)
    assert table_to_csv(table).splitlines()[1:] == [
        '"\'=HYPERLINK(""http://evil"")",1',
        "'-2+cmd|' /C calc'!A0,1",
        "text/html,-5",
        "-,-1e-05",
    ]
