"""Descriptions of unreadable input: each kind that is counted has one."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from unlost.cli import PROBLEM_DESCRIPTIONS, format_problem
from unlost.problems import Problem

ROOT = Path(__file__).parents[2]
REPORTING_CALLS = {"Problem", "RowError", "UriError", "_lost", "_problem", "_report"}
"""Functions and classes that take a kind."""


def _kinds_in_python() -> Iterator[tuple[str, Path]]:
    for file in sorted((ROOT / "src" / "unlost").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            yield from ((kind, file) for kind in _texts(node) if re.fullmatch(r"[a-z]+(-[a-z]+)*", kind))


def _texts(node: ast.AST) -> list[str]:
    """Return what may be a kind: the first arguments of a call, or the keys of a table of kinds."""
    found: list[ast.expr | None] = []
    called = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
    if isinstance(node, ast.Call) and called in REPORTING_CALLS:
        at = 1 if called == "UriError" else 0
        found += node.args[at : at + 1]
    if (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Dict)
        and _name(node.targets[0]) == "URL_LIST_PROBLEM_KINDS"
    ):
        found += node.value.keys
    return [each.value for each in found if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def _name(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def _kinds_in_rust() -> Iterator[tuple[str, Path]]:
    reported = re.compile(r'(?:report|reject|problem|refuse|Problem::new)\(\s*"([a-z]+(?:-[a-z]+)*)",')
    returned = re.compile(r'=> "([a-z]+(?:-[a-z]+)*)",')
    for folder in ("checksum", "index", "input", "memento", "mementomap", "uri", "warc"):
        for file in sorted((ROOT / "rust" / "unlost-core" / "src" / folder).rglob("*.rs")):
            text = file.read_text()
            yield from ((kind, file) for kind in reported.findall(text))
            for body in re.findall(r"fn kind\(.*?\n    }", text, re.DOTALL):
                yield from ((kind, file) for kind in returned.findall(body))


def test_every_kind_has_a_description() -> None:
    """Of Python and Rust."""
    found = [*_kinds_in_python(), *_kinds_in_rust()]
    assert {"bad-host", "bad-date", "truncated", "short-block", "bad-spread", "no-column"} <= {
        kind for kind, _ in found
    }
    assert not [(kind, str(file)) for kind, file in found if kind not in PROBLEM_DESCRIPTIONS]


def test_descriptions_are_singular_nouns() -> None:
    """Without identifiers."""
    for kind, words in PROBLEM_DESCRIPTIONS.items():
        assert kind not in words or "-" not in kind, words
        assert re.match(r"(an?|something|counts) ", words), words


def test_problem_lines_have_count_and_first_example() -> None:
    """Once without the kind; several times with it."""
    problem = Problem("bad-host", "list", 7, 90, "bad host")
    assert format_problem("bad-host", 1, problem).startswith("once an address whose host cannot exist, first: list:7 ")
    assert format_problem("bad-host", 12_000, problem).startswith("12,000 times an address")
    assert ": bad-host: " in format_problem("bad-host", 2, problem)
