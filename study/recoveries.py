"""24 made-up sites, lost and recovered: from each archive alone and from all together, under the three policies."""

from collections.abc import Callable, Sequence

from study.chapter import Chapter
from study.lost import published
from study.lost.experiments import ALL, SETS, once_of_all
from study.lost.figures import compared, contributions, pooled, share, unlike
from study.lost.habits import HABITS
from study.lost.items import Kind
from study.lost.outcome import Outcome, Tally
from study.lost.profiles import SITES
from study.lost.showing import (
    GROUPS,
    NAMES,
    PUT_IN,
    added_share,
    command_of,
    level_of,
    number,
    percent,
    seed_given,
    vector,
)
from unlost.recovery import SELECTABLE_POLICIES
from unlost.research import summarize_values

NAIVE, KNOWLEDGEABLE, EXHAUSTIVE = (each.value for each in SELECTABLE_POLICIES)

_INTRODUCTION = """\
The dissertation on lazy preservation recovered 24 real sites, as if they were lost, from an archive and the caches
of three search engines, and compared. Those caches are gone. Here **sites and repositories are made up**, from a
seed; what recovers is [`unlost recover`](recover.md) as it is, what compares is [`unlost compare`](compare.md).
Nothing is asked for on a network.

Each site has as many pages, images and other files, and is as well known, as one of Table 16; every page links to
the page above it, those below it, eight of a menu and three elsewhere; how sites change is drawn so that all
together come near what the dissertation saw. Repositories have the habits that it measured: what they keep in which
format, how soon, for how long, how reliably. So **much of how large shares are was put in, and is no finding** (the
last table says of which); how policies compare, what repositories are worth together, and what that costs, was not.
Shares hold if they are within ten points of the dissertation's, of almost identical texts within fifteen."""
_HABITS = """\
In the archive's lists a row is a copy, in the engines' an address. A page of a list, the captures of one address
and a copy cost one request each, as on the network."""
_REQUESTS = """\
The dissertation's crawler had to fetch a page from every repository that listed it, since only the copy told its
date. Here lists tell dates, and one copy is fetched: hence the higher efficiency of the two policies with lists,
and the fewer requests of the exhaustive one. The naive policy pays for asking everywhere in both. Naive and
knowledgeable bring back the very same files here, since nothing changes between one recovery and the next; with 24
real sites something did."""


def of(outcomes: Sequence[Outcome], policy: str, archives: tuple[str, ...] = ALL) -> list[Outcome]:
    """Return the recoveries by one policy from these archives, in the order of sites."""
    return [each for each in outcomes if each.policy == policy and each.archives == archives]


def told(chapter: Chapter, outcomes: Sequence[Outcome]) -> None:
    """Tell what came of all recoveries: tables, figures, findings."""
    chapter.line(_INTRODUCTION)
    chapter.line()
    _habits(chapter)
    _results(chapter, of(outcomes, NAIVE))
    _alone(chapter, outcomes)
    _contributions(chapter, of(outcomes, NAIVE))
    _policies(chapter, outcomes)
    _requests(chapter, outcomes)


def _habits(chapter: Chapter) -> None:
    chapter.line("### The repositories")
    chapter.line()
    rows = []
    for each in HABITS:
        keeps = [percent(each.keeps[kind]) for kind in (Kind.PAGE, Kind.IMAGE, Kind.DOCUMENT, Kind.STYLE)]
        stays = "for ever" if each.deep else f"{each.stays} week{'s' * (each.stays > 1)}"
        cap = "all" if each.cap is None else f"the first {each.cap:,}"
        form = "as they are" if each.deep else "pages as they are, documents as pages, images small"
        rows.append(
            (
                each.name,
                published.ARCHIVES[each.id],
                *keeps,
                form,
                f"{each.delay:g}",
                each.lag,
                stays,
                percent(each.there),
                cap,
            )
        )
    heads = ("repository", "after", "keeps pages", "images", "documents", "others", "how", "weeks to the first copy")
    chapter.table((*heads, "weeks until it is shown", "of what is gone", "there in a week", "lists"), rows)
    chapter.line(_HABITS)
    chapter.line()


def _cell(tally: Tally) -> str:
    return f"{tally[0]:,}/{tally[1]:,} {percent(share(tally))}" if tally[0] else "0"


def _results(chapter: Chapter, found: list[Outcome]) -> None:
    """Tell of each site, as Table 16 does."""
    chapter.line("### What came back from all together")
    chapter.line()
    chapter.line("By the naive policy, as in Table 16; original/recovered.")
    chapter.line()
    ranks = {profile.name: profile.rank for profile in SITES}
    rows = []
    for each in found:
        groups = [_cell(each.groups.get(label, (0, 0))) for label in GROUPS]
        similar = percent(each.similar / each.texts) if each.texts else "-"
        total = _cell((each.counts.original, each.counts.back))
        rows.append((each.site, ranks[each.site], total, *groups, vector(each), similar))
    heads = ("site", "rank", "all", *GROUPS, "changed, missing, added", "almost identical, of changed texts")
    chapter.table(heads, rows)
    recovered = summarize_values([each.recovered for each in found])
    changed = summarize_values([each.counts.changed / each.counts.back for each in found if each.counts.back])
    texts = (sum(each.texts for each in found), sum(each.similar for each in found))
    with_query = pooled(found, lambda each: each.queries, "with ?")
    without = pooled(found, lambda each: each.queries, "without ?")
    shallow = pooled(found, lambda each: each.depths, "up to 3")
    deeper = pooled(found, lambda each: each.depths, "deeper")
    groups_ = {label: pooled(found, lambda each: each.groups, label) for label in GROUPS}
    chapter.keep("sites", [_kept(each) for each in found])
    chapter.keep("recovered, naive, all archives", {"mean": recovered.mean, "median": recovered.median})
    chapter.keep("changed of recovered, mean", changed.mean)
    chapter.keep("almost identical of changed texts", share(texts))
    chapter.keep("by group", groups_)
    chapter.keep("by query", {"with ?": with_query, "without ?": without, "p": unlike(with_query, without)})
    chapter.keep("by depth", {"up to 3": shallow, "deeper": deeper, "p": unlike(shallow, deeper)})
    mean, median = recovered.mean or 0.0, recovered.median or 0.0
    chapter.finding(
        "68 % of a site comes back on average, median 72 %",
        f"{percent(mean)}, median {percent(median)}{PUT_IN}",
        holds=abs(mean - 0.68) <= 0.1 and abs(median - 0.72) <= 0.1,
    )
    chapter.finding(
        "30 % of what comes back is changed",
        f"{percent(changed.mean or 0.0)}{PUT_IN}",
        holds=abs((changed.mean or 0.0) - 0.3) <= 0.1,
    )
    chapter.finding(
        "72 % of changed texts are almost identical",
        f"{percent(share(texts))}{PUT_IN}",
        holds=abs(share(texts) - 0.72) <= 0.15,
    )
    chapter.finding(
        "HTML comes back far more often than images",
        f"{percent(share(groups_['HTML']))} and {percent(share(groups_['images']))}{PUT_IN}",
        holds=share(groups_["HTML"]) > share(groups_["images"]),
    )
    chapter.finding(
        "addresses with `?` come back less often: 11 % to 73 % (p < 0.001)",
        f"{percent(share(with_query))} to {percent(share(without))} "
        f"(p {level_of(unlike(with_query, without))}){PUT_IN}",
        holds=share(with_query) < share(without) and unlike(with_query, without) < 0.001,
    )
    chapter.finding(
        "so do paths deeper than three: 52 % to 61 % (p < 0.001)",
        f"{percent(share(deeper))} to {percent(share(shallow))} (p {level_of(unlike(deeper, shallow))}){PUT_IN}",
        holds=share(deeper) < share(shallow) and unlike(deeper, shallow) < 0.001,
    )


def _kept(each: Outcome) -> dict[str, object]:
    """Return a recovery as the chapter's file has it."""
    vector_ = each.difference
    return {
        "site": each.site,
        "counts": [each.counts.identical, each.counts.changed, each.counts.missing, each.counts.added],
        "difference": [round(part, 4) for part in (vector_.changed, vector_.missing, vector_.added)],
        "levels": [round(level, 4) for level in each.levels],
        "similar": each.similar,
        "texts": each.texts,
        "given": dict(each.given),
        "requests": dict(each.requests),
    }


def _alone(chapter: Chapter, outcomes: Sequence[Outcome]) -> None:
    """Tell of each archive alone, as Figure 39 does."""
    chapter.line("### Each alone, and all together")
    chapter.line()
    together = of(outcomes, NAIVE)
    rows, figures, brought, is_better = [], {}, {}, True
    for names in SETS:
        found = of(outcomes, NAIVE, names)
        means = [
            summarize_values([each.recovered for each in of(outcomes, policy.value, names)]).mean or 0.0
            for policy in SELECTABLE_POLICIES
        ]
        groups = [share(pooled(found, lambda each: each.groups, label)) for label in GROUPS]
        test = compared(together, found, lambda each: each.recovered)
        asked = (
            summarize_values([float(each.total_requests) for each in of(outcomes, KNOWLEDGEABLE, names)]).mean or 0.0
        )
        label = "all together" if names == ALL else NAMES[names[0]]
        p = "" if names == ALL else level_of(test.p)
        rows.append((label, *map(percent, means), *map(percent, groups), f"{asked:,.0f}", p))
        figures[label] = {"recovered": means, "by group": groups, "requests": asked, "p": test.p}
        brought[label] = means[0]
        is_better &= names == ALL or (test.above > test.below and test.p < 0.001)
    heads = (
        "from",
        *(f"recovered, {policy.value}" for policy in SELECTABLE_POLICIES),
        *(f"{label}, naive" for label in GROUPS),
    )
    chapter.table((*heads, "requests, knowledgeable", "p: all together is not better"), rows)
    chapter.line("Recovered: means over sites. HTML, images and other: of the files of all sites together.")
    chapter.line()
    chapter.keep("each alone", figures)
    all_of_it = brought.pop("all together")
    best = max((value, label) for label, value in brought.items())
    found_ = f"the best alone brings {percent(best[0])} ({best[1]}), all together {percent(all_of_it)}"
    chapter.finding(
        "no repository alone does; all four have to be used",
        f"{found_}; against each p < 0.001" if is_better else found_,
        holds=is_better,
    )


def _contributions(chapter: Chapter, found: list[Outcome]) -> None:
    """Tell who gave what, as Figure 40 does."""
    chapter.line("### Who gave what")
    chapter.line()
    given = contributions(found)
    rows = []
    for name in ALL:
        shares = [each.given.get(name, 0) / max(1, sum(each.given.values())) for each in found]
        told_ = percent(published.GIVEN_AT_ONCE[name])
        rows.append((NAMES[name], percent(given[name]), percent(min(shares)), percent(max(shares)), told_))
    chapter.table(("repository", "of what came back, mean", "least", "most", "dissertation (Figure 40)"), rows)
    chapter.keep("contributions", given)
    order = sorted(given, key=lambda name: -given[name])
    theirs = sorted(published.GIVEN_AT_ONCE, key=lambda name: -published.GIVEN_AT_ONCE[name])
    chapter.finding(
        "most comes from Google (44 %), then MSN (30 %), IA (19 %), Yahoo (7 %)",
        ", ".join(f"{NAMES[name]} {percent(given[name])}" for name in order) + PUT_IN,
        holds=order == theirs,
    )


def _policies(chapter: Chapter, outcomes: Sequence[Outcome]) -> None:
    """Tell of each site under the three policies, as Tables 17 and 18 do."""
    chapter.line("### The three policies")
    chapter.line()
    chapter.line("From all repositories together: changed, missing, added; in brackets requests.")
    chapter.line()
    by_policy = {policy.value: of(outcomes, policy.value) for policy in SELECTABLE_POLICIES}
    rows = [
        (
            found[0].site,
            f"{found[0].counts.original:,}",
            *(f"{vector(each)} [{each.total_requests:,}]" for each in found),
        )
        for found in zip(*by_policy.values(), strict=True)
    ]
    chapter.table(("site", "files", *by_policy), rows)
    chapter.keep("policies", {policy: [_kept(each) for each in found] for policy, found in by_policy.items()})


_MEASURES: dict[str, tuple[Callable[[Outcome], float], Callable[[float], str]]] = {
    "recovered": (lambda each: each.recovered, percent),
    "added": (added_share, percent),
    "requests": (lambda each: float(each.total_requests), lambda value: f"{value:,.1f}"),
    "efficiency": (lambda each: each.efficiency, number),
    "efficiency without added": (lambda each: each.efficiency_without_added, number),
}
_PAIRS = ((KNOWLEDGEABLE, NAIVE), (EXHAUSTIVE, NAIVE), (EXHAUSTIVE, KNOWLEDGEABLE))


def _requests(chapter: Chapter, outcomes: Sequence[Outcome]) -> None:
    """Tell what the policies cost, as Table 19 does, with the tests beside it."""
    chapter.line("### What they cost")
    chapter.line()
    by_policy = {policy.value: of(outcomes, policy.value) for policy in SELECTABLE_POLICIES}
    rows, means = [], {}
    for name, (measure, shown) in _MEASURES.items():
        for policy, found in by_policy.items():
            values = summarize_values([measure(each) for each in found])
            figures = [values.mean or 0, values.median or 0, values.deviation or 0, values.least or 0, values.most or 0]
            means[name, policy] = figures[0]
            rows.append((name, policy, *map(shown, figures), shown(published.POLICIES[name][policy])))
            chapter.keep(f"{name}, {policy}", figures)
    chapter.table(("", "policy", "mean", "median", "deviation", "least", "most", "dissertation, mean"), rows)
    chapter.line(_REQUESTS)
    chapter.line()
    chapter.line(
        "Wilcoxon's test of matched pairs by signed ranks, over the sites; n is the number of sites that differ:"
    )
    chapter.line()
    tests = {
        (name, pair): compared(by_policy[pair[0]], by_policy[pair[1]], measure)
        for name, (measure, _) in _MEASURES.items()
        for pair in _PAIRS
    }
    chapter.table(
        ("", "first", "second", "n", "ranks, first larger", "ranks, second larger", "p"),
        [(name, *pair, t.pairs, f"{t.above:g}", f"{t.below:g}", level_of(t.p)) for (name, pair), t in tests.items()],
    )
    chapter.keep(
        "wilcoxon",
        [
            {
                "measure": name,
                "first": pair[0],
                "second": pair[1],
                "n": t.pairs,
                "above": t.above,
                "below": t.below,
                "p": t.p,
            }
            for (name, pair), t in tests.items()
        ],
    )
    _cost_findings(chapter, means, {key: (test.above > test.below, test.p) for key, test in tests.items()})


def _cost_findings(
    chapter: Chapter,
    means: dict[tuple[str, str], float],
    tests: dict[tuple[str, tuple[str, str]], tuple[bool, float]],
) -> None:
    def three(name: str) -> str:
        return " / ".join(_MEASURES[name][1](means[name, policy.value]) for policy in SELECTABLE_POLICIES)

    def larger(name: str, first: str, second: str, p: float = 0.001) -> bool:
        if (name, (first, second)) in tests:
            is_larger, found = tests[name, (first, second)]
        else:
            is_smaller, found = tests[name, (second, first)]
            is_larger = not is_smaller
        return is_larger and found < p

    chapter.finding(
        "all policies bring back about as much: 71.4 / 72.4 / 74.7 % (naive, knowledgeable, exhaustive)",
        three("recovered"),
        holds=max(means["recovered", each.value] for each in SELECTABLE_POLICIES)
        - min(means["recovered", each.value] for each in SELECTABLE_POLICIES)
        < 0.1,
    )
    chapter.finding(
        "the exhaustive one adds far more than the others: 8.1 / 11.1 / 51.1 %",
        three("added"),
        holds=means["added", EXHAUSTIVE] > 3 * means["added", KNOWLEDGEABLE] and larger("added", EXHAUSTIVE, NAIVE),
    )
    chapter.finding(
        "the knowledgeable one takes less than half of the requests of either other: 1,712 / 711 / 1,588",
        three("requests"),
        holds=2 * means["requests", KNOWLEDGEABLE] < min(means["requests", NAIVE], means["requests", EXHAUSTIVE]),
    )
    chapter.finding(
        "the exhaustive one is the most efficient, the naive one the least (p < 0.001): 0.16 / 0.41 / 0.49",
        three("efficiency"),
        holds=larger("efficiency", EXHAUSTIVE, KNOWLEDGEABLE) and larger("efficiency", KNOWLEDGEABLE, NAIVE),
    )
    chapter.finding(
        "without what is added, the knowledgeable one is (p < 0.001): 0.15 / 0.37 / 0.22",
        three("efficiency without added"),
        holds=larger("efficiency without added", KNOWLEDGEABLE, EXHAUSTIVE)
        and larger("efficiency without added", KNOWLEDGEABLE, NAIVE),
    )


def main() -> None:
    """Recover, and tell."""
    seed = seed_given()
    title = "Lost sites: each archive alone and all together, under three policies"
    chapter = Chapter("recoveries", title, command_of("recoveries", seed))
    chapter.keep("seed", seed)
    told(chapter, once_of_all(SITES, seed))
    chapter.finish()


if __name__ == "__main__":
    main()
