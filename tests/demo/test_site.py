"""The lost site is a whole site, and the archives have what makes a story."""

from urllib.parse import urlsplit

from unlost.demo.site import LostSite, lost_site
from unlost.pages.links import links
from unlost.pages.verdicts import Answer, verdict_of

SITE = lost_site()


def links_of(site: LostSite) -> set[str]:
    """Return where links of the original lead on the site, without fragments."""
    found: set[str] = set()
    for resource, answer in site.originals():
        found |= {link.uri.replace("//www.", "//") for link in links(answer.body, answer.mime, resource.url)}
    host = urlsplit(site.url).hostname
    return {each for each in found if urlsplit(each).hostname == host}


def test_nothing_is_broken_in_the_original() -> None:
    """Every link leads to something that the site has, and nothing is without a link."""
    had = {resource.url for resource, _ in SITE.originals()}
    linked = links_of(SITE)
    assert linked - had == {f"{SITE.url}index.html"}, "another name of the home page"
    assert had - linked == set()


def test_no_archive_has_it_all_and_all_together_have_not() -> None:
    """Each has something that no other has; some things several have, and some nobody."""
    holders = {resource.url: {copy.archive for copy in resource.copies} for resource in SITE.resources}
    assert {frozenset({archive}) for archive in SITE.archives} <= {frozenset(each) for each in holders.values()}
    assert any(len(each) > 1 for each in holders.values())
    assert sum(not each for each in holders.values()) == 3


def test_bad_copies_are_newer_than_good_ones() -> None:
    """The copies from after the end are those of a parked domain and of a casino, and one soft 404 is all of a page."""
    late = [copy for each in SITE.resources for copy in each.copies if copy.date > SITE.ended]
    assert len(late) == 2
    only = next(each for each in SITE.resources if each.url.endswith("id=4"))
    (copy,) = only.copies
    verdict = verdict_of(Answer(only.url, copy.date, 200, "text/html", copy.answer.body))
    assert verdict is not None
    assert verdict.kind.value == "soft-404"
