"""Tests that whoever knew the original tool finds each of its switches again."""

import re
from pathlib import Path

import click
import pytest

from unlost.cli import command

PAGE = Path(__file__).parents[2] / "docs" / "recover.md"

SWITCHES = (
    "version", "help", "API key options", "terminate-file", "query-limits", "initial-used-queries", "no-lister-queries",
    "output-file", "summary-file", "debug", "verbose", "no-verbose", "complete-recovery", "number-download",
    "no-clobber", "wait", "ignore-case", "target-directory", "proxy", "recursive", "convert-links", "view-local",
    "date-range",
    "most-recent", "one archive of a list", "resume", "exclude FILE of regexes", "subdomains", "depth",
    "input FILE of URLs", "not recursive", "keep or strip branding", "no cache",
)  # fmt: skip
OPTIONS = {
    flag for option in command.params if isinstance(option, click.Option) and not option.hidden for flag in option.opts
}
OF_ALL = {"--version", "--help", "--log"}


def rows() -> dict[str, str]:
    """Return the table of switches: what each was called, and what is said of it."""
    table = PAGE.read_text().partition("| its switch | here |")[2].partition("\n\n")[0]
    return {row.split("|")[1].strip(): row.split("|")[2].strip() for row in table.splitlines()[2:]}


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_has_its_equal_or_a_reason(switch: str) -> None:
    """It stands in the table, and every option that is named there exists."""
    names = {part.strip().partition(" (")[0]: said for name, said in rows().items() for part in name.split(",")}
    assert switch in names
    said = names[switch]
    named = set(re.findall(r"`(-{1,2}[a-z-]+)", said))
    assert named <= OPTIONS | OF_ALL
    assert named or len(said.split()) >= 4, "neither an option nor a reason"


def test_these_are_all_switches() -> None:
    """None of those that are known is left out of the table."""
    assert set(SWITCHES) == {part.strip().partition(" (")[0] for name in rows() for part in name.split(",")}


def test_every_option_is_explained() -> None:
    """The page speaks of every option of the command."""
    text = PAGE.read_text()
    assert [flag for flag in sorted(OPTIONS) if not re.search(rf"`{flag}\b", text)] == []
