"""Recall, false rejections and duration of page classification."""

import logging
import warnings
from collections import Counter

from tests.quality.classified import classified_examples, is_detected, is_labelled_bad, real_pages
from tests.quality.examples import BAD, GOOD, UNCLEAR
from tests.real_data import DATA

from bench.measure import Report, best_of
from bench.pages_text import plain_text
from unlost.quality import PageResponse, classify_page

SIZE = 50_000  # bytes of the page that is timed
PAGES = 20


def report_labelled_pages(report: Report) -> None:
    """Report the verdicts on the labelled pages."""
    total, found, rejected, right = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for example, verdict in classified_examples():
        total[example.label] += 1
        rejected[example.label] += verdict is not None
        found[example.label] += is_detected(example, verdict)
        right[example.label] += verdict is not None and verdict.kind.value == example.label
    report.line("| label | pages | rejected | for a deserved reason | for this reason |")
    report.line("|---|---|---|---|---|")
    for label in BAD:
        report.line(f"| {label} | {total[label]} | {rejected[label]} | {found[label]} | {right[label]} |")
    bad = sum(total[label] for label in BAD)
    sums = [sum(counter[label] for label in BAD) for counter in (rejected, found, right)]
    report.line(f"| **all bad** | {bad} | {sums[0]} | {sums[1]} | {sums[2]} |")
    for label in (GOOD, UNCLEAR):
        report.line(f"| {label} | {total[label]} | {rejected[label]} | | |")
    report.line("")
    report.gate("bad pages found, % (for a deserved reason)", 100 * sums[1] / bad, at_least=95)
    report.gate("good examples rejected", rejected[GOOD], at_most=2)
    report.line("")


def report_real_pages(report: Report) -> None:
    """Report the rejected real pages."""
    if not (DATA / "warc").is_dir():
        report.line("Real pages: skipped, the data is not there.")
        return
    logging.disable()
    pages = list(real_pages())
    rejected = [page for page in pages if classify_page(page) is not None]
    wrongly = [page for page in rejected if not is_labelled_bad(page.uri, page.datetime)]
    report.line(
        f"Real WARCs: {len(pages)} captures of HTML with status 200, {len(rejected)} rejected "
        f"({100 * len(rejected) / len(pages):.1f} %), {len(wrongly)} of them wrongly "
        f"({100 * len(wrongly) / len(pages):.1f} %). The others are error pages and walls of the site itself: "
        "each was looked at, and is named with its address and date in `tests/quality/real_bad.toml`."
    )
    report.line("")
    report.gate("real pages wrongly rejected, %", 100 * len(wrongly) / len(pages), at_most=1)
    for page in wrongly:
        report.line(f"  - {page.uri} {page.datetime}")
    report.line("")


def report_speed(report: Report) -> None:
    """Report the duration of classification, relative to parsing the page with Python's parser."""
    line = "<p>Sorry, this is line {} of a page about the old mill, its wheel and its pond.</p><a href=/{}>more</a>\n"
    long = "".join(line.format(number, number) for number in range(SIZE // len(line)))
    menu = (
        "".join(f"<li><a href=/{number}>Menu {number}</a>" for number in range(SIZE // 60))
        + "<!--"
        + "x" * 30_000
        + "-->"
    )
    for name, body in (("of prose", long), ("of menus, with an error", f"<h1>Page not found</h1>{menu}")):
        page = PageResponse(
            "http://a.example/b", "20140102030405", 200, "text/html", f"<title>A</title>{body}".encode()
        )
        seconds = best_of(5, lambda page=page: [classify_page(page) for _ in range(PAGES)]) / PAGES  # type: ignore[misc]
        parsed = best_of(3, lambda page=page: plain_text(page.body))  # type: ignore[misc]
        report.line(
            f"{len(page.body) / 1e3:.0f} kB {name}: {seconds * 1e3:.2f} ms; `html.parser`: {parsed * 1e3:.2f} ms"
        )
        report.gate(f"{name}: time of a verdict by that of html.parser", seconds / parsed, at_most=0.5)


def main() -> None:
    """Measure and write the report."""
    warnings.simplefilter("ignore")
    report = Report("verdicts", "Verdicts on pages")
    report_labelled_pages(report)
    report_real_pages(report)
    report_speed(report)
    report.finish()


if __name__ == "__main__":
    main()
