"""Tests that the invented site is complete, and its archives have captures of all kinds."""

from urllib.parse import urlsplit

from unlost.demo import LostSite, lost_site
from unlost.html import extract_links
from unlost.quality import PageResponse, classify_page

SITE = lost_site()


def links_of(site: LostSite) -> set[str]:
    """Return the link targets on the site, without fragments."""
    found: set[str] = set()
    for resource, response in site.final_resources():
        found |= {
            link.uri.replace("//www.", "//") for link in extract_links(response.body, response.mime, resource.url)
        }
    host = urlsplit(site.url).hostname
    return {each for each in found if urlsplit(each).hostname == host}


def test_original_has_no_broken_links() -> None:
    """Every link has a target, and every resource is linked."""
    had = {resource.url for resource, _ in SITE.final_resources()}
    linked = links_of(SITE)
    assert linked - had == {f"{SITE.url}index.html"}, "another name of the home page"
    assert had - linked == set()


def test_archives_are_incomplete_alone_and_together() -> None:
    """Each archive has unique resources; some resources are in several, and some in none."""
    holders = {resource.url: {capture.archive for capture in resource.captures} for resource in SITE.resources}
    assert {frozenset({archive}) for archive in SITE.archives} <= {frozenset(each) for each in holders.values()}
    assert any(len(each) > 1 for each in holders.values())
    assert sum(not each for each in holders.values()) == 3


def test_bad_captures_are_newer_than_good_ones() -> None:
    """Late captures are a parked domain and a casino, and one page has only a soft 404."""
    late = [capture for each in SITE.resources for capture in each.captures if capture.date > SITE.ended]
    assert len(late) == 2
    only = next(each for each in SITE.resources if each.url.endswith("id=4"))
    (capture,) = only.captures
    verdict = classify_page(PageResponse(only.url, capture.date, 200, "text/html", capture.response.body))
    assert verdict is not None
    assert verdict.kind.value == "soft-404"
