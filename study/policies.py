"""The first paper: 23 policies, their cost, their precision, and how profiles grow."""

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from study.archives import HELD_SHARE, NEAR_SHARE, QUERIES, make_archives
from study.chapter import Chapter
from study.lists import read_links
from unlost.errors import UriError
from unlost.research import ArchiveEvaluation, evaluate_index, list_configurations, measure_growth
from unlost.uri import POLICIES, key_many

LOW_COST = 0.05
"""The relative cost below which the paper looks for precision."""

MIN_AGREEMENT = 0.9
"""Share of a published ratio that counts as agreement."""

GROWTH_POLICIES = ("H1P0", "H3P0", "HxP1", "HxPx", "DDom", "DIni", "URIR")


def main() -> None:
    """Measure and write the chapter."""
    chapter = Chapter("policies", "Profiles by policy")
    configurations = list_configurations(policies=POLICIES)
    with tempfile.TemporaryDirectory(prefix="unlost-study-") as name:
        folder = Path(name)
        chapter.line(
            f"{QUERIES:,} questions to each archive: {HELD_SHARE:.0%} for addresses that it holds, {NEAR_SHARE:.0%} "
            "for pages of the same list that were held out, the rest for pages of the other archive. An address counts "
            "as held if all of it is, with its query. *Strangers alone*: the same without held-out pages, as most of a "
            "log is. The figures are those of `unlost evaluate --policies all`."
        )
        chapter.line()
        for archive in make_archives(folder):
            chapter.line(f"**{archive.description}.**")
            chapter.line()
            found = evaluate_index([archive.index], [archive.queries], configurations)
            report_archive(chapter, archive.name, found)
            alone = evaluate_index(
                [archive.index], [archive.unrelated_queries], list_configurations(policies=("H1P0", "DDom", "HxP1"))
            )
            report_precision_ratios(chapter, f"{archive.name}, asked for strangers alone", alone)
        report_growth(chapter, folder)
    chapter.finish()


def report_archive(chapter: Chapter, name: str, found: ArchiveEvaluation) -> None:
    """Report the table of one archive and the findings."""
    by_policy = {one.configuration.policy: one for one in found.results if one.configuration.policy is not None}
    chapter.add_figure(name, [one.to_row() for one in found.results])
    chapter.table(
        ("policy", "keys", "gzip bytes", "relative cost", "predicted", "present", "precision", "accuracy"),
        (
            (
                policy,
                f"{one.size.lines:,}",
                f"{one.size.compressed:,}",
                f"{one.cost:.4f}",
                f"{one.predicted:,}",
                f"{one.present:,}",
                f"{one.precision.value or 0:.2%}",
                f"{one.accuracy.value or 0:.2%}",
            )
            for policy, one in by_policy.items()
        ),
    )
    precision = {policy: one.precision.value or 0.0 for policy, one in by_policy.items()}
    report_precision_ratios(chapter, name, found)
    cheap = {policy: value for policy, value in precision.items() if by_policy[policy].cost < LOW_COST}
    best = max(cheap, key=lambda policy: cheap[policy])
    chapter.add_finding(
        f"up to 22 % precision at less than 5 % of the cost ({name})",
        f"{cheap[best]:.1%} by {best}, at {by_policy[best].cost:.2%}",
        holds=cheap[best] >= 0.2,
    )
    chapter.add_finding(
        f"no false negatives ({name})",
        f"{sum(one.held - one.present for one in found.results)} in {len(found.results)} configurations",
        holds=not found.false_negatives,
    )
    chapter.gate(f"{name}: held pages that were denied", len(found.false_negatives), at_most=0)
    chapter.line()


def report_precision_ratios(chapter: Chapter, name: str, found: ArchiveEvaluation) -> None:
    """Report whether the precision gains of registered domains, and of hosts with a segment, match the paper."""
    precision = {one.configuration.policy: one.precision.value or 0.0 for one in found.results}
    for policy, times, words in (("DDom", 2.0, "doubles"), ("HxP1", 5.0, "is five times")):
        ratio = precision[policy] / precision["H1P0"]
        chapter.add_finding(
            f"{policy} {words} the precision of TLDs alone ({name})",
            f"{precision['H1P0']:.2%} to {precision[policy]:.2%}: {ratio:.1f} times",
            holds=ratio >= times * MIN_AGREEMENT,
        )


def report_growth(chapter: Chapter, folder: Path) -> None:
    """Report how profiles of the broad archive grow, by the dates of its posts."""
    index = folder / "posted.cdxj"
    rows = read_links()
    lines = []
    for (epoch, url), key in zip(rows, key_many(url for _, url in rows), strict=True):
        if not isinstance(key, UriError):
            day = datetime.fromtimestamp(epoch, UTC).strftime("%Y%m%d%H%M%S")
            lines.append(f"{key} {day} " + json.dumps({"url": url, "mime": "text/html", "status": "200"}) + "\n")
    index.write_text("".join(sorted(lines)))
    found = measure_growth([index], list_configurations(policies=GROWTH_POLICIES))
    chapter.add_figure("growth", [each.to_row() for each in found.points])
    heaps = found.fit_heaps_law()
    chapter.line(
        "**Growth**, by year, of the broad list, where every post counts as a capture on its own date (real "
        "addresses, real dates): all up to the end of the year. The figures are those of `unlost evaluate --by year`."
    )
    chapter.line()
    policies = [f"policy {policy}" for policy in GROWTH_POLICIES]
    whole = [each for each in found.points if each.cumulative]
    years = dict.fromkeys(each.slice for each in whole)
    chapter.table(
        ("up to", "URI-Ms", "URI-Rs", *(f"{policy} keys" for policy in GROWTH_POLICIES), "µs a line (HxP1)"),
        (
            (
                year,
                f"{here['policy HxP1'].mementos:,}",
                f"{here['policy HxP1'].addresses:,}",
                *(f"{here[policy].lines:,}" for policy in policies),
                f"{1e6 * here['policy HxP1'].seconds / here['policy HxP1'].mementos:.2f}",
            )
            for year in years
            for here in [{each.configuration: each for each in whole if each.slice == year}]
        ),
    )
    straight = {policy: found.linearity(policy) or 0.0 for policy in policies}
    chapter.add_figure("straightness", straight)
    chapter.add_figure("heaps", heaps)
    chapter.line("R² of a straight line through keys by URI-Rs:")
    chapter.line()
    chapter.table(GROWTH_POLICIES, [[f"{value:.4f}" for value in straight.values()]])
    below_hosts = {policy: value for policy, value in straight.items() if policy != "policy H1P0"}
    least = min(below_hosts, key=lambda policy: below_hosts[policy])
    chapter.add_finding(
        "keys grow linearly with URI-Rs",
        f"R² {below_hosts[least]:.4f} ({least.removeprefix('policy ')}) or more; TLDs alone, of which there is an end, "
        f"{straight['policy H1P0']:.4f}",
        holds=below_hosts[least] >= 0.95,
    )
    if heaps is not None:
        chapter.add_finding(
            "URI-Rs by URI-Ms follow Heaps' law (K 2.686, β 0.911 there)",
            f"K {heaps[0]:.3f}, β {heaps[1]:.3f}",
            holds=0.8 <= heaps[1] <= 1.0,
        )


if __name__ == "__main__":
    main()
