"""The public names of `import unlost`."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import unlost


@pytest.mark.parametrize("name", unlost.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    """And is importable."""
    found = getattr(unlost, name)
    assert name == "__version__" or inspect.getdoc(found)


def test_lists_of_public_names_agree() -> None:
    """`__all__`, lazy imports, names for type checkers, and `dir`."""
    tree = ast.parse(Path(str(unlost.__file__)).read_text())
    block = next(each for each in tree.body if isinstance(each, ast.If))
    typed = {
        alias.asname or alias.name for each in block.body if isinstance(each, ast.ImportFrom) for alias in each.names
    }
    assert set(unlost.__all__) == set(unlost._LOCATIONS) == typed == set(dir(unlost))


def test_unknown_name_raises_attribute_error() -> None:
    """As Python does."""
    with pytest.raises(AttributeError, match="no attribute 'recovr'"):
        _ = unlost.recovr


@pytest.mark.parametrize("before", ["", "import unlost.recovery.options; ", "from unlost.recovery import options; "])
def test_recover_is_a_function_whatever_was_imported_before(before: str) -> None:
    """`unlost.recover` is a plain function: `help` shows its signature and documentation."""
    displayed = "inspect.isfunction(unlost.recover), inspect.signature(unlost.recover)"
    code = f"import unlost; {before}import inspect; print({displayed})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout.startswith(b"True (url: str, output: str | os.PathLike[str], *, archives:")


def test_map_imports_neither_archives_nor_web() -> None:
    """Look-ups start fast."""
    code = "import sys, unlost; unlost.Map; print([m for m in ('starlette', 'unlost.archives') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"[]\n"


def test_async_forms_have_the_same_signatures() -> None:
    """As the blocking ones."""
    assert inspect.signature(unlost.recover) == inspect.signature(unlost.recover_async)
    assert inspect.signature(unlost.Aggregator) == inspect.signature(unlost.AsyncAggregator)
    for name in ("timemap", "closest"):
        forms = (inspect.signature(getattr(each, name)) for each in (unlost.Aggregator, unlost.AsyncAggregator))
        assert len(set(forms)) == 1
