"""HTML pages of checks and watches in a browser; each check is shown to detect its fault."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.check.availability.resources import NOW, archive_captures, availability, live_resource
from tests.report.browser_page import EVIL, HIDDEN, LONG, RIGHT_TO_LEFT, PageVisit
from unlost.check import (
    STATE_ORDER,
    AvailabilityState,
    FinishedVisit,
    ResourceAvailability,
    compute_check_stats,
    draw_state_bar,
    draw_state_columns,
    render_check_page,
)
from unlost.check import report as renderer
from unlost.crawl import CrawlOutcome, LiveResource
from unlost.report import make_template_environment
from unlost.watch import (
    Lifetime,
    LifetimeRow,
    SiteHealth,
    SiteLoss,
    SiteSurvey,
    WatchedSite,
    render_watch_page,
    summarize_lifetimes,
)

pytestmark = pytest.mark.browser
DAY = 86_400.0
BEGIN = 1_700_006_400.0


def resources_with_hostile_names() -> list[ResourceAvailability]:
    """Return resources in every state with hostile names."""
    names = [EVIL, HIDDEN, RIGHT_TO_LEFT, LONG]
    found = [
        ResourceAvailability(
            LiveResource(f"http://site.example/{name}", "k", CrawlOutcome.FETCHED, 200, f"text/{EVIL}")
        )
        for name in names
    ]
    found += [availability(f"kept{number}", "a") for number in range(6)]
    found += [
        ResourceAvailability(
            live_resource("old", last_modified="20260101000000"),
            (archive_captures("a"), archive_captures(EVIL, "20240101000000")),
        )
    ]
    found += [
        availability("gone", "a", status=404),
        availability("never", status=404),
        availability("?", is_settled=False),
    ]
    return [*found, availability("secret", outcome=CrawlOutcome.FORBIDDEN, status=None)]


def check_html() -> str:
    """Return the page of a check."""
    resources = resources_with_hostile_names()
    figures = compute_check_stats(resources, NOW)
    return render_check_page(f"http://site.example/{EVIL}", NOW, figures, resources, {EVIL: f"it says {EVIL}"})


def watch_html() -> str:
    """Return the page of a watch."""
    lives = summarize_lifetimes([Lifetime(0, 2 * DAY, 4 * DAY, 8 * DAY, 10 * DAY, 3 * DAY)])
    states = Counter({AvailabilityState.REPLICATED: 3, AvailabilityState.VULNERABLE: 1})
    visits = [FinishedVisit(day, BEGIN + day * DAY, day != 3, states, 0, "fine", EVIL) for day in range(40)]
    lost = SiteLoss(1, SiteHealth.PARKED, f"it says {EVIL}", BEGIN, BEGIN + DAY, None, False)
    survey = SiteSurvey(visits, [LifetimeRow("", "", lives), LifetimeRow(EVIL, "HTML", lives)], 0.1, 0.2)
    return render_watch_page([WatchedSite(f"http://site.example/{EVIL}", survey, [lost])])


PAGES = [(check_html, "What could be recovered"), (watch_html, "Watch report")]


@pytest.mark.parametrize(("html", "heading"), PAGES)
def test_pages_are_self_contained(page: Page, tmp_path: Path, html: Callable[[], str], heading: str) -> None:
    """No requests, no console errors, no injection, and they fit a phone."""
    visit = PageVisit(page, tmp_path / "page.html", html())
    assert visit.faults == []
    assert visit.external_requests() == []
    assert not visit.overflows()
    assert not visit.has_injected_markup()
    assert page.get_by_role("heading", name=heading).is_visible()
    assert EVIL in page.inner_text("main")
    assert page.locator("a").count() == 0, "addresses may lead to whoever took over the domain"


def test_page_shows_the_results(page: Page, tmp_path: Path) -> None:
    """Headline, advice, legend with counts, and the list of vulnerable resources."""
    PageVisit(page, tmp_path / "page.html", check_html())
    text = page.inner_text("main")
    assert "If the site were lost now" in text
    assert "Allow archives to fetch what robots.txt disallows: 1 affected" in text
    for state, count in compute_check_stats(resources_with_hostile_names(), NOW).states.items():
        assert f"{count} {state.value}:" in text
    assert "are incomplete: " in text
    assert "\\u202egnp.exe" in text
    assert LONG not in text


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        ("<script>throw new Error('x')</script>", "faults"),
        ('<img src="picture.png">', "faults"),
        ('<p style="width: 500px">wide</p>', "overflow"),
        ('<img src="data:," onerror="1">', "harm"),
    ],
)
@pytest.mark.parametrize("html", [check_html, watch_html])
def test_browser_checks_detect_planted_faults(
    page: Page, tmp_path: Path, html: Callable[[], str], planted: str, fault: str
) -> None:
    """A script, an external image, a wide element, unescaped markup."""
    visit = PageVisit(page, tmp_path / "page.html", html().replace("</main>", planted + "</main>"))
    seen = {"faults": bool(visit.faults), "overflow": visit.overflows(), "harm": visit.has_injected_markup()}
    assert seen[fault]


def test_without_escaping_the_checks_detect_injection(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of hostile names."""
    made = make_template_environment("unlost.check")
    made.autoescape = False
    monkeypatch.setattr(renderer, "make_template_environment", lambda _: made)
    assert PageVisit(page, tmp_path / "raw.html", check_html()).has_injected_markup()


def widths(page: Page, selector: str) -> dict[str, float]:
    """Return the widths of the parts of a drawing by class, as drawn by the browser."""
    found = page.evaluate(
        """(selector) => [...document.querySelectorAll(selector)].map(
            (each) => [each.getAttribute("class"), each.getBoundingClientRect()]).map(
            ([name, box]) => [name, box.width * box.height])""",
        selector,
    )
    return {name: float(area) for name, area in found}


def test_areas_are_proportional_to_counts(page: Page, tmp_path: Path) -> None:
    """Of the bar and of a column; a wrong width is detected."""
    states = Counter({state: number for number, state in enumerate(STATE_ORDER, 1)})
    frame = "<!doctype html><style>svg {{ width: 300px; height: 40px }}</style><main>{}</main>"
    for drawing in (draw_state_bar(states), draw_state_columns([("day", states)])):
        PageVisit(page, tmp_path / "drawing.html", frame.format(drawing))
        found = widths(page, "svg rect")
        total = sum(found.values())
        for state, count in states.items():
            assert found[state.value] / total == pytest.approx(count / states.total(), abs=0.01)
    wrong = draw_state_bar(states).replace('width="66.6667"', 'width="133"')
    PageVisit(page, tmp_path / "wrong.html", frame.format(wrong))
    found = widths(page, "svg rect")
    assert found["replicated"] / sum(found.values()) != pytest.approx(1 / states.total(), abs=0.01)
