"""Text report of a comparison."""

import pytest

from tests.comparison.memory_sites import make_comparison
from unlost.comparison import LEVEL_TEXTS, ResourceCounts, comparison_headline, comparison_remarks
from unlost.report import escape_unprintable, format_share


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (ResourceCounts(20, 48, 32, 0), "68 of 100 resources recovered: 20 unchanged, 48 changed. 32 missing."),
        (ResourceCounts(5), "5 of 5 resources recovered, all unchanged."),
        (ResourceCounts(0, 5, 1), "5 of 6 resources recovered, all changed. 1 missing."),
        (ResourceCounts(0, 0, 1), "0 of 1 resource recovered."),
        (ResourceCounts(), "The original has no resources."),
        (ResourceCounts(added=1), "The original has no resources. 1 added."),
        (
            ResourceCounts(1200, 1, 0, 5),
            "1,201 of 1,201 resources recovered: 1,200 unchanged, 1 changed. 5 added.",
        ),
    ],
)
def test_headline_for_all_kinds_of_counts(counts: ResourceCounts, sentence: str) -> None:
    """Singular, plural and empty."""
    assert comparison_headline(counts) == sentence


def test_remarks_only_for_nonzero_counts() -> None:
    """A perfect recovery has none."""
    assert comparison_remarks(make_comparison(identical=3)) == []
    found = comparison_remarks(make_comparison(changed=3, missing=2, similar=1, listed=1))
    assert found[0].startswith("1 of 3 changed texts is almost identical (at least 75 %")
    assert comparison_remarks(make_comparison(changed=1))[0].startswith("0 of 1 changed text is almost identical")
    assert found[1] == "1 of the missing resources known to be archived."


def test_every_level_has_a_description() -> None:
    """s1 to s5."""
    assert list(LEVEL_TEXTS) == [level.name for level in make_comparison(identical=1).levels]


@pytest.mark.parametrize("text", ["\u202e", "\x1b[31m", "\x00", "\udcff", "\u200b", "\n", "\u2028", "\x9b"])
def test_unprintable_characters_are_escaped(text: str) -> None:
    """Controls, direction marks and surrogates; the result is valid UTF-8."""
    found = escape_unprintable(f"a{text}b")
    assert found.isprintable()
    assert found.startswith("a\\")
    found.encode()


def test_shares_are_not_rounded_to_0_or_100() -> None:
    """Except exact ones."""
    assert format_share(9_999 / 10_000) == "> 99 %"
    assert format_share(1 / 10_000) == "< 1 %"
    assert format_share(0.0) == "0 %"
