"""A complete order in a real browser, from the form to the unpacked site."""

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.jobs.service_process import ORDER
from tests.jobs.worker_processes import ArchivePause
from tests.recovery.sample_site import FILES
from tests.webui.environment import PagesEnvironment, order

pytestmark = pytest.mark.browser


@pytest.fixture(params=["with scripts", "without scripts", "on a phone"])
def visitor(request: pytest.FixtureRequest, browser: Browser) -> Iterator[BrowserContext]:
    """Return a browser; page errors fail the test."""
    phone = {"width": 360, "height": 740}
    context = browser.new_context(
        java_script_enabled=request.param != "without scripts",
        accept_downloads=True,
        viewport=phone if request.param == "on a phone" else {"width": 1200, "height": 900},  # type: ignore[arg-type]
    )
    faults: list[str] = []
    context.on("weberror", lambda error: faults.append(str(error.error)))
    context.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    yield context
    context.close()
    assert faults == []


def check_width(page: Page) -> None:
    """Check that the page is not wider than the window."""
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, page.url


def test_order_from_form_to_download(
    visitor: BrowserContext, environment: PagesEnvironment, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The order is confirmed, watched, downloaded, unpacked and opened."""
    base, page = environment.service.base, visitor.new_page()
    has_scripts = request.node.callspec.params["visitor"] != "without scripts"
    mail = f"{request.node.callspec.params['visitor'].replace(' ', '-')}@example.org"
    order(page, base, mail)
    expect(page.get_by_role("heading", level=1)).to_contain_text("check your inbox")
    expect(page.get_by_text(mail)).to_be_visible()
    page.goto(environment.link(mail))
    hold = ArchivePause(environment.lost, 8)
    try:
        page.get_by_role("button", name="Confirm and start").click()
        hold.wait()
        if not has_scripts:
            assert page.locator("noscript meta[http-equiv=refresh], meta[http-equiv=refresh]").count() == 1
            page.reload()
        expect(page.get_by_role("heading", name="Recovering from web archives")).to_be_visible(timeout=20_000)
        check_width(page) if has_scripts else None
    finally:
        hold.release()
    if not has_scripts:
        environment.wait_for_mail(mail, "is finished")
        page.reload()
    expect(page.get_by_role("heading", name="Your website is ready")).to_be_visible(timeout=20_000)
    expect(page.get_by_text(f"Recovered: {FILES} files. Download")).to_be_visible()
    if has_scripts:
        check_width(page)
    assert environment.link(mail, "is finished") == page.url
    with page.expect_download() as started:
        page.get_by_role("link", name="Download as zip").click()
    file = tmp_path / started.value.suggested_filename
    assert file.name == "lost.example.zip"
    started.value.save_as(file)
    page.locator("summary").click()
    assert hashlib.sha256(file.read_bytes()).hexdigest() in page.inner_text("main")
    with zipfile.ZipFile(file) as packed:
        packed.extractall(tmp_path / "site")
    (index,) = [each for each in (tmp_path / "site").rglob("index.html") if "village" in each.read_text()]
    opened = visitor.new_page()
    opened.goto(index.as_uri())
    assert opened.title() == "The village"
    opened.locator("a").first.click()
    expect(opened).to_have_title("Page 0")
    assert opened.locator("img").count() == 1
    opened.close()
    page.reload()
    expect(page.get_by_text("Downloaded on")).to_be_visible()


def test_status_page_without_event_stream(browser: Browser, environment: PagesEnvironment) -> None:
    """If the event stream is refused, the page polls."""
    job = environment.service.request("POST", "/api/jobs", {**ORDER, "mail": "crowd@example.org"}).json
    page = browser.new_page()
    page.clock.install()
    page.route("**/events", lambda route: route.fulfill(status=429))
    with page.expect_response("**/events"):
        page.goto(f"{environment.service.base}/jobs/{job['key']}")
    environment.service.request("POST", f"/api/jobs/{job['key']}/cancel")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    page.clock.run_for(11_000)
    expect(page.get_by_role("heading", name="Cancelled")).to_be_visible()
    page.close()
