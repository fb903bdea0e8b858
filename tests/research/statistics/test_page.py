"""The page of statistics, looked at in a real browser; every look is shown the fault that it is there for."""

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
    """Return something of everything, with names that nobody should meet."""
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
def test_it_stands_alone(browser: Browser, tmp_path: Path) -> None:
    """Nothing is asked for, nothing is complained about, it fits a phone, and what others wrote is text."""
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
def test_everybody_can_read_it(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """axe-core objects to nothing, and does object to a button without a name and to pale words."""
    file, text = tmp_path / "page.html", render_index_page(_figures(tmp_path), "a.cdx")
    planted = text.replace("<main>", '<main><button></button><p style="color: #999; background: #aaa">pale</p>')
    assert axe_faults_of_file(browser, file, text, scheme) == []
    assert {each.partition(":")[0] for each in axe_faults_of_file(browser, file, planted, scheme)} == {
        "button-name",
        "color-contrast",
    }


def test_files_are_the_same_every_time(tmp_path: Path) -> None:
    """JSON, a CSV for each table and the page: the same numbers make the same bytes."""
    figures = _figures(tmp_path)
    first = write_index_report(figures, tmp_path / "one", "x")
    write_index_report(figures, tmp_path / "two", "x")
    assert {"statistics.json", "index.html", "years.csv", "depths.csv", "growth.csv"} <= {file.name for file in first}
    for file in first:
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_no_spreadsheet_takes_a_cell_for_a_formula() -> None:
    """What others wrote and begins like a formula gets a quote in front."""
    rows = [('=HYPERLINK("http://evil")', "1"), ("-2+cmd|' /C calc'!A0", "1"), ("text/html", "-5"), ("-", "-1e-05")]
    table = ReportTable("", ("type", "mementos"), rows)
    assert table_to_csv(table).splitlines()[1:] == [
        '"\'=HYPERLINK(""http://evil"")",1',
        "'-2+cmd|' /C calc'!A0,1",
        "text/html,-5",
        "-,-1e-05",
    ]
