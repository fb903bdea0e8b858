"""Tests of generated sites: size, links and reproducibility."""

import pytest
from study.lost.items import BEGINNING, LAST, Item, Kind, items_of
from study.lost.profiles import SITES, Pace, Profile
from study.lost.site import MadeSite

from unlost.html import extract_text, text_resemblance

LIVELY = Profile("lively", 40, 30, 12, 5, Pace.LIVELY, breadth=5, dynamic=0.2)
STILL = Profile("still", 12, 9, 4, 5, Pace.STILL)


def words(site: MadeSite, item: Item, week: int) -> str:
    """Return the text of a page in a week."""
    found = extract_text(site.file(item, week).body, "text/html", site.uri(item), None)
    assert found is not None
    return found.text


def test_profiles_have_three_sizes() -> None:
    """Eight of each, as in the dissertation."""
    sizes = [profile.size for profile in SITES]
    assert len(sizes) == 24
    assert [sum(size < 150 for size in sizes), sum(size >= 500 for size in sizes)] == [8, 8]
    assert len({profile.host for profile in SITES}) == 24


@pytest.mark.parametrize("profile", SITES, ids=lambda profile: profile.name)
def test_site_matches_its_profile(profile: Profile) -> None:
    """In week 0 the numbers of pages, images and others are those of the profile, and URLs are distinct."""
    items = [each for each in items_of(profile, 1) if each.is_there(0)]
    kinds = [each.kind for each in items]
    assert kinds.count(Kind.PAGE) == profile.pages
    assert kinds.count(Kind.IMAGE) == profile.images
    assert len(items) == profile.size
    assert len({each.path for each in items}) == profile.size


@pytest.mark.parametrize("profile", [LIVELY, SITES[14]], ids=lambda profile: profile.name)
def test_all_files_are_linked_in_every_week(profile: Profile) -> None:
    """All files can be reached by links alone."""
    site = MadeSite(profile, 3)
    for week in (BEGINNING, -40, -4, -3, 0, 7, LAST):
        there = site.at(week)
        for each in there:
            assert each.above is None or each.above.is_there(week)
            if each.above is not None:
                page = site.file(each.above, week).body.decode()
                assert f'"{each.path}"' in page
        paths = {each.path for each in there}
        gone = [each.path for each in site.items if each.path not in paths]
        home = site.file(site.items[0], week).body.decode()
        assert not [path for path in gone if f'"{path}"' in home]


def test_site_depends_on_seed_only() -> None:
    """Another seed yields another site."""
    first, again, other = (MadeSite(LIVELY, seed) for seed in (1, 1, 2))
    assert [first.file(each, 3) for each in first.at(3)] == [again.file(each, 3) for each in again.at(3)]
    assert [each.path for each in first.items] != [each.path for each in other.items]


def test_still_site_does_not_change() -> None:
    """All its files are equal in the first and last week."""
    site = MadeSite(STILL, 1)
    assert {(site.uri(each), site.file(each, 1)) for each in site.at(1)} == {
        (site.uri(each), site.file(each, LAST)) for each in site.at(LAST)
    }


def test_restless_pages_have_similar_text() -> None:
    """Their bytes differ every week, and three quarters of the text stay."""
    site = MadeSite(LIVELY, 1)
    restless = [
        each
        for each in site.at(1)
        if each.restless and each.is_there(2) and all(below.is_there(1) == below.is_there(2) for below in each.below)
    ]
    assert len(restless) > 2
    for each in restless:
        assert site.file(each, 1).body != site.file(each, 2).body
        assert 0.7 < text_resemblance(words(site, each, 1), words(site, each, 2)) < 1


def test_redesign_changes_all_urls_but_the_home_page() -> None:
    """All other pages have new URLs."""
    site = MadeSite(SITES[14], 1)
    before = {each.path for each in site.at(-4) if each.kind is Kind.PAGE}
    after = {each.path for each in site.at(-3) if each.kind is Kind.PAGE}
    assert before & after == {"/"}
    assert len(before) > 100
