"""Tests of the HTML report in a browser; each check is also shown to detect a planted fault."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.report.axe import axe_faults_of_file
from tests.report.browser_page import EVIL, HIDDEN, LONG, RIGHT_TO_LEFT, PageVisit, contrast, luminance
from tests.report.recovery.states import SITE, SampleResource, make_state, report_html, store_listing
from unlost.html import LinkKind
from unlost.recovery.state import ListingStatus, RecoveryState, ResourceStatus
from unlost.report import LANGUAGES
from unlost.report.recovery import MAX_LISTED_RESOURCES
from unlost.report.recovery import writer as renderer

pytestmark = pytest.mark.browser

ARCHIVED = "https://archive.example/2011/http://lost.example/"
# A state cannot store a lone surrogate in a URL; an index may have one.
NAMES = (EVIL, HIDDEN.replace("\udcff", ""), RIGHT_TO_LEFT, LONG)
INVALID_URLS = (
    *("javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "data:,x"),
    *("file:///etc/passwd", "//archive.example/x", "vbscript:x", "http:", "http://[", 'https://"><script>', HIDDEN),
)


def hostile_resources() -> list[SampleResource]:
    """Return resources of all kinds with hostile names."""
    missing = [SampleResource(name, reason="not-held") for name in NAMES]
    links = tuple(each.path for each in missing)
    home = SampleResource("", "20110401000000", urim=ARCHIVED, mime=f"text/{EVIL}", links=links, archive=f"a{EVIL}")
    made = [home, *missing, SampleResource("i.png", "20120101000000", mime="image/png", use=LinkKind.REQUISITE)]
    for number, place in enumerate(INVALID_URLS):
        made.append(SampleResource(f"from{number}", "20130101000000", urim=place, links=links[:1]))
        made.append(
            SampleResource(f"no{number}", "20140101000000", urim=place, reason="rejected", verdict=(EVIL, EVIL))
        )
        made.append(SampleResource(f"failed{number}", reason="failed", urim=place, others=(("b", "20150101000000"),)))
    made.append(
        SampleResource(
            "bad", "20140101000000", urim=f"{ARCHIVED}bad", reason="rejected", verdict=("parked", "for sale")
        )
    )
    made.append(
        SampleResource("f", reason="failed", urim=f"{ARCHIVED}f", others=(("b", "20150101000000"),), links=("f",))
    )
    made.append(SampleResource(f"listed{EVIL}", others=(("b", "20150101000000"),), standing=ResourceStatus.LISTED))
    made.append(SampleResource("later", standing=ResourceStatus.QUEUED))
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a recovery of a hostile site."""
    made = make_state(tmp_path_factory.mktemp("hostile") / "r", hostile_resources(), url=f"{SITE}{EVIL}")
    store_listing(made, "b", ListingStatus.TRUNCATED, EVIL)
    with RecoveryState(made) as state:
        state.store_skipped_links({}, {f"too deep {EVIL}": 3})
    return made


def test_report_is_self_contained(page: Page, folder: Path, tmp_path: Path) -> None:
    """It loads nothing, has no errors, fits a phone, and has all its sections."""
    visit = PageVisit(page, tmp_path / "page.html", report_html(folder))
    assert (visit.faults, visit.external_requests(), visit.overflows()) == ([], [], False)
    headings = page.locator("h2").all_inner_texts()
    count = len(INVALID_URLS)
    assert headings == [
        "Overview",
        "Capture dates",
        f"Missing: {len(NAMES) + count + 1}",
        f"Listed but not delivered: {count + 1}",
        f"Rejected captures: {count + 1}",
        "Not searched for",
    ]
    assert f"{2 + count} of {2 + len(NAMES) + 3 * count + 2} resources recovered." in page.inner_text(".lead")
    assert "1 queued." in page.inner_text(".lead")
    planted = report_html(folder).replace("</main>", '<p style="width: 500px">wide</p><script>1</script></main>')
    visit = PageVisit(page, tmp_path / "planted.html", planted)
    assert visit.overflows()
    assert visit.faults != [], "its own policy lets no script run"


@pytest.mark.parametrize("language", LANGUAGES)
def test_hostile_names_are_escaped(
    page: Page, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    """Markup is displayed as text, and control characters are escaped; without escaping the check fails."""
    visit = PageVisit(page, tmp_path / "page.html", report_html(folder, language))
    assert (visit.faults, visit.external_requests(), visit.overflows()) == ([], [], False)
    text = page.inner_text("main")
    assert text.count(EVIL) >= 7, "address, type, archive, verdict, reason, message, what is listed"
    assert "\\u202egnp.exe\\x1b[31m" in text
    assert RIGHT_TO_LEFT in text
    assert LONG not in text
    assert not visit.has_injected_markup()
    made = renderer._jinja_environment()
    made.autoescape = False
    monkeypatch.setattr(renderer, "_jinja_environment", lambda: made)
    assert PageVisit(page, tmp_path / "raw.html", report_html(folder, language)).has_injected_markup()


def test_links_lead_to_archives_only(page: Page, folder: Path, tmp_path: Path) -> None:
    """Only http(s) URLs of captures are linked; URLs of the lost site are not."""
    PageVisit(page, tmp_path / "page.html", report_html(folder))
    places = page.eval_on_selector_all("a", "all => all.map(each => each.getAttribute('href'))")
    assert set(places) == {"summary.tsv", "report.json", ARCHIVED, f"{ARCHIVED}bad", f"{ARCHIVED}f"}
    assert page.locator("a:not([rel='noreferrer noopener'])").count() == 2, "except for links to the data files"
    assert page.locator("[href^='javascript' i], [src], [onclick]").count() == 0


def test_missing_resources_name_their_referrers(page: Page, tmp_path: Path) -> None:
    """The most linked resource comes first, with some referrers and the number of others."""
    made = [
        SampleResource(f"p{number}", "20110101000000", urim=f"{ARCHIVED}{number}", links=("b",)) for number in range(8)
    ]
    made += [
        SampleResource("", "20110101000000", links=("a", "b")),
        SampleResource("a", reason="not-held"),
        SampleResource("b", reason="excluded"),
    ]
    PageVisit(page, tmp_path / "page.html", report_html(make_state(tmp_path / "r", made)))
    first, second = page.locator("#missing ~ ol").first.locator("li").all_inner_texts()
    assert first.split("\n")[0] == f"{SITE}b"
    assert "archived, but the archive blocks access" in first
    assert f"linked from {SITE}p0, {SITE}p1, {SITE}p2, {SITE}p3, {SITE}p4 and 4 more" in first
    assert second.split("\n") == [f"{SITE}a", "not archived", f"linked from {SITE}"]
    links = page.locator("#missing ~ ol").first.locator("li").first.locator("a")
    assert [link.get_attribute("href") for link in links.all()] == [f"{ARCHIVED}{number}" for number in range(5)]


def test_timeline_has_bars_and_table(page: Page, tmp_path: Path) -> None:
    """Bar heights are proportional, and a table has the same figures."""
    made = [
        SampleResource(f"{year}-{number}", f"{year}0101000000")
        for year in (2001, 2003, 2011)
        for number in range(year - 2000)
    ]
    PageVisit(page, tmp_path / "page.html", report_html(make_state(tmp_path / "r", made)))
    heights = [box["height"] for each in page.locator("figure rect").all() if (box := each.bounding_box())]
    assert len(heights) == 3
    assert heights[2] > 100
    assert [height / heights[2] for height in heights] == pytest.approx([1 / 11, 3 / 11, 1], abs=0.02)
    assert page.get_by_role("img", name="Timeline of captures").count() == 1
    rows = page.locator("#timeline ~ .scroll tbody tr").all_inner_texts()
    assert [row.split() for row in rows] == [["2001", "1"], ["2003", "3"], ["2011", "11"]]
    assert page.locator("figure .ends").inner_text().split() == ["2001", "2006", "2011"]
    assert page.locator("figure .ends").bounding_box() is not None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_sufficient_contrast(browser: Browser, folder: Path, tmp_path: Path, scheme: str) -> None:
    """Text, links and bars have enough contrast in both colour schemes; pale text is detected."""
    with browser.new_context(
        viewport={"width": 360, "height": 740},
        color_scheme=scheme,  # type: ignore[arg-type]  # one of two words
    ) as context:
        page = context.new_page()
        PageVisit(page, tmp_path / "page.html", report_html(folder))
        background = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert (luminance(background) < 0.1) is (scheme == "dark")
        for selector in ("h1", ".lead", ".quiet", ".problem p", "small", "small a", "thead th", "td", ".ends"):
            assert contrast(page, selector, background) >= 4.5, selector
        page.add_style_tag(content=".lead { color: #999; } @media (prefers-color-scheme: dark) {.lead {color: #444;}}")
        assert contrast(page, ".lead", background) < 4.5


def test_tables_are_accessible(page: Page, folder: Path, tmp_path: Path) -> None:
    """Tables have captions and scopes, and can be scrolled by keyboard."""
    PageVisit(page, tmp_path / "page.html", report_html(folder))
    assert page.locator("table:not(:has(caption)), th:not([scope])").count() == 0
    assert page.locator("h1").count() == 1
    assert page.locator(".scroll:not([tabindex='0'][role=region][aria-label])").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_axe_finds_no_faults(browser: Browser, folder: Path, tmp_path: Path, language: str, scheme: str) -> None:
    """axe-core finds no fault in any language, and detects a missing lang attribute."""
    file, text = tmp_path / "page.html", report_html(folder, language)
    assert axe_faults_of_file(browser, file, text, scheme) == []
    assert text.count(f'<html lang="{language}">') == 1
    (fault,) = axe_faults_of_file(browser, file, text.replace(f'<html lang="{language}">', "<html>"), scheme)
    assert fault.startswith("html-has-lang")


def test_long_lists_are_truncated_with_a_hint(page: Page, tmp_path: Path) -> None:
    """The hint has the number of further entries and the command that lists them."""
    made = [SampleResource(f"m{number}", reason="not-held") for number in range(MAX_LISTED_RESOURCES + 7)]
    made += [
        SampleResource(f"l{number}", others=(("a", "20110101000000"),), standing=ResourceStatus.LISTED)
        for number in range(MAX_LISTED_RESOURCES + 1)
    ]
    visit = PageVisit(page, tmp_path / "page.html", report_html(make_state(tmp_path / "r", made)))
    text = page.inner_text("main")
    assert page.locator("li").count() == 2 * MAX_LISTED_RESOURCES + 1
    assert "7 more are not shown. To list all: unlost report … --list missing" in text
    assert "1 more is not shown. To list all: unlost report … --list listed" in text
    assert not visit.overflows()


@pytest.mark.parametrize("made", [[], [SampleResource("", reason="not-held")], [SampleResource("", "20110101000000")]])
def test_small_recoveries_have_no_empty_sections(page: Page, tmp_path: Path, made: list[SampleResource]) -> None:
    """Sections without content are left out."""
    visit = PageVisit(page, tmp_path / "page.html", report_html(make_state(tmp_path / "r", made)))
    assert (visit.faults, visit.overflows()) == ([], False)
    assert page.locator("figure").count() == (1 if made and made[0].date else 0)
    assert page.locator("#rejected, #failed, #not-followed").count() == 0


def test_report_is_deterministic(folder: Path) -> None:
    """The same state yields the same page."""
    assert report_html(folder) == report_html(folder)
