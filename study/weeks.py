"""24 made-up sites over 14 weeks: they change, archives follow by their habits, and each week they are recovered."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from study.chapter import Chapter
from study.lost import published
from study.lost.experiments import ALL, Life, Weeks, weekly_of_all
from study.lost.figures import contributions, pooled, share
from study.lost.outcome import Outcome, Tally
from study.lost.profiles import SITES
from study.lost.showing import GROUPS, NAMES, PUT_IN, command_of, level_of, number, percent, seed_given
from unlost.research import summarize_values
from unlost.statistics import SignedRankResult, wilcoxon_signed_rank

LEVELS = tuple(published.LEVELS)

_STEADY = 0.1  # by how much a site's success may differ from week to week, and be about the same
_INTRODUCTION = """\
The same made-up sites and repositories, from the first week after to the fourteenth: files appear, change and go,
repositories visit by their habits, and every week each site is lost, recovered from all repositories under the
knowledgeable policy, and compared with what it was in that week. The dissertation did so with 300 real sites in the
autumn of 2006; its sites were drawn at random, and many were smaller and less known than these 24, which are made
after those of its first experiment."""


def told(chapter: Chapter, sites: Sequence[Weeks]) -> None:
    """Tell what came of all weeks: tables, figures, findings."""
    chapter.line(_INTRODUCTION)
    chapter.line()
    outcomes = [each for site in sites for each in site.outcomes]
    _levels(chapter, sites)
    _by_week(chapter, outcomes)
    _steadiness(chapter, sites)
    _types(chapter, outcomes)
    _repositories(chapter, outcomes)
    _lives(chapter, [site.life for site in sites])


def perfect(sites: Sequence[Weeks], level: int) -> float:
    """Return the share of sites that were perfect on a level, counted from 0, in at least one week."""
    return fmean(any(each.levels[level] == 0 for each in site.outcomes) for site in sites)


def _levels(chapter: Chapter, sites: Sequence[Weeks]) -> None:
    """Tell of the five levels, as Table 20 does, and whether each is lower than the one before."""
    chapter.line("### Levels of success")
    chapter.line()
    chapter.line("Over all sites and weeks; the lower, the better. Perfect: of all sites, those that once were.")
    chapter.line()
    outcomes = [each for site in sites for each in site.outcomes]
    rows, means = [], []
    for place, name in enumerate(LEVELS):
        found = summarize_values([each.levels[place] for each in outcomes])
        figures = [value or 0.0 for value in (found.mean, found.median, found.deviation, found.least, found.most)]
        theirs = published.LEVELS[name]
        means.append(figures[0])
        cells = [f"{value:.4f}" for value in figures]
        ours = percent(perfect(sites, place))
        rows.append((name, *cells, ours, f"{theirs[0]:.4f}", f"{theirs[1]:.4f}", percent(theirs[5])))
        chapter.keep(name, {"values": figures, "perfect": perfect(sites, place)})
    heads = ("level", "mean", "median", "deviation", "least", "most", "perfect")
    chapter.table((*heads, "dissertation: mean", "median", "perfect"), rows)
    chapter.finding(
        "success falls from level to level: means 0.776, 0.714, 0.625, 0.457, 0.390",
        ", ".join(f"{mean:.3f}" for mean in means),
        holds=all(one > other for one, other in pairwise(means)),
    )
    chapter.finding(
        "61 % of a site can be recovered on average (1 - s5), whether or not it is changed",
        f"{percent(1 - means[4])}{PUT_IN}",
        holds=abs(1 - means[4] - 0.61) <= 0.1,
    )
    chapter.finding(
        "few sites are ever perfect: 3 % on s1, 10 % on s5",
        f"{percent(perfect(sites, 0))} on s1, {percent(perfect(sites, 4))} on s5",
        holds=perfect(sites, 0) <= 0.1 and perfect(sites, 4) <= 0.25,
    )


def _by_week(chapter: Chapter, outcomes: Sequence[Outcome]) -> None:
    """Tell of each week, over all sites."""
    chapter.line("### Week by week")
    chapter.line()
    weeks = sorted({each.week for each in outcomes})
    rows, kept = [], []
    for week in weeks:
        found = [each for each in outcomes if each.week == week]
        levels = [fmean(each.levels[place] for each in found) for place in range(len(LEVELS))]
        recovered = fmean(each.recovered for each in found)
        asked = fmean(each.total_requests for each in found)
        efficiency = fmean(each.efficiency for each in found)
        rows.append(
            (week, percent(recovered), *(f"{level:.3f}" for level in levels), f"{asked:,.1f}", number(efficiency))
        )
        kept.append(
            {"week": week, "recovered": recovered, "levels": levels, "requests": asked, "efficiency": efficiency}
        )
    chapter.table(("week", "recovered", *LEVELS, "requests", "efficiency"), rows)
    chapter.line("Means over sites.")
    chapter.line()
    chapter.keep("weeks", kept)


def _steadiness(chapter: Chapter, sites: Sequence[Weeks]) -> None:
    """Tell whether sites come back to the same degree each week, as Figure 44 does."""
    first = [site.outcomes[0] for site in sites]
    last = [site.outcomes[-1] for site in sites]
    rows, kept = [], []
    for place, name in enumerate(LEVELS):
        test = compared_levels(first, last, place)
        steady = fmean(_range(site, place) <= _STEADY for site in sites)
        rows.append((name, test.pairs, f"{test.above:g}", f"{test.below:g}", level_of(test.p), percent(steady)))
        kept.append(
            {"level": name, "n": test.pairs, "above": test.above, "below": test.below, "p": test.p, "steady": steady}
        )
    chapter.line(
        "Wilcoxon's test, the first week against the last, over the sites; n is the number of sites that differ. "
        f"Steady: of all sites, those whose best and worst week lie at most {_STEADY:g} apart."
    )
    chapter.line()
    chapter.table(("level", "n", "ranks, first larger", "ranks, last larger", "p", "steady"), rows)
    chapter.keep("first and last week", kept)
    within = fmean(summarize_values([each.levels[4] for each in site.outcomes]).deviation or 0.0 for site in sites)
    between = summarize_values([fmean(each.levels[4] for each in site.outcomes) for site in sites]).deviation or 0.0
    chapter.keep("deviation of s5", {"within sites": within, "between sites": between})
    chapter.finding(
        "most sites come back to the same degree each week; sites differ far more than weeks do",
        f"s5 deviates by {within:.3f} from week to week, by {between:.3f} from site to site",
        holds=between > 2 * within,
    )


def compared_levels(first: Sequence[Outcome], last: Sequence[Outcome], place: int) -> SignedRankResult:
    """Return whether a level, counted from 0, differs between two weeks of the same sites."""
    return wilcoxon_signed_rank([each.levels[place] for each in first], [each.levels[place] for each in last])


def _range(site: Weeks, place: int) -> float:
    found = [each.levels[place] for each in site.outcomes]
    return max(found) - min(found)


def _types(chapter: Chapter, outcomes: Sequence[Outcome]) -> None:
    """Tell which types come back."""
    means = {}
    for label in GROUPS:
        shares = [share(each.groups[label]) for each in outcomes if each.groups.get(label, (0, 0))[0]]
        means[label] = fmean(shares) if shares else 0.0
    chapter.keep(
        "by group", {label: {"mean": means[label], "all": pooled(outcomes, _groups, label)} for label in GROUPS}
    )
    chapter.finding(
        "77 % of HTML comes back, 42 % of images, 32 % of what is neither HTML nor other text",
        f"{percent(means['HTML'])} of HTML, {percent(means['images'])} of images, "
        f"{percent(means['other'])} of others, documents among them{PUT_IN}",
        holds=means["HTML"] > means["images"] and means["HTML"] > means["other"],
    )


def _groups(outcome: Outcome) -> Mapping[str, Tally]:
    return outcome.groups


def _repositories(chapter: Chapter, outcomes: Sequence[Outcome]) -> None:
    """Tell who gave what, and what it cost, as Table 21 does."""
    chapter.line("### What each repository gave, and what it cost")
    chapter.line()
    given = contributions(outcomes)
    rows, efficiencies = [], {}
    for name in ALL:
        asked = fmean(each.requests.get(name, 0) for each in outcomes)
        total = sum(each.given.get(name, 0) for each in outcomes)
        efficiencies[name] = total / max(1, sum(each.requests.get(name, 0) for each in outcomes))
        theirs = (published.GIVEN_WEEKLY[name], published.REQUESTS_WEEKLY[name], published.EFFICIENCY_WEEKLY[name])
        cells = (percent(theirs[0]), f"{theirs[1]:.1f}", number(theirs[2]))
        rows.append((NAMES[name], percent(given[name]), f"{asked:,.1f}", number(efficiencies[name]), *cells))
        chapter.keep(f"repository: {name}", {"given": given[name], "requests": asked, "efficiency": efficiencies[name]})
    heads = ("repository", "of what came back", "requests a site and week", "efficiency")
    chapter.table((*heads, "dissertation: gave", "requests", "efficiency"), rows)
    chapter.line("Efficiency: files that a repository gave for each request that it was sent.")
    chapter.line()
    order = sorted(given, key=lambda name: -given[name])
    chapter.finding(
        "MSN gives most (32 %), then Google (27 %), IA (23 %), Yahoo (17 %)",
        ", ".join(f"{NAMES[name]} {percent(given[name])}" for name in order) + PUT_IN,
        holds=order == sorted(published.GIVEN_WEEKLY, key=lambda name: -published.GIVEN_WEEKLY[name]),
    )
    best = max(efficiencies, key=lambda name: efficiencies[name])
    worst = min(efficiencies, key=lambda name: efficiencies[name])
    chapter.finding(
        "MSN is the most efficient (0.62), Yahoo the least (0.24), having been asked twice for each page",
        f"{NAMES[best]} ({number(efficiencies[best])}) and {NAMES[worst]} ({number(efficiencies[worst])})",
        holds=best == "fresh" and worst == "patchy",
    )


def _lives(chapter: Chapter, lives: Sequence[Life]) -> None:
    """Tell what became of the sites themselves: what was put in, beside what the dissertation saw."""
    chapter.line("### The sites meanwhile")
    chapter.line()
    chapter.line("This is what was drawn, not what was found: it says how near the made-up sites are to the real ones.")
    chapter.line()
    lost = fmean(1 - each.left / each.first for each in lives)
    none_lost = fmean(each.left == each.first for each in lives)
    none_new = fmean(not any(each.born) for each in lives)
    birth = fmean(fmean(each.born) if each.born else 0.0 for each in lives)
    unchanged = 1 - sum(each.changed for each in lives) / sum(each.looked for each in lives)
    still = fmean(each.changed == 0 for each in lives)
    pages = sum(each.pages for each in lives)
    changed = sum(each.changed_pages for each in lives) / pages
    restless = sum(each.restless_pages for each in lives) / pages
    rows = [
        ("files of the first week that are gone in the last, mean", percent(lost), "13 %"),
        ("sites that lost none", percent(none_lost), "39 %"),
        ("sites that got no new ones", percent(none_new), "50 %"),
        ("new files a week", percent(birth), "1.4 % (4.9 % with one site's mistake)"),
        ("files that did not change once", percent(unchanged), "76 %"),
        ("pages that changed at least once", percent(changed), "44 %"),
        ("pages that changed every week", percent(restless), "15 %"),
        ("sites in which nothing changed", percent(still), "37 %"),
    ]
    chapter.table(("", "made-up sites", "dissertation"), rows)
    names = ("lost", "none lost", "none new", "birth", "unchanged", "changed pages", "restless pages", "still")
    values = (lost, none_lost, none_new, birth, unchanged, changed, restless, still)
    chapter.keep("lives", dict(zip(names, values, strict=True)))


def main() -> None:
    """Recover week by week, and tell."""
    seed = seed_given()
    chapter = Chapter("weeks", "Lost sites, week by week", command_of("weeks", seed))
    chapter.keep("seed", seed)
    told(chapter, weekly_of_all(SITES, seed))
    chapter.finish()


if __name__ == "__main__":
    main()
