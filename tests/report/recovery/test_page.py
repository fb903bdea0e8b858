"""The page about a recovery, looked at in a real browser; every look is shown the fault that it is there for."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.report.axe import faults_of
from tests.report.looking import EVIL, HIDDEN, LONG, RIGHT_TO_LEFT, Visit, contrast, luminance
from tests.report.recovery.states import SITE, Made, html_of, make, note_list
from unlost.html import LinkKind
from unlost.recover.state import ListingStatus, RecoveryState, ResourceStatus
from unlost.report import LANGUAGES
from unlost.report.recovery import MAX_LISTED_RESOURCES
from unlost.report.recovery import writer as renderer

pytestmark = pytest.mark.browser

ARCHIVED = "https://archive.example/2011/http://lost.example/"
# Half a surrogate pair cannot be in an address that a state keeps; it can in what an index says.
NAMES = (EVIL, HIDDEN.replace("\udcff", ""), RIGHT_TO_LEFT, LONG)
NO_LINKS = (
    *("javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "data:,x"),
    *("file:///etc/passwd", "//archive.example/x", "vbscript:x", "http:", "http://[", 'https://"><script>', HIDDEN),
)


def hostile() -> list[Made]:
    """Return something of everything, with names that nobody should meet."""
    missing = [Made(name, reason="not-held") for name in NAMES]
    links = tuple(each.path for each in missing)
    home = Made("", "20110401000000", urim=ARCHIVED, mime=f"text/{EVIL}", links=links, archive=f"a{EVIL}")
    made = [home, *missing, Made("i.png", "20120101000000", mime="image/png", use=LinkKind.REQUISITE)]
    for number, place in enumerate(NO_LINKS):
        made.append(Made(f"from{number}", "20130101000000", urim=place, links=links[:1]))
        made.append(Made(f"no{number}", "20140101000000", urim=place, reason="rejected", verdict=(EVIL, EVIL)))
        made.append(Made(f"failed{number}", reason="failed", urim=place, others=(("b", "20150101000000"),)))
    made.append(Made("bad", "20140101000000", urim=f"{ARCHIVED}bad", reason="rejected", verdict=("parked", "for sale")))
    made.append(Made("f", reason="failed", urim=f"{ARCHIVED}f", others=(("b", "20150101000000"),), links=("f",)))
    made.append(Made(f"listed{EVIL}", others=(("b", "20150101000000"),), standing=ResourceStatus.LISTED))
    made.append(Made("later", standing=ResourceStatus.QUEUED))
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a recovery of a hostile site."""
    made = make(tmp_path_factory.mktemp("hostile") / "r", hostile(), url=f"{SITE}{EVIL}")
    note_list(made, "b", ListingStatus.TRUNCATED, EVIL)
    with RecoveryState(made) as state:
        state.store_skipped_links({}, {f"too deep {EVIL}": 3})
    return made


def test_it_stands_alone(page: Page, folder: Path, tmp_path: Path) -> None:
    """Nothing is asked for, nothing is complained about, it is not wider than a phone, and it has all its parts."""
    visit = Visit(page, tmp_path / "page.html", html_of(folder))
    assert (visit.faults, visit.asked_for(), visit.overflows()) == ([], [], False)
    headings = page.locator("h2").all_inner_texts()
    count = len(NO_LINKS)
    assert headings == [
        "How much came back",
        "From which time",
        f"Missing: {len(NAMES) + count + 1}",
        f"Listed, and not given: {count + 1}",
        f"Rejected copies: {count + 1}",
        "Not looked for",
    ]
    assert f"{2 + count} of {2 + len(NAMES) + 3 * count + 2} resources came back." in page.inner_text(".lead")
    assert "1 is still to come." in page.inner_text(".lead")
    planted = html_of(folder).replace("</main>", '<p style="width: 500px">wide</p><script>1</script></main>')
    visit = Visit(page, tmp_path / "planted.html", planted)
    assert visit.overflows()
    assert visit.faults != [], "its own policy lets no script run"


@pytest.mark.parametrize("language", LANGUAGES)
def test_hostile_names_are_shown_as_text(
    page: Page, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    """Markup is seen, not run; what hides is spelled out; without escaping, the look would have seen harm."""
    visit = Visit(page, tmp_path / "page.html", html_of(folder, language))
    assert (visit.faults, visit.asked_for(), visit.overflows()) == ([], [], False)
    text = page.inner_text("main")
    assert text.count(EVIL) >= 7, "address, type, archive, verdict, reason, message, what is listed"
    assert "\\u202egnp.exe\\x1b[31m" in text
    assert RIGHT_TO_LEFT in text
    assert LONG not in text
    assert not visit.is_harmed()
    made = renderer._jinja_environment()
    made.autoescape = False
    monkeypatch.setattr(renderer, "_jinja_environment", lambda: made)
    assert Visit(page, tmp_path / "raw.html", html_of(folder, language)).is_harmed()


def test_links_lead_to_archives_and_nowhere_else(page: Page, folder: Path, tmp_path: Path) -> None:
    """Only addresses of copies, only http and https; the lost site's own addresses are no links."""
    Visit(page, tmp_path / "page.html", html_of(folder))
    places = page.eval_on_selector_all("a", "all => all.map(each => each.getAttribute('href'))")
    assert set(places) == {"summary.tsv", "report.json", ARCHIVED, f"{ARCHIVED}bad", f"{ARCHIVED}f"}
    assert page.locator("a:not([rel='noreferrer noopener'])").count() == 2, "all but those of the files beside"
    assert page.locator("[href^='javascript' i], [src], [onclick]").count() == 0


def test_what_links_to_the_missing_is_named(page: Page, tmp_path: Path) -> None:
    """What most link to comes first; some of those who do are named, with their copies, and how many more do."""
    made = [Made(f"p{number}", "20110101000000", urim=f"{ARCHIVED}{number}", links=("b",)) for number in range(8)]
    made += [Made("", "20110101000000", links=("a", "b")), Made("a", reason="not-held"), Made("b", reason="excluded")]
    Visit(page, tmp_path / "page.html", html_of(make(tmp_path / "r", made)))
    first, second = page.locator("#missing ~ ol").first.locator("li").all_inner_texts()
    assert first.split("\n")[0] == f"{SITE}b"
    assert "an archive has it, and does not show it" in first
    assert f"linked from {SITE}p0, {SITE}p1, {SITE}p2, {SITE}p3, {SITE}p4 and 4 more" in first
    assert second.split("\n") == [f"{SITE}a", "no archive has it", f"linked from {SITE}"]
    links = page.locator("#missing ~ ol").first.locator("li").first.locator("a")
    assert [link.get_attribute("href") for link in links.all()] == [f"{ARCHIVED}{number}" for number in range(5)]


def test_the_time_line_is_seen(page: Page, tmp_path: Path) -> None:
    """The browser draws each bar by its number; the same stands in a table beside it, with a name for both."""
    made = [
        Made(f"{year}-{number}", f"{year}0101000000") for year in (2001, 2003, 2011) for number in range(year - 2000)
    ]
    Visit(page, tmp_path / "page.html", html_of(make(tmp_path / "r", made)))
    heights = [box["height"] for each in page.locator("figure rect").all() if (box := each.bounding_box())]
    assert len(heights) == 3
    assert heights[2] > 100
    assert [height / heights[2] for height in heights] == pytest.approx([1 / 11, 3 / 11, 1], abs=0.02)
    assert page.get_by_role("img", name="Time line of copies").count() == 1
    rows = page.locator("#timeline ~ .scroll tbody tr").all_inner_texts()
    assert [row.split() for row in rows] == [["2001", "1"], ["2003", "3"], ["2011", "11"]]
    assert page.locator("figure .ends").inner_text().split() == ["2001", "2006", "2011"]
    assert page.locator("figure .ends").bounding_box() is not None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read(browser: Browser, folder: Path, tmp_path: Path, scheme: str) -> None:
    """Text, links and bars have contrast in both colour schemes; a pale text would be noticed."""
    with browser.new_context(
        viewport={"width": 360, "height": 740},
        color_scheme=scheme,  # type: ignore[arg-type]  # one of two words
    ) as context:
        page = context.new_page()
        Visit(page, tmp_path / "page.html", html_of(folder))
        background = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert (luminance(background) < 0.1) is (scheme == "dark")
        for selector in ("h1", ".lead", ".quiet", ".problem p", "small", "small a", "thead th", "td", ".ends"):
            assert contrast(page, selector, background) >= 4.5, selector
        page.add_style_tag(content=".lead { color: #999; } @media (prefers-color-scheme: dark) {.lead {color: #444;}}")
        assert contrast(page, ".lead", background) < 4.5


def test_everything_has_a_name(page: Page, folder: Path, tmp_path: Path) -> None:
    """Whoever listens to the page is told what tables are about; whoever has no mouse can scroll them."""
    Visit(page, tmp_path / "page.html", html_of(folder))
    assert page.locator("table:not(:has(caption)), th:not([scope])").count() == 0
    assert page.locator("h1").count() == 1
    assert page.locator(".scroll:not([tabindex='0'][role=region][aria-label])").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_everybody_can_use_it(browser: Browser, folder: Path, tmp_path: Path, language: str, scheme: str) -> None:
    """axe-core objects to nothing in either language, and does object to a page that does not say which it is in."""
    file, text = tmp_path / "page.html", html_of(folder, language)
    assert faults_of(browser, file, text, scheme) == []
    assert text.count(f'<html lang="{language}">') == 1
    (fault,) = faults_of(browser, file, text.replace(f'<html lang="{language}">', "<html>"), scheme)
    assert fault.startswith("html-has-lang")


def test_long_lists_are_cut_and_say_so(page: Page, tmp_path: Path) -> None:
    """So many of each, how many more there are, and where all of them can be had."""
    made = [Made(f"m{number}", reason="not-held") for number in range(MAX_LISTED_RESOURCES + 7)]
    made += [
        Made(f"l{number}", others=(("a", "20110101000000"),), standing=ResourceStatus.LISTED)
        for number in range(MAX_LISTED_RESOURCES + 1)
    ]
    visit = Visit(page, tmp_path / "page.html", html_of(make(tmp_path / "r", made)))
    text = page.inner_text("main")
    assert page.locator("li").count() == 2 * MAX_LISTED_RESOURCES + 1
    assert "7 more are not shown here: unlost report … --list missing names them all." in text
    assert "1 more is not shown here: unlost report … --list listed names them all." in text
    assert not visit.overflows()


@pytest.mark.parametrize("made", [[], [Made("", reason="not-held")], [Made("", "20110101000000")]])
def test_little_is_no_problem(page: Page, tmp_path: Path, made: list[Made]) -> None:
    """Nothing, one that is missing, one that came back: what there is not is left out."""
    visit = Visit(page, tmp_path / "page.html", html_of(make(tmp_path / "r", made)))
    assert (visit.faults, visit.overflows()) == ([], False)
    assert page.locator("figure").count() == (1 if made and made[0].date else 0)
    assert page.locator("#rejected, #failed, #not-followed").count() == 0


def test_it_is_always_the_same(folder: Path) -> None:
    """No clock, no host: the same state is the same file."""
    assert html_of(folder) == html_of(folder)
