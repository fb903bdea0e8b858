"""Tests that docs/troubleshooting.md quotes existing messages, and those of common mistakes."""

import os
import re
import socket
from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.docs.messages import collect_messages, pattern_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
QUOTED = [words.strip() for _, words in re.findall(r"^### (`+)(.+)\1$", PAGE, re.MULTILINE)]
LOST = str(ROOT / "docs" / "examples" / "lost" / "archives.toml")
CLICK_MESSAGES = {"No such command '…'."}  # a message of click

MISTAKES = {
    "a missing registry": ("recover", "http://lost.example/", "--archives", "nothing.toml"),
    "an unknown archive": ("recover", "http://lost.example/", "--archives", LOST, "--only", "third"),
    "an invalid URL": ("recover", "mailto:somebody", "--archives", LOST),
    "a URL with a space": ("recover", "not an address", "--archives", LOST),
    "a date in words": ("recover", "http://lost.example/", "--archives", LOST, "--at", "yesterday"),
    "a command with a typing error": ("recovr", "http://lost.example/"),
    "a report without a recovery": ("report", "nothing.recovery"),
    "an export into a folder with files": ("export", "it.recovery", "-o", "home"),
    "a page that no archive has": ("timemap", "http://nowhere.example/", "--archives", LOST),
    "an index instead of a map": ("map", "lookup", "index.cdxj", "http://lost.example/"),
    "an index that is not sorted": ("map", "build", "unsorted.cdxj", "--sorted", "-o", "-"),
    "a budget that is too small": ("map", "compact", "map.ukvs", "-o", "small.ukvs", "--budget", "1B"),
    "an invalid log": ("stats", "logs", "index.cdxj"),
    "a port in use": ("serve", "--archives", LOST, "--port", "PORT"),
    "a harvest without URLs": ("harvest", "-o", "new"),
    "a host that does not answer": ("harvest", "http://127.0.0.1:1/", "-o", "dead", "--delay", "0"),
    "a site that does not answer": ("check", "http://127.0.0.1:1/", "--archives", LOST),
    "a missing vault": ("vault", "inject", "."),
    "a vault without pages": ("vault", "plan", "index.cdxj", "--pages", "it.recovery"),
    "pages without blocks": ("vault", "recover", "page.html", "-o", "back"),
    "no service": ("jobs", "status", "abc-def", "--server", "http://127.0.0.1:1"),
}


@pytest.fixture(scope="module")
def mistakes_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a recovery, an index, a map and a page."""
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "index.cdxj").write_text('com,example)/ 20200101000000 {"url": "http://example.com/", "status": "200"}\n')
    (folder / "unsorted.cdxj").write_text("com,b)/ 20200101000000 {}\ncom,a)/ 20200101000000 {}\n")
    (folder / "page.html").write_text("<p>A page")
    old = Path.cwd()
    os.chdir(folder)
    try:
        unlost("recover", "http://lost.example/", "--archives", LOST, "-o", "it.recovery", env=_home(folder))
        unlost("map", "build", "index.cdxj", "-o", "map.ukvs")
    finally:
        os.chdir(old)
    return folder


def _home(folder: Path) -> dict[str, str]:
    return {"UNLOST_HOME": str(folder / "home")}


def test_page_quotes_distinct_messages() -> None:
    """The page quotes at least 40 messages, each once."""
    assert len(QUOTED) == PAGE.count("\n### ") >= 40
    assert len(set(QUOTED)) == len(QUOTED)


def test_quoted_messages_exist_in_the_code() -> None:
    """A changed or removed message fails here."""
    texts = collect_messages()
    not_now = "…: not queried before …: "  # composed of two messages
    assert f"{not_now}…" in texts
    reasons = {not_now + text for text in texts}
    for message in set(QUOTED) - CLICK_MESSAGES:
        pattern = pattern_of(message)
        assert any(pattern.search(text) for text in texts | reasons), message


def test_unknown_message_is_not_found() -> None:
    """The search does not find a message that is not in the code."""
    assert not [text for text in collect_messages() if pattern_of("the moon is … cheese").search(text)]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_messages_of_common_mistakes_are_quoted(
    mistake: str, mistakes_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output of a common mistake is quoted on the page."""
    monkeypatch.chdir(mistakes_folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [port if word == "PORT" else word for word in MISTAKES[mistake]]
        done = unlost(*words, env=_home(mistakes_folder))
    output = done.stderr.decode()
    assert done.returncode != 0
    assert [message for message in QUOTED if pattern_of(message).search(output)], output
