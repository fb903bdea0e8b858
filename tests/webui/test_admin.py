"""The pages of administrators in a real browser, from login to takedown."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.jobs.worker_processes import ArchivePause
from tests.waiting import wait_until
from tests.webui.environment import ADMIN, ADMIN_PASSWORD, PagesEnvironment, log_in, order, run_environment

pytestmark = pytest.mark.browser


@dataclass
class AdminPage:
    """A browser page of an administrator."""

    page: Page
    environment: PagesEnvironment

    @property
    def base(self) -> str:
        """Base URL of the service."""
        return self.environment.service.base

    def order(self, url: str, mail: str = "me@example.org") -> int:
        """Submit a confirmed order."""
        made = self.environment.service.request("POST", "/api/jobs", {"url": url, "mail": mail}, is_admin=True)
        assert made.status == 201, made.body
        return int(made.json["number"])

    def state(self, number: int) -> str:
        """Return the state of a job."""
        return str(self.environment.service.request("GET", f"/api/jobs/{number}", is_admin=True).json["state"])

    def wait_until_ended(self, number: int) -> str:
        """Wait until a job has ended and return its state."""
        wait_until(lambda: self.state(number) in ("complete", "failed", "cancelled"))
        return self.state(number)

    def waiting(self) -> list[int]:
        """Return the numbers of queued jobs in the order of the page."""
        self.page.goto(f"{self.base}/admin?state=queued")
        return [int(text) for text in self.page.locator("table.jobs tbody th").all_inner_texts()]

    def press(self, number: int, button: str) -> None:
        """Press a button on the page of a job."""
        self.page.goto(f"{self.base}/admin/jobs/{number}")
        self.page.get_by_role("button", name=f"{button} {number}").click()
        self.page.wait_for_load_state()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PagesEnvironment]:
    """Run a separate environment, since these tests block and remove sites."""
    with run_environment(tmp_path_factory.mktemp("admin")) as found:
        yield found


@pytest.fixture(params=["with scripts", "without scripts"])
def admin_page(request: pytest.FixtureRequest, browser: Browser, alone: PagesEnvironment) -> Iterator[AdminPage]:
    """Return an administrator's page, with and without scripts."""
    has_scripts = request.param == "with scripts"
    with browser.new_context(java_script_enabled=has_scripts, accept_downloads=True) as context:
        yield AdminPage(context.new_page(), alone)


def test_actions_on_jobs(admin_page: AdminPage) -> None:
    """Jobs are watched, moved, paused, resumed, cancelled, retried, reminded of and deleted."""
    page, base = admin_page.page, admin_page.base
    log_in(page, base, ADMIN, "not the password")
    expect(page.get_by_role("alert")).to_have_text("Wrong name or password.")
    log_in(page, base, ADMIN, ADMIN_PASSWORD)
    expect(page.get_by_text(f"Logged in as {ADMIN}")).to_be_visible()
    hold = ArchivePause(admin_page.environment.lost, 4)
    try:
        busy = admin_page.order("lost.example")
        hold.wait()
        first, second, third = (admin_page.order(f"http://{name}.lost.example/") for name in ("one", "two", "three"))
        page.goto(f"{base}/admin")
        expect(page.get_by_role("row", name="http://lost.example").get_by_role("progressbar")).to_be_visible()
        page.goto(f"{base}/admin/workers")
        expect(page.get_by_role("link", name=f"{busy}: http://lost.example")).to_be_visible()
        assert admin_page.waiting() == [first, second, third]
        row = page.get_by_role("row", name="three.lost.example")
        row.get_by_label(f"Queue position of job {third}").fill("1")
        row.get_by_role("button", name="Move").click()
        page.wait_for_load_state()
        assert admin_page.waiting() == [third, first, second]
        admin_page.press(first, "Pause")
        assert admin_page.state(first) == "paused"
        assert admin_page.waiting() == [third, second]
        admin_page.press(second, "Cancel")
        assert admin_page.state(second) == "cancelled"
        admin_page.press(busy, "Pause")
        assert admin_page.state(busy) == "paused"
    finally:
        hold.release()
    for number in (first, busy):
        admin_page.press(number, "Resume")
        assert admin_page.wait_until_ended(number) == "complete"
    page.goto(f"{base}/admin/jobs/{busy}")
    expect(page.get_by_role("heading", name=f"Job {busy}: complete")).to_be_visible()
    states = page.locator("table.jobs").first.locator("tbody td:nth-child(2)").all_inner_texts()
    assert states == ["queued", "running", "paused", "queued", "running", "complete"]
    admin_page.press(busy, "Send reminder")
    admin_page.environment.wait_for_mail("me@example.org", "Reminder: download")
    admin_page.press(second, "Retry")
    assert admin_page.wait_until_ended(second) == "complete"
    page.goto(f"{base}/admin/jobs/{second}")
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Yes, delete everything").click()
    page.wait_for_load_state()
    assert admin_page.state(second) == "removed"


def test_information_pages(admin_page: AdminPage, tmp_path: Path) -> None:
    """Mail, archives, statistics and the download of the history; all require a login."""
    page, base = admin_page.page, admin_page.base
    log_in(page, base, ADMIN, ADMIN_PASSWORD)
    number = admin_page.order("lost.example")
    assert admin_page.wait_until_ended(number) == "complete"
    admin_page.environment.wait_for_mail("me@example.org", "is finished")
    page.goto(f"{base}/admin/mail")
    expect(page.get_by_text("recovery finished").first).to_be_visible()
    page.goto(f"{base}/admin/archives")
    expect(page.get_by_role("cell", name="circuit breaker closed").first).to_be_visible()
    page.goto(f"{base}/admin/statistics")
    expect(page.get_by_role("heading", name="By top-level domain")).to_be_visible()
    page.goto(f"{base}/admin/history")
    for form in ("CSV", "JSON", "XML"):
        with page.expect_download() as started:
            page.get_by_role("link", name=form, exact=True).click()
        started.value.save_as(tmp_path / f"jobs.{form}")
    rows = list(csv.DictReader((tmp_path / "jobs.CSV").read_text().splitlines()))
    assert str(number) in {row["number"] for row in rows}
    assert str(number) in {str(row["number"]) for row in json.loads((tmp_path / "jobs.JSON").read_text())}
    page.get_by_role("button", name="Log out").click()
    page.goto(f"{base}/admin/limits")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


@pytest.mark.parametrize("admin_page", ["with scripts"], indirect=True)
def test_job_is_assigned_to_a_worker(admin_page: AdminPage) -> None:
    """The selected worker processes it first."""
    page = admin_page.page
    log_in(page, admin_page.base, ADMIN, ADMIN_PASSWORD)
    hold = ArchivePause(admin_page.environment.lost, 1)
    try:
        busy = admin_page.order("lost.example")
        hold.wait()
        jobs = [admin_page.order(f"http://{name}.lost.example/") for name in ("one", "two")]
        page.goto(f"{admin_page.base}/admin/jobs/{jobs[1]}")
        worker = page.get_by_label(f"Worker for job {jobs[1]}").locator("option").nth(1).inner_text()
        page.get_by_label(f"Worker for job {jobs[1]}").select_option(worker)
        page.get_by_role("button", name="Assign").click()
        page.wait_for_load_state()
        expect(page.get_by_role("definition").get_by_text(worker)).to_be_visible()
        assert admin_page.waiting() == [jobs[1], jobs[0]]
    finally:
        hold.release()
    for number in (busy, *jobs):
        assert admin_page.wait_until_ended(number) == "complete"


@pytest.mark.parametrize("admin_page", ["without scripts"], indirect=True)
def test_limits_and_takedown(admin_page: AdminPage, browser: Browser) -> None:
    """New limits apply to the next order; a site that was taken down is deleted and cannot be ordered."""
    page, base = admin_page.page, admin_page.base
    log_in(page, base, ADMIN, ADMIN_PASSWORD)
    page.goto(f"{base}/admin/limits")
    page.get_by_label("Jobs per email address in 24 hours").fill("1")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("Saved.")
    number = admin_page.order("http://sub.gone.example/page")
    with browser.new_context() as context:
        visitor = context.new_page()
        mail = f"greedy{number}@example.org"
        order(visitor, base, mail)
        expect(visitor.get_by_role("heading", level=1)).to_contain_text("check your inbox")
        order(visitor, base, mail)
        expect(visitor.get_by_role("alert")).to_contain_text("Too many requests with this email address today")
        page.goto(f"{base}/admin/domains")
        page.get_by_label("Domain").fill("https://Gone.example/x")
        page.get_by_label("Reason").fill("its owner asked")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_text(f"{number}: http://sub.gone.example/page")).to_be_visible()
        page.get_by_role("button", name="Yes, take it down").click()
        expect(page.get_by_role("rowheader", name="gone.example")).to_be_visible()
        assert admin_page.state(number) == "removed"
        order(visitor, base, "other@example.org", "www.gone.example")
        expect(visitor.get_by_role("alert")).to_contain_text("its owner has objected")
    refused = admin_page.environment.service.request(
        "POST", "/api/jobs", {"url": "a.gone.example", "mail": "x@example.org"}
    )
    assert (refused.status, refused.json["error"]) == (400, "url: this site is not recovered here")
    page.get_by_role("button", name="Unblock gone.example").click()
    expect(page.get_by_role("rowheader", name="gone.example")).to_have_count(0)
    page.goto(f"{base}/admin/limits")
    page.get_by_label("Jobs per email address in 24 hours").fill("0")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("Saved.")
