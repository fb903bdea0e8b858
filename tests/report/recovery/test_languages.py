"""Tests of translated reports: complete in each language, with language-independent data files."""

import ast
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import unlost.crawl.traps
import unlost.quality
from tests.quality.classified import classified_examples, classified_held_out
from tests.report.recovery.states import SampleResource, make_state, report_html, store_listing
from unlost.crawl import TrapDetector
from unlost.html import LinkKind
from unlost.recovery.state import REQUESTS_FACT, ListingStatus, RecoveryState, ResourceStatus, StateReader
from unlost.report import load_texts
from unlost.report.recovery import MAX_LISTED_RESOURCES, ReportFiles, report_strings, translate_message, write_report
from unlost.report.recovery import writer as renderer

REPORT = Path(renderer.__file__).parent
KINDS = ("text/html", "image/png", "text/css", "text/javascript", "application/pdf", "font/woff2", "video/mp4")
MIMES = (*KINDS, "application/json", "text/plain", "application/x-unknown")
REASONS = ("not-held", "rejected", "no-good-copy", "excluded", "failed")
VERDICTS = {
    "soft-404": 'title or heading contains "error 404"',
    "parked": 'contains "for sale"',
    "hijacked": "about gambling, unlike earlier captures of the site",
    "login-wall": 'requires a login: "log in"',
    "consent-wall": 'requires consent: "accept all"',
    "archive-error": 'message of an archive: "not archived"',
}
TRAPS = ("longer than 2,000 characters", "path repeats itself", "redirect chains beyond the limit")
# Equal in both languages: data, commands, and words that are also German.
DATA = re.compile(r"(https?:|unlost re|[a-z]+/[\w.-]+$|\"|[a-f]( \d{4}-.*)?$|[<>]?\s?\d+ %$|[\d., -]*$|\W*$)")
THE_SAME = {"summary.tsv", "report.json"}


def make_rich_state(folder: Path, years: tuple[int, int] = (1900, 2026)) -> Path:
    """Make a recovery with everything that a report can mention."""
    made = [SampleResource("", f"{years[0]}0401000000", urim="https://a.example/1", links=tuple(REASONS))]
    made += [
        SampleResource(f"k{n}", f"{years[1]}0101000000", mime=mime, use=LinkKind.REQUISITE)
        for n, mime in enumerate(MIMES)
    ]
    made += [SampleResource(f"t{n}", f"{years[1]}0101000000", mime=f"x/{n}") for n in range(60)]
    made += [
        SampleResource("moved", f"{years[1]}0101000000", status=301),
        SampleResource("who", f"{years[1]}0101000000", archive=""),
    ]
    made += [SampleResource(reason, reason=reason, others=(("b", "20150101000000"),)) for reason in REASONS]
    made += [
        SampleResource(f"p{n}", f"{years[1]}0101000000", urim=f"https://a.example/p{n}", links=REASONS)
        for n in range(8)
    ]
    made += [
        SampleResource(
            f"v{n}", f"{years[1]}0101000000", urim=f"https://a.example/v{n}", reason="rejected", verdict=(kind, reason)
        )
        for n, (kind, reason) in enumerate(VERDICTS.items())
    ]
    made += [
        SampleResource(f"l{n}", others=(("b", "20150101000000"),), standing=ResourceStatus.LISTED)
        for n in range(MAX_LISTED_RESOURCES + 2)
    ]
    make_state(folder, [*made, SampleResource("later", standing=ResourceStatus.QUEUED)])
    for archive, outcome in zip("abcdef", ListingStatus, strict=False):
        store_listing(folder, archive, outcome, None)
    with RecoveryState(folder) as state:
        state.store_skipped_links({}, dict.fromkeys(TRAPS, 3))
        state.set_fact(REQUESTS_FACT, json.dumps({"a": {"capture": 1_234}}))
    return folder


class TextCollector(HTMLParser):
    """Collects visible texts and accessible names in order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Store the accessible names of an element."""
        self.tags.append(tag)
        self._hidden += tag == "style"
        self.found += [value or "" for name, value in attrs if name in ("aria-label", "title", "alt", "placeholder")]

    def handle_endtag(self, tag: str) -> None:
        """Leave a style element."""
        self._hidden -= tag == "style"

    def handle_data(self, data: str) -> None:
        """Store a text."""
        if data.strip() and not self._hidden:
            self.found.append(" ".join(data.split()))


def collect_text(page: str) -> TextCollector:
    """Return the texts of a page."""
    parser = TextCollector()
    parser.feed(page)
    parser.close()
    return parser


def untranslated(english: str, german: str) -> set[str]:
    """Return texts that occur in both pages and are neither data nor equal words."""
    known = set(collect_text(english).found)
    found = {text for text in collect_text(german).found if text in known}
    return {text for text in found if not DATA.match(text)} - THE_SAME


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a recovery with everything that a report can mention."""
    return make_rich_state(tmp_path_factory.mktemp("rich") / "r")


def test_german_report_has_no_english_text(folder: Path) -> None:
    """Both pages have the same structure, and a planted English text is found."""
    english, german = report_html(folder, "en"), report_html(folder, "de")
    assert '<html lang="de">' in german
    assert '<html lang="en">' in english
    assert collect_text(english).tags == collect_text(german).tags
    assert untranslated(english, german) == set()
    planted = german.replace(report_strings("de")("head.how_much"), report_strings("en")("head.how_much"))
    assert untranslated(english, planted) == {"Overview"}


def test_catalogue_has_exactly_the_used_texts(folder: Path, tmp_path: Path) -> None:
    """Every text is used by the page, the command line or a state, and every used name exists."""
    sources = [*REPORT.rglob("*.py"), *REPORT.rglob("*.html"), *REPORT.parents[1].glob("cli/report*.py")]
    source = "\n".join(file.read_text() for file in sources)
    named = set(re.findall(r'"((?:report|head|note|time)\.[a-z_]+)"', source)) - {"report.html", "report.json"}
    headings = re.search(r'f"head\.\{each\}"\) for each in \((.*?)\)', source)
    assert headings is not None
    named |= {f"head.{name}" for name in re.findall(r'"(\w+)"', headings[1])}
    texts = {re.sub(r"\.(one|other)$", "", name) for name in load_texts("en", "unlost.report.recovery")}
    assert {name for name in texts if name.startswith(("report.", "head.", "note.", "time."))} == named
    pages = report_html(folder, "de") + report_html(make_rich_state(tmp_path / "few", (2010, 2010)), "de")
    pages += report_html(make_state(tmp_path / "listed", [SampleResource("m", reason="not-held")]), "de")
    words = load_texts("de", "unlost.report.recovery")
    parts = {name for name in words if name.startswith(("reason", "outcome_unlisted.", "verdict.", "kind."))}
    assert {name for name in parts if words[name] not in pages} == {"reason.failed"}, "which has its own list"


def test_data_files_are_independent_of_language(folder: Path, tmp_path: Path) -> None:
    """TSV and JSON files are equal in all languages."""
    written = {}
    for language in ("en", "de"):
        files = ReportFiles.in_folder(tmp_path / language, folder)
        with StateReader(folder) as state:
            write_report(state, files, language=language)
        written[language] = {file.name: file.read_bytes() for file in (tmp_path / language).iterdir()}
    english, german = written["en"], written["de"]
    assert english.keys() == german.keys() == {"index.html", "summary.tsv", "report.json"}
    assert {name for name in english if english[name] != german[name]} == {"index.html"}


def test_numbers_and_dates_are_localised(folder: Path) -> None:
    """Thousands have a point, and dates and ranges are German."""
    page = report_html(folder, "de")
    assert "Die Archivversionen stammen aus der Zeit vom 1. April 1900 bis zum 1. Januar 2026." in page
    assert "länger als 2.000 Zeichen" in page
    assert "1900 bis 1904" in page
    assert "Thema Glücksspiel" in page
    assert "und 4 weiteren" in page


def generated_reasons() -> Iterator[str]:
    """Yield every reason that verdicts and traps can give."""
    for _, verdict in (*classified_examples(), *classified_held_out()):
        if verdict is not None:
            yield verdict.reason
    traps = TrapDetector(max_similar=1, max_in_folder=2, max_shapes=4)
    names = ["x/" + "a" * 3_000, "x" + "/a" * 30, "x/a/b/a/b/a/b", "x/p1", "x/p2", "x/q", "x/r", "y/z", "z/z"]
    found = [reason for name in names if (reason := traps.check(name)) is not None]
    assert len(set(found)) == 6
    yield from found


def test_all_reasons_are_translated() -> None:
    """All reasons of verdicts and traps are translated; other texts are unchanged."""
    german = report_strings("de")
    found = set(generated_reasons())
    assert {reason for reason in found if translate_message(reason, german) is None} == set()
    invalid = [f"longer than {number} characters" for number in ("9" * 400, "\N{ARABIC-INDIC DIGIT THREE}", ",1")]
    mixed = ["", "HTTP 503", 'contains "a" and more', "about <b>, unlike earlier captures of the site", "x" * 9_999]
    for reason in invalid + mixed:
        assert translate_message(reason, german) is None
        assert translate_message(reason, report_strings("en")) == reason
    assert translate_message('contains "{quote} {0} <b>"', german) == 'enthält "{quote} {0} <b>"'


def test_all_reason_texts_in_the_source_are_in_the_catalogue() -> None:
    """Texts that no test page triggers are found, too."""
    folders = [Path(unlost.quality.__file__).parent, Path(unlost.crawl.traps.__file__)]
    files = [file for place in folders for file in ([place] if place.is_file() else sorted(place.glob("*.py")))]
    texts = set(sentences(files))
    assert len(texts) > 20
    patterns = {
        _bare(text) for name, text in load_texts("en", "unlost.report.recovery").items() if name.startswith("said.")
    }
    unknown = {text for text in texts if text not in patterns}
    assert unknown == {"more than {} unlisted URLs {}", "in one folder", "of the same shape"}, "which are composed"
    assert "the frog is {}" in set(sentences([], "def f():\n    return f'the frog is {quoted(x)}'\n"))


def sentences(files: list[Path], more: str = "") -> Iterator[str]:
    """Yield texts of several words that functions return or pass to Verdict, with {} for values."""
    for source in [*(file.read_text() for file in files), *([more] if more else [])]:
        for node in ast.walk(ast.parse(source)):
            values: list[ast.expr | None] = []
            if isinstance(node, ast.Return):
                values = [node.value]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Verdict":
                values = list(node.args)
            for value in values:
                yield from (text for text in _texts(value) if " " in text.strip())


def _texts(node: ast.AST | None) -> Iterator[str]:
    """Yield the texts in an expression."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
    elif isinstance(node, ast.Constant):
        yield str(node.value)
    elif node is not None:
        for child in ast.iter_child_nodes(node):
            yield from _texts(child)


def _bare(text: str) -> str:
    return re.sub(r"\{\w+\}", "{}", text)
