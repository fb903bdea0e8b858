"""Untrusted scheme files: either a valid policy or an InputError."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.refresh.harvest.site import etag_policy
from unlost.errors import InputError
from unlost.refresh import Visit, read_policy, write_policy

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the first line of a sound one."""
    path = tmp_path_factory.mktemp("scheme") / "scheme"
    write_policy(path, etag_policy())
    found: dict[str, Any] = json.loads(path.read_bytes().splitlines()[0])
    return found


def see(path: Path) -> None:
    """See that it is a policy or refused, and that a policy decides about a page."""
    refused = ""
    try:
        policy = read_policy(path)
    except InputError as error:
        refused = str(error)
    if refused:
        assert refused.startswith(str(path))
        assert len(refused) < 1000
        return
    visits = [Visit("http://a.example/", digest="x", etag='"a"', time=time) for time in (0, 1000)]
    decision = policy.decide("a.example", *visits)
    assert decision.change_probability is None or 0 <= decision.change_probability <= 1


@given(data=st.data())
def test_mutated_scheme_file_is_valid_or_rejected(
    head: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Any value in place of any other, and any additional line."""
    changed = dict(head)
    for name in data.draw(st.lists(st.sampled_from(sorted(head)), max_size=3)):
        changed[name] = data.draw(VALUES)
    line = data.draw(st.none() | VALUES)
    path = tmp_path_factory.getbasetemp() / "changed-scheme"
    path.write_text("\n".join(json.dumps(each) for each in (changed, *([line] if line is not None else []))))
    see(path)


@given(st.binary(max_size=200))
@example(b'{"format": ' + b"[" * 100_000)
@example(b'{"format": 1e999, "version": 1}')
def test_arbitrary_bytes_are_rejected_as_scheme_file(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    """Anything else raises InputError."""
    path = tmp_path_factory.getbasetemp() / "no-scheme"
    path.write_bytes(text)
    with pytest.raises(InputError):
        read_policy(path)
