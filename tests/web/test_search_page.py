"""The search page in a real browser: with and without scripts, small and large, with malicious names."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.report.browser_page import contrast_ratio
from tests.web.client import Client
from tests.web.fixed_results import EVIL_NAME, PAGE, mementos_of
from unlost.webui import SearchPage as Renderer

pytestmark = pytest.mark.browser


class Visit:
    """A browser page and its errors."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)


@pytest.fixture(params=[True, False], ids=["with scripts", "without scripts"])
def visit(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Visit]:
    """Open a page with and without scripts."""
    context = browser.new_context(java_script_enabled=request.param)
    visit = Visit(context.new_page())
    yield visit
    context.close()
    assert visit.faults == []


def test_search_for_a_page(service: Client, visit: Visit) -> None:
    """From the search box to the timeline, the captures of a year, and one capture."""
    page = visit.page
    page.goto(service.base)
    page.get_by_label("URL of a page").fill("example.com/")
    page.get_by_role("button", name="Search").click()
    page.wait_for_selector("table")
    assert page.get_by_role("heading", name="4 captures of http://example.com/").is_visible()
    assert page.get_by_role("rowheader").all_inner_texts() == ["Archive A", "Archive B"]
    headers = page.get_by_role("columnheader").all_inner_texts()
    assert headers[:3] == ["Archive", "Total", "1996"]
    assert headers[-1] == "2020"
    assert len(headers) == 2 + 25
    assert page.locator("#copies li").count() == 4
    page.get_by_role("row", name=re.compile("Archive A")).get_by_role("link").nth(2).click()
    page.wait_for_selector("#copies >> text=1 capture in Archive A from 2014")
    assert page.locator("#copies li").count() == 1
    assert page.locator("#copies li a").get_attribute("href") == mementos_of(PAGE)[2].uri
    assert "year=2014" in page.url
    page.get_by_role("link", name="show all").click()
    page.wait_for_selector("#copies >> text=All captures")


def test_archives_can_be_selected(service: Client, visit: Visit) -> None:
    """By id; errors are shown on the page."""
    page = visit.page
    page.goto(f"{service.base}/?uri={PAGE}")
    page.locator("summary").click()
    page.get_by_label("Only these").fill("b.org")
    page.get_by_role("button", name="Search").click()
    page.wait_for_selector("text=2 captures of")
    assert page.get_by_role("rowheader").all_inner_texts() == ["Archive B"]
    assert page.get_by_label("Only these").input_value() == "b.org"


def test_failures_are_shown(service: Client, visit: Visit) -> None:
    """Archives that did not respond are named, also if nothing was found."""
    visit.page.goto(f"{service.base}/?uri=http://failed.example/")
    text = visit.page.inner_text("main")
    assert "0 captures of http://failed.example/" in text
    assert "The result may be incomplete: 1 of 2 archives did not respond." in text
    assert "Archive B: timeout" in text


def test_malformed_url_is_reported(service: Client, browser: Browser) -> None:
    """The expected input is shown on the page."""
    with browser.new_context() as context:
        page = context.new_page()
        response = page.goto(f"{service.base}/?uri=ftp://a.example/")
        assert response is not None
        assert response.status == 400
        assert page.get_by_role("alert").is_visible()


def is_harmed(page: Page) -> bool:
    """Return whether malicious content became part of the page."""
    return page.title() == "owned" or page.locator("main img, main script, main [onerror]").count() > 0


@pytest.mark.parametrize(
    "path",
    [
        "/?uri=http://evil.example/",
        "/?uri=http://evil.example/&year=2014&archive=evil.org",
        "/about",
        "/?uri=%3Cimg%20src%3Dx%20onerror%3D%22document.title%3D'owned'%22%3E",
        "/?uri=http://a.example/%22%3E%3Cscript%3Edocument.title%3D'owned'%3C/script%3E",
        "/?uri=x&archives=%22%3E%3Cimg%20src%3Dx%20onerror%3D%22document.title%3D'owned'%22%3E",
        "/?uri=http://evil.example/&archive=%3Cimg%20src%3Dx%3E&year=%3Cimg%20src%3Dx%3E",
    ],
)
def test_hostile_archive_names_are_escaped(service: Client, visit: Visit, path: str) -> None:
    """URLs and names of archives with scripts are shown as text."""
    visit.page.goto(service.base + path)
    assert not is_harmed(visit.page)
    assert visit.page.locator('a[href^="javascript:" i]').count() == 0
    visit.faults.clear()  # the console reports the response 400


def test_check_detects_unescaped_text(browser: Browser) -> None:
    """Without escaping, the check reports the page."""
    renderer = Renderer({"evil.org": EVIL_NAME})
    about = {"version": "1", "time": "", "archives": [_about(EVIL_NAME)]}
    with browser.new_context() as context:
        page = context.new_page()
        page.set_content(renderer.render_about(about))
        assert not is_harmed(page)
        renderer._templates.autoescape = False
        assert renderer._templates.cache is not None
        renderer._templates.cache.clear()
        page.set_content(renderer.render_about(about))
        assert is_harmed(page)


def _about(name: str) -> dict[str, object]:
    counts = {"asked": 0, "hits": 0}
    return {
        "id": "evil.org", "name": name, "asked": True, "why": "", "breaker": "active", "seconds_until_asked": None,
        "last_failure": None, "map": None, "routed": counts, "explored": counts,
    }  # fmt: skip


def test_inline_scripts_are_blocked(service: Client, browser: Browser) -> None:
    """The policy blocks scripts that are not own files."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{service.base}/?uri={PAGE}")
        page.evaluate(
            "() => { const s = document.createElement('script'); s.textContent = \"document.title = 'owned'\";"
            "document.body.append(s); }"
        )
        assert page.title() != "owned"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_viewport(service: Client, browser: Browser, scheme: str, tmp_path: Path) -> None:
    """The page has the width of the screen, only the timeline scrolls, and contrast is sufficient."""
    with browser.new_context(
        viewport={"width": 360, "height": 740},
        color_scheme=scheme,  # type: ignore[arg-type]  # one of two words
    ) as context:
        page = context.new_page()
        page.goto(f"{service.base}/?uri=http://many.example/")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
        assert page.locator("#copies li").count() == 500
        assert "2,500 more are not shown" in page.inner_text("main")
        dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert (dark == "rgb(21, 23, 27)") is (scheme == "dark")
        page.screenshot(path=tmp_path / "page.png")
        for shade in range(1, 6):
            assert _contrast(page, f".s{shade}") >= 4.5 or page.locator(f".s{shade}").count() == 0, shade
        assert _contrast(page, "h1") >= 4.5
        assert _contrast(page, "button") >= 4.5
        page.locator("h1").evaluate("(heading) => { heading.style = 'color: #999; background: #888'; }")
        assert _contrast(page, "h1") < 4.5


def _contrast(page: Page, selector: str) -> float:
    """Return the contrast of text to what is behind it, as WCAG counts it."""
    if not page.locator(selector).count():
        return 21.0
    colours = page.locator(selector).first.evaluate(
        """(element) => {
            let behind = element;
            const none = "rgba(0, 0, 0, 0)";
            while (behind && getComputedStyle(behind).backgroundColor === none) behind = behind.parentElement;
            const inner = element.querySelector("a") || element;
            return [getComputedStyle(inner).color, getComputedStyle(behind || document.body).backgroundColor];
        }"""
    )
    return contrast_ratio(*colours)


def test_keyboard_navigation(service: Client, browser: Browser) -> None:
    """Every control can be reached by keys; every field has a label."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(service.base)
        page.keyboard.press("Tab")
        assert page.evaluate("() => document.activeElement.textContent") == "Skip to main content"
        page.locator("#uri").focus()
        page.keyboard.type("http://one.example/")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=1 capture of http://one.example/")
        unlabelled = page.locator("input").evaluate_all(
            "(all) => all.filter((each) => !each.labels.length).map((each) => each.name)"
        )
        assert unlabelled == []
