"""The HTML page of a comparison in a browser; each check is shown to detect its fault."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.comparison.memory_sites import MemorySite, make_comparison, resource
from tests.report.browser_page import EVIL, HIDDEN, LONG, RIGHT_TO_LEFT, PageVisit, contrast, contrast_ratio, luminance
from unlost.comparison import Comparison, PenaltyRules, TextSimilarity, compare_sites, render_comparison_page
from unlost.comparison import report as renderer

pytestmark = pytest.mark.browser


def comparison_with_hostile_names() -> Comparison:
    """Return a comparison with every outcome and hostile names."""
    names = ["", "a", "b?x=1", "c/d/e", EVIL, HIDDEN, RIGHT_TO_LEFT, LONG, "paper.pdf", "scan.pdf", "pic.png"]
    types: dict[str, str | None] = {"paper.pdf": "application/pdf", "scan.pdf": "application/pdf", "c/d/e": None}
    types |= {"pic.png": "image/png", "a": f"text/{EVIL}"}
    original = [
        resource(f"a.example/{name}", b"1", types.get(name, "text/html"), datetime="20200101000000") for name in names
    ]
    recovered = [resource(f"a.example/{name}", b"1") for name in names[:2]]
    recovered += [resource(f"a.example/{name}", b"2") for name in names[2:9]]
    recovered += [resource(f"a.example/new/{name}", b"2") for name in names]

    def similarity(first: object, _: object) -> TextSimilarity:
        return TextSimilarity(None, "encrypted") if "paper" in str(first) else TextSimilarity(0.8, partial=True)

    site = MemorySite(recovered, listed=["a.example/scan.pdf"], requests=40)
    return compare_sites(MemorySite(original), site, similarity)


def render(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    return render_comparison_page(comparison, f"/home/{EVIL}", f"b{HIDDEN}.warc", comparison.weigh(PenaltyRules()))


def test_page_is_self_contained(page: Page, tmp_path: Path) -> None:
    """No requests, no console errors, and it fits a phone."""
    visit = PageVisit(page, tmp_path / "page.html", render(comparison_with_hostile_names()))
    assert visit.faults == []
    assert visit.external_requests() == []
    assert not visit.overflows()
    assert not visit.has_injected_markup()
    assert page.get_by_role("heading", name="Comparison with the original").is_visible()
    assert "9 of 11 resources recovered: 2 unchanged, 7 changed. 2 missing. 11 added." in page.inner_text("main")


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        ("<script>throw new Error('x')</script>", "faults"),
        ('<img src="picture.png">', "faults"),
        ('<p style="width: 500px">wide</p>', "overflow"),
        ('<img src="data:," onerror="1">', "harm"),
    ],
)
def test_checks_detect_planted_faults(page: Page, tmp_path: Path, planted: str, fault: str) -> None:
    """A script, an external image, a wide element, unescaped markup."""
    visit = PageVisit(
        page, tmp_path / "page.html", render(comparison_with_hostile_names()).replace("</main>", planted + "</main>")
    )
    detected = {"faults": bool(visit.faults), "overflow": visit.overflows(), "harm": visit.has_injected_markup()}
    assert detected[fault]


def test_external_requests_are_detected_and_blocked(page: Page, tmp_path: Path) -> None:
    """The page's content security policy blocks them."""
    failures: list[str] = []
    page.on("requestfailed", lambda request: failures.append(str(request.failure)))
    text = render(comparison_with_hostile_names()).replace("</main>", '<img src="http://tracker.example/x.png"></main>')
    assert PageVisit(page, tmp_path / "with.html", text).external_requests() == ["http://tracker.example/x.png"]
    assert failures == ["csp"]
    bare = re.sub(r"<meta http-equiv=[^>]*>", "", text)
    PageVisit(page, tmp_path / "without.html", bare)
    assert failures == ["csp", "net::ERR_NAME_NOT_RESOLVED"]


def test_hostile_names_are_shown_as_text(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invisible characters are escaped; without escaping the check detects injection."""
    visit = PageVisit(page, tmp_path / "page.html", render(comparison_with_hostile_names()))
    text = page.inner_text("main")
    assert EVIL in text
    assert "\\u202egnp.exe\\x1b[31m\\x00\\udcff" in text
    assert RIGHT_TO_LEFT in text
    assert LONG not in text
    assert not visit.has_injected_markup()
    assert page.locator("a").count() == 0, "addresses may lead to whoever took over the domain"
    environment = renderer._make_environment()
    environment.autoescape = False
    monkeypatch.setattr(renderer, "_make_environment", lambda: environment)
    assert PageVisit(page, tmp_path / "raw.html", render(comparison_with_hostile_names())).has_injected_markup()


def share_of(page: Page, name: str) -> float:
    """Return the share of the diagram's disc that a shape fills, by testing points."""
    found = page.evaluate(
        """(name) => {
            const shape = document.querySelector(`figure > svg .${name}`);
            if (!shape) return 0;
            let inside = 0, all = 0;
            for (let x = -100; x <= 100; x += 1) for (let y = -100; y <= 100; y += 1) {
                if (x * x + y * y > 10000) continue;
                all += 1;
                const point = new DOMPoint(x + 0.013, y + 0.017);
                inside += shape.isPointInFill(point) ? 1 : 0;
            }
            return inside / all;
        }""",
        name,
    )
    return float(found)


@pytest.mark.parametrize(
    "counts",
    [(10, 20, 30, 40), (50, 0, 50, 0), (0, 50, 50, 0), (1, 0, 0, 1), (0, 0, 5, 5), (90, 5, 5, 0), (5, 90, 5, 0)],
)
def test_diagram_areas_match_the_counts(page: Page, tmp_path: Path, counts: tuple[int, int, int, int]) -> None:
    """As drawn by the browser."""
    visit = PageVisit(page, tmp_path / "page.html", render(make_comparison(*counts)))
    box = page.locator("figure > svg").bounding_box()
    assert box is not None
    assert box["width"] == pytest.approx(box["height"], abs=1)
    assert box["width"] > 150
    names = ("identical", "changed", "missing", "added")
    for name, count in zip(names, counts, strict=True):
        assert share_of(page, name) == pytest.approx(count / sum(counts), abs=0.012), name
    assert visit.faults == []
    name = next(name for name, count in zip(names, counts, strict=True) if count)
    page.evaluate("(name) => { document.querySelector(`figure > svg .${name}`).remove(); }", name)
    assert share_of(page, name) == 0, "a part that is not drawn is noticed"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_in_both_colour_schemes(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """Of text and of the parts of the diagram; pale text is detected."""
    with browser.new_context(
        viewport={"width": 360, "height": 740},
        color_scheme=scheme,  # type: ignore[arg-type]  # one of two words
    ) as context:
        page = context.new_page()
        PageVisit(page, tmp_path / "page.html", render(comparison_with_hostile_names()))
        background = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert (luminance(background) < 0.1) is (scheme == "dark")
        for selector in ("h1", ".lead", ".quiet", ".problem p", "small", "thead th", "td", "figcaption"):
            assert contrast(page, selector, background) >= 4.5, selector
        fills = {name: fill(page, name) for name in ("identical", "changed", "added")}
        assert luminance(fills["identical"]) > luminance(fills["added"]) > luminance(fills["changed"])
        for name, colour in fills.items():
            others = [other for other in fills.values() if other != colour]
            assert all(contrast_ratio(colour, other) >= 1.5 for other in others), name
        page.add_style_tag(content=".lead { color: #999; } @media (prefers-color-scheme: dark) {.lead {color: #444;}}")
        assert contrast(page, ".lead", background) < 4.5


def fill(page: Page, name: str) -> str:
    """Return the colour of a part of the diagram."""
    return str(page.locator(f"figure > svg .{name}").evaluate("(each) => getComputedStyle(each).fill"))


def test_diagram_and_tables_have_accessible_names(page: Page, tmp_path: Path) -> None:
    """For screen readers."""
    PageVisit(page, tmp_path / "page.html", render(comparison_with_hostile_names()))
    assert page.get_by_role("img", name="Reconstruction diagram").count() == 1
    captions = page.locator("caption").all_inner_texts()
    assert captions[:2] == ["Difference", "Levels of success, strictest first"]
    assert captions[2:] == ["HTML, images, other", "Media type", "Path depth", "Query", "Age"]
    assert page.locator("table:not(:has(caption)), th:not([scope])").count() == 0
    assert page.locator("h1").count() == 1


def test_print_style_shows_complete_tables(page: Page, tmp_path: Path) -> None:
    """Black on white, also with a dark colour scheme."""
    PageVisit(page, tmp_path / "page.html", render(comparison_with_hostile_names()))
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("() => getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("() => getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


def test_long_lists_are_truncated_with_a_note(page: Page, tmp_path: Path) -> None:
    """After 1,000 entries, with the command that prints all."""
    visit = PageVisit(page, tmp_path / "page.html", render(make_comparison(1, 1_001, 2_500, 3)))
    assert page.locator("#missing + ol > li").count() == 1_000
    assert page.locator("#changed + ol > li").count() == 1_000
    assert page.locator("#added + ol > li").count() == 3
    text = page.inner_text("main")
    assert "1,500 more are not shown. To list all: unlost compare … --list missing" in text
    assert not visit.overflows()


def test_page_of_an_empty_recovery(page: Page, tmp_path: Path) -> None:
    """Shares are n/a, and empty lists are omitted."""
    PageVisit(page, tmp_path / "page.html", render(make_comparison(missing=2)))
    text = page.inner_text("main")
    assert "Almost identical among changed texts: n/a" in text
    assert page.locator("#changed, #added").count() == 0


def test_page_is_deterministic() -> None:
    """It has no date or host."""
    assert render(comparison_with_hostile_names()) == render(comparison_with_hostile_names())
