"""Tests that the documentation has an equivalent of each switch of the original tool."""

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
GLOBAL_OPTIONS = {"--version", "--help", "--log"}


def rows() -> dict[str, str]:
    """Return the table of switches: original names and equivalents."""
    table = PAGE.read_text().partition("| Warrick | unlost |")[2].partition("\n\n")[0]
    return {row.split("|")[1].strip(): row.split("|")[2].strip() for row in table.splitlines()[2:]}


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_has_an_equivalent_or_a_reason(switch: str) -> None:
    """It is in the table, and every option that is named there exists."""
    names = {
        part.strip().partition(" (")[0]: equivalent for name, equivalent in rows().items() for part in name.split(",")
    }
    assert switch in names
    equivalent = names[switch]
    named = set(re.findall(r"`(-{1,2}[a-z-]+)", equivalent))
    assert named <= OPTIONS | GLOBAL_OPTIONS
    assert named or len(equivalent.split()) >= 4, "neither an option nor a reason"


def test_switch_table_is_complete() -> None:
    """The table has exactly the known switches."""
    assert set(SWITCHES) == {part.strip().partition(" (")[0] for name in rows() for part in name.split(",")}


def test_every_option_is_documented() -> None:
    """The page names every option of the command."""
    text = PAGE.read_text()
    assert [flag for flag in sorted(OPTIONS) if not re.search(rf"`{flag}\b", text)] == []
