"""Lifetimes of resources."""

from hypothesis import given
from hypothesis import strategies as st

from tests.models.lifetimes import slow_life
from unlost.check import Observation
from unlost.watch import Lifetime, compute_lifetime, summarize_lifetimes

DAY = 86_400.0
_KNOWN = st.sampled_from([True, False, None])


@given(st.lists(st.tuples(st.integers(1, 5), _KNOWN, _KNOWN), min_size=1, max_size=25))
def test_lifetimes_match_the_slow_model(steps: list[tuple[int, bool | None, bool | None]]) -> None:
    """For any visits and observations, by second."""
    now, sights = 0, []
    for step, is_live, is_held in steps:
        now += step
        sights.append(Observation(float(now), is_live, is_held))
    life = compute_lifetime(sights)
    assert life is not None
    names = ("t0", "ta", "tr", "tp", "ttl_c", "p_r", "is_late", "vulnerable", "endangered")
    assert {name: getattr(life, name) for name in names} == slow_life(sights)


def test_complete_lifetime() -> None:
    """Published on day 0, archived on day 12, removed on day 40, purged on day 88; hidden on days 20 to 27."""
    sights = [Observation(day * DAY, day < 40, 12 <= day < 88 and not 20 <= day < 28) for day in range(120)]
    life = compute_lifetime(sights)
    assert life is not None
    assert (life.t0, life.ta, life.tr, life.tp) == (0, 12 * DAY, 40 * DAY, 88 * DAY)
    assert life.ttl_c == 76 * DAY
    assert life.p_r == 68 / 76
    assert (life.vulnerable, life.endangered, life.is_late) == (12 * DAY, 48 * DAY, False)


def test_late_caching_is_detected() -> None:
    """Removed on day 5, archived on day 30: it was unavailable in between."""
    life = compute_lifetime([Observation(day * DAY, day < 5, 30 <= day < 50) for day in range(60)])
    assert life is not None
    assert life.is_late
    assert (life.vulnerable, life.endangered) == (5 * DAY, 20 * DAY)


def test_unfinished_lifetime_has_no_end() -> None:
    """Without tp and TTL_c, but with a P_r so far."""
    life = compute_lifetime([Observation(day * DAY, True, day in (1, 2, 4)) for day in range(5)])
    assert life is not None
    assert (life.tr, life.tp, life.ttl_c, life.endangered) == (None, None, None, None)
    assert life.p_r == 2 / 3


def test_visits_without_observations_do_not_count() -> None:
    """An archive that failed is not an empty one."""
    sights = [
        Observation(0, True, True),
        Observation(DAY, True, None),
        Observation(2 * DAY, True, True),
        Observation(3 * DAY, True, False),
    ]
    life = compute_lifetime(sights)
    assert life is not None
    assert (life.tp, life.p_r) == (3 * DAY, 1.0)
    assert compute_lifetime([]) is None


def test_means_ignore_unknown_values() -> None:
    """Each mean is over resources with a value."""
    gone = Lifetime(0, 2 * DAY, 4 * DAY, 8 * DAY, 10 * DAY, 3 * DAY)
    there = Lifetime(0, 4 * DAY, None, None, 10 * DAY, 6 * DAY)
    never = Lifetime(0, None, 6 * DAY, None, 10 * DAY)
    found = summarize_lifetimes([gone, there, never])
    assert (found.resources, found.held, found.late, found.open) == (3, 2, 0, 1)
    assert (found.ta, found.ttl_c, found.p_r) == (3, 6, 0.75)
    assert (found.vulnerable, found.endangered, found.open_days) == (4, 4, 6)
    assert summarize_lifetimes([]).p_r is None
