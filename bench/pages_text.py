"""Speed of text extraction relative to Python's parser, and of comparison relative to sets of words; on one core."""

import random
import re
from html.parser import HTMLParser

from bench.measure import Report, best_of
from unlost.html import extract_text, text_resemblance

PAGES, PARAGRAPHS = 200, 20
BASE = "http://h.example/"


class PlainTextParser(HTMLParser):
    """Extracts the text of a page with a minimal parser."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Skip scripts and styles; replace every other tag by a space."""
        self.hidden = tag in {"script", "style"}
        self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        """Collect text."""
        if not self.hidden:
            self.parts.append(data)


def plain_text(body: bytes) -> str:
    """Return the text of a page."""
    reader = PlainTextParser()
    reader.feed(body.decode())
    reader.close()
    return "".join(reader.parts)


def plain_resemblance(first: str, second: str) -> float:
    """Return the share of shingles of ten words, by sets of tuples."""
    one, other = (
        {tuple(words[start : start + 10]) for start in range(len(words) - 9)}
        for words in (re.findall(r"[^\W_]+", text.lower()) for text in (first, second))
    )
    return len(one & other) / len(one | other)


def make_pages() -> list[bytes]:
    """Return synthetic pages with links, tables, scripts and comments."""
    rng = random.Random(8)  # noqa: S311
    vocabulary = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(1, 10))) for _ in range(5_000)]

    def prose(words: int) -> str:
        return " ".join(rng.choices(vocabulary, k=words))

    def paragraph(number: int) -> str:
        return (
            f"<div class='a b'><h2>{prose(5)}</h2><p>{prose(40)} <a href='/x/{number}.html'>{prose(3)}</a> &amp; "
            f"{prose(20)}</p><table><tr><td>{prose(1)}<td>{prose(1)}</table><!-- {prose(5)} -->"
            f"<script>{prose(10)}</script></div>"
        )

    return [
        f"<html><title>{prose(5)}</title><body>{''.join(map(paragraph, range(PARAGRAPHS)))}".encode()
        for _ in range(PAGES)
    ]


def extract_texts(bodies: list[bytes]) -> list[str]:
    """Return the texts of pages."""
    return [read.text for body in bodies if (read := extract_text(body, "text/html", BASE)) is not None]


def main() -> None:
    """Measure and write the report."""
    bodies = make_pages()
    found = extract_texts(bodies)
    # The second of each pair has lost its last third.
    pairs = [(text, text[: len(text) * 2 // 3]) for text in found]
    for body, text in zip(bodies, found, strict=True):
        assert text.split() == plain_text(body).split()  # noqa: S101
    assert all(text_resemblance(*pair) == plain_resemblance(*pair) for pair in pairs)  # noqa: S101
    report = Report("pages_text", "The text of pages, beside Python's own parser")
    size, length = sum(map(len, bodies)) / 1e6, sum(len(text) for pair in pairs for text in pair) / 1e6
    report.line(f"{PAGES} pages of {size / PAGES * 1e3:.0f} kB, and as many pairs of their texts; best of 3.")
    report.line("")
    report.line("| | MB/s |")
    report.line("|---|---|")
    reading = best_of(3, lambda: [plain_text(body) for body in bodies]), best_of(3, lambda: extract_texts(bodies))
    comparing = (
        best_of(3, lambda: [plain_resemblance(*pair) for pair in pairs]),
        best_of(3, lambda: [text_resemblance(*pair) for pair in pairs]),
    )
    report.line(f"| text by `html.parser` | {size / reading[0]:.1f} |")
    report.line(f"| `unlost.html.text` | {size / reading[1]:.1f} |")
    report.line(f"| shingles by sets of tuples | {length / comparing[0]:.1f} |")
    report.line(f"| `unlost.html.text` | {length / comparing[1]:.1f} |")
    report.line("")
    report.gate("text: times faster than html.parser", reading[0] / reading[1], at_least=5)
    report.gate("shingles: times faster than sets of tuples", comparing[0] / comparing[1], at_least=5)
    report.finish()


if __name__ == "__main__":
    main()
