"""Scheduling of visits on a simulated web with known changes."""

from unlost.research import MIXTURES, simulate_schedules, simulate_visits


def test_schedule_detects_more_changes_with_equal_visits() -> None:
    """More than round robin, and never with more visits than allowed."""
    scores = {
        score.name: score for score in simulate_schedules(simulate_visits(MIXTURES["honest"], 80, 20, 7), 12, 1 / 3)
    }
    turns, ours = scores["by turns"], scores["corrected for unseen changes"]
    assert ours.visits == turns.visits > 0
    assert ours.changes_found > 1.2 * turns.changes_found
    assert ours.checks == turns.checks
    assert 0 < turns.fresh < turns.checks


def test_schedules_with_all_visits_detect_every_change() -> None:
    """All schedules are equivalent without a limit."""
    for score in simulate_schedules(simulate_visits(MIXTURES["honest"], 10, 9, 7), 6, 1.0):
        assert score.freshness == 1.0
