"""The threat model: each threat has a mitigation and an existing test."""

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


def test_every_section_has_threats() -> None:
    """And no table is missed by its header."""
    sections = PAGE.split("\n## ")[1:]
    attackers = [each for each in sections if not each.startswith(("Fuzzing", "The dependencies"))]
    assert len(attackers) == 8
    assert all("\n| threat | what stops it | shown by |\n" in each for each in attackers)
    assert len(ROWS) > 50


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_each_threat_has_an_existing_test(row: list[str]) -> None:
    """No cell is empty."""
    assert len(row) == 3
    assert all(row)
    named = NAMED.findall(row[2])
    assert named
    assert NAMED.sub("", row[2]).strip(", ") == "", "the last column names tests and nothing else"
    for file, name in named:
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{name}"


def test_fuzz_targets_are_listed_everywhere() -> None:
    """Targets, script, seeds and documentation agree."""
    targets = {file.stem for file in (ROOT / "rust" / "fuzz" / "targets").glob("*.rs")}
    run = re.search(r'"\$\{@:-([a-z ]+)\}"', (ROOT / "scripts" / "fuzz").read_text())
    assert run is not None
    assert set(run[1].split()) == targets
    assert {each.name for each in (ROOT / "rust" / "fuzz" / "corpus").iterdir()} == targets
    assert all(any((ROOT / "rust" / "fuzz" / "corpus" / name).iterdir()) for name in targets)
    assert {each.name for each in (ROOT / "rust" / "fuzz" / "kept").iterdir()} == {f"{name}.tar.gz" for name in targets}
    reported = PAGE.partition("## Fuzzing")[2]
    assert (
        set(re.findall(r"`(\w+)`", reported[reported.index("| targets |") : reported.index("Readers in Python")]))
        == targets
    )


@pytest.mark.parametrize("target", sorted(file.stem for file in (ROOT / "rust" / "fuzz" / "targets").glob("*.rs")))
def test_fuzz_corpora_are_stored(target: str) -> None:
    """Each has inputs named by digest, within the maximum length."""
    with tarfile.open(ROOT / "rust" / "fuzz" / "kept" / f"{target}.tar.gz") as stored:
        inputs = [(each.name, stored.extractfile(each)) for each in stored]
        assert inputs
        for name, file in inputs:
            assert file is not None
            body = file.read()
            assert len(body) <= 512
            assert hashlib.sha1(body, usedforsecurity=False).hexdigest() == name


def test_audit_uses_pinned_versions() -> None:
    """Of Python packages, and of crates that Cargo resolves."""
    script = (ROOT / "scripts" / "audit").read_text()
    assert "pip-audit" in script
    assert "constraints.txt" in script
    assert "cargo audit" in script
    assert re.search(r"^audit:.*\n\tscripts/audit$", (ROOT / "Makefile").read_text(), re.MULTILINE)
