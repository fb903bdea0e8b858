"""`unlost recover` with the archives of the documentation."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.run import unlost

ROOT = Path(__file__).parents[2]
ARCHIVES = ROOT / "docs" / "examples" / "lost" / "archives.toml"
SITE = "http://lost.example/"


@pytest.fixture(autouse=True)
def temporary_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in a temporary folder."""
    monkeypatch.chdir(tmp_path)


def test_example_site_is_recovered(tmp_path: Path) -> None:
    """From two archives, with the newest good captures, in a folder with the host's name."""
    done = unlost("recover", SITE, "--archives", str(ARCHIVES), "--summary", "s.tsv")
    assert done.returncode == 0
    assert done.stdout == b""
    first, *more = done.stderr.decode().splitlines()
    assert first == "unlost: 4 recovered, 1 missing; 0 requests; in lost.example.recovery"
    assert [line.partition("lost.example.recovery")[0] for line in more] == [
        "unlost: next: `unlost report ",
        "unlost: next: `unlost export ",
    ]
    assert (tmp_path / "lost.example.recovery" / "warc" / "unlost-00001.warc.gz").exists()
    rows = [line.split("\t") for line in (tmp_path / "s.tsv").read_text().splitlines()]
    found = {row[1]: row[4] + " " + row[5] for row in rows if row[2] != "MISSING"}
    assert found == {
        SITE: "first 20090504100000",
        f"{SITE}style.css": "first 20090504100005",
        "http://www.lost.example/roses.html": "second 20140801090000",
        "http://www.lost.example/herbs/index.html": "second 20140801090020",
    }
    assert [row[1] for row in rows if row[2] == "MISSING"] == [f"{SITE}pond.html"]


def test_dry_run_estimates_requests() -> None:
    """For each archive, as text and as JSON."""
    words = ("recover", SITE, "--archives", str(ARCHIVES), "--dry-run")
    assert unlost(*words).stdout == b"first\t0\t2\t-\nsecond\t0\t2\t-\n"
    lines = [json.loads(line) for line in unlost(*words, "--json").stdout.splitlines()]
    assert [(each["archive"], each["replay"], each["days"]) for each in lines] == [("first", 2, 0), ("second", 2, 0)]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("mailto:me@example.com",), 2, "mailto:me@example.com: not a web page"),
        ((SITE, "--from", "2015", "--to", "2014"), 2, "--from is later than --to"),
        ((SITE, "--at", "2014", "--most-recent"), 2, "--most-recent and --at"),
        ((SITE, "--urls", "nowhere.txt"), 3, "nowhere.txt"),
        ((SITE, "--connections", "1000"), 2, "--connections"),
        ((SITE, "-o", "a-file"), 3, "a-file"),
        ((SITE, "--summary", "nowhere/s.tsv"), 3, "nowhere/s.tsv: cannot be written"),
    ],
)
def test_invalid_arguments_are_rejected(words: tuple[str, ...], code: int, message: str, tmp_path: Path) -> None:
    """In one line, before any request; no file is left."""
    (tmp_path / "a-file").write_text("mine")
    done = unlost("recover", *words, "--archives", str(ARCHIVES))
    assert (done.returncode, message in done.stderr.decode()) == (code, True), done.stderr
    assert done.stderr.count(b"\n") <= 4
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == ["a-file"]


def test_empty_recovery_has_a_hint() -> None:
    """Most likely the URL was mistyped."""
    done = unlost("recover", "http://lots.example/", "--archives", str(ARCHIVES))
    assert done.returncode == 1
    counted, hint = done.stderr.decode().splitlines()
    assert counted == "unlost: 0 recovered, 1 missing; 0 requests; in lots.example.recovery"
    why = "`unlost report lots.example.recovery --list missing` says why"
    assert hint == f"unlost: nothing came back: look at how the address is written; {why}"


def test_exit_code_counts_captures_of_earlier_runs() -> None:
    """A run without new captures exits with 0 if the folder has some."""
    assert unlost("recover", SITE, "--archives", str(ARCHIVES), "-o", "mine").returncode == 0
    Path("empty").mkdir()
    Path("empty.toml").write_text('[[archive]]\nid = "empty"\nname = "Empty"\nkind = "files"\nfolder = "empty"\n')
    words = ("recover", "--archives", "empty.toml", "-o")
    assert unlost(*words, "mine", SITE).returncode == 0
    assert unlost(*words, "theirs", SITE).returncode == 1
    assert unlost(*words, "theirs", SITE).returncode == 1, "nor is it more the second time"


def test_folder_of_another_site_is_rejected() -> None:
    """Without any warning before."""
    assert unlost("recover", SITE, "--archives", str(ARCHIVES), "-o", "mine").returncode == 0
    Path("memgator.json").write_text('[{"id": "a", "name": "A", "timemap": "http://a.example/", "odd": 1}]')
    words = ("-o", "mine", "--archives", "memgator.json", "--at", "2014")
    done = unlost("recover", "http://other.example/", *words)
    message = b"unlost: the folder has a recovery of http://lost.example/: give another one by -o\n"
    assert (done.returncode, done.stderr) == (2, message)


@pytest.mark.parametrize(
    "again", ["lost.example", "http://lost.example", "https://lost.example/", "http://www.lost.example/"]
)
def test_other_spelling_of_the_site_resumes(again: str) -> None:
    """Without scheme, slash or www; the stored URL stays."""
    words = ("--archives", str(ARCHIVES), "-o", "mine")
    first = unlost("recover", SITE, *words)
    done = unlost("recover", again, *words)
    assert (done.returncode, done.stderr) == (0, first.stderr)
    assert unlost("report", "mine").stdout.startswith(b"http://lost.example/\n")


def test_folder_of_the_host_is_another_site() -> None:
    """`/garden` is a page of the whole host, `/garden/` a folder."""
    words = ("--archives", str(ARCHIVES), "-o", "mine")
    assert unlost("recover", f"{SITE}garden", *words).returncode == 0
    assert unlost("recover", f"{SITE}garden/", *words).returncode == 2


def test_other_dates_in_the_same_folder_are_reported() -> None:
    """Stored captures stay."""
    words = ("recover", SITE, "--archives", str(ARCHIVES))
    assert b"other dates" not in unlost(*words).stderr
    assert b"other dates" in unlost(*words, "--at", "2009").stderr
    assert b"other dates" not in unlost(*words, "--at", "2009").stderr


def test_reached_limit_is_reported() -> None:
    """A higher limit resumes."""
    words = ("recover", SITE, "--archives", str(ARCHIVES))
    done = unlost(*words, "--limit", "2")
    assert (done.returncode, b"a higher one goes on" in done.stderr) == (4, True)
    assert unlost(*words, "--limit", "9").returncode == 0


def test_dry_run_reports_failed_listings(tmp_path: Path) -> None:
    """An archive without a listing is not an empty one."""
    text = ARCHIVES.read_text().replace('folder = "', f'folder = "{ARCHIVES.parent}/')
    dead = '[[archive]]\nid = "dead"\nname = "Dead"\nkind = "pywb"\nlimits = []\ncdx = "http://127.0.0.1:9/cdx"\n'
    dead += 'replay = "http://127.0.0.1:9/{datetime}id_/{uri}"\n'
    (tmp_path / "archives.toml").write_text(f"{text}\n{dead}")
    done = unlost("recover", SITE, "--archives", "archives.toml", "--dry-run")
    assert b"dead: no whole list" in done.stderr, done.stderr


@pytest.mark.parametrize("change", ["DROP TABLE record", "UPDATE record SET file = '../../home/x'"])
def test_modified_state_is_rejected(change: str, tmp_path: Path) -> None:
    """In one line with the file."""
    words = ("recover", SITE, "--archives", str(ARCHIVES), "-o", "mine")
    unlost(*words)
    with closing(sqlite3.connect(tmp_path / "mine" / "state.sqlite")) as state:
        state.execute(change)
        state.commit()
    done = unlost(*words)
    assert (done.returncode, b"state.sqlite" in done.stderr, b"Traceback" in done.stderr) == (3, True, False)


def test_truncated_warc_is_reported(tmp_path: Path) -> None:
    """The readable records are recovered."""
    (tmp_path / "warcs").mkdir()
    whole = (ARCHIVES.parent / "first" / "first.warc").read_bytes()
    (tmp_path / "warcs" / "cut.warc").write_bytes(whole[: whole.rindex(b"WARC/1.1") + 300])
    entry = '[[archive]]\nid = "mine"\nname = "Mine"\nkind = "files"\nfolder = "warcs"\n'
    (tmp_path / "mine.toml").write_text(entry)
    done = unlost("recover", SITE, "--archives", "mine.toml", "--json")
    assert b"mine: once a record that breaks off, first: " in done.stderr
    assert b"cut.warc" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["problems"] == {"mine": {"short-block": 1}}
    assert done.stdout.count(b'"event": "recovered"') >= 2


def test_recover_does_not_import_comparison(tmp_path: Path) -> None:
    """Also not with a list of further URLs."""
    (tmp_path / "urls.txt").write_text(f"{SITE}roses.html\n")
    code = (
        "import sys\n"
        "from unlost.cli.main import run\n"
        "run(sys.argv[1:])\n"
        "print([name for name in sys.modules if name.startswith('unlost.comparison')])"
    )
    words = ("recover", SITE, "--archives", str(ARCHIVES), "--urls", "urls.txt")
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, check=False, timeout=60)
    assert (done.stdout, b"4 recovered" in done.stderr) == (b"[]\n", True), done.stderr


@pytest.mark.parametrize(("more", "code", "message"), [((), 2, "give --yes"), (("--yes",), 0, "archives list 4 URLs")])
def test_many_listed_urls_need_yes_without_a_terminal(more: tuple[str, ...], code: int, message: str) -> None:
    """The message has the number of requests; with the option they are sent."""
    lower = (
        "import sys\n"
        "from unlost.recovery import scheduler\n"
        "scheduler.CONFIRMATION_THRESHOLD = 3\n"
        "from unlost.cli.main import run\n"
        "sys.exit(run(sys.argv[1:]))"
    )
    words = ("recover", SITE, "--archives", str(ARCHIVES), *more)
    done = subprocess.run([sys.executable, "-c", lower, *words], capture_output=True, check=False, timeout=60)
    assert (done.returncode, message in done.stderr.decode()) == (code, True), done.stderr
    assert (b"4 requests" in done.stderr) is True


def test_linked_only_with_a_policy_is_rejected() -> None:
    """Both determine how pages are discovered."""
    done = unlost("recover", SITE, "--archives", str(ARCHIVES), "--linked-only", "--policy", "exhaustive")
    assert (done.returncode, b"exclude each other" in done.stderr) == (2, True)
