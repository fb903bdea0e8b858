"""The decaying test web follows its rules."""

from pathlib import Path

import pytest

from tests.watch.decaying.web import BEGIN, DAY, DecayingWeb

WEB = DecayingWeb()


@pytest.mark.parametrize(("day", "total"), [(0, 954), (1, 952), (2, 945), (45, 554), (90, 32)])
def test_number_of_files_matches_the_formulas(day: int, total: int) -> None:
    """The golden counts."""
    assert WEB.total(day) == total
    assert len(WEB.files(day)) == total


def test_files_of_every_day_and_bin_match_the_formulas() -> None:
    """HTML, PDF and images."""
    for day in range(91):
        names = list(WEB.files(day))
        for b in range(1, 31):
            own = [name for name in names if name.startswith(f"bin{b}/")]
            html = sum(name.endswith(".html") for name in own)
            pdf = sum(name.endswith(".pdf") for name in own)
            assert (html, pdf, len(own) - html - pdf) == WEB.counts(b, day), (b, day)


def test_kinds_on_the_first_day() -> None:
    """380 HTML files in bins, 350 PDFs, 222 images, and two in the root."""
    counts = [WEB.counts(b, 0) for b in range(1, 31)]
    assert [sum(each) for each in zip(*counts, strict=True)] == [380, 350, 222]


def test_lifetime_of_pages_matches_the_formula() -> None:
    """TTL_ws = b(T div b - p + 1), of every page."""
    removed = WEB.removed()
    for b in range(1, 31):
        for page in range(1, WEB.pages(b) + 1):
            assert removed[f"bin{b}/pg{b}-{page}.html"] == b * (90 // b - page + 1)
    assert sum(day is None for day in removed.values()) == 32


def test_written_folder_has_the_files_of_the_day(tmp_path: Path) -> None:
    """With the dates of their changes."""
    web = DecayingWeb(bins=3, last=6)
    for day in (0, 1, 4, 6):
        web.write(tmp_path, day)
        found = {str(file.relative_to(tmp_path)): file for file in tmp_path.rglob("*") if file.is_file()}
        assert set(found) == set(web.files(day))
        assert {path: file.read_bytes() for path, file in found.items()} == {
            path: body for path, (body, _) in web.files(day).items()
        }
        assert found["bin2/index.html"].stat().st_mtime == BEGIN + DAY * (day // 2 * 2)
