"""The study's matrix and everything derived from it."""

import pytest

from unlost.errors import UsageError
from unlost.refresh import (
    NAMED_SCHEMES,
    OBVIOUS_SCHEMES,
    DecisionMatrix,
    choose_scheme,
    distinct_scores,
    filter_scores,
    find_dominators,
    measure_indicator,
    restrict_to_both_present,
    scheme_name,
    score_all_schemes,
    score_scheme,
    undominated_schemes,
    wilson_confidence,
)

STUDY = DecisionMatrix.parse(
    """| date changed | 165,594 / 84,440 | 246 / 16,909 | 430,623 / 1,558,517 |
       | date same | 74 / 469,465 | 274 / 2,386,937 | 1,432 / 63,910 |
       | date missing | 0 / 0 | 0 / 0 | 900 / 2,713 |"""
)
FRONT = [
    ("IgnoresMissing1", 2_926, 1_642_957, 99.5116, 64.1502),
    ("Scheme 3", 2_026, 1_645_670, 99.6619, 64.0910),
    ("Scheme 1", 1_780, 1_662_579, 99.7029, 63.7220),
    ("IgnoresMissing2", 1_494, 1_706_867, 99.7506, 62.7557),
    ("Scheme 3 variant", 594, 1_709_580, 99.9009, 62.6965),
    ("Scheme 1 variant", 348, 1_726_489, 99.9419, 62.3275),
    ("Scheme 4 variant", 274, 2_195_954, 99.9543, 52.0837),
]


def test_pareto_front_matches_the_study() -> None:
    """64 schemes pass the filters, 28 are undominated, at seven points, with the published figures."""
    good = filter_scores(score_all_schemes(STUDY), 0.99, 0.5)
    best = undominated_schemes(good)
    found = [
        (
            scheme_name(one.scheme, STUDY.used_cells),
            one.missed,
            one.unnecessary,
            100 * one.reliability,
            100 * one.usefulness,
        )
        for one in distinct_scores(best, STUDY.used_cells)
    ]
    assert (len(good), len(best)) == (64, 28)
    rounded = [(*row[:3], round(row[3], 4), round(row[4], 4)) for row in found]
    assert rounded == FRONT


def test_unfiltered_front_is_longer() -> None:
    """112 schemes at 28 points; above 65 % usefulness a quarter of the changes is missed."""
    judged = score_all_schemes(STUDY)
    assert len(judged) == 512
    assert (len(undominated_schemes(judged)), len(distinct_scores(undominated_schemes(judged), STUDY.used_cells))) == (
        112,
        28,
    )
    assert round(100 * max(one.reliability for one in judged if one.usefulness > 0.65), 2) == 72.06


def test_front_contains_exactly_the_undominated_schemes() -> None:
    """Every other scheme is dominated."""
    judged = score_all_schemes(STUDY)
    best = {one.scheme for one in undominated_schemes(judged)}
    for one in judged:
        assert any(find_dominators(one, judged)) is (one.scheme not in best)


def test_two_obvious_schemes_are_dominated() -> None:
    """By the tag alone, and by either: others are better in both ways."""
    best = undominated_schemes(filter_scores(score_all_schemes(STUDY), 0.99, 0.5))
    dominated = [
        name for name in OBVIOUS_SCHEMES if any(find_dominators(score_scheme(STUDY, NAMED_SCHEMES[name]), best))
    ]
    assert dominated == ["Scheme 2", "Scheme 4"]
    two, four = (score_scheme(STUDY, NAMED_SCHEMES[name]) for name in dominated)
    assert (two.missed, two.unnecessary) == (520, 2_179_045)
    assert (round(100 * two.reliability, 4), round(100 * two.usefulness, 4)) == (99.9132, 52.4526)
    assert (four.missed, four.unnecessary) == (1_706, 2_132_044)


def test_chosen_scheme_is_the_most_useful_with_sufficient_reliability() -> None:
    """The lower bound of the interval decides; None if no scheme suffices."""
    judged = score_all_schemes(STUDY)
    assert scheme_name(getattr(choose_scheme(judged, 0.999), "scheme", -1), STUDY.used_cells) == "Scheme 1 variant"
    assert choose_scheme(judged, 0.9999) != choose_scheme(judged, 0.999)
    few = DecisionMatrix.from_pairs([(10, 0), *[(0, 10)] * 8])
    assert choose_scheme(score_all_schemes(few), 0.999) is None
    low = {one.scheme: 0.5 for one in judged}
    assert choose_scheme(judged, 0.999, low) is None


def test_intervals_are_wilson_intervals() -> None:
    """As published for 348 missed of 599,143; [0, 1] without cases."""
    found = score_scheme(STUDY, NAMED_SCHEMES["Scheme 1 variant"]).reliability_interval
    assert (round(100 * found.low, 4), round(100 * found.high, 4)) == (99.9355, 99.9477)
    assert (wilson_confidence(0, 0).low, wilson_confidence(0, 0).high) == (0, 1)
    assert wilson_confidence(10, 10).high == 1


def test_other_tables_match_the_study() -> None:
    """Presence and errors of each indicator, and schemes on pages with both indicators."""
    date, tag = measure_indicator(STUDY, "date"), measure_indicator(STUDY, "tag")
    assert (date.present, date.missed, date.unnecessary) == (5_178_421, 1_780, 1_659_866)
    assert (tag.present, tag.missed, tag.unnecessary) == (3_123_939, 520, 553_905)
    both = restrict_to_both_present(STUDY)
    assert (both.total, both.all_changed) == (3_123_939, 166_188)
    found = [score_scheme(both, NAMED_SCHEMES[name]) for name in OBVIOUS_SCHEMES]
    assert [round(100 * one.reliability, 2) for one in found] == [99.79, 99.69, 99.64, 99.84]
    assert [round(100 * one.usefulness, 1) for one in found] == [96.6, 81.3, 97.1, 80.7]


@pytest.mark.parametrize("text", ["", "1/2", "1/2 " * 10, "a/b " * 9])
def test_invalid_matrix_is_rejected(text: str) -> None:
    """The message describes the expected format."""
    with pytest.raises(UsageError, match="nine pairs"):
        DecisionMatrix.parse(text)
