"""Names: unique classes, and modules that are found by searching for the term of the field."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "unlost"

# At most ten. Each is in modules that no other code imports both of.
SHARED_CLASS_NAMES = {
    "VaultMiddleware": "the ASGI and the WSGI middleware; users import one of the two (docs/vault.md)",
    "_BlockAppender": "private parts of these two middlewares",
    "_RequestHandler": "the handlers of two servers based on http.server",
    "_Server": "the servers of the demonstration and of the web application",
}

# Each does the same thing in two places. Commands are not in the list: they are named as on the command line.
SHARED_FUNCTION_NAMES = {
    "find_blocks": "the decoder of the specification stands alone and does the same",
    "build_filter": "in memory, and on a cluster with the same bytes",
    "build_map": "likewise; the Python API wraps the first",
    "build_profiles": "likewise",
    "compact_map": "likewise; the Python API wraps the first",
    "count_index": "likewise",
    "merge_maps": "likewise",
    "main": "entry points of programs",
    "upgrade": "steps of Alembic, which expects this name",
}

# What a newcomer searches for, and the module that the search has to show among its first three hits.
SEARCHES = {
    "retry policy": "http/policy.py",
    "archive kind": "archives/factory.py",
    "index format": "index/detection.py",
    "report column": "report/recovery/serializers.py",
    "job page": "webui/job_pages.py",
    "soft.404 phrase": "quality/soft404.py",
    "export target": "export/formats.py",
}


def classes(tree: ast.AST) -> list[str]:
    """Return the names of all classes in a module, also nested ones."""
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def shared_names(files: list[Path]) -> dict[str, list[str]]:
    """Return the class names that several modules define."""
    modules = defaultdict(list)
    for file in files:
        for name in classes(ast.parse(file.read_text())):
            modules[name].append(str(file))
    return {name: places for name, places in modules.items() if len(places) > 1}


def hits(pattern: str) -> list[str]:
    """Return the modules that contain a pattern, as `git grep -il` lists them: by path."""
    found = [file for file in SOURCE.rglob("*.py") if re.search(pattern, file.read_text(), re.IGNORECASE)]
    return sorted(str(file.relative_to(SOURCE)) for file in found)


def test_class_names_are_unique() -> None:
    """Except for a short list with reasons."""
    assert set(shared_names(sorted(SOURCE.rglob("*.py")))) == set(SHARED_CLASS_NAMES)
    assert len(SHARED_CLASS_NAMES) <= 10


def test_shared_class_name_is_detected(tmp_path: Path) -> None:
    """In another module."""
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("class Row:\n    pass\n")
    assert set(shared_names(sorted(tmp_path.glob("*.py")))) == {"Row"}


def test_public_functions_of_one_name_do_the_same() -> None:
    """A name is public in two modules only where both do the same thing; the list gives the reasons."""
    modules = defaultdict(list)
    for file in sorted(SOURCE.rglob("*.py")):
        if file.parent.name != "cli":
            tree = ast.parse(file.read_text())
            functions = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
            for name in {function.name for function in functions if not function.name.startswith("_")}:
                modules[name].append(file)
    assert {name for name, files in modules.items() if len(files) > 1} == set(SHARED_FUNCTION_NAMES)


@pytest.mark.parametrize(("pattern", "module"), SEARCHES.items())
def test_search_shows_the_module_among_the_first_three_hits(pattern: str, module: str) -> None:
    """For seven questions of a newcomer."""
    assert module in hits(pattern)[:3]


@pytest.mark.parametrize(
    "package", sorted(path.parent for path in SOURCE.glob("*/__init__.py")), ids=lambda path: path.name
)
def test_package_docstring_names_all_modules(package: Path) -> None:
    """And has a summary."""
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    modules = {file.stem for file in package.glob("*.py")} - {"__init__"}
    assert len(docstring.splitlines()) >= 3
    assert {name for name in modules if not re.search(rf"\b{name}\b", docstring)} == set()
