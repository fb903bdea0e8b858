"""False rejections and recall of the page verdicts on real labelled pages.

`make bench-page_quality` writes `page_quality.md` and `page_quality.json`. A blind measurement is possible only once,
before any rule is tuned on the pages: `python -m bench.page_quality --blind` writes it to a report with the date in its
name, which later runs never overwrite.
"""

import argparse
import base64
import gzip
import hashlib
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.real_data import DATA

from bench.measure import RESULTS, Report
from unlost.quality import PageResponse, PageVerdict, classify_page

PAGES = DATA / "pages" / "real-pages.jsonl.gz"
KEEP = ("good", "function-page", "redirect-stub")
REJECT = ("soft-404", "server-error", "parked", "challenge", "login-wall", "block-page")
CAPTURED = "20210505000000"  # the pages have no date; without context no rule depends on it
MAX_CLASSIFIED_BYTES = 512 << 10  # bytes: recover judges at most the beginning of a page
RESAMPLES = 2000
SEED = 20261118


@dataclass(frozen=True, slots=True)
class ClassifiedPage:
    """A labelled page and its verdict."""

    id: str
    label: str
    genre: str
    lang: str
    repository: str
    uri: str
    verdict: PageVerdict | None


def classify_pages(path: Path) -> Iterator[ClassifiedPage]:
    """Yield each page of a labelled file with the verdict that recover would reach without any context."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = json.loads(line)
            body = base64.b64decode(fields["body_base64"])[:MAX_CLASSIFIED_BYTES]
            verdict = classify_page(PageResponse(fields["uri"], CAPTURED, 200, "text/html", body))
            lang = (fields["lang"] or "").strip().lower().replace("_", "-").partition("-")[0] or "not stated"
            repository = fields["origin"].partition(" ")[0]
            yield ClassifiedPage(
                fields["id"], fields["label"], fields["genre"], lang, repository, fields["uri"], verdict
            )


def wilson_interval(hits: int, total: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a proportion.

    >>> [round(bound, 4) for bound in wilson(0, 100)]
    [0.0, 0.037]
    >>> [round(bound, 4) for bound in wilson(5, 10)]
    [0.2366, 0.7634]
    """
    if total == 0:
        return 0.0, 1.0
    share, square = hits / total, z * z
    centre = share + square / (2 * total)
    spread = z * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    scale = 1 + square / total
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def bootstrap_by_repository(pages: Iterable[ClassifiedPage]) -> tuple[float, float]:
    """Return the 95 % percentile interval of the rejected share when whole repositories are drawn with replacement.

    Pages of one repository are alike, so that the Wilson interval, which assumes independent pages, is too narrow.
    """
    groups: dict[str, list[int]] = {}
    for page in pages:
        group = groups.setdefault(page.repository, [0, 0])
        group[0] += page.verdict is not None
        group[1] += 1
    counts = list(groups.values())
    draw = random.Random(SEED)  # noqa: S311 (a repeatable sample, not a secret)
    shares = []
    for _ in range(RESAMPLES):
        sample = draw.choices(counts, k=len(counts))
        shares.append(sum(each[0] for each in sample) / sum(each[1] for each in sample))
    shares.sort()
    return shares[int(0.025 * RESAMPLES)], shares[int(0.975 * RESAMPLES) - 1]


def summarize(pages: list[ClassifiedPage]) -> dict[str, object]:
    """Return the counts and intervals of a group of pages as the JSON report has them."""
    rejected = [page for page in pages if page.verdict is not None]
    return {
        "pages": len(pages),
        "repositories": len({page.repository for page in pages}),
        "rejected": len(rejected),
        "rejected_share": round(len(rejected) / len(pages), 5),
        "wilson_95": [round(bound, 5) for bound in wilson_interval(len(rejected), len(pages))],
        "verdicts": dict(Counter(page.verdict.kind.value for page in rejected if page.verdict).most_common()),
    }


def table_row(name: str, pages: list[ClassifiedPage]) -> str:
    """Return a line of a table: pages, repositories, rejected with interval, verdicts."""
    rejected = [page for page in pages if page.verdict is not None]
    low, high = wilson_interval(len(rejected), len(pages))
    kinds = Counter(page.verdict.kind.value for page in rejected if page.verdict).most_common()
    repositories, affected = ({page.repository for page in each} for each in (pages, rejected))
    return (
        f"| {name} | {len(pages)} | {len(repositories)} | {len(rejected)} | {len(affected)} "
        f"| {100 * len(rejected) / len(pages):.1f} % ({100 * low:.1f} to {100 * high:.1f}) "
        f"| {', '.join(f'{count} {kind}' for kind, count in kinds)} |"
    )


def write_table(report: Report, title: str, groups: Iterable[tuple[str, list[ClassifiedPage]]]) -> None:
    """Write a table with a line for each group that has pages."""
    report.line(f"| {title} | pages | repositories | rejected | in repositories | share (95 %) | verdicts |")
    report.line("|---|---|---|---|---|---|---|")
    for name, pages in groups:
        if pages:
            report.line(table_row(name, pages))
    report.line("")


def group_by(pages: list[ClassifiedPage], key: Callable[[ClassifiedPage], str]) -> dict[str, list[ClassifiedPage]]:
    """Return the pages by a key, largest group first."""
    names = Counter(key(page) for page in pages).most_common()
    return {name: [page for page in pages if key(page) == name] for name, _ in names}


def write_tables(report: Report, pages: list[ClassifiedPage]) -> dict[str, object]:
    """Write the tables, and return what the JSON report contains."""
    keep = [page for page in pages if page.label in KEEP]
    bad = [page for page in pages if page.label in REJECT]
    low, high = bootstrap_by_repository(keep)
    report.line("## Pages to keep: false rejections")
    report.line("")
    of = {label: [page for page in keep if page.label == label] for label in KEEP}
    write_table(report, "label", [*of.items(), ("**all to keep**", keep)])
    report.line(
        "Intervals in the tables are Wilson score intervals, which assume independent pages. Drawing whole "
        f"repositories instead (bootstrap, {RESAMPLES} draws), the share of all to keep is between "
        f"{100 * low:.1f} % and {100 * high:.1f} %."
    )
    report.line("")
    write_table(report, "genre", group_by(keep, lambda page: page.genre).items())
    write_table(
        report, "language", [each for each in group_by(keep, lambda page: page.lang).items() if len(each[1]) >= 10]
    )
    report.line("Languages (as the `html` element says) with fewer than 10 pages are not shown.")
    report.line("")
    report.line("## Bad pages: recall")
    report.line("")
    report.line(
        "Any verdict counts as found: recover rejects a page whatever the reason. Verdicts have other names than "
        "labels: `soft-404` covers server errors, `consent-wall` covers challenges, and block pages have no "
        "kind of their own."
    )
    report.line("")
    by_label = {label: [page for page in bad if page.label == label] for label in REJECT}
    write_table(report, "label", [*by_label.items(), ("**all bad**", bad)])
    report.line(
        f"The total depends on how many pages of each label the file has. The mean of the {len(REJECT)} labels is "
        f"{100 * sum(map(_rejected_share, by_label.values())) / len(REJECT):.1f} %."
    )
    report.line("")
    write_table(
        report, "language", [each for each in group_by(bad, lambda page: page.lang).items() if len(each[1]) >= 5]
    )
    wrong = [page for page in keep if page.verdict is not None]
    report.line("## False rejections, one by one")
    report.line("")
    report.line("| id | label | repository | verdict | reason |")
    report.line("|---|---|---|---|---|")
    for page in sorted(wrong, key=lambda page: (page.label, page.repository, page.id)):
        if page.verdict is not None:
            reason = page.verdict.reason.replace("|", "\\|")
            report.line(f"| {page.id} | {page.label} | {page.repository} | {page.verdict.kind.value} | {reason} |")
    return {
        "keep": {label: summarize(each) for label, each in of.items()} | {"all": summarize(keep)},
        "keep_bootstrap_by_repository_95": [round(low, 5), round(high, 5)],
        "keep_by_genre": {name: summarize(each) for name, each in group_by(keep, lambda page: page.genre).items()},
        "keep_by_language": {name: summarize(each) for name, each in group_by(keep, lambda page: page.lang).items()},
        "bad": {label: summarize(each) for label, each in by_label.items()} | {"all": summarize(bad)},
        "bad_by_language": {name: summarize(each) for name, each in group_by(bad, lambda page: page.lang).items()},
        "false_rejections": [page.id for page in wrong],
        "not_found": [page.id for page in bad if page.verdict is None],
    }


def _rejected_share(pages: list[ClassifiedPage]) -> float:
    return sum(page.verdict is not None for page in pages) / len(pages)


def today() -> str:
    """Return the date that a blind report carries in its name."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blind", action="store_true", help="write a dated report of a measurement before any tuning")
    is_blind = parser.parse_args().blind
    if not PAGES.exists():
        print("bench page_quality: skipped, the labelled pages are not there (see UNLOST_DATA)")
        return
    date = today()
    name = f"page_quality-{date}" if is_blind else "page_quality"
    if is_blind and (RESULTS / f"{name}.md").exists():
        sys.exit(f"bench page_quality: {name}.md exists; a blind measurement is never repeated")
    report = Report(name, "Page verdicts on real labelled pages" + (f", blind, {date}" if is_blind else ""))
    if is_blind:
        report.line(
            f"**Measured blind on {date}, before any rule was changed, on pages nobody tuned on.** Later figures on "
            "the same pages are not blind."
        )
    else:
        report.line(
            f"Measured on {date}. **Not blind**: rules may have been changed with these pages in view. The dated "
            "reports in this folder were measured before."
        )
    digest = hashlib.sha256(PAGES.read_bytes()).hexdigest()
    pages = list(classify_pages(PAGES))
    repositories = len({page.repository for page in pages})
    report.line("")
    report.line(
        f"{len(pages)} pages of {repositories} repositories (`{PAGES.name}`, SHA-256 `{digest[:16]}…`), each judged "
        "alone as a response with status 200 and type `text/html` at its URL, through "
        "`unlost.quality.verdict_of` as recover calls it, without anything known of its site. Labels "
        "are not in the proportions of the web, and pages of one repository are alike: each figure says how many "
        "repositories it comes from. Pages where either verdict "
        "can be defended are not in the file, and most pages labelled `good` were not read one by one."
    )
    report.line("")
    figures = write_tables(report, pages)
    said = {"date": date, "blind": is_blind, "pages_sha256": digest, "pages": len(pages), "repositories": repositories}
    (RESULTS / f"{name}.json").write_text(json.dumps(said | figures, indent=1, ensure_ascii=False) + "\n")
    report.finish()


if __name__ == "__main__":
    main()
