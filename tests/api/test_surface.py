"""Tests of the names that `import unlost` offers."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import unlost


@pytest.mark.parametrize("name", unlost.__all__)
def test_every_name_is_there_and_explained(name: str) -> None:
    """What is offered can be had, and says what it is."""
    found = getattr(unlost, name)
    assert name == "__version__" or inspect.getdoc(found)


def test_the_lists_of_names_agree() -> None:
    """What is offered, what is loaded on demand, what checkers of types see and what `dir` shows are the same names."""
    tree = ast.parse(Path(str(unlost.__file__)).read_text())
    block = next(each for each in tree.body if isinstance(each, ast.If))
    typed = {
        alias.asname or alias.name for each in block.body if isinstance(each, ast.ImportFrom) for alias in each.names
    }
    assert set(unlost.__all__) == set(unlost._PLACES) == typed == set(dir(unlost))


def test_a_name_that_is_not_offered_is_an_error() -> None:
    """A misspelt name is told as Python tells it."""
    with pytest.raises(AttributeError, match="no attribute 'recovr'"):
        _ = unlost.recovr


@pytest.mark.parametrize("before", ["", "import unlost.recover.options; ", "from unlost.recover import options; "])
def test_recover_can_be_called_whatever_was_imported_before(before: str) -> None:
    """`unlost.recover` is a package and a function at once, with the signature of the function."""
    code = f"import unlost; {before}import inspect; print(callable(unlost.recover), inspect.signature(unlost.recover))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout.startswith(b"True (url: str, output: str | os.PathLike[str], *, archives:")


def test_nothing_of_the_service_is_loaded_for_a_map() -> None:
    """Who looks into maps does not wait for clients of archives and web servers."""
    code = "import sys, unlost; unlost.Map; print([m for m in ('starlette', 'unlost.archives') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"[]\n"


def test_blocking_and_awaited_forms_take_the_same() -> None:
    """Whoever goes from one form to the other changes nothing else."""
    assert inspect.signature(unlost.recover) == inspect.signature(unlost.recover_async)
    assert inspect.signature(unlost.Aggregator) == inspect.signature(unlost.AsyncAggregator)
    for name in ("timemap", "closest"):
        forms = (inspect.signature(getattr(each, name)) for each in (unlost.Aggregator, unlost.AsyncAggregator))
        assert len(set(forms)) == 1
