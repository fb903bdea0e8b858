"""Tests of the chapter about weeks: tables and findings for planted outcomes."""

from study import weeks
from study.chapter import Chapter
from study.lost.experiments import SiteHistory, WeeklyRecoveries

from tests.study.lost.sample_results import sample_result


def site(name: str, *missing: int) -> WeeklyRecoveries:
    """Return a site of ten pages with the number of missing pages in each week."""
    found = tuple(
        sample_result(name, "knowledgeable", week=week, identical=10 - count, missing=count, requests=5)
        for week, count in enumerate(missing, start=1)
    )
    life = SiteHistory(name, 10, 9, (0.1, 0.0), 8, 2, 8, 2, 1)
    return WeeklyRecoveries(found, life)


def make_chapter(*sites: WeeklyRecoveries) -> Chapter:
    """Return the chapter without writing it."""
    chapter = Chapter("weeks", "Weeks")
    weeks.write_chapter(chapter, sites)
    return chapter


def test_levels_cover_all_sites_and_weeks() -> None:
    """A site counts as perfect if it was perfect in one week."""
    sites = [site("school", 5, 0, 5), site("chapel", 2, 2, 2)]
    assert weeks.perfect_share(sites, 4) == 0.5
    lines = make_chapter(*sites)._lines
    # 5, 0, 5, 2, 2, 2 of ten: the sum is 16 of 60.
    assert "| s4 | 0.2667 | 0.2000 | 0.1966 | 0.0000 | 0.5000 | 50.0 % | 0.4567 | 0.4278 | 6.0 % |" in lines


def test_weekly_figures_are_means_over_sites() -> None:
    """Each week has its own requests and efficiency."""
    lines = make_chapter(site("school", 5, 0), site("chapel", 1, 2))._lines
    assert "| 1 | 70.0 % | 0.300 | 0.300 | 0.300 | 0.300 | 0.300 | 20.0 | 0.35 |" in lines
    assert "| 2 | 90.0 % | 0.100 | 0.100 | 0.100 | 0.100 | 0.100 | 20.0 | 0.45 |" in lines


def test_first_and_last_week_are_compared() -> None:
    """Ranks are those of sites with different levels; steady sites are counted."""
    chapter = make_chapter(*(site(f"site{place}", 6 + place % 2, 4, 1) for place in range(8)), site("steady", 3, 3, 3))
    assert "| s5 | 8 | 36 | 0 | 0.008 | 11.1 % |" in chapter._lines


def test_contributions_of_repositories_are_summed_over_weeks() -> None:
    """Each repository has its captures per request."""
    lines = make_chapter(site("school", 2, 2), site("chapel", 2, 2))._lines
    # Of eight pages six are of the first archive, two of the last; five requests each.
    assert "| the archive | 75.0 % | 5.0 | 1.20 | 22.9 % | 127.2 | 0.38 |" in lines
    assert "| the patchy engine | 25.0 % | 5.0 | 0.40 | 17.1 % | 232.2 | 0.24 |" in lines


def test_changes_of_sites_are_compared_with_the_dissertation() -> None:
    """The table has our figures and those of the dissertation."""
    lines = make_chapter(site("school", 2, 2))._lines
    assert "| files of the first week that are gone in the last, mean | 10.0 % | 13 % |" in lines
    assert "| new files a week | 5.0 % | 1.4 % (4.9 % with one site's mistake) |" in lines
    assert "| files that did not change once | 75.0 % | 76 % |" in lines
    assert "| pages that changed at least once | 25.0 % | 44 % |" in lines
    assert "| pages that changed every week | 12.5 % | 15 % |" in lines


def test_finding_of_equal_weeks_follows_from_planted_outcomes() -> None:
    """Sites that vary more between weeks than from each other refute the finding."""
    swinging = make_chapter(site("school", 0, 8, 0), site("chapel", 8, 0, 8))
    steady = make_chapter(site("school", 1, 1, 2), site("chapel", 8, 8, 8))
    holds = [
        next(each["holds"] for each in chapter.findings if "same degree" in str(each["claim"]))
        for chapter in (swinging, steady)
    ]
    assert holds == [False, True]
