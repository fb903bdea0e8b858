"""Accessibility of the pages: axe-core in both languages and colour schemes, and keyboard navigation."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.jobs.service_process import ORDER
from tests.report.axe import axe_faults
from tests.webui.environment import ADMIN, ADMIN_PASSWORD, PagesEnvironment

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def jobs(environment: PagesEnvironment) -> dict[str, str]:
    """Create a complete and an unconfirmed job; return their keys."""
    service = environment.service
    done = service.request("POST", "/api/jobs", ORDER, is_admin=True).json["key"]
    assert service.wait_until_ended(done)["state"] == "complete"
    waits = service.request("POST", "/api/jobs", {**ORDER, "mail": "axe@example.org"}).json["key"]
    return {"complete": done, "pending": waits}


@pytest.fixture(params=[("en", "light"), ("de", "dark")], ids=["English, light", "German, dark"])
def visitor(
    request: pytest.FixtureRequest, browser: Browser, environment: PagesEnvironment
) -> Iterator[BrowserContext]:
    """Log in an administrator with a language. The page policy is disabled, since it would block axe."""
    language, scheme = request.param
    with browser.new_context(locale=language, color_scheme=scheme, bypass_csp=True) as context:
        page = context.new_page()
        page.goto(f"{environment.service.base}/admin")
        page.locator("#name").fill(ADMIN)
        page.locator("#password").fill(ADMIN_PASSWORD)
        page.locator("form.login button").click()
        page.wait_for_selector(".tabs")
        page.close()
        yield context


def test_pages_have_no_accessibility_violations(
    visitor: BrowserContext, environment: PagesEnvironment, jobs: dict[str, str]
) -> None:
    """In all pages."""
    base, done = environment.service.base, jobs["complete"]
    mail = environment.link("axe@example.org").removeprefix(base)
    stop = re.findall(r"/mail/stop/\S+", environment.wait_for_mail("axe@example.org", "Confirm"))
    paths = [
        *stop,
        "/recover",
        "/privacy",
        "/",
        "/about",
        f"/jobs/{done}",
        f"/jobs/{jobs['pending']}",
        f"/jobs/{done}/delete",
    ]
    paths += [f"/jobs/{done}/preview", f"/jobs/{done}/report", f"/recover/sent/{jobs['pending']}", mail, "/jobs/1-x"]
    admin = ("", "?state=complete", "?state=pending", "/workers", "/archives", "/mail", "/history", "/statistics")
    paths += [f"/admin{each}" for each in (*admin, "/limits", "/domains", "/clock", f"/jobs/{done.partition('-')[0]}")]
    page = visitor.new_page()
    found = {}
    for path in paths:
        page.goto(base + path)
        if path == "/recover":
            page.locator("details.card > summary").click()
            page.locator("#mail").fill("nobody")
            page.locator("button.main").click()
            expect(page.locator("#faults")).to_be_visible()
        if wrong := axe_faults(page):
            found[path] = wrong
    page.goto(f"{base}/admin")
    page.locator("form[action='/admin/logout'] button").click()
    page.locator("form.login").wait_for()
    if wrong := axe_faults(page):
        found["/admin/login"] = wrong
    assert found == {}


def test_axe_detects_violations(visitor: BrowserContext, environment: PagesEnvironment) -> None:
    """It reports a field without a label and text with low contrast."""
    page = visitor.new_page()
    page.goto(f"{environment.service.base}/recover")
    page.evaluate("document.querySelector('label[for=mail]').remove()")
    page.evaluate("document.querySelector('h1').style = 'color: #999; background: #888'")
    wrong = {each.partition(":")[0] for each in axe_faults(page)}
    assert {"label", "color-contrast"} <= wrong


def test_order_by_keyboard(browser: Browser, environment: PagesEnvironment) -> None:
    """With Tab, typing and Enter; errors are shown while typing and get the focus."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{environment.service.base}/recover")
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_have_text("Skip to main content")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.type("not an address at all:")
        for _ in range(3):
            page.keyboard.press("Tab")
        expect(page.locator("#url-fault")).to_contain_text("This is not a valid URL")
        page.keyboard.type("nobody")
        page.keyboard.press("Tab")
        expect(page.locator("#mail-fault")).to_contain_text("This is not a valid email address")
        expect(page.locator("#mail")).to_have_attribute("aria-invalid", "true")
        page.keyboard.press("Shift+Tab")
        page.keyboard.type("me@example.org")
        expect(page.locator("#mail-fault")).to_be_empty()
        page.keyboard.press("Enter")
        expect(page.locator("#faults")).to_be_focused()
        page.locator("#url").fill("lost.example")
        page.locator("#url").press("Tab")
        expect(page.locator("#holdings")).to_contain_text("Archives have one capture")
        page.locator("#mail").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("check your inbox")
