"""Files and folders that are named wrongly: every command says the same about them, and ends with 3."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.named_files import WORDS, WRITTEN, read_by_commands

ROOT = Path(__file__).parents[2]
NAMED = [(each.command, each.name, case) for each in read_by_commands() for case in each.cases()]
SYSTEM = {
    "missing": "No such file or directory",
    "folder": "Is a directory",
    "file": "Not a directory",
    "forbidden": "Permission denied",
}

Ended = dict[tuple[str, str, str], tuple[str, int, str]]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Return how each ended: what was named, the exit code and the message."""
    folder = tmp_path_factory.mktemp("named")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UNLOST_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.named_files", folder],
        cwd=ROOT,
        env={**environment, "UNLOST_HOME": str(folder / "home"), "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
        timeout=300,
    )
    return {(row[0], row[1], row[2]): (row[3], row[4], row[5]) for row in json.loads(done.stdout)}


@pytest.mark.parametrize(("command", "name", "case"), NAMED, ids=[" ".join(each) for each in NAMED])
def test_what_cannot_be_read_is_said_alike(command: str, name: str, case: str, ended: Ended) -> None:
    """One line: the name, the system's words, what to do; exit code 3."""
    place, code, said = ended[command, name, case]
    beginning = f"unlost: {place}: cannot be read: {SYSTEM[case]}: "
    assert (code, said.count("\n"), said.startswith(beginning)) == (3, 1, True), said
    assert len(said) > len(beginning) + 5, "and what to do"


def test_every_command_with_files_is_tried() -> None:
    """The tables have no command that is gone, and no more than there is."""
    assert {command for command, *_ in NAMED} == WORDS.keys()
    assert len(NAMED) > 150
    assert WRITTEN.keys() - WORDS.keys() == {"jobs token", "refresh simulate"}
