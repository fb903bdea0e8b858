"""The hash of Firefox's cache files."""

from hypothesis import given
from hypothesis import strategies as st

from tests.models import jenkins as model
from unlost._core import jenkins


@given(st.binary(max_size=100))
def test_jenkins_hash_agrees_with_model(data: bytes) -> None:
    """For bytes of any length."""
    assert jenkins(data) == model.jenkins(data)
