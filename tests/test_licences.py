"""Licences of everything that is distributed with unlost."""

from pathlib import Path

import pytest
from scripts.licences import ALLOWED, Dependency, list_crates, list_python_packages

PAGE = (Path(__file__).parents[1] / "docs" / "dependencies.md").read_text()


@pytest.fixture(scope="module")
def dependencies() -> list[Dependency]:
    """Return all distributed dependencies."""
    return list_python_packages() + list_crates()


def test_copyleft_dependencies_are_listed_with_reasons(dependencies: list[Dependency]) -> None:
    """And no others."""
    assert {each.name for each in dependencies if each.is_copyleft} == set(ALLOWED)
    for name, why in ALLOWED.items():
        assert f"| {name} | {why} |" in PAGE


def test_every_licence_is_known(dependencies: list[Dependency]) -> None:
    """And the page lists each Python package with its version."""
    assert len(dependencies) > 100
    assert [each for each in dependencies if each.licence == "unknown"] == []
    names = {line.split(" | ")[0].removeprefix("| ") for line in PAGE.splitlines() if line.startswith("| ")}
    assert {each.name for each in list_python_packages()} <= names


@pytest.mark.parametrize(
    ("licence", "is_copyleft"),
    [
        ("MIT", False),
        ("MIT OR Apache-2.0 OR LGPL-2.1-or-later", False),
        ("MIT/Apache-2.0", False),
        ("Apache-2.0 WITH LLVM-exception", False),
        ("LGPL-3.0-only", True),
        ("MPL-2.0", True),
        ("GPL-2.0 OR AGPL-3.0", True),
        ("MIT AND GPL-3.0", True),
        ("GNU Lesser General Public License v3 (LGPLv3)", True),
    ],
)
def test_copyleft_is_recognised(licence: str, is_copyleft: bool) -> None:
    """By name, unless there is an alternative."""
    assert Dependency("a", "1", licence).is_copyleft is is_copyleft
