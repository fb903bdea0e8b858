"""Recoveries of 24 simulated sites from each archive alone and from all together, under the three policies."""

from collections.abc import Callable, Sequence

from study.chapter import Chapter
from study.lost import published
from study.lost.experiments import ALL_ARCHIVES, ARCHIVE_SETS, recover_all_once
from study.lost.formatting import (
    BY_CONSTRUCTION,
    GROUPS,
    REPOSITORY_NAMES,
    added_share,
    chapter_command,
    format_difference,
    format_p_value,
    format_percent,
    format_ratio,
    parse_seed,
)
from study.lost.metrics import archive_contributions, chi_square_p_value, compare_pairs, recovered_share, sum_counts
from study.lost.profiles import SITES
from study.lost.repository_models import REPOSITORY_MODELS
from study.lost.result import RecoveredCount, RecoveryResult
from study.lost.site_files import FileKind
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


def select_results(
    results: Sequence[RecoveryResult], policy: str, archives: tuple[str, ...] = ALL_ARCHIVES
) -> list[RecoveryResult]:
    """Return the results of one policy with these archives, in the order of sites."""
    return [each for each in results if each.policy == policy and each.archives == archives]


def write_chapter(chapter: Chapter, results: Sequence[RecoveryResult]) -> None:
    """Write the chapter: tables, figures, findings."""
    chapter.line(_INTRODUCTION)
    chapter.line()
    _habits(chapter)
    _results(chapter, select_results(results, NAIVE))
    _single_archives(chapter, results)
    _contributions(chapter, select_results(results, NAIVE))
    _policies(chapter, results)
    _requests(chapter, results)


def _habits(chapter: Chapter) -> None:
    chapter.line("### The repositories")
    chapter.line()
    rows = []
    for each in REPOSITORY_MODELS:
        keeps = [
            format_percent(each.archived_share[kind])
            for kind in (FileKind.PAGE, FileKind.IMAGE, FileKind.DOCUMENT, FileKind.STYLE)
        ]
        stays = "for ever" if each.keeps_versions else f"{each.retention_weeks} week{'s' * (each.retention_weeks > 1)}"
        cap = "all" if each.max_rows is None else f"the first {each.max_rows:,}"
        form = "as they are" if each.keeps_versions else "pages as they are, documents as pages, images small"
        rows.append(
            (
                each.name,
                published.ARCHIVES[each.id],
                *keeps,
                form,
                f"{each.mean_delay:g}",
                each.publication_lag,
                stays,
                format_percent(each.availability),
                cap,
            )
        )
    heads = ("repository", "after", "keeps pages", "images", "documents", "others", "how", "weeks to the first copy")
    chapter.table((*heads, "weeks until it is shown", "of what is gone", "there in a week", "lists"), rows)
    chapter.line(_HABITS)
    chapter.line()


def _cell(count: RecoveredCount) -> str:
    return f"{count[0]:,}/{count[1]:,} {format_percent(recovered_share(count))}" if count[0] else "0"


def _results(chapter: Chapter, found: list[RecoveryResult]) -> None:
    """Report each site, as Table 16."""
    chapter.line("### What came back from all together")
    chapter.line()
    chapter.line("By the naive policy, as in Table 16; original/recovered.")
    chapter.line()
    ranks = {profile.name: profile.rank for profile in SITES}
    rows = []
    for each in found:
        groups = [_cell(each.groups.get(label, (0, 0))) for label in GROUPS]
        similar = format_percent(each.similar / each.texts) if each.texts else "-"
        total = _cell((each.counts.original, each.counts.back))
        rows.append((each.site, ranks[each.site], total, *groups, format_difference(each), similar))
    heads = ("site", "rank", "all", *GROUPS, "changed, missing, added", "almost identical, of changed texts")
    chapter.table(heads, rows)
    recovered = summarize_values([each.recovered for each in found])
    changed = summarize_values([each.counts.changed / each.counts.back for each in found if each.counts.back])
    texts = (sum(each.texts for each in found), sum(each.similar for each in found))
    with_query = sum_counts(found, lambda each: each.queries, "with ?")
    without = sum_counts(found, lambda each: each.queries, "without ?")
    shallow = sum_counts(found, lambda each: each.depths, "up to 3")
    deeper = sum_counts(found, lambda each: each.depths, "deeper")
    groups_ = {label: sum_counts(found, lambda each: each.groups, label) for label in GROUPS}
    chapter.add_figure("sites", [_to_json(each) for each in found])
    chapter.add_figure("recovered, naive, all archives", {"mean": recovered.mean, "median": recovered.median})
    chapter.add_figure("changed of recovered, mean", changed.mean)
    chapter.add_figure("almost identical of changed texts", recovered_share(texts))
    chapter.add_figure("by group", groups_)
    chapter.add_figure(
        "by query", {"with ?": with_query, "without ?": without, "p": chi_square_p_value(with_query, without)}
    )
    chapter.add_figure("by depth", {"up to 3": shallow, "deeper": deeper, "p": chi_square_p_value(shallow, deeper)})
    mean, median = recovered.mean or 0.0, recovered.median or 0.0
    chapter.add_finding(
        "68 % of a site comes back on average, median 72 %",
        f"{format_percent(mean)}, median {format_percent(median)}{BY_CONSTRUCTION}",
        holds=abs(mean - 0.68) <= 0.1 and abs(median - 0.72) <= 0.1,
    )
    chapter.add_finding(
        "30 % of what comes back is changed",
        f"{format_percent(changed.mean or 0.0)}{BY_CONSTRUCTION}",
        holds=abs((changed.mean or 0.0) - 0.3) <= 0.1,
    )
    chapter.add_finding(
        "72 % of changed texts are almost identical",
        f"{format_percent(recovered_share(texts))}{BY_CONSTRUCTION}",
        holds=abs(recovered_share(texts) - 0.72) <= 0.15,
    )
    chapter.add_finding(
        "HTML comes back far more often than images",
        f"{format_percent(recovered_share(groups_['HTML']))} and {format_percent(recovered_share(groups_['images']))}"
        f"{BY_CONSTRUCTION}",
        holds=recovered_share(groups_["HTML"]) > recovered_share(groups_["images"]),
    )
    chapter.add_finding(
        "addresses with `?` come back less often: 11 % to 73 % (p < 0.001)",
        f"{format_percent(recovered_share(with_query))} to {format_percent(recovered_share(without))} "
        f"(p {format_p_value(chi_square_p_value(with_query, without))}){BY_CONSTRUCTION}",
        holds=recovered_share(with_query) < recovered_share(without)
        and chi_square_p_value(with_query, without) < 0.001,
    )
    chapter.add_finding(
        "so do paths deeper than three: 52 % to 61 % (p < 0.001)",
        f"{format_percent(recovered_share(deeper))} to {format_percent(recovered_share(shallow))} "
        f"(p {format_p_value(chi_square_p_value(deeper, shallow))}){BY_CONSTRUCTION}",
        holds=recovered_share(deeper) < recovered_share(shallow) and chi_square_p_value(deeper, shallow) < 0.001,
    )


def _to_json(each: RecoveryResult) -> dict[str, object]:
    """Return a result for the JSON file of the chapter."""
    vector_ = each.difference
    return {
        "site": each.site,
        "counts": [each.counts.identical, each.counts.changed, each.counts.missing, each.counts.added],
        "difference": [round(part, 4) for part in (vector_.changed, vector_.missing, vector_.added)],
        "levels": [round(level, 4) for level in each.levels],
        "similar": each.similar,
        "texts": each.texts,
        "given": dict(each.resources_by_archive),
        "requests": dict(each.requests_by_archive),
    }


def _single_archives(chapter: Chapter, results: Sequence[RecoveryResult]) -> None:
    """Report each archive alone, as Figure 39."""
    chapter.line("### Each alone, and all together")
    chapter.line()
    together = select_results(results, NAIVE)
    rows, figures, brought, is_better = [], {}, {}, True
    for names in ARCHIVE_SETS:
        found = select_results(results, NAIVE, names)
        means = [
            summarize_values([each.recovered for each in select_results(results, policy.value, names)]).mean or 0.0
            for policy in SELECTABLE_POLICIES
        ]
        groups = [recovered_share(sum_counts(found, lambda each: each.groups, label)) for label in GROUPS]
        test = compare_pairs(together, found, lambda each: each.recovered)
        requests = (
            summarize_values(
                [float(each.total_requests) for each in select_results(results, KNOWLEDGEABLE, names)]
            ).mean
            or 0.0
        )
        label = "all together" if names == ALL_ARCHIVES else REPOSITORY_NAMES[names[0]]
        p = "" if names == ALL_ARCHIVES else format_p_value(test.p)
        rows.append((label, *map(format_percent, means), *map(format_percent, groups), f"{requests:,.0f}", p))
        figures[label] = {"recovered": means, "by group": groups, "requests": requests, "p": test.p}
        brought[label] = means[0]
        is_better &= names == ALL_ARCHIVES or (test.above > test.below and test.p < 0.001)
    heads = (
        "from",
        *(f"recovered, {policy.value}" for policy in SELECTABLE_POLICIES),
        *(f"{label}, naive" for label in GROUPS),
    )
    chapter.table((*heads, "requests, knowledgeable", "p: all together is not better"), rows)
    chapter.line("Recovered: means over sites. HTML, images and other: of the files of all sites together.")
    chapter.line()
    chapter.add_figure("each alone", figures)
    all_of_it = brought.pop("all together")
    best = max((value, label) for label, value in brought.items())
    found_ = f"the best alone brings {format_percent(best[0])} ({best[1]}), all together {format_percent(all_of_it)}"
    chapter.add_finding(
        "no repository alone does; all four have to be used",
        f"{found_}; against each p < 0.001" if is_better else found_,
        holds=is_better,
    )


def _contributions(chapter: Chapter, found: list[RecoveryResult]) -> None:
    """Report the contribution of each archive, as Figure 40."""
    chapter.line("### Who gave what")
    chapter.line()
    given = archive_contributions(found)
    rows = []
    for name in ALL_ARCHIVES:
        shares = [
            each.resources_by_archive.get(name, 0) / max(1, sum(each.resources_by_archive.values())) for each in found
        ]
        published_share = format_percent(published.GIVEN_AT_ONCE[name])
        rows.append(
            (
                REPOSITORY_NAMES[name],
                format_percent(given[name]),
                format_percent(min(shares)),
                format_percent(max(shares)),
                published_share,
            )
        )
    chapter.table(("repository", "of what came back, mean", "least", "most", "dissertation (Figure 40)"), rows)
    chapter.add_figure("contributions", given)
    order = sorted(given, key=lambda name: -given[name])
    theirs = sorted(published.GIVEN_AT_ONCE, key=lambda name: -published.GIVEN_AT_ONCE[name])
    chapter.add_finding(
        "most comes from Google (44 %), then MSN (30 %), IA (19 %), Yahoo (7 %)",
        ", ".join(f"{REPOSITORY_NAMES[name]} {format_percent(given[name])}" for name in order) + BY_CONSTRUCTION,
        holds=order == theirs,
    )


def _policies(chapter: Chapter, results: Sequence[RecoveryResult]) -> None:
    """Report each site under the three policies, as Tables 17 and 18."""
    chapter.line("### The three policies")
    chapter.line()
    chapter.line("From all repositories together: changed, missing, added; in brackets requests.")
    chapter.line()
    by_policy = {policy.value: select_results(results, policy.value) for policy in SELECTABLE_POLICIES}
    rows = [
        (
            found[0].site,
            f"{found[0].counts.original:,}",
            *(f"{format_difference(each)} [{each.total_requests:,}]" for each in found),
        )
        for found in zip(*by_policy.values(), strict=True)
    ]
    chapter.table(("site", "files", *by_policy), rows)
    chapter.add_figure("policies", {policy: [_to_json(each) for each in found] for policy, found in by_policy.items()})


_MEASURES: dict[str, tuple[Callable[[RecoveryResult], float], Callable[[float], str]]] = {
    "recovered": (lambda each: each.recovered, format_percent),
    "added": (added_share, format_percent),
    "requests": (lambda each: float(each.total_requests), lambda value: f"{value:,.1f}"),
    "efficiency": (lambda each: each.efficiency, format_ratio),
    "efficiency without added": (lambda each: each.efficiency_without_added, format_ratio),
}
_PAIRS = ((KNOWLEDGEABLE, NAIVE), (EXHAUSTIVE, NAIVE), (EXHAUSTIVE, KNOWLEDGEABLE))


def _requests(chapter: Chapter, results: Sequence[RecoveryResult]) -> None:
    """Report the cost of the policies, as Table 19, with significance tests."""
    chapter.line("### What they cost")
    chapter.line()
    by_policy = {policy.value: select_results(results, policy.value) for policy in SELECTABLE_POLICIES}
    rows, means = [], {}
    for name, (measure, shown) in _MEASURES.items():
        for policy, found in by_policy.items():
            values = summarize_values([measure(each) for each in found])
            figures = [values.mean or 0, values.median or 0, values.deviation or 0, values.least or 0, values.most or 0]
            means[name, policy] = figures[0]
            rows.append((name, policy, *map(shown, figures), shown(published.POLICIES[name][policy])))
            chapter.add_figure(f"{name}, {policy}", figures)
    chapter.table(("", "policy", "mean", "median", "deviation", "least", "most", "dissertation, mean"), rows)
    chapter.line(_REQUESTS)
    chapter.line()
    chapter.line(
        "Wilcoxon's test of matched pairs by signed ranks, over the sites; n is the number of sites that differ:"
    )
    chapter.line()
    tests = {
        (name, pair): compare_pairs(by_policy[pair[0]], by_policy[pair[1]], measure)
        for name, (measure, _) in _MEASURES.items()
        for pair in _PAIRS
    }
    chapter.table(
        ("", "first", "second", "n", "ranks, first larger", "ranks, second larger", "p"),
        [
            (name, *pair, t.pairs, f"{t.above:g}", f"{t.below:g}", format_p_value(t.p))
            for (name, pair), t in tests.items()
        ],
    )
    chapter.add_figure(
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

    chapter.add_finding(
        "all policies bring back about as much: 71.4 / 72.4 / 74.7 % (naive, knowledgeable, exhaustive)",
        three("recovered"),
        holds=max(means["recovered", each.value] for each in SELECTABLE_POLICIES)
        - min(means["recovered", each.value] for each in SELECTABLE_POLICIES)
        < 0.1,
    )
    chapter.add_finding(
        "the exhaustive one adds far more than the others: 8.1 / 11.1 / 51.1 %",
        three("added"),
        holds=means["added", EXHAUSTIVE] > 3 * means["added", KNOWLEDGEABLE] and larger("added", EXHAUSTIVE, NAIVE),
    )
    chapter.add_finding(
        "the knowledgeable one takes less than half of the requests of either other: 1,712 / 711 / 1,588",
        three("requests"),
        holds=2 * means["requests", KNOWLEDGEABLE] < min(means["requests", NAIVE], means["requests", EXHAUSTIVE]),
    )
    chapter.add_finding(
        "the exhaustive one is the most efficient, the naive one the least (p < 0.001): 0.16 / 0.41 / 0.49",
        three("efficiency"),
        holds=larger("efficiency", EXHAUSTIVE, KNOWLEDGEABLE) and larger("efficiency", KNOWLEDGEABLE, NAIVE),
    )
    chapter.add_finding(
        "without what is added, the knowledgeable one is (p < 0.001): 0.15 / 0.37 / 0.22",
        three("efficiency without added"),
        holds=larger("efficiency without added", KNOWLEDGEABLE, EXHAUSTIVE)
        and larger("efficiency without added", KNOWLEDGEABLE, NAIVE),
    )


def main() -> None:
    """Recover all sites and write the chapter."""
    seed = parse_seed()
    title = "Lost sites: each archive alone and all together, under three policies"
    chapter = Chapter("recoveries", title, chapter_command("recoveries", seed))
    chapter.add_figure("seed", seed)
    write_chapter(chapter, recover_all_once(SITES, seed))
    chapter.finish()


if __name__ == "__main__":
    main()
