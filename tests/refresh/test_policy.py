"""Learning policies: reliable estimates, detection of unreliable hosts, scheme files."""

import math
from pathlib import Path
from random import Random

import pytest

from unlost.errors import InputError
from unlost.refresh import (
    INDICATORS,
    NAMED_SCHEMES,
    ChangeHistory,
    ClusteredShare,
    LearningOptions,
    Policy,
    Visit,
    find_unreliable_hosts,
    format_cell,
    history_host,
    learn_policy,
    read_policy,
    score_scheme,
    wilson_confidence,
    write_policy,
)
from unlost.research import MIXTURES, build_history, simulate_visits


def frozen(host: str, visits: int, *, is_false: bool) -> list[Visit]:
    """Return visits to a page whose date never changes."""
    page, date = f"http://{host}/", "Mon, 10 Feb 2014 00:00:01 GMT"
    return [Visit(page, f"{time if is_false else 0}", last_modified=date, time=time * 10**8) for time in range(visits)]


def test_habitual_false_claims_are_distinguished_from_accidental_ones() -> None:
    """15 false claims of 15 are a habit, 3 of 3 are not yet."""
    visits = frozen("liar.example", 16, is_false=True) + frozen("new.example", 4, is_false=True)
    found = find_unreliable_hosts(ChangeHistory.from_visits(visits + frozen("good.example", 16, is_false=False)))
    assert [(one.host, one.indicator, one.false_claims, one.claims) for one in found] == [
        ("liar.example", "date", 15, 15)
    ]
    assert found[0].is_always_false


def changing_visits(host: str, visits: int, page: str = "", *, is_false: bool = False) -> list[Visit]:
    """Return visits to a page that changes each time, whose date says so, except if `is_false`."""
    dates = [f"Mon, 10 Feb 2014 00:00:{0 if is_false else time:02d} GMT" for time in range(visits)]
    uri = f"http://{host}/{page}"
    return [Visit(uri, str(time), last_modified=dates[time], time=time * 10**8) for time in range(visits)]


@pytest.fixture(scope="module")
def learned_policy() -> Policy:
    """Return what is learned from a web with liars."""
    return learn_policy(build_history(simulate_visits(MIXTURES["liars"], 700, 12, 7), 12), LearningOptions(0.99))


def test_unreliable_hosts_are_downloaded_and_others_skipped(learned_policy: Policy) -> None:
    """Equal headers give different decisions for hosts with different histories."""
    history = build_history(simulate_visits(MIXTURES["liars"], 700, 12, 7), 12)
    liars = {one.host for one in find_unreliable_hosts(history) if one.indicator == "tag"}
    old = Visit("http://x.example/", etag='"1"', last_modified="Mon, 10 Feb 2014 00:00:01 GMT", time=0)
    new = Visit("http://x.example/", etag='"1"', last_modified="Mon, 10 Feb 2014 00:00:01 GMT", time=10**8)
    assert liars
    assert all(learned_policy.decide(host, old, new).download for host in liars)
    trusted = [host.name for host in history.hosts() if host.matrix.unchanged[4] > 20 and host.matrix.changed[4] == 0]
    assert trusted
    assert not any(learned_policy.decide(host, old, new).download for host in trusted)
    trust = trusted[0]
    for _ in range(3):
        learned_policy.record_page(trust, learned_policy.decide(trust, old, new).group, changed=True)
    assert learned_policy.decide(trust, old, new).download, "an audit that finds a false claim ends trust"


def test_unknown_cells_are_downloaded(learned_policy: Policy) -> None:
    """A cell without pairs has no probability."""
    old = Visit("http://x.example/", etag="1", repr_digest="a", age=9, time=0)
    decision = learned_policy.decide("h1.example", old, old)
    assert (decision.download, decision.change_probability) == (True, None)


def test_skips_are_audited_at_the_requested_rate(learned_policy: Policy) -> None:
    """One in a hundred, selected deterministically."""
    old = Visit("http://x.example/", etag='"1"', last_modified="Mon, 10 Feb 2014 00:00:01 GMT", time=0)
    host = next(
        host for host, seen in learned_policy.host_changes.items() if not learned_policy.decide(host, old, old).download
    )
    pages = [Visit(f"http://x.example/{at}", etag=old.etag, last_modified=old.last_modified) for at in range(5000)]
    audits = [learned_policy.decide(host, old, page).audit for page in pages]
    assert 25 <= sum(audits) <= 85
    assert audits == [learned_policy.decide(host, old, page).audit for page in pages]
    assert learned_policy.audit_weight == 100


def test_scheme_file_round_trip(learned_policy: Policy, tmp_path: Path) -> None:
    """All fields are restored, and serialization is deterministic."""
    write_policy(tmp_path / "a", learned_policy)
    again = read_policy(tmp_path / "a")
    assert again == learned_policy
    write_policy(tmp_path / "b", again)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"null", b'{"format": "unlost-refresh-scheme", "version": 9}'])
def test_invalid_scheme_file_is_rejected(tmp_path: Path, text: bytes) -> None:
    """Including later versions."""
    (tmp_path / "a").write_bytes(text)
    with pytest.raises(InputError, match="scheme file"):
        read_policy(tmp_path / "a")


def test_too_few_visits_give_no_estimate() -> None:
    """Ten visits prove nothing: everything is downloaded."""
    policy = learn_policy(ChangeHistory.from_visits(frozen("good.example", 10, is_false=False)))
    assert policy.estimate is None
    old = Visit("http://good.example/", last_modified="Mon, 10 Feb 2014 00:00:01 GMT", time=0)
    assert policy.decide("good.example", old, old).download


def test_disabled_indicators_are_not_used() -> None:
    """Cells then differ only in date and ETag."""
    history = build_history(simulate_visits(MIXTURES["everything"], 200, 8, 3), 8)
    names = {
        format_cell(cell)
        for cell in learn_policy(history, LearningOptions(indicators=frozenset(), by_host=False)).cell_probabilities
    }
    assert all(name.endswith(".missing.missing.silent") for name in names)
    more = learn_policy(history, LearningOptions(indicators=frozenset(INDICATORS)))
    assert len(more.cell_probabilities) > len(names)
    assert all(math.isfinite(one) for one in more.prior_strengths)


def test_clustered_pairs_count_less() -> None:
    """Misses of one host widen the interval compared with misses of many hosts."""
    spread = ClusteredShare(50, 10_000, 50, 50 * 10, 1000 * 100, 1000)
    together = ClusteredShare(50, 10_000, 50 * 50, 50 * 60, 1000 * 100, 1000)
    assert together.wilson_interval().width > 2 * spread.wilson_interval().width
    assert spread.wilson_interval().width < 1.2 * wilson_confidence(50, 10_000).width


def test_few_hosts_with_all_misses_widen_the_interval() -> None:
    """Student's interval is wider for fewer and more unequal hosts, and approaches the normal one for many."""
    many = ClusteredShare(1000, 10_000, 1000, 10_000, 100_000, 1000).student_interval()
    assert many.low < 0.1 < many.high
    assert many.width == pytest.approx(wilson_confidence(1000, 10_000).width, rel=0.02)
    alike = ClusteredShare(60, 10_000, 6 * 10 * 10, 60 * 10, 100_000, 1000)
    unequal = ClusteredShare(60, 10_000, 50 * 50 + 5 * 2 * 2, 60 * 10, 100_000, 1000)
    assert (round(alike.effective_hosts), round(unequal.effective_hosts)) == (6, 1)
    assert many.width < alike.student_interval().width < unequal.student_interval().width


def test_without_misses_each_host_is_one_case() -> None:
    """200 hosts without a miss count as 200 cases, whatever their number of pages."""
    honest = ClusteredShare(0, 200 * 50, 0, 0, 200 * 50 * 50, 200)
    assert honest.bootstrap_interval((0.0, 0.0)) == wilson_confidence(0, 200)
    visits = [visit for number in range(200) for visit in changing_visits(f"h{number}.example", 4)]
    [by_host] = ChangeHistory.from_visits(visits).bootstrap_reliability([NAMED_SCHEMES["Scheme 1"]], 1)
    assert by_host.high == 1
    assert by_host.low == pytest.approx(1 - wilson_confidence(0, 200).high)


def test_misses_of_hosts_add_up_to_their_matrices() -> None:
    """Sums, squares and products; equal seeds give equal samples."""
    history = build_history(simulate_visits(MIXTURES["everything"], 60, 8, 5), 8)
    scheme = NAMED_SCHEMES["Scheme 1 variant"]
    of_hosts = [(score_scheme(host.matrix, scheme).missed, host.matrix.all_changed) for host in history.hosts()]
    [found] = history.core.resample(False, [scheme], 50, 3)
    assert found[:6] == (
        sum(missed for missed, _ in of_hosts),
        sum(changed for _, changed in of_hosts),
        sum(missed**2 for missed, _ in of_hosts),
        sum(missed * changed for missed, changed in of_hosts),
        sum(changed**2 for _, changed in of_hosts),
        sum(changed > 0 for _, changed in of_hosts),
    )
    low, high = found[6]
    assert low < 0 < high
    assert history.core.resample(False, [scheme], 50, 3) == [found]
    assert history.core.resample(False, [scheme], 50, 4) != [found]


def test_parts_of_a_log_have_equal_numbers_of_pairs() -> None:
    """Ten visit times in five parts: two each."""
    history = ChangeHistory.from_visits([Visit("http://a.example/", "x", time=time * 1000) for time in range(11)])
    assert history.core.splits(5) == [3, 5, 7, 9]
    assert ChangeHistory.from_visits([]).core.splits(3) == [0, 0]


def test_few_hosts_give_the_interval_of_independent_pages() -> None:
    """Below 20 hosts, pages count as independent."""
    [by_host] = ChangeHistory.from_visits(changing_visits("a.example", 40)).bootstrap_reliability(
        [NAMED_SCHEMES["Scheme 1"]], 1
    )
    assert by_host.low == pytest.approx(1 - wilson_confidence(0, 39).high)


def test_bootstrap_intervals_cover_the_truth_with_few_unreliable_hosts() -> None:
    """Of 40 logs with 150 hosts, a tenth of them unreliable, at most four intervals miss the truth."""
    random = Random(11)  # noqa: S311  a test
    wrong = 0
    for run in range(40):
        visits: list[Visit] = []
        for number in range(150):
            is_false = random.random() < 0.1
            for page in range(min(20, 1 + int(random.expovariate(0.4)))):
                host = f"h{number}.example"
                visits += changing_visits(host, 4, f"{page}", is_false=is_false)
        [by_host] = ChangeHistory.from_visits(visits).bootstrap_reliability([NAMED_SCHEMES["Scheme 1"]], run)
        wrong += not by_host.contains(0.9)
    assert wrong <= 4


def test_false_claims_of_other_parts_are_used_in_evaluation() -> None:
    """False claims in one half count in the other half, and in the rest of the same half."""
    honest = [visit for number in range(60) for visit in changing_visits(f"h{number}.example", 31)]
    honest += [visit for number in range(60) for visit in frozen(f"still{number}.example", 31, is_false=False)]
    stated = learn_policy(
        ChangeHistory.from_visits(honest + frozen("liar.example", 31, is_false=True)), LearningOptions(0.9)
    ).estimate
    assert stated is not None
    assert stated.missed <= 1
    assert stated.usefulness == 1.0


def test_host_names_match_those_of_histories() -> None:
    """With port, without user, in lower case."""
    for uri in ("http://A.example/x", "https://u:p@b.example:8080?q", "http://c.example#f"):
        assert [host.name for host in ChangeHistory.from_visits([Visit(uri, "x", time=1)]).hosts()] == [
            history_host(uri)
        ]
