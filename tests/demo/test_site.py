"""The lost site is a whole site, and the archives have what makes a story."""

from urllib.parse import urlsplit

from unlost.demo import LostSite, lost_site
from unlost.html import extract_links
from unlost.quality import PageResponse, classify_page

SITE = lost_site()


def links_of(site: LostSite) -> set[str]:
    """Return where links of the original lead on the site, without fragments."""
    found: set[str] = set()
    for resource, answer in site.final_resources():
        found |= {link.uri.replace("//www.", "//") for link in extract_links(answer.body, answer.mime, resource.url)}
    host = urlsplit(site.url).hostname
    return {each for each in found if urlsplit(each).hostname == host}


def test_original_has_no_broken_links() -> None:
    """Every link leads to something that the site has, and nothing is without a link."""
    had = {resource.url for resource, _ in SITE.final_resources()}
    linked = links_of(SITE)
    assert linked - had == {f"{SITE.url}index.html"}, "another name of the home page"
    assert had - linked == set()


def test_archives_are_incomplete_alone_and_together() -> None:
    """Each has something that no other has; some things several have, and some nobody."""
    holders = {resource.url: {copy.archive for copy in resource.captures} for resource in SITE.resources}
    assert {frozenset({archive}) for archive in SITE.archives} <= {frozenset(each) for each in holders.values()}
    assert any(len(each) > 1 for each in holders.values())
    assert sum(not each for each in holders.values()) == 3


def test_bad_captures_are_newer_than_good_ones() -> None:
    """The copies from after the end are those of a parked domain and of a casino, and one soft 404 is all of a page."""
    late = [copy for each in SITE.resources for copy in each.captures if copy.date > SITE.ended]
    assert len(late) == 2
    only = next(each for each in SITE.resources if each.url.endswith("id=4"))
    (copy,) = only.captures
    verdict = classify_page(PageResponse(only.url, copy.date, 200, "text/html", copy.response.body))
    assert verdict is not None
    assert verdict.kind.value == "soft-404"
