"""Speed of link rewriting, relative to parsing, changing and serializing a tree with lxml; on one core."""

import os
import random
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import lxml.html
from fastwarc.warc import ArchiveIterator, WarcRecordType

from bench.measure import Report
from unlost.html import LinkDirectory, LinkKind, rewrite_links

PAGES, PARAGRAPHS = 200, 20
BASE = "http://h.example/d/"
DATA = Path(os.environ.get("UNLOST_DATA") or Path(__file__).parents[2] / "shared" / "data") / "warc"
MAX_REAL_BYTES = 20_000_000


def made_up() -> list[bytes]:
    """Return pages as real ones are, with 21 tags and 6 links a kB; some in a legacy charset.

    Those of the real WARCs have 19 tags and 6 links.
    """
    dice = random.Random(9)  # noqa: S311
    vocabulary = ["".join(dice.choices("etaoinshrdluéä", k=dice.randint(1, 10))) for _ in range(5_000)]

    def prose(words: int) -> str:
        return " ".join(dice.choices(vocabulary, k=words))

    def paragraph(number: int) -> str:
        items = "".join(
            f'<li class="menu-item menu-item-{item}"><a href="/menu/{item}.html" title="{prose(1)}">{prose(2)}</a></li>'
            for item in dice.sample(range(20), 4)
        )
        return (
            f"<div class='post entry' id=x{number}><h2>{prose(4)}</h2><ul class='menu'>{items}</ul>"
            f"<p>{prose(15)} <a href='/x/{dice.randrange(999)}.html?a=1&amp;b=2'>{prose(3)}</a> &amp; <b>{prose(2)}</b>"
            f" {prose(8)}<br />{prose(2)}</p>"
            f'<img src="../i/{dice.randrange(99)}.png" alt="{prose(2)}" width=10 height=10 border=0>'
            f"<table cellpadding=0><tr><td style='background: url(b.png)'>{prose(1)}<td align=left>{prose(1)}</table>"
            f"<!-- {prose(3)} --><img srcset='s/{number}.png 1x, s/{number}-2.png 2x'>"
            f"<script>var x = '{prose(5)}';</script></div>"
        )

    head = (
        "<!DOCTYPE html><meta charset={}><title>{}</title><link rel=stylesheet href=s.css>"
        "<style>p {{ background: url(p.png) }}</style>"
    )
    return [
        (head.format(charset, prose(5)) + "".join(map(paragraph, range(PARAGRAPHS)))).encode(charset)
        for charset in dice.choices(["utf-8", "windows-1252"], weights=[3, 1], k=PAGES)
    ]


def real() -> list[bytes]:
    """Return pages of the real WARCs, if they are there, at most 20 MB."""
    found: list[bytes] = []
    for path in sorted(DATA.glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, record_types=WarcRecordType.response, parse_http=True):
                body = record.reader.read()
                if (record.http_content_type or "") == "text/html" and b"\0" not in body and len(body) > 1000:
                    found.append(body)
    random.Random(9).shuffle(found)  # noqa: S311
    kept, size = [], 0
    for body in found:
        size += len(body)
        if size > MAX_REAL_BYTES:
            break
        kept.append(body)
    return kept


def by_tree(bodies: Iterable[bytes]) -> int:
    """Parse each page into a tree, change its links, and write it."""
    size = 0
    for body in bodies:
        tree = lxml.html.document_fromstring(body)
        tree.rewrite_links(lambda address: address + "?new", resolve_base_href=False)
        size += len(lxml.html.tostring(tree))
    return size


def by_nothing(bodies: Iterable[bytes]) -> int:
    """Parse each page into a tree, and write it with the links that it has."""
    return sum(len(lxml.html.tostring(lxml.html.document_fromstring(body))) for body in bodies)


def by_place(bodies: Iterable[bytes]) -> int:
    """Rewrite the links of each page in place."""

    def replace(uri: str, use: LinkKind) -> str:  # noqa: ARG001
        return uri + "?new"

    return sum(len(rewrite_links(body, "text/html", BASE, None, replace).body) for body in bodies)


def by_directory(known: LinkDirectory) -> Callable[[Iterable[bytes]], int]:
    """Return a function that rewrites links with a directory of earlier pages, as an export does."""

    def replace(uri: str, use: LinkKind) -> str:
        new = uri + "?new"
        known.add(uri, use, new)
        return new

    def change(bodies: Iterable[bytes]) -> int:
        pages = (rewrite_links(body, "text/html", BASE, None, replace, directory=known, page="d/") for body in bodies)
        return sum(len(page.body) for page in pages)

    return change


def processor_seconds(tasks: Sequence[Callable[[list[bytes]], int]], bodies: list[bytes]) -> list[float]:
    """Return the best of 5 runs of each on one thread, by turns: so what else the machine does is the same for all."""
    best = [float("inf")] * len(tasks)
    for _ in range(5):
        for nth, task in enumerate(tasks):
            start = time.process_time()
            task(bodies)
            best[nth] = min(best[nth], time.process_time() - start)
    return best


def readable(bodies: list[bytes]) -> list[bytes]:
    """Return the pages that lxml can rewrite: it rejects some URLs and encodings."""
    kept = []
    for body in bodies:
        try:
            by_tree([body])
        except (ValueError, lxml.etree.LxmlError):
            continue
        kept.append(body)
    return kept


def main() -> None:
    """Measure, report, judge."""
    report = Report("rewriting", "Rewriting links, beside lxml")
    report.line("Each link gets a new address, by a function in Python; one thread, its processor time, best of 5.")
    report.line(
        "lxml parses a page into a tree, rewrites its links (`rewrite_links`) and writes it, other bytes and all."
    )
    report.line("Beside it what lxml takes to parse and write alone, which changes no link. Both are judged.")
    report.line("Not judged: the same when all addresses are in a directory, as those of a navigation soon are.")
    report.line("")
    report.line(
        "| pages | MB | lxml, MB/s | lxml without links, MB/s | `unlost.html.rewrite`, MB/s | all links known, MB/s "
        "| times lxml | times lxml without links |"
    )
    report.line("|---|---|---|---|---|---|---|---|")
    ratios: dict[str, float] = {}
    for name, bodies in (("made up", made_up()), ("of real crawls", real())):
        if not bodies:
            report.line(f"| {name} | not there | | | | | | |")
            continue
        bodies = readable(bodies)  # noqa: PLW2901
        size = sum(map(len, bodies)) / 1e6
        known = by_directory(LinkDirectory(1 << 30))
        tree, nothing, place, told = processor_seconds((by_tree, by_nothing, by_place, known), bodies)
        speeds = " | ".join(f"{size / each:.1f}" for each in (tree, nothing, place, told))
        report.line(f"| {len(bodies)} {name} | {size:.1f} | {speeds} | {tree / place:.1f} | {nothing / place:.1f} |")
        ratios[f"{name}: times faster than lxml"] = tree / place
        ratios[f"{name}: times faster than lxml that parses and writes alone"] = nothing / place
    report.line("")
    for what, ratio in ratios.items():
        report.gate(what, ratio, at_least=10)
    report.finish()


if __name__ == "__main__":
    main()
