"""docs/troubleshooting.md speaks of messages that there are, and has those that people meet first."""

import os
import re
import socket
from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.docs.messages import messages_of_the_code, pattern_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
QUOTED = [words.strip() for _, words in re.findall(r"^### (`+)(.+)\1$", PAGE, re.MULTILINE)]
LOST = str(ROOT / "docs" / "examples" / "lost" / "archives.toml")
BY_CLICK = {"No such command '…'."}  # the library for options says it

MISTAKES = {
    "a registry that is not there": ("recover", "http://lost.example/", "--archives", "nothing.toml"),
    "an archive that is not there": ("recover", "http://lost.example/", "--archives", LOST, "--only", "third"),
    "no address": ("recover", "mailto:somebody", "--archives", LOST),
    "an address with a blank": ("recover", "not an address", "--archives", LOST),
    "a date in words": ("recover", "http://lost.example/", "--archives", LOST, "--at", "yesterday"),
    "a command with a typing error": ("recovr", "http://lost.example/"),
    "a report of nothing": ("report", "nothing.recovery"),
    "an export into a folder with files": ("export", "it.recovery", "--to", "home"),
    "a page that nobody has": ("timemap", "http://nowhere.example/", "--archives", LOST),
    "an index in the place of a map": ("map", "lookup", "index.cdxj", "http://lost.example/"),
    "an index that is not sorted": ("map", "build", "unsorted.cdxj", "--sorted", "-o", "-"),
    "a budget that is too small": ("map", "compact", "map.ukvs", "-o", "small.ukvs", "--budget", "1B"),
    "a log that is none": ("stats", "logs", "index.cdxj"),
    "a port that is taken": ("serve", "--archives", LOST, "--port", "PORT"),
    "a harvest of nothing": ("harvest", "-o", "new"),
    "a host that does not answer": ("harvest", "http://127.0.0.1:1/", "-o", "dead", "--delay", "0"),
    "a site that does not answer": ("check", "http://127.0.0.1:1/", "--archives", LOST),
    "a vault that is not there": ("vault", "inject", "."),
    "a vault without pages": ("vault", "plan", "index.cdxj", "--pages", "it.recovery"),
    "pages without blocks": ("vault", "recover", "page.html", "-o", "back"),
    "no service": ("jobs", "status", "abc-def", "--server", "http://127.0.0.1:1"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a recovery, an index, a map and a page in it."""
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


def test_there_are_messages() -> None:
    """The page has a few dozen of them, each once."""
    assert len(QUOTED) == PAGE.count("\n### ") >= 40
    assert len(set(QUOTED)) == len(QUOTED)


def test_every_message_is_one_of_the_code() -> None:
    """What the page quotes, the code can say: a message that is changed or gone fails here."""
    texts = messages_of_the_code()
    not_now = "…: not queried before …: "  # put together from two: when, and why
    assert f"{not_now}…" in texts
    reasons = {not_now + text for text in texts}
    for message in set(QUOTED) - BY_CLICK:
        pattern = pattern_of(message)
        assert any(pattern.search(text) for text in texts | reasons), message


def test_a_message_that_is_none_would_be_noticed() -> None:
    """The look into the code finds no sentence that nobody wrote there."""
    assert not [text for text in messages_of_the_code() if pattern_of("the moon is … cheese").search(text)]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_people_meet_first_is_there(mistake: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes a common mistake finds what the command says about it on the page."""
    monkeypatch.chdir(place)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [port if word == "PORT" else word for word in MISTAKES[mistake]]
        done = unlost(*words, env=_home(place))
    said = done.stderr.decode()
    assert done.returncode != 0
    assert [message for message in QUOTED if pattern_of(message).search(said)], said
