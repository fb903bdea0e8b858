"""Those who look after a service, in a real browser: from logging in to taking down a site."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.service.jobs.workers import Hold
from tests.service.pages.place import ADMIN, ADMIN_PASSWORD, Place, log_in, order, running_place
from tests.waiting import wait_until

pytestmark = pytest.mark.browser


@dataclass
class Desk:
    """An administrator's page, and where it is."""

    page: Page
    place: Place

    @property
    def base(self) -> str:
        """Where the service is."""
        return self.place.service.base

    def order(self, url: str, mail: str = "me@example.org") -> int:
        """Have a job that waits."""
        made = self.place.service.ask("POST", "/api/jobs", {"url": url, "mail": mail}, is_admin=True)
        assert made.status == 201, made.body
        return int(made.json["number"])

    def state(self, number: int) -> str:
        """Return how a job stands."""
        return str(self.place.service.ask("GET", f"/api/jobs/{number}", is_admin=True).json["state"])

    def ended(self, number: int) -> str:
        """Wait for a job to end; return how."""
        wait_until(lambda: self.state(number) in ("complete", "failed", "cancelled"))
        return self.state(number)

    def waiting(self) -> list[int]:
        """Return the numbers of those that wait, in their order, as the page has them."""
        self.page.goto(f"{self.base}/admin?state=queued")
        return [int(text) for text in self.page.locator("table.jobs tbody th").all_inner_texts()]

    def press(self, number: int, button: str) -> None:
        """Do something with a job, on its own page."""
        self.page.goto(f"{self.base}/admin/jobs/{number}")
        self.page.get_by_role("button", name=f"{button} {number}").click()
        self.page.wait_for_load_state()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Have a service of its own: what is blocked and removed here is wanted elsewhere."""
    with running_place(tmp_path_factory.mktemp("admin")) as found:
        yield found


@pytest.fixture(params=["with scripts", "without scripts"])
def desk(request: pytest.FixtureRequest, browser: Browser, alone: Place) -> Iterator[Desk]:
    """Have an administrator, once with scripts and once without."""
    has_scripts = request.param == "with scripts"
    with browser.new_context(java_script_enabled=has_scripts, accept_downloads=True) as context:
        yield Desk(context.new_page(), alone)


def test_jobs_are_looked_after(desk: Desk) -> None:
    """They are seen as they go on, reordered, paused, resumed, cancelled, tried again, reminded of and deleted."""
    page, base = desk.page, desk.base
    log_in(page, base, ADMIN, "not the password")
    expect(page.get_by_role("alert")).to_have_text("Name or password is wrong.")
    log_in(page, base, ADMIN, ADMIN_PASSWORD)
    expect(page.get_by_text(f"Logged in as {ADMIN}")).to_be_visible()
    hold = Hold(desk.place.lost, 4)
    try:
        busy = desk.order("lost.example")
        hold.wait()
        first, second, third = (desk.order(f"http://{name}.lost.example/") for name in ("one", "two", "three"))
        page.goto(f"{base}/admin")
        expect(page.get_by_role("row", name="http://lost.example").get_by_role("progressbar")).to_be_visible()
        page.goto(f"{base}/admin/workers")
        expect(page.get_by_role("link", name=f"{busy}: http://lost.example")).to_be_visible()
        assert desk.waiting() == [first, second, third]
        row = page.get_by_role("row", name="three.lost.example")
        row.get_by_label(f"Place of job {third}").fill("1")
        row.get_by_role("button", name="Move").click()
        page.wait_for_load_state()
        assert desk.waiting() == [third, first, second]
        desk.press(first, "Pause")
        assert desk.state(first) == "paused"
        assert desk.waiting() == [third, second]
        desk.press(second, "Cancel")
        assert desk.state(second) == "cancelled"
        desk.press(busy, "Pause")
        assert desk.state(busy) == "paused"
    finally:
        hold.release()
    for number in (first, busy):
        desk.press(number, "Resume")
        assert desk.ended(number) == "complete"
    page.goto(f"{base}/admin/jobs/{busy}")
    expect(page.get_by_role("heading", name=f"Job {busy}: complete")).to_be_visible()
    states = page.locator("table.jobs").first.locator("tbody td:nth-child(2)").all_inner_texts()
    assert states == ["queued", "being processed", "paused", "queued", "being processed", "complete"]
    desk.press(busy, "Remind")
    desk.place.letter("me@example.org", "Still to be picked up")
    desk.press(second, "Try again")
    assert desk.ended(second) == "complete"
    page.goto(f"{base}/admin/jobs/{second}")
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Yes, delete it").click()
    page.wait_for_load_state()
    assert desk.state(second) == "removed"


def test_what_there_is_to_know(desk: Desk, tmp_path: Path) -> None:
    """Mail, archives, statistics, the history to take along; and nothing of it without logging in."""
    page, base = desk.page, desk.base
    log_in(page, base, ADMIN, ADMIN_PASSWORD)
    number = desk.order("lost.example")
    assert desk.ended(number) == "complete"
    desk.place.letter("me@example.org", "Recovered")
    page.goto(f"{base}/admin/mail")
    expect(page.get_by_text("it is done").first).to_be_visible()
    page.goto(f"{base}/admin/archives")
    expect(page.get_by_role("cell", name="answers").first).to_be_visible()
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


@pytest.mark.parametrize("desk", ["with scripts"], indirect=True)
def test_started_on_a_worker(desk: Desk) -> None:
    """A job is given to the worker that is chosen, and goes first there."""
    page = desk.page
    log_in(page, desk.base, ADMIN, ADMIN_PASSWORD)
    hold = Hold(desk.place.lost, 1)
    try:
        busy = desk.order("lost.example")
        hold.wait()
        jobs = [desk.order(f"http://{name}.lost.example/") for name in ("one", "two")]
        page.goto(f"{desk.base}/admin/jobs/{jobs[1]}")
        worker = page.get_by_label(f"Worker for job {jobs[1]}").locator("option").nth(1).inner_text()
        page.get_by_label(f"Worker for job {jobs[1]}").select_option(worker)
        page.get_by_role("button", name="Start there").click()
        page.wait_for_load_state()
        expect(page.get_by_role("definition").get_by_text(worker)).to_be_visible()
        assert desk.waiting() == [jobs[1], jobs[0]]
    finally:
        hold.release()
    for number in (busy, *jobs):
        assert desk.ended(number) == "complete"


@pytest.mark.parametrize("desk", ["without scripts"], indirect=True)
def test_limits_and_takedown(desk: Desk, browser: Browser) -> None:
    """What is set holds for the next order; a site that is taken down is gone, and cannot be ordered any more."""
    page, base = desk.page, desk.base
    log_in(page, base, ADMIN, ADMIN_PASSWORD)
    page.goto(f"{base}/admin/limits")
    page.get_by_label("Orders for one mail address in 24 hours").fill("1")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("It is saved.")
    number = desk.order("http://sub.gone.example/page")
    with browser.new_context() as context:
        visitor = context.new_page()
        mail = f"greedy{number}@example.org"
        order(visitor, base, mail)
        expect(visitor.get_by_role("heading", level=1)).to_contain_text("look into your mail")
        order(visitor, base, mail)
        expect(visitor.get_by_role("alert")).to_contain_text("too many orders with this mail address")
        page.goto(f"{base}/admin/domains")
        page.get_by_label("Domain").fill("https://Gone.example/x")
        page.get_by_label("Reason").fill("its owner asked")
        page.get_by_role("button", name="Next").click()
        expect(page.get_by_text(f"{number}: http://sub.gone.example/page")).to_be_visible()
        page.get_by_role("button", name="Yes, take it down").click()
        expect(page.get_by_role("rowheader", name="gone.example")).to_be_visible()
        assert desk.state(number) == "removed"
        order(visitor, base, "other@example.org", "www.gone.example")
        expect(visitor.get_by_role("alert")).to_contain_text("its owner does not want it")
    refused = desk.place.service.ask("POST", "/api/jobs", {"url": "a.gone.example", "mail": "x@example.org"})
    assert (refused.status, refused.json["error"]) == (400, "url: this site is not recovered here")
    page.get_by_role("button", name="Allow again gone.example").click()
    expect(page.get_by_role("rowheader", name="gone.example")).to_have_count(0)
    page.goto(f"{base}/admin/limits")
    page.get_by_label("Orders for one mail address in 24 hours").fill("0")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("It is saved.")
