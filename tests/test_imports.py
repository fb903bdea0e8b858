"""The order of packages: each imports only from those above it."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "unlost"

# From the ground up, as docs/architecture.md explains.
ORDER = [
    "lazy_exports",
    "errors",
    "_core",
    "clock",
    "dates",
    "paths",
    "redaction",
    "atomic",
    "sqlite",
    "statistics",
    "media_types",
    "problems",
    "text_lines",
    "capture",
    "progress_file",
    "uri",
    "registry",
    "http",
    "warc",
    "index",
    "memento",
    "logs",
    "html",
    "quality",
    "documents",
    "mementomap",
    "archives",
    "crawl",
    "aggregate",
    "recovery",
    "report",
    "export",
    "comparison",
    "check",
    "watch",
    "refresh",
    "vault",
    "jobs",
    "webui",
    "mail",
    "web",
    "research",
    "testing",
    "api",
    "demo",
    "cli",
]

FILES = sorted(SOURCE.rglob("*.py"))


def package(file: Path) -> str:
    """Return the package of a file."""
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> set[str]:
    """Return the packages of unlost that a module imports, also in functions and for type checkers."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that this test sees them"
            module = node.module or ""
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("unlost.")}


def without_types(tree: ast.Module) -> ast.Module:
    """Return a module without imports for type checkers."""
    kept = [each for each in tree.body if not (isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING")]
    return ast.Module(kept, [])


def test_packages_import_only_packages_above_them() -> None:
    """As in `ORDER`; `unlost/__init__.py` imports nothing."""
    wrong = []
    for file in FILES:
        tree = ast.parse(file.read_text())
        if file == SOURCE / "__init__.py":
            tree, allowed = without_types(tree), []
        else:
            allowed = ORDER[: ORDER.index(package(file)) + 1]
        wrong += [f"{file.relative_to(SOURCE)} imports {name}" for name in imported(tree) - set(allowed)]
    assert wrong == []


def type_checked_exports(tree: ast.Module) -> dict[str, set[str]]:
    """Return the names that a package exports to type checkers, by module."""
    exports: dict[str, set[str]] = {}
    for block in tree.body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for node in block.body:
                assert isinstance(node, ast.ImportFrom)
                exports.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
    return exports


def run_time_exports(tree: ast.Module, name: str) -> dict[str, set[str]]:
    """Return the names that a package passes to `lazy_exports`, by module."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_exports"]
    if not calls:
        return {}
    modules = ast.literal_eval(calls[0].args[1])
    return {f"{name}.{module}": set(names.split()) for module, names in modules.items()}


def test_lazy_exports_match_type_checked_exports() -> None:
    """In every package, and every name is importable."""
    checked = 0
    for file in SOURCE.rglob("*/__init__.py"):
        name = ".".join(file.parent.relative_to(SOURCE.parent).parts)
        tree = ast.parse(file.read_text())
        exports = run_time_exports(tree, name)
        assert type_checked_exports(tree) == exports, name
        for module, names in exports.items():
            for each in names:
                assert getattr(importlib.import_module(name), each) is getattr(importlib.import_module(module), each)
                checked += 1
    assert checked > 800


def test_unknown_lazy_export_raises_attribute_error() -> None:
    """With the message of Python."""
    name = "Nothing"
    with pytest.raises(AttributeError, match=r"module 'unlost\.http' has no attribute 'Nothing'"):
        getattr(importlib.import_module("unlost.http"), name)


def test_every_package_is_in_the_order() -> None:
    """Except for files of the core's stub."""
    packages = {package(file) for file in FILES} - {"__init__"}
    assert packages <= set(ORDER)


def test_architecture_page_has_the_same_order() -> None:
    """With every package."""
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    table = page.partition("| package | its one job |\n")[2].partition("\n\n")[0]
    assert [row.split("`")[1] for row in table.splitlines()[1:]] == ORDER


def test_import_of_a_lower_package_is_detected() -> None:
    """Also inside a function."""
    planted = ast.parse("def f() -> None:\n    from unlost.cli import main\n")
    assert not imported(planted) <= set(ORDER[: ORDER.index("uri") + 1])


def test_import_unlost_imports_no_submodule() -> None:
    """Names are loaded on first use."""
    code = "import sys, unlost; print([name for name in sys.modules if name.startswith('unlost.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"[]\n"
