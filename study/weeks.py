"""Recoveries of 24 simulated sites in each of 14 weeks, while the sites change and archives capture them."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from study.chapter import Chapter
from study.lost import published
from study.lost.experiments import ALL_ARCHIVES, SiteHistory, WeeklyRecoveries, recover_all_weekly
from study.lost.formatting import (
    BY_CONSTRUCTION,
    GROUPS,
    REPOSITORY_NAMES,
    chapter_command,
    format_p_value,
    format_percent,
    format_ratio,
    parse_seed,
)
from study.lost.metrics import archive_contributions, recovered_share, sum_counts
from study.lost.profiles import SITES
from study.lost.result import RecoveredCount, RecoveryResult
from study.signed_ranks import SignedRankResult, wilcoxon_signed_rank
from unlost.research import summarize_values

LEVELS = tuple(published.LEVELS)

_STEADY_RANGE = 0.1  # maximum range of a level over all weeks of a steady site
_INTRODUCTION = """\
The same made-up sites and repositories, from the first week after to the fourteenth: files appear, change and go,
repositories visit by their habits, and every week each site is lost, recovered from all repositories under the
knowledgeable policy, and compared with what it was in that week. The dissertation did so with 300 real sites in the
autumn of 2006; its sites were drawn at random, and many were smaller and less known than these 24, which are made
after those of its first experiment."""


def write_chapter(chapter: Chapter, sites: Sequence[WeeklyRecoveries]) -> None:
    """Write the chapter: tables, figures, findings."""
    chapter.line(_INTRODUCTION)
    chapter.line()
    results = [each for site in sites for each in site.results]
    _levels(chapter, sites)
    _by_week(chapter, results)
    _steadiness(chapter, sites)
    _types(chapter, results)
    _repositories(chapter, results)
    _site_histories(chapter, [site.history for site in sites])


def perfect_share(sites: Sequence[WeeklyRecoveries], level: int) -> float:
    """Return the share of sites that were perfect on a level, counted from 0, in at least one week."""
    return fmean(any(each.levels[level] == 0 for each in site.results) for site in sites)


def _levels(chapter: Chapter, sites: Sequence[WeeklyRecoveries]) -> None:
    """Report the five levels, as Table 20, and whether each is lower than the previous one."""
    chapter.line("### Levels of success")
    chapter.line()
    chapter.line("Over all sites and weeks; the lower, the better. Perfect: of all sites, those that once were.")
    chapter.line()
    results = [each for site in sites for each in site.results]
    rows, means = [], []
    for index, name in enumerate(LEVELS):
        found = summarize_values([each.levels[index] for each in results])
        figures = [value or 0.0 for value in (found.mean, found.median, found.deviation, found.least, found.most)]
        theirs = published.LEVELS[name]
        means.append(figures[0])
        cells = [f"{value:.4f}" for value in figures]
        ours = format_percent(perfect_share(sites, index))
        rows.append((name, *cells, ours, f"{theirs[0]:.4f}", f"{theirs[1]:.4f}", format_percent(theirs[5])))
        chapter.add_figure(name, {"values": figures, "perfect": perfect_share(sites, index)})
    heads = ("level", "mean", "median", "deviation", "least", "most", "perfect")
    chapter.table((*heads, "dissertation: mean", "median", "perfect"), rows)
    chapter.add_finding(
        "success falls from level to level: means 0.776, 0.714, 0.625, 0.457, 0.390",
        ", ".join(f"{mean:.3f}" for mean in means),
        holds=all(one > other for one, other in pairwise(means)),
    )
    chapter.add_finding(
        "61 % of a site can be recovered on average (1 - s5), whether or not it is changed",
        f"{format_percent(1 - means[4])}{BY_CONSTRUCTION}",
        holds=abs(1 - means[4] - 0.61) <= 0.1,
    )
    chapter.add_finding(
        "few sites are ever perfect: 3 % on s1, 10 % on s5",
        f"{format_percent(perfect_share(sites, 0))} on s1, {format_percent(perfect_share(sites, 4))} on s5",
        holds=perfect_share(sites, 0) <= 0.1 and perfect_share(sites, 4) <= 0.25,
    )


def _by_week(chapter: Chapter, results: Sequence[RecoveryResult]) -> None:
    """Report each week over all sites."""
    chapter.line("### Week by week")
    chapter.line()
    weeks = sorted({each.week for each in results})
    rows, figures_by_row = [], []
    for week in weeks:
        found = [each for each in results if each.week == week]
        levels = [fmean(each.levels[index] for each in found) for index in range(len(LEVELS))]
        recovered = fmean(each.recovered for each in found)
        mean_requests = fmean(each.total_requests for each in found)
        efficiency = fmean(each.efficiency for each in found)
        rows.append(
            (
                week,
                format_percent(recovered),
                *(f"{level:.3f}" for level in levels),
                f"{mean_requests:,.1f}",
                format_ratio(efficiency),
            )
        )
        figures_by_row.append(
            {
                "week": week,
                "recovered": recovered,
                "levels": levels,
                "requests": mean_requests,
                "efficiency": efficiency,
            }
        )
    chapter.table(("week", "recovered", *LEVELS, "requests", "efficiency"), rows)
    chapter.line("Means over sites.")
    chapter.line()
    chapter.add_figure("weeks", figures_by_row)


def _steadiness(chapter: Chapter, sites: Sequence[WeeklyRecoveries]) -> None:
    """Report whether the success of sites is steady, as Figure 44."""
    first = [site.results[0] for site in sites]
    last = [site.results[-1] for site in sites]
    rows, figures_by_row = [], []
    for index, name in enumerate(LEVELS):
        test = compared_levels(first, last, index)
        steady = fmean(_range(site, index) <= _STEADY_RANGE for site in sites)
        rows.append(
            (name, test.pairs, f"{test.above:g}", f"{test.below:g}", format_p_value(test.p), format_percent(steady))
        )
        figures_by_row.append(
            {"level": name, "n": test.pairs, "above": test.above, "below": test.below, "p": test.p, "steady": steady}
        )
    chapter.line(
        "Wilcoxon's test, the first week against the last, over the sites; n is the number of sites that differ. "
        f"Steady: of all sites, those whose best and worst week lie at most {_STEADY_RANGE:g} apart."
    )
    chapter.line()
    chapter.table(("level", "n", "ranks, first larger", "ranks, last larger", "p", "steady"), rows)
    chapter.add_figure("first and last week", figures_by_row)
    within = fmean(summarize_values([each.levels[4] for each in site.results]).deviation or 0.0 for site in sites)
    between = summarize_values([fmean(each.levels[4] for each in site.results) for site in sites]).deviation or 0.0
    chapter.add_figure("deviation of s5", {"within sites": within, "between sites": between})
    chapter.add_finding(
        "most sites come back to the same degree each week; sites differ far more than weeks do",
        f"s5 deviates by {within:.3f} from week to week, by {between:.3f} from site to site",
        holds=between > 2 * within,
    )


def compared_levels(first: Sequence[RecoveryResult], last: Sequence[RecoveryResult], index: int) -> SignedRankResult:
    """Test whether a level, counted from 0, differs between two weeks of the same sites."""
    return wilcoxon_signed_rank([each.levels[index] for each in first], [each.levels[index] for each in last])


def _range(site: WeeklyRecoveries, index: int) -> float:
    found = [each.levels[index] for each in site.results]
    return max(found) - min(found)


def _types(chapter: Chapter, results: Sequence[RecoveryResult]) -> None:
    """Report the recovered share of each media type."""
    means = {}
    for label in GROUPS:
        shares = [recovered_share(each.groups[label]) for each in results if each.groups.get(label, (0, 0))[0]]
        means[label] = fmean(shares) if shares else 0.0
    chapter.add_figure(
        "by group", {label: {"mean": means[label], "all": sum_counts(results, _groups, label)} for label in GROUPS}
    )
    chapter.add_finding(
        "77 % of HTML comes back, 42 % of images, 32 % of what is neither HTML nor other text",
        f"{format_percent(means['HTML'])} of HTML, {format_percent(means['images'])} of images, "
        f"{format_percent(means['other'])} of others, documents among them{BY_CONSTRUCTION}",
        holds=means["HTML"] > means["images"] and means["HTML"] > means["other"],
    )


def _groups(outcome: RecoveryResult) -> Mapping[str, RecoveredCount]:
    return outcome.groups


def _repositories(chapter: Chapter, results: Sequence[RecoveryResult]) -> None:
    """Report contributions and requests of each repository, as Table 21."""
    chapter.line("### What each repository gave, and what it cost")
    chapter.line()
    given = archive_contributions(results)
    rows, efficiencies = [], {}
    for name in ALL_ARCHIVES:
        mean_requests = fmean(each.requests_by_archive.get(name, 0) for each in results)
        total = sum(each.resources_by_archive.get(name, 0) for each in results)
        efficiencies[name] = total / max(1, sum(each.requests_by_archive.get(name, 0) for each in results))
        theirs = (published.GIVEN_WEEKLY[name], published.REQUESTS_WEEKLY[name], published.EFFICIENCY_WEEKLY[name])
        cells = (format_percent(theirs[0]), f"{theirs[1]:.1f}", format_ratio(theirs[2]))
        rows.append(
            (
                REPOSITORY_NAMES[name],
                format_percent(given[name]),
                f"{mean_requests:,.1f}",
                format_ratio(efficiencies[name]),
                *cells,
            )
        )
        chapter.add_figure(
            f"repository: {name}", {"given": given[name], "requests": mean_requests, "efficiency": efficiencies[name]}
        )
    heads = ("repository", "of what came back", "requests a site and week", "efficiency")
    chapter.table((*heads, "dissertation: gave", "requests", "efficiency"), rows)
    chapter.line("Efficiency: files that a repository gave for each request that it was sent.")
    chapter.line()
    order = sorted(given, key=lambda name: -given[name])
    chapter.add_finding(
        "MSN gives most (32 %), then Google (27 %), IA (23 %), Yahoo (17 %)",
        ", ".join(f"{REPOSITORY_NAMES[name]} {format_percent(given[name])}" for name in order) + BY_CONSTRUCTION,
        holds=order == sorted(published.GIVEN_WEEKLY, key=lambda name: -published.GIVEN_WEEKLY[name]),
    )
    best = max(efficiencies, key=lambda name: efficiencies[name])
    worst = min(efficiencies, key=lambda name: efficiencies[name])
    chapter.add_finding(
        "MSN is the most efficient (0.62), Yahoo the least (0.24), having been asked twice for each page",
        f"{REPOSITORY_NAMES[best]} ({format_ratio(efficiencies[best])}) and "
        f"{REPOSITORY_NAMES[worst]} ({format_ratio(efficiencies[worst])})",
        holds=best == "fresh" and worst == "patchy",
    )


def _site_histories(chapter: Chapter, histories: Sequence[SiteHistory]) -> None:
    """Report the changes of the simulated sites, compared with those of the dissertation."""
    chapter.line("### The sites meanwhile")
    chapter.line()
    chapter.line("This is what was drawn, not what was found: it says how near the made-up sites are to the real ones.")
    chapter.line()
    lost = fmean(1 - each.remaining / each.first for each in histories)
    none_lost = fmean(each.remaining == each.first for each in histories)
    none_new = fmean(not any(each.new_shares) for each in histories)
    birth = fmean(fmean(each.new_shares) if each.new_shares else 0.0 for each in histories)
    unchanged = 1 - sum(each.changed for each in histories) / sum(each.observed for each in histories)
    still = fmean(each.changed == 0 for each in histories)
    pages = sum(each.pages for each in histories)
    changed = sum(each.changed_pages for each in histories) / pages
    restless = sum(each.restless_pages for each in histories) / pages
    rows = [
        ("files of the first week that are gone in the last, mean", format_percent(lost), "13 %"),
        ("sites that lost none", format_percent(none_lost), "39 %"),
        ("sites that got no new ones", format_percent(none_new), "50 %"),
        ("new files a week", format_percent(birth), "1.4 % (4.9 % with one site's mistake)"),
        ("files that did not change once", format_percent(unchanged), "76 %"),
        ("pages that changed at least once", format_percent(changed), "44 %"),
        ("pages that changed every week", format_percent(restless), "15 %"),
        ("sites in which nothing changed", format_percent(still), "37 %"),
    ]
    chapter.table(("", "made-up sites", "dissertation"), rows)
    names = ("lost", "none lost", "none new", "birth", "unchanged", "changed pages", "restless pages", "still")
    values = (lost, none_lost, none_new, birth, unchanged, changed, restless, still)
    chapter.add_figure("lives", dict(zip(names, values, strict=True)))


def main() -> None:
    """Recover all sites in each week and write the chapter."""
    seed = parse_seed()
    chapter = Chapter("weeks", "Lost sites, week by week", chapter_command("weeks", seed))
    chapter.add_figure("seed", seed)
    write_chapter(chapter, recover_all_weekly(SITES, seed))
    chapter.finish()


if __name__ == "__main__":
    main()
