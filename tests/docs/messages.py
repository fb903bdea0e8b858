"""The messages in the code, with `…` for inserted values."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ELLIPSIS = "…"
_RUST_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_RUST_VALUE = re.compile(r"\{[^{}]*\}")


def _text(node: ast.expr) -> str | None:
    """Return the string value of an expression; None if it is no string.

    >>> _text(ast.parse("f'{name}: not there' + f' {x}'", mode="eval").body)
    '…: not there …'
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each) or ELLIPSIS for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return None if left is None and right is None else (left or ELLIPSIS) + (right or ELLIPSIS)
    return None


def collect_messages() -> set[str]:
    """Return every string literal of the package and the core."""
    found: set[str] = set()
    for file in (ROOT / "src" / "unlost").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            text = _text(node) if isinstance(node, ast.expr) else None
            if text:
                found.add(text)
    for file in (ROOT / "rust").rglob("src/**/*.rs"):
        joined = re.sub(r"\\\n\s*", "", file.read_text())
        found |= {_RUST_VALUE.sub(ELLIPSIS, text) for text in _RUST_TEXT.findall(joined)}
    return found


def pattern_of(message: str) -> re.Pattern[str]:
    """Return a pattern that finds a documented message in a string of the code or in output.

    >>> bool(pattern_of("…: no such folder: …").search("unlost: a/b: no such folder: give one"))
    True
    """
    return re.compile(".*".join(re.escape(part) for part in message.strip(ELLIPSIS).split(ELLIPSIS)))
