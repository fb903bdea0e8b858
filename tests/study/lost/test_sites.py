"""Tests of generated sites: size, links and reproducibility."""

import pytest
from study.lost.profiles import SITES, ChangeRate, SiteProfile
from study.lost.site import SimulatedSite
from study.lost.site_files import FIRST_WEEK, LAST_WEEK, FileKind, SiteFile, generate_files

from unlost.html import extract_text, text_resemblance

LIVELY = SiteProfile("lively", 40, 30, 12, 5, ChangeRate.LIVELY, breadth=5, dynamic=0.2)
STILL = SiteProfile("still", 12, 9, 4, 5, ChangeRate.STILL)


def words(site: SimulatedSite, item: SiteFile, week: int) -> str:
    """Return the text of a page in a week."""
    found = extract_text(site.version_in(item, week).body, "text/html", site.uri(item), None)
    assert found is not None
    return found.text


def test_profiles_have_three_sizes() -> None:
    """Eight of each, as in the dissertation."""
    sizes = [profile.size for profile in SITES]
    assert len(sizes) == 24
    assert [sum(size < 150 for size in sizes), sum(size >= 500 for size in sizes)] == [8, 8]
    assert len({profile.host for profile in SITES}) == 24


@pytest.mark.parametrize("profile", SITES, ids=lambda profile: profile.name)
def test_site_matches_its_profile(profile: SiteProfile) -> None:
    """In week 0 the numbers of pages, images and others are those of the profile, and URLs are distinct."""
    items = [each for each in generate_files(profile, 1) if each.exists_in(0)]
    kinds = [each.kind for each in items]
    assert kinds.count(FileKind.PAGE) == profile.pages
    assert kinds.count(FileKind.IMAGE) == profile.images
    assert len(items) == profile.size
    assert len({each.path for each in items}) == profile.size


@pytest.mark.parametrize("profile", [LIVELY, SITES[14]], ids=lambda profile: profile.name)
def test_all_files_are_linked_in_every_week(profile: SiteProfile) -> None:
    """All files can be reached by links alone."""
    site = SimulatedSite(profile, 3)
    for week in (FIRST_WEEK, -40, -4, -3, 0, 7, LAST_WEEK):
        there = site.files_in(week)
        for each in there:
            assert each.parent is None or each.parent.exists_in(week)
            if each.parent is not None:
                page = site.version_in(each.parent, week).body.decode()
                assert f'"{each.path}"' in page
        paths = {each.path for each in there}
        gone = [each.path for each in site.site_files if each.path not in paths]
        home = site.version_in(site.site_files[0], week).body.decode()
        assert not [path for path in gone if f'"{path}"' in home]


def test_site_depends_on_seed_only() -> None:
    """Another seed yields another site."""
    first, again, other = (SimulatedSite(LIVELY, seed) for seed in (1, 1, 2))
    assert [first.version_in(each, 3) for each in first.files_in(3)] == [
        again.version_in(each, 3) for each in again.files_in(3)
    ]
    assert [each.path for each in first.site_files] != [each.path for each in other.site_files]


def test_still_site_does_not_change() -> None:
    """All its files are equal in the first and last week."""
    site = SimulatedSite(STILL, 1)
    assert {(site.uri(each), site.version_in(each, 1)) for each in site.files_in(1)} == {
        (site.uri(each), site.version_in(each, LAST_WEEK)) for each in site.files_in(LAST_WEEK)
    }


def test_restless_pages_have_similar_text() -> None:
    """Their bytes differ every week, and three quarters of the text stay."""
    site = SimulatedSite(LIVELY, 1)
    restless = [
        each
        for each in site.files_in(1)
        if each.changes_weekly
        and each.exists_in(2)
        and all(below.exists_in(1) == below.exists_in(2) for below in each.children)
    ]
    assert len(restless) > 2
    for each in restless:
        assert site.version_in(each, 1).body != site.version_in(each, 2).body
        assert 0.7 < text_resemblance(words(site, each, 1), words(site, each, 2)) < 1


def test_redesign_changes_all_urls_but_the_home_page() -> None:
    """All other pages have new URLs."""
    site = SimulatedSite(SITES[14], 1)
    before = {each.path for each in site.files_in(-4) if each.kind is FileKind.PAGE}
    after = {each.path for each in site.files_in(-3) if each.kind is FileKind.PAGE}
    assert before & after == {"/"}
    assert len(before) > 100
