"""Files and folders that are named wrongly: every command says the same about them, and ends with 3."""

import json
import os
import re
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

PYTHON = re.compile(r"Traceback|codec|NoneType|not subscriptable|Errno|object has no|Expecting value|\bbyte 0x")

Ended = dict[tuple[str, str, str], tuple[str, int, str]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, Ended]:
    """Return how each ended, of files that cannot be read, and of the wrong kind: its name, exit code and message."""
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
    unread, wrong = json.loads(done.stdout)
    return _by_case(unread), _by_case(wrong)


def _by_case(rows: list[tuple[str, str, str, str, int, str]]) -> Ended:
    return {(command, name, case): (place, code, said) for command, name, case, place, code, said in rows}


@pytest.mark.parametrize(("command", "name", "case"), NAMED, ids=[" ".join(each) for each in NAMED])
def test_what_cannot_be_read_is_said_alike(command: str, name: str, case: str, both: tuple[Ended, Ended]) -> None:
    """One line: the name, the system's words, what to do; exit code 3."""
    place, code, said = both[0][command, name, case]
    beginning = f"unlost: {place}: cannot be read: {SYSTEM[case]}: "
    assert (code, said.count("\n"), said.startswith(beginning)) == (3, 1, True), said
    assert len(said) > len(beginning) + 5, "and what to do"


def test_files_of_the_wrong_kind_are_told_in_words(both: tuple[Ended, Ended]) -> None:
    """A picture, nothing, half a file, a page, an object: no command breaks, or passes on what Python says."""
    assert len(both[1]) > 200
    for case, (_, code, said) in both[1].items():
        assert code in (0, 1, 2, 3, 4, 5), (case, said)
        assert not PYTHON.search(said), (case, said)
        assert said or code in (0, 1), case  # a check prints what it finds


def test_every_command_with_files_is_tried() -> None:
    """The tables have no command that is gone, and no more than there is."""
    assert {command for command, *_ in NAMED} == WORDS.keys()
    assert len(NAMED) > 150
    assert WRITTEN.keys() - WORDS.keys() == {"jobs clock", "jobs token", "refresh simulate"}
