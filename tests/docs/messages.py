"""What the code can say to people: the texts in it, with `…` for what is put in when they are said."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = "…"
_RUST_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_RUST_VALUE = re.compile(r"\{[^{}]*\}")


def _text(node: ast.expr) -> str | None:
    """Return the text that an expression is, if it is one.

    >>> _text(ast.parse("f'{name}: not there' + f' {x}'", mode="eval").body)
    '…: not there …'
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each) or LEFT_OUT for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return None if left is None and right is None else (left or LEFT_OUT) + (right or LEFT_OUT)
    return None


def messages_of_the_code() -> set[str]:
    """Return every text of the package and of the core."""
    found: set[str] = set()
    for file in (ROOT / "src" / "unlost").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            text = _text(node) if isinstance(node, ast.expr) else None
            if text:
                found.add(text)
    for file in (ROOT / "rust").rglob("src/**/*.rs"):
        joined = re.sub(r"\\\n\s*", "", file.read_text())
        found |= {_RUST_VALUE.sub(LEFT_OUT, text) for text in _RUST_TEXT.findall(joined)}
    return found


def pattern_of(message: str) -> re.Pattern[str]:
    """Return what finds a message of a document, in a text of the code or in what was printed.

    >>> bool(pattern_of("…: no such folder: …").search("unlost: a/b: no such folder: give one"))
    True
    """
    return re.compile(".*".join(re.escape(part) for part in message.strip(LEFT_OUT).split(LEFT_OUT)))
