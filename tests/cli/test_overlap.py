"""`unlost overlap`, as its users run it, against archives that are folders with known files in them."""

import json
from pathlib import Path

import pytest

from tests.archives.archive_files import page, write
from tests.cli.run import unlost
from tests.neighbours import chromium

pytestmark = [  # warcio leaves files open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

PAGES = [f"http://site{number}.example/" for number in range(6)]
HELD = {"a": PAGES[:4], "<b>": PAGES[2:5], "empty": []}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make archives, a registry and a list."""
    registry = ""
    for number, (name, held) in enumerate(HELD.items()):
        folder = tmp_path / f"files{number}"
        folder.mkdir()
        if held:
            write(folder / "x.warc.gz", *(page(uri, "2014-02-10T00:00:01Z") for uri in held))
        ident = name.strip("<>")
        registry += f'[[archive]]\nid = "{ident}"\nname = "{name}"\nkind = "files"\nfolder = "{folder}"\n'
    (tmp_path / "archives.toml").write_text(registry)
    (tmp_path / "pages.txt").write_text("# pages\n" + "\n".join(PAGES) + "\n")
    return tmp_path


def overlap(place: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the command there; return exit code, output and messages."""
    done = unlost(
        "overlap", "--urls", str(place / "pages.txt"), "--archives", str(place / "archives.toml"), *arguments,
        env={"UNLOST_HOME": str(place / "home")},
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_who_holds_what_is_told_and_kept(place: Path) -> None:
    """Numbers, sets and levels are exact; a second run asks nobody, and says the same."""
    code, text, _ = overlap(place, "--json")
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
    for file in place.glob("files*/*.warc.gz"):
        file.unlink()
    assert overlap(place, "--json") == (0, text, "")


def test_a_dry_run_asks_and_keeps_nothing(place: Path) -> None:
    """It says how many questions there are."""
    code, text, said = overlap(place, "--dry-run", "--fetch", "2")
    assert (code, text.splitlines()[0]) == (0, "a\t6 lists\t2 copies at most")
    assert "24 questions" in said
    assert not list(place.glob("*.overlap*"))


def test_another_sample_is_refused_until_it_is_begun_anew(place: Path) -> None:
    """What was asked with other options is not mixed with this."""
    assert overlap(place, "--sample", "3")[0] == 0
    code, _, said = overlap(place, "--sample", "4")
    assert (code, "--restart" in said) == (2, True)
    assert overlap(place, "--sample", "4", "--restart")[0] == 0


@pytest.mark.parametrize("text", ["", "# nothing\n", "mailto:a@b.example\n"])
def test_a_list_without_addresses_is_told(place: Path, text: str) -> None:
    """Nothing is left behind."""
    (place / "pages.txt").write_text(text)
    code, _, said = overlap(place)
    assert (code, "no address in it" in said) == (3, True)
    assert not list(place.glob("*.overlap*"))


def test_a_foreign_file_in_the_place_of_the_state_is_left_alone(place: Path) -> None:
    """It is refused, and stays as it is."""
    (place / "pages.txt.overlap").write_bytes(b"my letters" * 100)
    code, _, said = overlap(place)
    assert (code, "--state" in said) == (3, True)
    assert (place / "pages.txt.overlap").read_bytes() == b"my letters" * 100


@pytest.mark.browser
def test_the_page_is_readable_in_a_browser(place: Path) -> None:
    """The picture has a bar for each set and a dot for each archive in it, and nothing overflows or runs."""
    assert overlap(place, "--html", str(place / "o.html"), "--svg", str(place / "o.svg"))[0] == 0
    with chromium.browser() as browser:
        shown = browser.new_page(viewport={"width": 400, "height": 800})
        shown.goto((place / "o.html").as_uri())
        assert shown.locator("rect.set").count() >= 3
        assert shown.locator("circle.in").count() == 4
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert "5 of 6 pages" in shown.locator(".lead").inner_text()
        shown.goto((place / "o.svg").as_uri())
        assert shown.locator("circle.in").count() == 4
