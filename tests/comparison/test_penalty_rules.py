"""Penalties by type and by address."""

import pytest

from unlost.comparison import Penalties, PenaltyRules
from unlost.errors import UsageError


def test_the_last_rule_that_matches_counts() -> None:
    """A later rule wins over an earlier one, and any rule over what holds for the others."""
    rules = PenaltyRules(Penalties(0.9, 0.9, 0.9)).with_type_rule("image/*=0.1,1,0").with_type_rule("image/png=0.2,1,0")
    rules = rules.with_uri_rule(r"\.png$=0.3,1,0")
    assert rules.penalties_for("image/gif", "http://a.example/x").changed == 0.1
    assert rules.penalties_for("image/png", "http://a.example/x").changed == 0.2
    assert rules.penalties_for("image/png", "http://a.example/x.png").changed == 0.3
    assert rules.penalties_for("text/html", "http://a.example/x").changed == 0.9


def test_an_expression_may_have_an_equals_sign() -> None:
    """The penalties stand behind the last one."""
    assert (
        PenaltyRules().with_uri_rule(r"\?id=1$=0,0,0").penalties_for("text/html", "http://a.example/?id=1").missing == 0
    )


def test_a_hostile_address_costs_little() -> None:
    """Only the beginning of an address is searched."""
    rules = PenaltyRules().with_uri_rule("a*b$=0,0,0")
    assert rules.penalties_for("text/html", "a" * 5_000_000 + "c").missing == 1


@pytest.mark.parametrize("text", ["image/*", "=1,1,1", "image=1,1,1", "image/[a=1,1,1", "image/*=1,1", "image/*=2,1,1"])
def test_rules_for_types_that_are_none(text: str) -> None:
    """What was expected is said."""
    with pytest.raises(UsageError, match="expected"):
        PenaltyRules().with_type_rule(text)


@pytest.mark.parametrize("text", ["(=1,1,1", "x", "=1,1,1", "a{99999999999}=1,1,1"])
def test_rules_for_addresses_that_are_none(text: str) -> None:
    """An expression that is none is named."""
    with pytest.raises(UsageError, match=r"expected|no regular expression"):
        PenaltyRules().with_uri_rule(text)
