"""The page in a real browser: both sites are seen, nothing else is asked for, everybody can use it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from playwright.sync_api import Browser, BrowserContext, FrameLocator, Page, expect

from tests.report.axe import faults
from unlost.demo import DemoServer
from unlost.web import listen

pytestmark = pytest.mark.browser

Scheme: TypeAlias = Literal["light", "dark"]

_BROKEN = "all => all.filter(each => !each.complete || !each.naturalWidth).map(each => each.getAttribute('src'))"


@pytest.fixture(scope="module")
def address(page_folder: Path) -> Iterator[str]:
    """Serve the page."""
    with listen("127.0.0.1", 0) as listening, DemoServer(listening, page_folder) as showing:
        yield showing.url


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Have a window as wide as a phone."""
    with browser.new_context(viewport={"width": 360, "height": 740}) as opened:
        yield opened


class Visit:
    """A visit of the page, and everything that was asked for and complained about meanwhile."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(address, wait_until="load")

    def choose(self, title: str) -> None:
        """Choose a page, and wait until both of its frames are there."""
        with self.page.expect_event("framenavigated", lambda frame: frame.name == "pair"):
            self.page.get_by_role("link", name=title, exact=True).click()
        expect(self.page.frame_locator("iframe.pair").locator("h1")).to_contain_text(title)

    def side(self, name: str) -> FrameLocator:
        """Return one of the two sites, as it is shown."""
        return self.page.frame_locator("iframe.pair").frame_locator(f"iframe[title$=' {name}']")

    def broken(self, name: str) -> list[str]:
        """Return the images of a side that are not seen."""
        expect(self.side(name).locator("h1")).to_be_attached()
        # A frame without scripts loads as others do: its event has come when its images have, or have not.
        handle = self.page.frame_locator("iframe.pair").locator(f"iframe[title$=' {name}']").element_handle()
        frame = handle.content_frame()
        assert frame is not None
        frame.wait_for_load_state("load")
        found: list[str] = frame.eval_on_selector_all("img", _BROKEN)
        return found


def test_page_shows_both_sites_without_external_requests(context: BrowserContext, address: str) -> None:
    """The two home pages have all their images and styles; nobody complains; a phone is wide enough."""
    visit = Visit(context, address)
    for side, words in (("original", "Thank you to all"), ("recovered", "We are looking for forty people")):
        expect(visit.side(side).locator("main")).to_contain_text(words)
        assert visit.broken(side) == []
        colour = visit.side(side).locator("header").evaluate("each => getComputedStyle(each).backgroundColor")
        assert colour == "rgb(27, 42, 65)", "its style sheet is there"
    assert [url for url in visit.asked if not url.startswith((address, "data:"))] == []
    assert visit.complaints == []
    for page in (address, f"{address}pairs/0.html"):
        visit.page.goto(page)
        assert visit.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_kept_folder_opens_from_disk(context: BrowserContext, page_folder: Path) -> None:
    """Without anybody who serves it, both sites are seen with their images, and nobody complains."""
    visit = Visit(context, (page_folder / "index.html").as_uri())
    assert (visit.broken("original"), visit.broken("recovered"), visit.complaints) == ([], [], [])


def test_missing_pages_are_shown_as_missing(context: BrowserContext, address: str) -> None:
    """One image on a page, and a whole page: each is there in the original; the look sees what is broken."""
    visit = Visit(context, address)
    visit.choose("Saltings")
    assert (visit.broken("original"), visit.broken("recovered")) == ([], ["../images/saltings.svg"])
    visit.choose("Ida Marrow")
    expect(visit.side("original").locator("h1")).to_have_text("Ida Marrow")
    expect(visit.side("recovered").locator("h1")).to_have_text("Not recovered")


def test_links_in_frames_stay_inside_the_site(context: BrowserContext, address: str) -> None:
    """A page of the recovered site leads to another one; what leads away is stopped before anybody is asked."""
    visit = Visit(context, address)
    visit.side("recovered").get_by_role("link", name="Links").click()
    expect(visit.side("recovered").locator("h1")).to_have_text("Links")
    with visit.page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        visit.side("recovered").get_by_role("link", name="The weather in the bay").click()
    expect(visit.page.get_by_role("heading", level=1)).to_have_text("A lost site comes back")
    assert [url for url in visit.asked if not url.startswith((address, "data:"))] == []


def test_page_shows_all_results(context: BrowserContext, address: str) -> None:
    """The diagram, the time line, archives, requests, what is missing and rejected, and the command for one's own."""
    visit = Visit(context, address)
    page = visit.page
    assert page.locator("h2").all_inner_texts() == [
        "Before and after",
        "How much came back",
        "From which time",
        "What each archive gave",
        "Requests that were not sent",
        "What is missing",
        "What was rejected",
        "Your own site",
    ]
    expect(page.locator(".lead")).to_contain_text("29 of 33 resources came back")
    assert page.locator("figure.diagram > svg path").count() == 3
    assert page.locator("figure.times circle.held").count() == 11
    assert page.locator("#missing + ol li").count() == 4
    expect(page.locator("#rejected ~ ol").first).to_contain_text("for sale")
    expect(page.locator("pre")).to_contain_text("unlost recover http://your.example/")
    for link, heading in (("The whole comparison", "How much came back"), ("The report of", "What came back of")):
        page.goto(address)
        page.get_by_role("link", name=link).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_reports_no_violations(browser: Browser, address: str, page_folder: Path, scheme: Scheme) -> None:
    """Neither in the page, nor in what it leads to, nor in the lost site; and it does find what is planted."""
    with browser.new_context(color_scheme=scheme, bypass_csp=True) as context:
        page = context.new_page()
        found = {}
        for path in ("", "pairs/0.html", "pairs/10.html", "gone.html"):
            page.goto(address + path)
            found[path] = faults(page)
        for name in ("index.html", "lights/index.html", "guestbook.cgi-page=1.html"):
            page.goto((page_folder / "original" / name).as_uri())
            found[name] = faults(page)
        assert {path: wrong for path, wrong in found.items() if wrong} == {}
        page.goto(address)
        page.evaluate("document.querySelector('iframe').removeAttribute('title')")
        assert any(each.startswith("frame-title") for each in faults(page))
