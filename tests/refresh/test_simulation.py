"""The simulated web has the specified misbehaviour, and learned policies cope with it."""

import pytest

from unlost.errors import UsageError
from unlost.refresh import NAMED_SCHEMES, LearningOptions
from unlost.research import (
    MIXTURES,
    TRAITS,
    ConditionalMethod,
    SchemeMethod,
    ServerMixture,
    SimulatedVisit,
    SimulationScore,
    build_history,
    get_mixture,
    run_methods,
    run_trial,
    simulate_visits,
)


def web_of(trait: str) -> list[list[list[SimulatedVisit]]]:
    """Return a web of one trait."""
    return list(simulate_visits(ServerMixture(trait, "", {trait: 1}), 60, 12, 5))


def score_for_trait(trait: str, name: str) -> SimulationScore:
    """Return what a scheme does where all hosts have a trait."""
    way = SchemeMethod(NAMED_SCHEMES[name], SimulationScore(name))
    run_methods([way], web_of(trait), 1)
    return way.score


def test_simulated_web_is_reproducible() -> None:
    """Equal name, size and seed give the same web; another seed does not."""
    assert web_of("flapping") == web_of("flapping")
    one, other = (list(simulate_visits(MIXTURES["study"], 5, 4, seed)) for seed in (1, 2))
    assert one != other


def test_mixtures_have_every_trait() -> None:
    """Each mixture has exactly its traits; an unknown mixture is refused with the known names."""
    assert set(MIXTURES["everything"].shares) == set(TRAITS)
    assert {trait for one in MIXTURES.values() for trait in one.shares} <= set(TRAITS)
    with pytest.raises(UsageError, match="study"):
        get_mixture("nothing")


@pytest.mark.parametrize("trait", ["honest", "date-only", "tag-only", "weak-tags", "clock-skew", "head-differs",
    "never-304", "malformed-dates"])  # fmt: skip
def test_reliable_hosts_are_never_missed(trait: str) -> None:
    """With correct headers Scheme 3 misses nothing."""
    assert score_for_trait(trait, "Scheme 3").missed == 0
    assert score_for_trait(trait, "Scheme 3").changed > 0


@pytest.mark.parametrize("trait", ["date-frozen", "tag-frozen", "session-id", "counter", "variants", "same-second",
    "length-only"])  # fmt: skip
def test_unreliable_hosts_are_missed(trait: str) -> None:
    """Scheme 3 misses changes with unchanged headers."""
    assert score_for_trait(trait, "Scheme 3").missed > 0


@pytest.mark.parametrize(("trait", "name"), [("inode-tags", "Scheme 2"), ("date-now", "Scheme 1"),
    ("gzip-tags", "Scheme 2"), ("flapping", "Scheme 4"), ("head-differs", "Scheme 2")])  # fmt: skip
def test_hosts_with_needless_changes_are_downloaded_unnecessarily(trait: str, name: str) -> None:
    """Needless header changes cost more than a third of the possible savings."""
    assert score_for_trait(trait, name).usefulness < 0.67


def test_simulated_conditional_requests_follow_server_behaviour() -> None:
    """Always 304 misses every change, never 304 saves nothing, a correct server does neither."""
    found = {}
    for trait in ("honest", "always-304", "never-304"):
        way = ConditionalMethod(SimulationScore(trait))
        run_methods([way], web_of(trait), 1)
        found[trait] = (way.score.reliability, way.score.usefulness)
    assert found == {"honest": (1, 1), "always-304": (0, 1), "never-304": (1, 0)}


def test_unsolicited_304_is_a_visit_without_a_body() -> None:
    """It is counted, and makes no pair."""
    tally = build_history(web_of("unsolicited-304"), 12).visit_stats
    assert tally["not_modified"] > 0
    assert tally["successful"] + tally["not_modified"] == sum(12 for pages in web_of("unsolicited-304") for _ in pages)


def test_stale_responses_have_age_and_texts_have_digests() -> None:
    """The simulation provides what additional indicators need."""
    assert any(seen.visit.age for pages in web_of("stale-node") for page in pages for seen in page)
    history = build_history(web_of("session-id"), 12)
    assert history.core.bytes_and_text()[1] > history.core.bytes_and_text()[3] > 0
    assert any(seen.visit.digest == "sorry" for pages in web_of("soft-404") for page in pages for seen in page)


def test_learned_policy_reaches_the_target_where_schemes_fail() -> None:
    """With unreliable hosts it misses few changes and saves at least half."""
    done = run_trial(MIXTURES["liars"], 700, 12, 11, LearningOptions(0.99), 6)
    scores = {score.name: score for score in done.scores}
    ours = scores["learned"]
    assert ours.reliability >= 0.99
    assert scores["Scheme 1 variant"].reliability < 0.95
    assert ours.usefulness > 0.5
    assert ours.audited > 0
    assert scores["always"].missed == scores["oracle"].missed == 0
    assert scores["oracle"].bytes < ours.bytes < scores["always"].bytes
