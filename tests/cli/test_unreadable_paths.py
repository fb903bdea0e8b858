"""Wrongly named files and folders: every command has the same message, and exits with 3."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.unreadable_paths import ARGUMENTS, NOT_READ, path_parameters

ROOT = Path(__file__).parents[2]
CASES = [(each.command, each.name, case) for each in path_parameters() for case in each.cases()]
SYSTEM = {
    "missing": "No such file or directory",
    "folder": "Is a directory",
    "file": "Not a directory",
    "forbidden": "Permission denied",
}

PYTHON = re.compile(r"Traceback|codec|NoneType|not subscriptable|Errno|object has no|Expecting value|\bbyte 0x")

Results = dict[tuple[str, str, str], tuple[str, int, str]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Results]:
    """Return the results for unreadable files and for files of the wrong kind: path, exit code and stderr."""
    folder = tmp_path_factory.mktemp("named")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UNLOST_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.unreadable_paths", folder],
        cwd=ROOT,
        env={**environment, "UNLOST_HOME": str(folder / "home"), "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
        timeout=300,
    )
    unread, wrong = json.loads(done.stdout)
    return _by_case(unread), _by_case(wrong)


def _by_case(rows: list[tuple[str, str, str, str, int, str]]) -> Results:
    return {(command, name, case): (place, code, stderr) for command, name, case, place, code, stderr in rows}


@pytest.mark.parametrize(("command", "name", "case"), CASES, ids=[" ".join(each) for each in CASES])
def test_unreadable_path_has_the_same_message(
    command: str, name: str, case: str, results: tuple[Results, Results]
) -> None:
    """One line: path, reason, hint; exit code 3."""
    place, code, stderr = results[0][command, name, case]
    beginning = f"unlost: {place}: cannot be read: {SYSTEM[case]}: "
    assert (code, stderr.count("\n"), stderr.startswith(beginning)) == (3, 1, True), stderr
    assert len(stderr) > len(beginning) + 5, "and what to do"


def test_file_of_the_wrong_kind_has_a_readable_message(results: tuple[Results, Results]) -> None:
    """A picture, nothing, half a file, a page, an object: no traceback, and no message of Python."""
    assert len(results[1]) > 200
    for case, (_, code, stderr) in results[1].items():
        assert code in (0, 1, 2, 3, 4, 5), (case, stderr)
        assert not PYTHON.search(stderr), (case, stderr)
        assert stderr or code in (0, 1), case  # a check prints what it finds


def test_tables_match_the_commands() -> None:
    """No command is missing or obsolete."""
    assert {command for command, *_ in CASES} == ARGUMENTS.keys()
    assert len(CASES) > 150
    assert NOT_READ.keys() - ARGUMENTS.keys() == {"jobs clock", "jobs token", "refresh simulate"}
