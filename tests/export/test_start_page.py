"""An export with a start page begins at the page that was ordered, whatever was recovered."""

from pathlib import Path

import pytest

from tests.export.sample_recoveries import ROOT, Copy, MemoryTarget, exported, recovered
from unlost.export import MANIFEST_NAME, MAX_START_PAGE_FILES, ExportOptions, export_site, read_manifest
from unlost.recover import RecoverOptions

WANTED = ExportOptions(windows=True, start_page="en")
PAGE = f"{ROOT}a/b?x=1&y=2"


def test_the_home_page_is_the_start_page(tmp_path: Path) -> None:
    """Nothing is added where `index.html` is the page that was ordered."""
    files, done = exported(recovered(tmp_path / "r", [Copy(ROOT, b"home"), Copy(f"{ROOT}x", b"x")]), WANTED)
    assert (done.start, set(files)) == ("index.html", {"index.html", "x.html"})


@pytest.mark.parametrize(("others", "name"), [((), "index.html"), ((ROOT,), "start.html")])
def test_a_page_below_the_top_folder(tmp_path: Path, others: tuple[str, ...], name: str) -> None:
    """A start page redirects to it; it never replaces a recovered file."""
    copies = [Copy(each, b"home") for each in others]
    files, done = exported(
        recovered(tmp_path / "r", [*copies, Copy(PAGE, b"page")], RecoverOptions(PAGE, page=True)), WANTED
    )
    assert (done.start, done.files) == ("a/b@x=1&y=2.html", 1 + len(others))
    assert set(files) == {*(["index.html"] if others else []), name, "a/b@x=1&y=2.html"}
    text = files[name].decode()
    assert '<meta http-equiv="refresh" content="0; url=a/b@x=1%26y=2.html">' in text
    assert '<a href="a/b@x=1%26y=2.html">' in text
    assert not others or files["index.html"] == b"home"


def test_the_start_page_is_no_part_of_the_site(tmp_path: Path) -> None:
    """The manifest names it among the files that were added."""
    with MemoryTarget() as target:
        export_site(recovered(tmp_path / "r", [Copy(PAGE, b"page")], RecoverOptions(PAGE)), target, WANTED)
    header, entries = read_manifest(MANIFEST_NAME, target.files[MANIFEST_NAME].splitlines())
    assert header.hosting == ("index.html",)
    assert [each.path for each in entries] == ["a/b@x=1&y=2.html"]


def test_the_ordered_page_was_not_recovered(tmp_path: Path) -> None:
    """The start page says so and lists the recovered pages, the shallowest first; markup in names stays text."""
    copies = [Copy(f"{ROOT}d/{number:03}.html", b"page") for number in range(MAX_START_PAGE_FILES)]
    copies += [Copy(f"{ROOT}z'<b>.html", b"page"), Copy(f"{ROOT}a.png", b"\x89PNG\r\n\x1a\n", "image/png")]
    files, done = exported(recovered(tmp_path / "r", copies, missing=[ROOT]), ExportOptions(start_page="de"))
    assert done.start == "index.html"
    text = files["index.html"].decode()
    assert '<html lang="de">' in text
    assert "Die Seite <bdi>http://lost.example/</bdi> konnte nicht gerettet werden." in text
    assert text.index("z&#39;") < text.index("d/000.html")
    assert text.count("<li>") == MAX_START_PAGE_FILES
    assert "1 weitere liegt in diesem Ordner." in text
    assert "<b>" not in text
    assert "a.png" not in text


def test_only_files_that_are_no_pages(tmp_path: Path) -> None:
    """They are listed, so that there is always a start page."""
    copies = [Copy(f"{ROOT}a.png", b"\x89PNG\r\n\x1a\n", "image/png")]
    files, done = exported(recovered(tmp_path / "r", copies), WANTED)
    assert done.start == "index.html"
    assert '<a href="a.png">' in files["index.html"].decode()
    assert "These files were recovered:" in files["index.html"].decode()


def test_without_a_start_page(tmp_path: Path) -> None:
    """Nothing is added unless a start page is requested."""
    files, done = exported(recovered(tmp_path / "r", [Copy(PAGE, b"page")], RecoverOptions(PAGE)))
    assert (done.start, set(files)) == ("a/b-x=1&y=2.html", {"a/b-x=1&y=2.html"})
