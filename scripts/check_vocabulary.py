"""Lists classes, functions, methods and modules of a rename table that still have their old names. Temporary.

Usage: python scripts/check_vocabulary.py VOCABULARY.md. The table has the columns kind, file, old name and
new name. Names that were given a new meaning are reported, too: read the list, do not trust its length.
"""

import ast
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "unlost"
ROW = re.compile(r"^\| (class|function|module|method)[^|]*\| ([^|]+) \| `([^`]+)` \| ([^|]+) \|")


def definitions() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return where classes, functions and methods are defined, by name, and the modules, by name."""
    names: dict[str, list[str]] = {}
    modules: dict[str, list[str]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        place = str(file.relative_to(SOURCE))
        modules.setdefault(file.parent.name if file.name == "__init__.py" else file.stem, []).append(place)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                names.setdefault(node.name, []).append(place)
    return names, modules


def main(table: str) -> int:
    """Print the names that are left; return their number, at most 255."""
    names, modules = definitions()
    left = 0
    for line in Path(table).read_text().splitlines():
        row = ROW.match(line)
        if row is None:
            continue
        kind, file, old, new = (part.strip() for part in row.groups())
        name = old.rpartition(".")[2]
        places = modules.get(name, []) if kind == "module" else names.get(name, [])
        if places and name not in new.strip("`"):
            left += 1
            print(f"{kind} {old} ({file}) -> {new}: {', '.join(places)}")
    return min(left, 255)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
