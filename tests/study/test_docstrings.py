"""Tests of examples in docstrings of the study."""

import doctest
import importlib
import pkgutil

import pytest
import study

MODULES = [each.name for each in pkgutil.walk_packages(study.__path__, "study.") if not each.ispkg]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_are_correct(name: str) -> None:
    """Every example in a docstring runs."""
    module = importlib.import_module(name)
    results = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert results.failed == 0
