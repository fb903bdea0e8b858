"""Tests of the page of the demonstration in a browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from playwright.sync_api import Browser, BrowserContext, FrameLocator, Page, expect

from tests.report.axe import axe_faults
from unlost.demo import DemoServer
from unlost.web import listen

pytestmark = pytest.mark.browser

Scheme: TypeAlias = Literal["light", "dark"]

_BROKEN = "all => all.filter(each => !each.complete || !each.naturalWidth).map(each => each.getAttribute('src'))"


@pytest.fixture(scope="module")
def page_url(page_folder: Path) -> Iterator[str]:
    """Serve the page."""
    with listen("127.0.0.1", 0) as listening, DemoServer(listening, page_folder) as server:
        yield server.url


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Open a browser context with the width of a phone."""
    with browser.new_context(viewport={"width": 360, "height": 740}) as opened:
        yield opened


class PageVisit:
    """A visit of the page, with its requests and errors."""

    def __init__(self, context: BrowserContext, page_url: str) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(page_url, wait_until="load")

    def choose(self, title: str) -> None:
        """Choose a page, and wait until both of its frames are loaded."""
        with self.page.expect_event("framenavigated", lambda frame: frame.name == "pair"):
            self.page.get_by_role("link", name=title, exact=True).click()
        expect(self.page.frame_locator("iframe.pair").locator("h1")).to_contain_text(title)

    def side(self, name: str) -> FrameLocator:
        """Return the frame of one of the two sites."""
        return self.page.frame_locator("iframe.pair").frame_locator(f"iframe[title$=' {name}']")

    def broken(self, name: str) -> list[str]:
        """Return the broken images of a side."""
        expect(self.side(name).locator("h1")).to_be_attached()
        # The load event of a frame without scripts comes after its images have loaded or failed.
        handle = self.page.frame_locator("iframe.pair").locator(f"iframe[title$=' {name}']").element_handle()
        frame = handle.content_frame()
        assert frame is not None
        frame.wait_for_load_state("load")
        found: list[str] = frame.eval_on_selector_all("img", _BROKEN)
        return found


def test_page_shows_both_sites_without_external_requests(context: BrowserContext, page_url: str) -> None:
    """Both home pages have their images and styles, without errors and horizontal scrolling."""
    visit = PageVisit(context, page_url)
    for side, words in (("original", "Thank you to all"), ("recovered", "We are looking for forty people")):
        expect(visit.side(side).locator("main")).to_contain_text(words)
        assert visit.broken(side) == []
        colour = visit.side(side).locator("header").evaluate("each => getComputedStyle(each).backgroundColor")
        assert colour == "rgb(27, 42, 65)", "its style sheet is there"
    assert [url for url in visit.requests if not url.startswith((page_url, "data:"))] == []
    assert visit.errors == []
    for page in (page_url, f"{page_url}pairs/0.html"):
        visit.page.goto(page)
        assert visit.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_page_opens_from_disk(context: BrowserContext, page_folder: Path) -> None:
    """Without a server both sites have their images, without errors."""
    visit = PageVisit(context, (page_folder / "index.html").as_uri())
    assert (visit.broken("original"), visit.broken("recovered"), visit.errors) == ([], [], [])


def test_missing_resources_are_marked(context: BrowserContext, page_url: str) -> None:
    """A missing image is broken, and a missing page has a placeholder; the original has both."""
    visit = PageVisit(context, page_url)
    visit.choose("Saltings")
    assert (visit.broken("original"), visit.broken("recovered")) == ([], ["../images/saltings.svg"])
    visit.choose("Ida Marrow")
    expect(visit.side("original").locator("h1")).to_have_text("Ida Marrow")
    expect(visit.side("recovered").locator("h1")).to_have_text("Not recovered")


def test_links_in_frames_stay_inside_the_site(context: BrowserContext, page_url: str) -> None:
    """Links within the recovered site work; external links are blocked before any request."""
    visit = PageVisit(context, page_url)
    visit.side("recovered").get_by_role("link", name="Links").click()
    expect(visit.side("recovered").locator("h1")).to_have_text("Links")
    with visit.page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        visit.side("recovered").get_by_role("link", name="The weather in the bay").click()
    expect(visit.page.get_by_role("heading", level=1)).to_have_text("A lost website, recovered")
    assert [url for url in visit.requests if not url.startswith((page_url, "data:"))] == []


def test_page_shows_all_results(context: BrowserContext, page_url: str) -> None:
    """It has the diagram, timeline, archives, requests, missing and rejected resources, and a command."""
    visit = PageVisit(context, page_url)
    page = visit.page
    assert page.locator("h2").all_inner_texts() == [
        "Before and after",
        "Comparison with the original",
        "Capture dates",
        "Archives",
        "Requests saved",
        "Missing resources",
        "Rejected captures",
        "Your own site",
    ]
    expect(page.locator(".lead")).to_contain_text("29 of 33 resources recovered")
    assert page.locator("figure.diagram > svg path").count() == 3
    assert page.locator("figure.times circle.held").count() == 11
    assert page.locator("#missing + ol li").count() == 4
    expect(page.locator("#rejected ~ ol").first).to_contain_text("for sale")
    expect(page.locator("pre")).to_contain_text("unlost recover http://your.example/")
    headings = {"Full comparison": "Comparison with the original", "Recovery report": "Recovery report of"}
    for link, heading in headings.items():
        page.goto(page_url)
        page.get_by_role("link", name=link).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_reports_no_violations(browser: Browser, page_url: str, page_folder: Path, scheme: Scheme) -> None:
    """Neither the page nor its linked pages have violations, and a planted one is found."""
    with browser.new_context(color_scheme=scheme, bypass_csp=True) as context:
        page = context.new_page()
        found = {}
        for path in ("", "pairs/0.html", "pairs/10.html", "gone.html"):
            page.goto(page_url + path)
            found[path] = axe_faults(page)
        for name in ("index.html", "lights/index.html", "guestbook.cgi-page=1.html"):
            page.goto((page_folder / "original" / name).as_uri())
            found[name] = axe_faults(page)
        assert {path: wrong for path, wrong in found.items() if wrong} == {}
        page.goto(page_url)
        page.evaluate("document.querySelector('iframe').removeAttribute('title')")
        assert any(each.startswith("frame-title") for each in axe_faults(page))
