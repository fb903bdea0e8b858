"""`unlost overlap` with archives that are folders of known files."""

import json
from pathlib import Path

import pytest

from tests.archives.archive_files import page, write
from tests.cli.run import unlost
from tests.external import chromium

pytestmark = [  # warcio leaves files open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

PAGES = [f"http://site{number}.example/" for number in range(6)]
HOLDINGS = {"a": PAGES[:4], "<b>": PAGES[2:5], "empty": []}


@pytest.fixture
def overlap_folder(tmp_path: Path) -> Path:
    """Make archives, a registry and a list."""
    registry = ""
    for number, (name, urls) in enumerate(HOLDINGS.items()):
        folder = tmp_path / f"files{number}"
        folder.mkdir()
        if urls:
            write(folder / "x.warc.gz", *(page(uri, "2014-02-10T00:00:01Z") for uri in urls))
        ident = name.strip("<>")
        registry += f'[[archive]]\nid = "{ident}"\nname = "{name}"\nkind = "files"\nfolder = "{folder}"\n'
    (tmp_path / "archives.toml").write_text(registry)
    (tmp_path / "pages.txt").write_text("# pages\n" + "\n".join(PAGES) + "\n")
    return tmp_path


def overlap(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the command in a folder; return exit code, stdout and stderr."""
    done = unlost(
        "overlap", "--urls", str(folder / "pages.txt"), "--archives", str(folder / "archives.toml"), *arguments,
        env={"UNLOST_HOME": str(folder / "home")},
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_overlap_is_reported_and_stored(overlap_folder: Path) -> None:
    """Numbers, sets and levels are exact; a second run sends no query, and prints the same."""
    code, text, _ = overlap(overlap_folder, "--json")
    found = json.loads(text)
    assert (code, found["held"], found["compared"]) == (0, 5, 6)
    assert found["sets"] == [
        {"archives": ["a"], "pages": 2},
        {"archives": ["a", "b"], "pages": 2},
        {"archives": ["b"], "pages": 1},
    ]
    assert [(each["level"], each["archives"], each["proven"]) for each in found["fewest"]] == [
        (level, ["a", "b"], True) for level in (0.9, 0.95, 0.99)
    ]
    assert found["archives"][0]["copies"]["missed"]["of"] == 4
    for file in overlap_folder.glob("files*/*.warc.gz"):
        file.unlink()
    assert overlap(overlap_folder, "--json") == (0, text, "")


def test_dry_run_sends_and_stores_nothing(overlap_folder: Path) -> None:
    """It prints the number of queries."""
    code, text, stderr = overlap(overlap_folder, "--dry-run", "--fetch", "2")
    assert (code, text.splitlines()[0]) == (0, "a\t6 lists\t2 copies at most")
    assert "24 questions" in stderr
    assert not list(overlap_folder.glob("*.overlap*"))


def test_state_of_another_sample_needs_restart(overlap_folder: Path) -> None:
    """Results of different options are not mixed."""
    assert overlap(overlap_folder, "--sample", "3")[0] == 0
    code, _, stderr = overlap(overlap_folder, "--sample", "4")
    assert (code, "--restart" in stderr) == (2, True)
    assert overlap(overlap_folder, "--sample", "4", "--restart")[0] == 0


@pytest.mark.parametrize("text", ["", "# nothing\n", "mailto:a@b.example\n"])
def test_list_without_urls_is_rejected(overlap_folder: Path, text: str) -> None:
    """No file is left."""
    (overlap_folder / "pages.txt").write_text(text)
    code, _, stderr = overlap(overlap_folder)
    assert (code, "no address in it" in stderr) == (3, True)
    assert not list(overlap_folder.glob("*.overlap*"))


def test_foreign_state_file_is_not_modified(overlap_folder: Path) -> None:
    """It is rejected."""
    (overlap_folder / "pages.txt.overlap").write_bytes(b"my letters" * 100)
    code, _, stderr = overlap(overlap_folder)
    assert (code, "--state" in stderr) == (3, True)
    assert (overlap_folder / "pages.txt.overlap").read_bytes() == b"my letters" * 100


@pytest.mark.browser
def test_page_and_diagram_in_a_browser(overlap_folder: Path) -> None:
    """A bar for each set, a dot for each archive in it; nothing overflows."""
    assert (
        overlap(overlap_folder, "--html", str(overlap_folder / "o.html"), "--svg", str(overlap_folder / "o.svg"))[0]
        == 0
    )
    with chromium.run_browser() as browser:
        window = browser.new_page(viewport={"width": 400, "height": 800})
        window.goto((overlap_folder / "o.html").as_uri())
        assert window.locator("rect.set").count() >= 3
        assert window.locator("circle.in").count() == 4
        assert window.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert "5 of 6 pages" in window.locator(".lead").inner_text()
        window.goto((overlap_folder / "o.svg").as_uri())
        assert window.locator("circle.in").count() == 4
