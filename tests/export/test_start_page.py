"""Tests of exports with a start page."""

from pathlib import Path

import pytest

from tests.export.sample_recoveries import ROOT, MemoryTarget, SampleCapture, export_to_memory, make_recovery
from unlost.export import MANIFEST_NAME, MAX_START_PAGE_FILES, ExportOptions, export_site, read_manifest
from unlost.recovery import RecoverOptions

OPTIONS = ExportOptions(windows=True, start_page="en")
PAGE = f"{ROOT}a/b?x=1&y=2"


def test_home_page_needs_no_start_page(tmp_path: Path) -> None:
    """Nothing is added if `index.html` is the ordered page."""
    files, done = export_to_memory(
        make_recovery(tmp_path / "r", [SampleCapture(ROOT, b"home"), SampleCapture(f"{ROOT}x", b"x")]), OPTIONS
    )
    assert (done.start, set(files)) == ("index.html", {"index.html", "x.html"})


@pytest.mark.parametrize(("others", "name"), [((), "index.html"), ((ROOT,), "start.html")])
def test_start_page_redirects_to_a_deeper_page(tmp_path: Path, others: tuple[str, ...], name: str) -> None:
    """It never replaces a recovered file."""
    captures = [SampleCapture(each, b"home") for each in others]
    files, done = export_to_memory(
        make_recovery(tmp_path / "r", [*captures, SampleCapture(PAGE, b"page")], RecoverOptions(PAGE, page=True)),
        OPTIONS,
    )
    assert (done.start, done.files) == ("a/b@x=1&y=2.html", 1 + len(others))
    assert set(files) == {*(["index.html"] if others else []), name, "a/b@x=1&y=2.html"}
    text = files[name].decode()
    assert '<meta http-equiv="refresh" content="0; url=a/b@x=1%26y=2.html">' in text
    assert '<a href="a/b@x=1%26y=2.html">' in text
    assert not others or files["index.html"] == b"home"


def test_start_page_is_marked_in_the_manifest(tmp_path: Path) -> None:
    """The manifest lists it among the added files."""
    with MemoryTarget() as target:
        export_site(
            make_recovery(tmp_path / "r", [SampleCapture(PAGE, b"page")], RecoverOptions(PAGE)), target, OPTIONS
        )
    header, entries = read_manifest(MANIFEST_NAME, target.files[MANIFEST_NAME].splitlines())
    assert header.hosting == ("index.html",)
    assert [each.path for each in entries] == ["a/b@x=1&y=2.html"]


def test_start_page_lists_pages_if_the_ordered_one_is_missing(tmp_path: Path) -> None:
    """The shallowest pages are listed first, and names are escaped."""
    captures = [SampleCapture(f"{ROOT}d/{number:03}.html", b"page") for number in range(MAX_START_PAGE_FILES)]
    captures += [
        SampleCapture(f"{ROOT}z'<b>.html", b"page"),
        SampleCapture(f"{ROOT}a.png", b"\x89PNG\r\n\x1a\n", "image/png"),
    ]
    files, done = export_to_memory(
        make_recovery(tmp_path / "r", captures, missing=[ROOT]), ExportOptions(start_page="de")
    )
    assert done.start == "index.html"
    text = files["index.html"].decode()
    assert '<html lang="de">' in text
    assert "Die Seite <bdi>http://lost.example/</bdi> wurde nicht wiederhergestellt." in text
    assert text.index("z&#39;") < text.index("d/000.html")
    assert text.count("<li>") == MAX_START_PAGE_FILES
    assert "Dieser Ordner enthält 1 weitere." in text
    assert "<b>" not in text
    assert "a.png" not in text


def test_start_page_lists_files_without_pages(tmp_path: Path) -> None:
    """There is always a start page."""
    captures = [SampleCapture(f"{ROOT}a.png", b"\x89PNG\r\n\x1a\n", "image/png")]
    files, done = export_to_memory(make_recovery(tmp_path / "r", captures), OPTIONS)
    assert done.start == "index.html"
    assert '<a href="a.png">' in files["index.html"].decode()
    assert "Recovered files:" in files["index.html"].decode()


def test_no_start_page_by_default(tmp_path: Path) -> None:
    """Nothing is added unless a start page is requested."""
    files, done = export_to_memory(make_recovery(tmp_path / "r", [SampleCapture(PAGE, b"page")], RecoverOptions(PAGE)))
    assert (done.start, set(files)) == ("a/b-x=1&y=2.html", {"a/b-x=1&y=2.html"})
