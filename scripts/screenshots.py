"""Takes a screenshot of each HTML page for docs/; all data are invented. Run by `make screenshots`."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, FloatRect, Page, ViewportSize

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.external import chromium
from tests.jobs.worker_processes import ArchivePause
from tests.webui.environment import ADMIN, ADMIN_PASSWORD, PagesEnvironment, log_in, order, run_environment

from unlost.demo import DemoServer, run_story, write_pages
from unlost.web import listen

_SIZE: ViewportSize = {"width": 1000, "height": 760}
_SCALE = 0.75  # scale of screenshots: still readable at half the size
_LONG_PAGE_SCALE = 0.6  # scale of long pages
_SCREEN: dict[str, Any] = {"viewport": _SIZE, "device_scale_factor": _SCALE}
_PHONE: ViewportSize = {"width": 390, "height": 780}
_ADMIN = ("workers", "archives", "mail", "history", "statistics", "limits", "domains")


def _take_screenshot(page: Page, folder: Path, name: str) -> None:
    page.wait_for_load_state("networkidle") if "status" not in name else None
    page.screenshot(path=folder / f"{name}.png", full_page=True, animations="disabled")
    sys.stderr.write(f"{folder / name}.png\n")


def _order_pages(browser: Browser, other: Page, environment: PagesEnvironment, folder: Path) -> str:
    """Take screenshots from the form to the finished job; return the URL of the job."""
    base = environment.service.base
    page = browser.new_context(**_SCREEN).new_page()
    page.goto(f"{base}/recover")
    page.get_by_label("URL of the lost website").fill("lost.example")
    page.get_by_label("Your email address").fill("you@example.org")
    page.get_by_label("Your name").click()
    page.wait_for_selector("#holdings table")
    _take_screenshot(page, folder, "submit")
    page.locator("details.card > summary").click()
    _take_screenshot(page, folder, "submit-more")
    page.get_by_label("Your email address").fill("nobody")
    page.get_by_role("button", name="Start recovery").click()
    _take_screenshot(page, folder, "submit-wrong")
    order(page, base, "you@example.org")
    page.wait_for_url("**/sent/**")
    _take_screenshot(page, folder, "sent")
    page.get_by_role("link", name="View the status").click()
    _take_screenshot(page, folder, "status-pending")
    page.goto(environment.link("you@example.org"))
    _take_screenshot(page, folder, "confirm")
    pause = ArchivePause(environment.lost, 14)
    page.get_by_role("button", name="Confirm and start").click()
    pause.wait()
    page.get_by_role("heading", name="Recovering from web archives").wait_for()
    page.locator("progress:not([value='0'])").wait_for()
    _take_screenshot(page, folder, "status-processing")
    for name in ("first", "second"):
        waits = {"url": f"http://{name}.lost.example/", "mail": f"{name}@example.org"}
        environment.service.request("POST", "/api/jobs", waits, is_admin=True)
    log_in(other, base, ADMIN, ADMIN_PASSWORD)
    other.wait_for_selector("table.jobs")
    _take_screenshot(other, folder, "admin-jobs")
    pause.release()
    page.get_by_role("heading", name="Your website is ready").wait_for()
    _take_screenshot(page, folder, "status-complete")
    return page.url


def _finished_job_pages(browser: Browser, environment: PagesEnvironment, job_url: str, folder: Path) -> None:
    """Take screenshots of the pages of a finished job, also in German and on a phone."""
    base = environment.service.base
    page = browser.new_context(**_SCREEN).new_page()
    page.goto(job_url)
    page.get_by_role("link", name="Preview").click()
    _take_screenshot(page, folder, "preview")
    page.goto(f"{job_url}/report")
    _take_screenshot(page, folder, "report")
    page.goto(f"{job_url}/delete")
    _take_screenshot(page, folder, "delete")
    page.goto(f"{base}/privacy")
    _take_screenshot(page, folder, "privacy")
    page.goto(f"{base}/jobs/1-x")
    _take_screenshot(page, folder, "problem")
    german = browser.new_context(**_SCREEN, locale="de-DE").new_page()
    german.goto(job_url)
    _take_screenshot(german, folder, "status-complete-de")
    phone = browser.new_context(viewport=_PHONE, device_scale_factor=_SCALE).new_page()
    phone.goto(f"{base}/recover")
    _take_screenshot(phone, folder, "submit-phone")
    phone.goto(job_url)
    _take_screenshot(phone, folder, "status-complete-phone")


def _admin_pages(other: Page, environment: PagesEnvironment, folder: Path) -> None:
    """Take screenshots of the administration pages."""
    base = environment.service.base
    for name in _ADMIN:
        other.goto(f"{base}/admin/{name}")
        _take_screenshot(other, folder, f"admin-{name}")
    other.goto(f"{base}/admin/jobs/1")
    _take_screenshot(other, folder, "admin-job")
    other.get_by_role("button", name="Log out").click()
    _take_screenshot(other, folder, "admin-login")


def _demo_page(browser: Browser, scratch: Path, folder: Path) -> None:
    """Take a screenshot of the page of `unlost demo`."""
    with run_story(scratch, None, lambda _: None) as story, listen("127.0.0.1", 0) as listening:
        write_pages(story)
        with DemoServer(listening, story.page) as showing:
            page = browser.new_context(viewport=_SIZE, device_scale_factor=_LONG_PAGE_SCALE).new_page()
            page.goto(showing.url, wait_until="networkidle")
            box = page.locator("#archives").bounding_box()
            tall = box["y"] if box else _SIZE["height"]  # what follows is tables
            clip: FloatRect = {"x": 0, "y": 0, "width": _SIZE["width"], "height": tall}
            page.screenshot(path=folder / "demo.png", full_page=True, clip=clip)
            sys.stderr.write(f"{folder / 'demo'}.png\n")


def main() -> None:
    """Write all screenshots into a folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as scratch,
        chromium.run_browser() as browser,
        run_environment(Path(scratch)) as environment,
    ):
        other = browser.new_context(**_SCREEN).new_page()
        job_url = _order_pages(browser, other, environment, folder)
        _finished_job_pages(browser, environment, job_url, folder)
        _admin_pages(other, environment, folder)
    with tempfile.TemporaryDirectory() as scratch, chromium.run_browser() as browser:
        _demo_page(browser, Path(scratch), folder)


if __name__ == "__main__":
    main()
