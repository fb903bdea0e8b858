"""Penalties by type and by URL."""

import pytest

from unlost.comparison import Penalties, PenaltyRules
from unlost.errors import UsageError


def test_last_matching_rule_applies() -> None:
    """Before earlier rules and the default."""
    rules = PenaltyRules(Penalties(0.9, 0.9, 0.9)).with_type_rule("image/*=0.1,1,0").with_type_rule("image/png=0.2,1,0")
    rules = rules.with_uri_rule(r"\.png$=0.3,1,0")
    assert rules.penalties_for("image/gif", "http://a.example/x").changed == 0.1
    assert rules.penalties_for("image/png", "http://a.example/x").changed == 0.2
    assert rules.penalties_for("image/png", "http://a.example/x.png").changed == 0.3
    assert rules.penalties_for("text/html", "http://a.example/x").changed == 0.9


def test_expression_may_contain_an_equals_sign() -> None:
    """The penalties follow the last one."""
    assert (
        PenaltyRules().with_uri_rule(r"\?id=1$=0,0,0").penalties_for("text/html", "http://a.example/?id=1").missing == 0
    )


def test_long_urls_are_matched_fast() -> None:
    """Only the beginning of a URL is searched."""
    rules = PenaltyRules().with_uri_rule("a*b$=0,0,0")
    assert rules.penalties_for("text/html", "a" * 5_000_000 + "c").missing == 1


@pytest.mark.parametrize("text", ["image/*", "=1,1,1", "image=1,1,1", "image/[a=1,1,1", "image/*=1,1", "image/*=2,1,1"])
def test_invalid_type_rules_are_rejected(text: str) -> None:
    """With the expected syntax."""
    with pytest.raises(UsageError, match="expected"):
        PenaltyRules().with_type_rule(text)


@pytest.mark.parametrize("text", ["(=1,1,1", "x", "=1,1,1", "a{99999999999}=1,1,1"])
def test_invalid_url_rules_are_rejected(text: str) -> None:
    """With the invalid expression."""
    with pytest.raises(UsageError, match=r"expected|no regular expression"):
        PenaltyRules().with_uri_rule(text)
