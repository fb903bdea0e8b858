"""The threat model says what is so: each threat has something that stops it and a test that exists."""

import hashlib
import re
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> list[list[str]]:
    """Return the cells of each threat."""
    found: list[list[str]] = []
    is_threat = False
    for line in PAGE.splitlines():
        if not line.startswith("|"):
            is_threat = False
        elif line.startswith("| threat |"):
            is_threat = True
        elif is_threat and not line.startswith("|---"):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


ROWS = rows()


def test_there_are_threats_of_all_kinds() -> None:
    """Every section about an attacker has a table, and no table is left out for how it begins."""
    sections = PAGE.split("\n## ")[1:]
    attackers = [each for each in sections if not each.startswith(("Fuzzing", "The dependencies"))]
    assert len(attackers) == 8
    assert all("\n| threat | what stops it | shown by |\n" in each for each in attackers)
    assert len(ROWS) > 50


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_each_threat_has_a_test_that_exists(row: list[str]) -> None:
    """No cell is empty, and what is named is a test, of that name, in that file."""
    assert len(row) == 3
    assert all(row)
    named = NAMED.findall(row[2])
    assert named
    assert NAMED.sub("", row[2]).strip(", ") == "", "the last column names tests and nothing else"
    for file, name in named:
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{name}"


def test_every_target_is_fuzzed_and_told_of() -> None:
    """Targets, their list in the script, their seeds, and the page are the same ones."""
    targets = {file.stem for file in (ROOT / "rust" / "fuzz" / "targets").glob("*.rs")}
    run = re.search(r'"\$\{@:-([a-z ]+)\}"', (ROOT / "scripts" / "fuzz").read_text())
    assert run is not None
    assert set(run[1].split()) == targets
    assert {each.name for each in (ROOT / "rust" / "fuzz" / "corpus").iterdir()} == targets
    assert all(any((ROOT / "rust" / "fuzz" / "corpus" / name).iterdir()) for name in targets)
    assert {each.name for each in (ROOT / "rust" / "fuzz" / "kept").iterdir()} == {f"{name}.tar.gz" for name in targets}
    told = PAGE.partition("## Fuzzing")[2]
    assert set(re.findall(r"`(\w+)`", told[told.index("| targets |") : told.index("Readers in Python")])) == targets


@pytest.mark.parametrize("target", sorted(file.stem for file in (ROOT / "rust" / "fuzz" / "targets").glob("*.rs")))
def test_what_fuzzing_grew_is_kept(target: str) -> None:
    """Each pack has inputs, named by their digests, that are no longer than fuzzing makes them."""
    with tarfile.open(ROOT / "rust" / "fuzz" / "kept" / f"{target}.tar.gz") as kept:
        inputs = [(each.name, kept.extractfile(each)) for each in kept]
        assert inputs
        for name, file in inputs:
            assert file is not None
            body = file.read()
            assert len(body) <= 512
            assert hashlib.sha1(body, usedforsecurity=False).hexdigest() == name


def test_the_audit_reads_what_is_pinned() -> None:
    """`make audit` looks at the versions that are installed, and at those that Cargo resolves from exact ones."""
    script = (ROOT / "scripts" / "audit").read_text()
    assert "pip-audit" in script
    assert "constraints.txt" in script
    assert "cargo audit" in script
    assert re.search(r"^audit:.*\n\tscripts/audit$", (ROOT / "Makefile").read_text(), re.MULTILINE)
