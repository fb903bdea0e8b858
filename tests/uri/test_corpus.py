"""Regressions that fuzzing has found."""

from pathlib import Path

import pytest

from unlost import uri
from unlost.errors import UriError

CORPUS = Path(__file__).parents[2] / "rust" / "fuzz" / "corpus"
INPUTS = sorted([*(CORPUS / "uri").iterdir(), *(CORPUS / "key").iterdir()])


@pytest.mark.parametrize("rules", uri.RULE_SETS)
@pytest.mark.parametrize("file", INPUTS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_fuzzed_inputs_have_stable_forms(file: Path, rules: str) -> None:
    """Every input of the corpus has an idempotent SURT and key, or is rejected."""
    text = file.read_bytes().partition(b" ")[0]
    (surt,), (key,) = uri.surt_many([text], rules), uri.key_many([text], rules)
    if isinstance(surt, UriError) or isinstance(key, UriError):
        assert type(surt) is type(key)
        return
    assert uri.surt(surt, rules) == surt
    assert uri.key(key, rules) == key
    (way_back,) = uri.unsurt_many([surt], rules)
    if isinstance(way_back, UriError):
        # A key that no browser's address could have is kept as it stands; only an index can have brought it.
        assert file.parent.name == "key"
    else:
        assert uri.surt(way_back, rules) == surt
