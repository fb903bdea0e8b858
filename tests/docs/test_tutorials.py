"""Tutorials, run from top to bottom."""

import re
from pathlib import Path

import pytest

from tests.docs.tutorial import FOLDER, PORTS, Step, fits, shell, steps_of

TUTORIALS = sorted(page for page in FOLDER.glob("*.md") if page.name != "README.md")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_every_step_prints_what_is_shown(page: Path, tmp_path: Path) -> None:
    """Whoever follows a tutorial sees what it shows, at every step."""
    steps = steps_of(page.read_text())
    with shell(tmp_path) as opened:
        for step in steps:
            printed = opened.run(step)
            assert fits(step.shown, printed), f"$ {step.command}\nshown:\n{step.shown}\nprinted:\n{printed}"


def test_there_is_one_for_each_reader() -> None:
    """The five people for whom unlost is made have a tutorial each, with commands in it."""
    assert {page.stem for page in TUTORIALS} == {
        "lost-website",
        "web-archive",
        "aggregator",
        "re-crawling",
        "insurance",
    }
    for page in TUTORIALS:
        assert len([step for step in steps_of(page.read_text()) if "unlost " in step.command]) >= 5, page.name


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_what_is_replaced_is_said_at_the_top(page: Path) -> None:
    """A reader knows before the first command what to write instead for something real."""
    head = page.read_text().partition("```console")[0]
    assert "| here | for " in head, "a table of what is replaced"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_no_other_blocks_look_like_commands(page: Path) -> None:
    """What is shown as a command is run: no block of another kind has a `$` before a line."""
    others = re.findall(r"^```(?!console)\w+\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert not [block for block in others if re.search(r"^\$ |^unlost ", block, re.MULTILINE)]


def test_a_wrong_output_is_seen(tmp_path: Path) -> None:
    """The test of tutorials would fail if a command printed something else than is shown."""
    with shell(tmp_path) as opened:
        printed = opened.run(Step("printf 'one\\ntwo\\n'; ls lost", ""))
    assert printed == "one\ntwo\narchives.toml\nfirst\nsecond\n"
    assert fits(printed, printed)
    assert fits("one\n…\nsecond\n", printed)
    assert not fits("one\n", printed)
    assert not fits("…\nthird\n", printed)


def test_ports_are_replaced_there_and_back(tmp_path: Path) -> None:
    """A command gets a free port in the place of the tutorial's, and what it prints has the tutorial's again."""
    with shell(tmp_path) as opened:
        assert opened.run(Step(f"test {PORTS[0]} != 12''08 && echo http://127.0.0.1:{PORTS[0]}/ 31208", "")) == (
            f"http://127.0.0.1:{PORTS[0]}/ 31208\n"
        )
