"""`unlost report`: output, files and options."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.cli.run import unlost
from tests.report.browser_page import EVIL, HIDDEN
from tests.report.recovery.states import NOW, SITE, SampleResource, make_state
from unlost.html import LinkKind
from unlost.recovery.state import SCHEMA_VERSION, RecoveryState
from unlost.sqlite import STATE_FILE_NAME

ROOT = Path(__file__).parents[2]
MADE = [
    SampleResource("", "20110401000000", urim="https://a.example/1", links=("gone", "x\ty")),
    SampleResource("i.png", "20120101000000", archive="b", mime=f"image/{EVIL}\t{HIDDEN}", use=LinkKind.REQUISITE),
    SampleResource("x\ty", "20130101000000", mime=None, others=(("b", "20140101000000"), ("c", "20100101000000"))),
    SampleResource("gone", reason="not-held"),
    SampleResource("bad", "20150101000000", reason="rejected", verdict=("parked", "for sale")),
]


@pytest.fixture
def recovery(tmp_path: Path) -> Path:
    """Make a recovery."""
    return make_state(tmp_path / "lost.example.recovery", MADE)


def test_report_writes_files_and_prints_the_summary(recovery: Path) -> None:
    """In the folder of the recovery; a second run writes the same."""
    done = unlost("report", str(recovery))
    assert done.returncode == 0
    assert "3 of 5 resources recovered. 2 missing." in done.stdout.decode()
    assert done.stderr.decode().splitlines()[0] == f"unlost: the report is in {recovery}/report/index.html"
    before = {file.name: file.read_bytes() for file in (recovery / "report").iterdir()}
    assert before.keys() == {"index.html", "report.json", "summary.tsv"}
    assert unlost("report", str(recovery)).returncode == 0
    assert {file.name: file.read_bytes() for file in (recovery / "report").iterdir()} == before
    assert unlost("report", str(recovery), "--tsv").stdout == before["summary.tsv"]
    assert unlost("report", str(recovery), "--json").stdout == before["report.json"]


def test_tsv_and_json_have_the_same_fields(recovery: Path) -> None:
    """Seven fields, or three for missing resources."""
    lines = unlost("report", str(recovery), "--tsv").stdout.decode().splitlines()
    *objects, _ = [json.loads(line) for line in unlost("report", str(recovery), "--json").stdout.splitlines()]
    assert len(lines) == len(objects) == len(MADE)
    for line, each in zip(lines, objects, strict=True):
        assert line.replace("\t", "").isprintable()
        when, uri, *fields = (unquote(field, errors="surrogateescape") for field in line.split("\t"))
        assert (when, uri) == (each["when"], each["uri"])
        if fields == ["MISSING"]:
            assert (each["outcome"], each["archive"], each["file"]) == ("missing", None, None)
            continue
        mime, file, archive, date, others = fields
        assert mime == (each["mime"] or "-")
        assert (file, archive, date) == (each["file"], each["archive"], each["datetime"])
        assert dict(other.split(":") for other in others.split(",") if other) == each["others"]
    assert [each["reason"] for each in objects] == [None, None, None, "not-held", "rejected"]


def test_tsv_has_the_stored_values(recovery: Path) -> None:
    """In the order of the seven fields."""
    first = unlost("report", str(recovery), "--tsv").stdout.decode().splitlines()
    assert first[0] == f"2026-01-01T00:00:00Z\t{SITE}\ttext/html\twarc/unlost-00001.warc.gz:1\ta\t20110401000000\t"
    assert first[2].split("\t")[-1] == "b:20140101000000,c:20100101000000"
    assert first[3] == f"2026-01-01T00:00:00Z\t{SITE}gone\tMISSING"
    assert NOW.startswith("20260101")


@pytest.mark.parametrize(
    ("word", "lines"),
    [
        ("missing", [f"{SITE}gone\tnot-held\t1\t{SITE}", f"{SITE}bad\trejected\t0\t-"]),
        ("rejected", [f"{SITE}bad\ta\t20150101000000\tparked\tfor sale\t-"]),
        ("listed", []),
    ],
)
def test_list_prints_selected_resources(recovery: Path, word: str, lines: list[str]) -> None:
    """One line each; no file is written."""
    done = unlost("report", str(recovery), "--list", word)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines() == lines
    assert not (recovery / "report").exists()


def test_list_of_recovered_resources(recovery: Path) -> None:
    """URL, archive, date, media type and URI-M."""
    lines = unlost("report", str(recovery), "--list", "recovered").stdout.decode().splitlines()
    assert lines[0] == f"{SITE}\ta\t20110401000000\ttext/html\thttps://a.example/1"
    assert len(lines) == 3


def test_guide_shows_the_output(tmp_path: Path) -> None:
    """The example in docs/report.md."""
    folder = tmp_path / "lost.example.recovery"
    archives = ROOT / "docs" / "examples" / "lost" / "archives.toml"
    assert unlost("recover", SITE, "--archives", str(archives), "-o", str(folder)).returncode == 0
    guide = (ROOT / "docs" / "report.md").read_text().split("```text\n")[2].partition("```")[0]
    assert unlost("report", str(folder)).stdout.decode() == guide


def test_html_option_writes_only_the_page(recovery: Path, tmp_path: Path) -> None:
    """Also with a list; the page links to no absent files."""
    page = tmp_path / "page.html"
    done = unlost("report", str(recovery), "--html", str(page), "--list", "missing")
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 2)
    assert "summary.tsv" not in page.read_text()
    assert not (recovery / "report").exists()


def test_german_report(recovery: Path, tmp_path: Path) -> None:
    """Page and summary are German; TSV, JSON and lists are the same bytes."""
    english, german = tmp_path / "en", tmp_path / "de"
    assert unlost("report", str(recovery), "-o", str(english)).returncode == 0
    done = unlost("report", str(recovery), "-o", str(german), "--language", "de")
    assert done.returncode == 0
    printed = done.stdout.decode()
    assert "3 von 5 Dateien wiederhergestellt. 2 fehlen." in printed
    assert "Fehlend:" in printed
    assert "\n      1  alle Archivversionen verworfen\n" in printed
    assert "recovered" not in printed
    assert done.stderr.decode().startswith(f"unlost: the report is in {german / 'index.html'}\n"), (
        "messages are English"
    )
    assert '<html lang="de">' in (german / "index.html").read_text()
    for name in ("summary.tsv", "report.json"):
        assert (german / name).read_bytes() == (english / name).read_bytes()
    by_setting = unlost("report", str(recovery), "--html", str(tmp_path / "p"), env={"UNLOST_REPORT_LANGUAGE": "de"})
    assert by_setting.stdout == done.stdout
    for form in ("--tsv", "--json", "--list=missing"):
        assert (
            unlost("report", str(recovery), form, "--language=de").stdout
            == unlost("report", str(recovery), form).stdout
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--language", "xx"], "'en', 'de'"), (["--factors", "--language", "de"], "told in English only")],
)
def test_unknown_language_is_rejected(recovery: Path, options: list[str], message: str) -> None:
    """The message has the known ones; a report in English only says so."""
    done = unlost("report", str(recovery), *options)
    assert (done.returncode, message in done.stderr.decode()) == (2, True)


def test_output_option_writes_to_another_folder(recovery: Path, tmp_path: Path) -> None:
    """The recovery is not modified."""
    assert unlost("report", str(recovery), "-o", str(tmp_path / "out")).returncode == 0
    assert (tmp_path / "out" / "index.html").exists()
    assert not (recovery / "report").exists()


def test_report_of_a_running_recovery(recovery: Path) -> None:
    """With the results so far."""
    with RecoveryState(recovery) as state:
        state.resources.requeue("standing = 'missing'")
        state.commit()
        done = unlost("report", str(recovery))
        assert done.returncode == 0, done.stderr
        assert "3 of 3 resources recovered. 2 queued." in done.stdout.decode()
        state.resources.requeue("standing = 'recovered'")


def test_report_of_an_empty_recovery(tmp_path: Path) -> None:
    """Exit code 0."""
    done = unlost("report", str(make_state(tmp_path / "r", [], url=None)))
    assert done.returncode == 0
    assert done.stdout.decode() == "Nothing has been recovered yet.\n"
    assert b"run `unlost recover` again to resume" in done.stderr


def test_newer_state_version_is_rejected(recovery: Path) -> None:
    """With a hint."""
    with closing(sqlite3.connect(recovery / STATE_FILE_NAME)) as state:
        state.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    done = unlost("report", str(recovery))
    assert (done.returncode, b"a newer unlost made it" in done.stderr) == (3, True)
    assert not (recovery / "report").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nowhere",), 3, "cannot be read: No such file or directory: give the folder of a recovery"),
        (("a-file",), 3, "cannot be read: Not a directory: give the folder of a recovery"),
        (("empty",), 3, "not the folder of a recovery"),
        (("other",), 3, "state.sqlite"),
        (("lost.example.recovery", "--html", "nowhere/page.html"), 3, "no such folder"),
        (("lost.example.recovery", "--html", "empty"), 3, "it is a folder"),
        (("lost.example.recovery", "--json", "--tsv"), 2, "give one of them"),
        (("lost.example.recovery", "-o", "out", "--json"), 2, "leave it out"),
        (("lost.example.recovery", "-o", "a-file"), 3, "a-file: cannot be made a folder"),
        (("linked",), 3, "a link, which is not followed"),
        (("linked-file",), 3, "a link, which is not followed"),
    ],
)
def test_invalid_arguments_are_rejected(
    recovery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, message: str
) -> None:
    """In one line, and no file is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / STATE_FILE_NAME).write_text(
        "my diary, which is long enough to be looked at as if it were a database"
    )
    (make_state(tmp_path / "linked", MADE) / "report").symlink_to(tmp_path / "empty")
    (make_state(tmp_path / "linked-file", MADE) / "report").mkdir()
    (tmp_path / "linked-file" / "report" / "index.html").symlink_to(tmp_path / "a-file")
    done = unlost("report", *words)
    assert (done.returncode, message in done.stderr.decode()) == (code, True), done.stderr
    assert b"Traceback" not in done.stderr
    assert (tmp_path / "a-file").read_text() == "mine"
    assert list((tmp_path / "empty").iterdir()) == []
    assert not (recovery / "report").exists()


def test_modified_state_is_rejected(recovery: Path) -> None:
    """No partial report is written."""
    with closing(sqlite3.connect(recovery / STATE_FILE_NAME)) as state, state:
        state.execute("UPDATE record SET data = '{\"capture\": 7}' WHERE id = 2")
    done = unlost("report", str(recovery))
    assert (done.returncode, b"not the state of a recovery" in done.stderr) == (3, True), done.stderr
    assert not (recovery / "report").exists()
