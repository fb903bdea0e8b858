"""The order of packages: each imports only from those above it."""

import ast
import importlib
import re
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
    "background_task",
    "dates",
    "paths",
    "redaction",
    "file_lock",
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


def imported_packages(tree: ast.AST) -> set[str]:
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
    stored = [
        each for each in tree.body if not (isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING")
    ]
    return ast.Module(stored, [])


def test_packages_import_only_packages_above_them() -> None:
    """As in `ORDER`; `unlost/__init__.py` imports nothing."""
    wrong = []
    for file in FILES:
        tree = ast.parse(file.read_text())
        if file == SOURCE / "__init__.py":
            tree, allowed = without_types(tree), []
        else:
            allowed = ORDER[: ORDER.index(package(file)) + 1]
        wrong += [f"{file.relative_to(SOURCE)} imports {name}" for name in imported_packages(tree) - set(allowed)]
    assert wrong == []


def test_every_name_of_a_stub_is_exported() -> None:
    """A stub has only lines that `lazy_exports` reads, and each names an object of a module of the package."""
    exports = 0
    for stub in SOURCE.rglob("*/__init__.pyi"):
        name = ".".join(stub.parent.relative_to(SOURCE.parent).parts)
        package_module = importlib.import_module(name)
        for line in stub.read_text().splitlines():
            match = re.fullmatch(r"from (\S+) import (\w+) as \2", line)
            assert match, f"{name}: {line}"
            assert match[1].startswith(f"{name}."), f"{name}: {line}"
            assert getattr(package_module, match[2]) is getattr(importlib.import_module(match[1]), match[2])
            exports += 1
    assert exports > 800


def test_packages_with_a_stub_read_it() -> None:
    """A package exports what its stub lists, and one that reads a stub has one."""
    for file in SOURCE.rglob("*/__init__.py"):
        assert ("lazy_exports(__name__)" in file.read_text()) == file.with_suffix(".pyi").exists(), file


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
    table = page.partition("| package | responsibility |\n")[2].partition("\n\n")[0]
    assert [row.split("`")[1] for row in table.splitlines()[1:]] == ORDER


def test_import_of_a_lower_package_is_detected() -> None:
    """Also inside a function."""
    planted = ast.parse("def f() -> None:\n    from unlost.cli import main\n")
    assert not imported_packages(planted) <= set(ORDER[: ORDER.index("uri") + 1])


def test_import_unlost_imports_no_submodule() -> None:
    """Names are loaded on first use."""
    code = "import sys, unlost; print([name for name in sys.modules if name.startswith('unlost.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"[]\n"


def test_public_api_does_not_import_the_service() -> None:
    """Neither directly nor through other packages."""
    code = (
        "import sys, unlost\n"
        "for name in unlost.__all__: getattr(unlost, name)\n"
        "print(*sorted({name.split('.')[1] for name in sys.modules if name.startswith('unlost.')}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60, text=True)
    packages = set(done.stdout.split())
    assert {"api", "aggregate", "recovery"} <= packages
    assert packages.isdisjoint({"web", "webui", "jobs", "mail", "cli"})
