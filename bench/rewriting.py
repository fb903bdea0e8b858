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


def make_pages() -> list[bytes]:
    """Return synthetic pages with 21 tags and 6 links per kB, some in a legacy charset.

    Pages of the real WARCs have 19 tags and 6 links per kB.
    """
    rng = random.Random(9)  # noqa: S311
    vocabulary = ["".join(rng.choices("etaoinshrdluéä", k=rng.randint(1, 10))) for _ in range(5_000)]

    def prose(words: int) -> str:
        return " ".join(rng.choices(vocabulary, k=words))

    def paragraph(number: int) -> str:
        items = "".join(
            f'<li class="menu-item menu-item-{item}"><a href="/menu/{item}.html" title="{prose(1)}">{prose(2)}</a></li>'
            for item in rng.sample(range(20), 4)
        )
        return (
            f"<div class='post entry' id=x{number}><h2>{prose(4)}</h2><ul class='menu'>{items}</ul>"
            f"<p>{prose(15)} <a href='/x/{rng.randrange(999)}.html?a=1&amp;b=2'>{prose(3)}</a> &amp; <b>{prose(2)}</b>"
            f" {prose(8)}<br />{prose(2)}</p>"
            f'<img src="../i/{rng.randrange(99)}.png" alt="{prose(2)}" width=10 height=10 border=0>'
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
        for charset in rng.choices(["utf-8", "windows-1252"], weights=[3, 1], k=PAGES)
    ]


def read_real_pages() -> list[bytes]:
    """Return pages of the real WARCs, if they are there, at most 20 MB."""
    found: list[bytes] = []
    for path in sorted(DATA.glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, record_types=WarcRecordType.response, parse_http=True):
                body = record.reader.read()
                if (record.http_content_type or "") == "text/html" and b"\0" not in body and len(body) > 1000:
                    found.append(body)
    random.Random(9).shuffle(found)  # noqa: S311
    pages, size = [], 0
    for body in found:
        size += len(body)
        if size > MAX_REAL_BYTES:
            break
        pages.append(body)
    return pages


def rewrite_with_lxml(bodies: Iterable[bytes]) -> int:
    """Parse each page into a tree, rewrite its links, and serialize it."""
    size = 0
    for body in bodies:
        tree = lxml.html.document_fromstring(body)
        tree.rewrite_links(lambda url: url + "?new", resolve_base_href=False)
        size += len(lxml.html.tostring(tree))
    return size


def serialize_with_lxml(bodies: Iterable[bytes]) -> int:
    """Parse each page into a tree and serialize it unchanged."""
    return sum(len(lxml.html.tostring(lxml.html.document_fromstring(body))) for body in bodies)


def rewrite_in_place(bodies: Iterable[bytes]) -> int:
    """Rewrite the links of each page in in_place."""

    def replace(uri: str, use: LinkKind) -> str:  # noqa: ARG001
        return uri + "?new"

    return sum(len(rewrite_links(body, "text/html", BASE, None, replace).body) for body in bodies)


def rewrite_with_directory(known: LinkDirectory) -> Callable[[Iterable[bytes]], int]:
    """Return a function that rewrites links with a directory of earlier pages, as an export does."""

    def replace(uri: str, use: LinkKind) -> str:
        new = uri + "?new"
        known.add(uri, use, new)
        return new

    def change(bodies: Iterable[bytes]) -> int:
        pages = (rewrite_links(body, "text/html", BASE, None, replace, directory=known, page="d/") for body in bodies)
        return sum(len(page.body) for page in pages)

    return change


def cpu_seconds(tasks: Sequence[Callable[[list[bytes]], int]], bodies: list[bytes]) -> list[float]:
    """Return the least CPU seconds of 5 interleaved runs of each task on one thread."""
    best = [float("inf")] * len(tasks)
    for _ in range(5):
        for nth, task in enumerate(tasks):
            start = time.process_time()
            task(bodies)
            best[nth] = min(best[nth], time.process_time() - start)
    return best


def supported_pages(bodies: list[bytes]) -> list[bytes]:
    """Return the pages that lxml can rewrite: it rejects some URLs and encodings."""
    supported = []
    for body in bodies:
        try:
            rewrite_with_lxml([body])
        except (ValueError, lxml.etree.LxmlError):
            continue
        supported.append(body)
    return supported


def main() -> None:
    """Measure and write the report."""
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
    for name, bodies in (("made up", make_pages()), ("of real crawls", read_real_pages())):
        if not bodies:
            report.line(f"| {name} | not there | | | | | | |")
            continue
        bodies = supported_pages(bodies)  # noqa: PLW2901
        size = sum(map(len, bodies)) / 1e6
        known = rewrite_with_directory(LinkDirectory(1 << 30))
        tree, nothing, in_place, known_links = cpu_seconds(
            (rewrite_with_lxml, serialize_with_lxml, rewrite_in_place, known), bodies
        )
        speeds = " | ".join(f"{size / each:.1f}" for each in (tree, nothing, in_place, known_links))
        report.line(
            f"| {len(bodies)} {name} | {size:.1f} | {speeds} | {tree / in_place:.1f} | {nothing / in_place:.1f} |"
        )
        ratios[f"{name}: times faster than lxml"] = tree / in_place
        ratios[f"{name}: times faster than lxml that parses and writes alone"] = nothing / in_place
    report.line("")
    for what, ratio in ratios.items():
        report.gate(what, ratio, at_least=10)
    report.finish()


if __name__ == "__main__":
    main()
