"""The core's hash of Firefox's cache files is its model's."""

from hypothesis import given
from hypothesis import strategies as st

from tests.models import jenkins as model
from unlost._core import jenkins


@given(st.binary(max_size=100))
def test_the_hash_is_that_of_the_model(data: bytes) -> None:
    """For bytes of any length."""
    assert jenkins(data) == model.jenkins(data)
