"""Tests that run the tutorials."""

import re
from pathlib import Path

import pytest

from tests.docs.tutorial import FOLDER, PORTS, Step, output_matches, shell, steps_of

TUTORIALS = sorted(page for page in FOLDER.glob("*.md") if page.name != "README.md")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorial_steps_print_the_shown_output(page: Path, tmp_path: Path) -> None:
    """Each step prints what the tutorial shows."""
    steps = steps_of(page.read_text())
    with shell(tmp_path) as opened:
        for step in steps:
            printed = opened.run(step)
            assert output_matches(step.shown, printed), f"$ {step.command}\nshown:\n{step.shown}\nprinted:\n{printed}"


def test_tutorials_cover_all_audiences() -> None:
    """Each of the five audiences has a tutorial with commands."""
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
def test_tutorial_lists_its_placeholders(page: Path) -> None:
    """A table before the first command says what to replace."""
    head = page.read_text().partition("```console")[0]
    assert "| here | for " in head, "expected a table of placeholders"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_only_console_blocks_have_commands(page: Path) -> None:
    """No block of another kind has a command, since it would not be run."""
    others = re.findall(r"^```(?!console)\w+\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert not [block for block in others if re.search(r"^\$ |^unlost ", block, re.MULTILINE)]


def test_wrong_output_is_detected(tmp_path: Path) -> None:
    """Output that differs from the tutorial does not match."""
    with shell(tmp_path) as opened:
        printed = opened.run(Step("printf 'one\\ntwo\\n'; ls lost", ""))
    assert printed == "one\ntwo\narchives.toml\nfirst\nsecond\n"
    assert output_matches(printed, printed)
    assert output_matches("one\n…\nsecond\n", printed)
    assert not output_matches("one\n", printed)
    assert not output_matches("…\nthird\n", printed)


def test_ports_are_mapped_in_commands_and_output(tmp_path: Path) -> None:
    """Commands use free ports, and their output has the tutorial's ports."""
    with shell(tmp_path) as opened:
        assert opened.run(Step(f"test {PORTS[0]} != 12''08 && echo http://127.0.0.1:{PORTS[0]}/ 31208", "")) == (
            f"http://127.0.0.1:{PORTS[0]}/ 31208\n"
        )
