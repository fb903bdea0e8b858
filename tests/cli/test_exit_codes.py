"""Exit codes: 2 for a wrong command line, 3 for unreadable input, 5 for skipped lines."""

import re
from pathlib import Path

import pytest

from unlost.cli import run

ROOT = Path(__file__).parents[2]
LOST = str(ROOT / "docs" / "examples" / "lost" / "archives.toml")

INVALID_ARGUMENTS = {
    "recover: another scheme": "recover ftp://lost.example/",
    "recover: no host": "recover http://",
    "recover: a date": "recover http://lost.example/ --at 20x",
    "recover: an archive": f"recover http://lost.example/ --archives {LOST} --only third",
    "check: another scheme": f"check ftp://lost.example/ --archives {LOST}",
    "check: a port": f"check http://lost.example:x/ --archives {LOST}",
    "check: an archive": f"check http://lost.example/ --archives {LOST} --only third",
    "watch: another scheme": f"watch ftp://lost.example/ --once --archives {LOST}",
    "harvest: another scheme": "harvest ftp://lost.example/ -o new",
    "timemap: another scheme": f"timemap mailto:me@example.com --archives {LOST}",
    "timemap: no address": f"timemap http:// --archives {LOST}",
    "timemap: an archive": f"timemap http://lost.example/ --archives {LOST} --only third",
    "timegate: another scheme": f"timegate ftp://lost.example/ --archives {LOST}",
    "timegate: a date": f"timegate http://lost.example/ 20x --archives {LOST}",
    "archives show: an archive": f"archives show third --archives {LOST}",
    "archives test: an archive": f"archives test third --archives {LOST}",
    "archives test: an address": f"archives test --uri http:// --archives {LOST}",
    "index show: an address": "index show index.cdxj --url http://",
    "map check: a date": "map check index.cdxj --date 20x",
    "map lookup: an address": "map lookup map.ukvs http://",
    "map sample: an archive": f"map sample --archive third --uris index.cdxj -o new.ukvs --archives {LOST}",
    "filter lookup: an address": "filter lookup held.filter http://",
    "profile lookup: an address": "profile lookup held.profile http://",
    "uri surt: an address": "uri surt http://",
    "uri unsurt: no key": "uri unsurt x",
    "uri keys: a policy": "uri keys --policy H9 http://example.com/",
    "overlap: an archive": f"overlap --urls urls.txt --archives {LOST} --only third",
    "vault plan: an address": "vault plan index.cdxj --pages ftp://lost.example/",
    "vault recover: an address": f"vault recover ftp://lost.example/ -o new --archives {LOST}",
    "vault advance: a date": "vault pack urls.txt --pages page.html --vault new --date 20x",
    "compare: an address": "compare one two --base ftp://lost.example/",
}
INVALID_FILES = {
    "recover": f"recover http://lost.example/ --urls bad.txt --archives {LOST}",
    "check": f"check --urls bad.txt --archives {LOST}",
    "watch": f"watch bad.txt --once --archives {LOST}",
    "overlap": f"overlap --urls bad.txt --archives {LOST} --fetch 0",
    "stats": "stats bad.txt",
    "recover: an expression": f"recover http://lost.example/ --exclude-from bad.re --archives {LOST}",
    "map build": "map build bad.txt -o new.ukvs",
}
SKIPPED_LINES = {
    "harvest": "harvest --urls bad.txt -o new",
    "map lookup": "map lookup map.ukvs --batch bad.txt",
    "filter lookup": "filter lookup held.filter --batch bad.txt",
    "map build": "map build some.txt -o new.ukvs",
    "filter build": "filter build some.txt -o new.filter",
    "profile build": "profile build some.txt --policy H1P0 -o new.profile",
    "stats": "stats some.txt",
    "index convert": "index convert some.cdxj -o new.cdx",
    "index show": "index show some.cdxj",
}


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Work in a folder with a map, a filter, a profile, and a list of invalid URLs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNLOST_HOME", str(tmp_path / "home"))
    row = 'com,example)/ 20200101000000 {"url": "http://example.com/", "status": "200"}\n'
    (tmp_path / "index.cdxj").write_text(row)
    for words in (
        "map build index.cdxj -o map.ukvs",
        "filter build index.cdxj -o held.filter",
        "profile build index.cdxj --policy H3P1 -o held.profile",
    ):
        assert run(words.split()) == 0
    (tmp_path / "urls.txt").write_text("http://lost.example/\n")
    (tmp_path / "page.html").write_text("<p>A page")
    (tmp_path / "bad.txt").write_text("http://a b/\n")
    (tmp_path / "some.txt").write_text("http://a.com/\nhttp://a b/\n")
    (tmp_path / "some.cdxj").write_text(f"rubbish\n{row}")
    (tmp_path / "bad.re").write_text("(\n")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.html").write_text("<p>A page")
    capfd.readouterr()


@pytest.mark.parametrize("mistake", INVALID_ARGUMENTS)
def test_invalid_arguments_exit_with_2(mistake: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A URL, a date, an archive id or a policy; stdout is empty."""
    assert run(INVALID_ARGUMENTS[mistake].split()) == 2
    stdout, stderr = capfd.readouterr()
    assert stdout == ""
    assert "SURT" not in stderr or "unsurt" in mistake, stderr
    assert "found" in stderr or "expected" in stderr or "There are" in stderr, stderr


@pytest.mark.parametrize("command", ["recover", "check", "watch --once", "timemap", "timegate", "uri surt"])
def test_empty_url_is_rejected(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Such as an unset variable of a script; nothing is visited."""
    archives = [] if command == "uri surt" else ["--archives", LOST]
    assert run([*command.split(), *archives, "--", ""]) == 2
    assert capfd.readouterr().err == "unlost: empty: expected an address such as http://example.com/\n"


@pytest.mark.parametrize("command", INVALID_FILES)
def test_invalid_files_exit_with_3(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The message has the file and the line."""
    assert run(INVALID_FILES[command].split()) == 3
    assert re.search(r"bad\.(txt|re):1\b", capfd.readouterr().err)


@pytest.mark.parametrize("command", SKIPPED_LINES)
def test_skipped_lines_exit_with_5(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The others are processed, and the message has the first skipped line."""
    assert run(SKIPPED_LINES[command].split()) == 5
    assert re.search(r"(bad|some)\.(txt|cdxj):[12]\b", capfd.readouterr().err)


def test_skipped_lines_take_precedence_over_invalid_arguments(capfd: pytest.CaptureFixture[str]) -> None:
    """If both occur, the readable URLs were processed."""
    assert run(["map", "lookup", "map.ukvs", "http://", "--batch", "bad.txt"]) == 5
    assert capfd.readouterr().err.count("\n") == 2
