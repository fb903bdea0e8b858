"""From a history to a policy: the most useful one that surely misses as little as was asked for.

With more indicators than two there are too many cells to try every set of them. But each set that is worth trying skips
the cells in which a page is least likely to have changed; so cells are sorted by that, and only how far down to go is
chosen. The same sorting takes in hosts: where a host has been seen to lie, its pages are more likely to have changed.

Nothing is promised of pairs that were learned from: the probabilities of a host's cells come from the other hosts (five
folds), and what is known of the host from other parts of the log: what changed from all the others, what did not from
the other half. A harvest then knows of each host as much as was tried: half of the log, and lies of all of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unlost.refresh.cells import ALL_INDICATORS, CELL_COUNT, GROUP_COUNT, indicator_bits, project_to_indicators
from unlost.refresh.history import MIN_HOSTS, ChangeHistory
from unlost.refresh.intervals import ClusteredShare, ConfidenceInterval
from unlost.refresh.matrix import MATRIX_CELLS
from unlost.refresh.policy import Policy, PolicyEstimate
from unlost.refresh.schemes import DOWNLOAD_ALL, choose_scheme, score_all_schemes

_FOLDS = 5
_LOG_PARTS = 32  # of the log, each tried with the others known: about a visit each, for as many visits
_SHRINKAGE = 1.0  # pairs that the mean of a wider class is worth against its own: one of each, as if seen once before
_STRENGTH_BOUNDS = (
    0.2,
    50.0,
)  # between these, what hosts have in common is worth so many visits: never nothing, never all
_UNKNOWN_STRENGTH = 5.0  # where no page changed, and nobody can tell how much hosts differ
_STEPS_PER_OCTAVE = 8  # steps an octave, as the core divides probabilities
_UNKNOWN_EFFECT = 2.0  # as if misses came in pairs
_MIN_HOSTS_WITH_MISSES = 5  # with a miss, before they tell how much misses of one host go together


@dataclass(frozen=True, slots=True)
class LearningOptions:
    """What a policy is to be like.

    reliability: the share of changes that must not be missed, surely. by_text: whether changes are those of text.
    indicators: what to look at beside whether date and tag changed. hosts: whether to tell hosts apart. audit: the
    share of skips to check.
    """

    reliability: float = 0.999
    by_text: bool = False
    indicators: frozenset[str] = ALL_INDICATORS
    by_host: bool = True
    audit_share: float = 0.01


def learn_policy(history: ChangeHistory, options: LearningOptions | None = None) -> Policy:
    """Return the most useful policy whose reliability is at least the one wanted, with 97.5 % confidence.

    If there is none, the policy downloads everything, and `stated` is None.
    """
    options = options or LearningOptions()
    bits = indicator_bits(options.indicators)
    folds = _FOLDS if history.tally["hosts"] >= MIN_HOSTS else 1
    counts = history.core.cells(options.by_text, bits, folds)
    everything = _sum_folds(counts)
    if folds == 1:
        means = [_cell_probabilities(everything, bits)]
    else:
        means = [_cell_probabilities(_sum_folds(counts[:fold] + counts[fold + 1 :]), bits) for fold in range(folds)]
    strengths = _prior_strengths(history, options)
    splits = history.core.splits(_LOG_PARTS)
    replay = history.core.replay([_as_list(mean) for mean in means], strengths, bits, options.by_text, splits)
    step, stated = _choose_threshold(replay, options.reliability)
    best = choose_scheme(score_all_schemes(history.matrix(by_text=options.by_text)), options.reliability)
    policy = Policy(
        scheme=DOWNLOAD_ALL if best is None else best.scheme,
        indicators=options.indicators,
        cell_probabilities=_cell_probabilities(everything, bits),
        prior_strengths=tuple(strengths),
        skip_threshold=-1.0 if step is None else 2.0 ** (-step / _STEPS_PER_OCTAVE),
        audit_share=options.audit_share,
        target=options.reliability,
        by_text=options.by_text,
        estimate=stated,
    )
    if options.by_host and step is not None:
        policy.host_changes.update(history.host_changes(bits, splits[_LOG_PARTS // 2 - 1], by_text=options.by_text))
    return policy


def _sum_folds(counts: Sequence[Sequence[tuple[int, int, int]]]) -> dict[int, tuple[int, int]]:
    """Return changed and unchanged pairs of each cell, of several folds."""
    sums: dict[int, tuple[int, int]] = {}
    for fold in counts:
        for cell, changed, unchanged in fold:
            before = sums.get(cell, (0, 0))
            sums[cell] = (before[0] + changed, before[1] + unchanged)
    return sums


def _cell_probabilities(counts: dict[int, tuple[int, int]], bits: int) -> dict[int, float]:
    """Return the probability of change in each cell that was seen, drawn towards that of its group.

    The group's is drawn towards that of the cell of the nine in the same way: a digest that says the same is worth more
    than the dates beside it, and a cell that was seen four thousand times is worth more than both.
    """
    of_base = [(0.5, 1.0)] * len(MATRIX_CELLS)  # as if half a pair had changed, and half a pair had not
    of_group = [(0.0, 0.0)] * GROUP_COUNT
    for cell, (changed, unchanged) in counts.items():
        _, base, group = project_to_indicators(cell, bits)
        for sums, at in ((of_base, base), (of_group, group)):
            sums[at] = (sums[at][0] + changed, sums[at][1] + changed + unchanged)
    means = {}
    for cell, (changed, unchanged) in counts.items():
        _, base, group = project_to_indicators(cell, bits)
        wider = _shrink(*of_group[group], of_base[base][0] / of_base[base][1])
        means[cell] = _shrink(changed, changed + unchanged, wider)
    return means


def _shrink(changed: float, pairs: float, prior: float) -> float:
    return (changed + _SHRINKAGE * prior) / (pairs + _SHRINKAGE)


def _as_list(means: dict[int, float]) -> list[float]:
    return [means.get(cell, math.nan) for cell in range(CELL_COUNT)]


def _prior_strengths(history: ChangeHistory, options: LearningOptions) -> list[float]:
    """Return how many visits to a host weigh as much as all other hosts: a beta-binomial's, by the method of moments.

    The variance between hosts beyond that of chance gives the correlation of visits to one host.
    """
    if not options.by_host:
        return [math.inf] * GROUP_COUNT
    found = []
    for hosts, pairs, squared, changed, by_pairs in history.core.spread(
        options.by_text, indicator_bits(options.indicators)
    ):
        if hosts < 2 or changed == 0 or pairs <= hosts:
            found.append(_UNKNOWN_STRENGTH)
            continue
        between = (by_pairs - changed * changed / pairs) / (hosts - 1)
        inside = (changed - by_pairs) / (pairs - hosts)
        usual = (pairs - squared / pairs) / (hosts - 1)
        total = between + (usual - 1) * inside
        alike = (between - inside) / total if total > 0 else 0.0
        found.append(min(max((1 - alike) / alike if alike > 0 else math.inf, _STRENGTH_BOUNDS[0]), _STRENGTH_BOUNDS[1]))
    return found


_Replay = tuple[list[tuple[float, float, float, float, int]], float, float, float, int]


def _choose_threshold(replay: _Replay, target: float) -> tuple[int | None, PolicyEstimate | None]:
    """Return the step from which on pages are skipped, and what that promises; None for both if no step is sure."""
    steps, changed, unchanged, changed_squared, hosts = replay
    if not changed or not unchanged:
        return None, None
    for number, (missed, saved, squared, product, missed_hosts) in enumerate(steps):
        if number == 0 or saved == 0:  # at 0 also those that nobody has seen
            continue
        cluster = ClusteredShare(missed, changed, squared, product, changed_squared, hosts)
        # Where hardly a host has a miss, nobody can tell how many come together.
        can_tell = missed_hosts >= _MIN_HOSTS_WITH_MISSES
        effect = 1.0 if can_tell else _UNKNOWN_EFFECT
        if 1 - cluster.wilson_interval(effect).high >= target:
            interval = cluster.student_interval() if can_tell else cluster.wilson_interval(effect)
            reliability = ConfidenceInterval(1 - interval.high, 1 - interval.low)
            stated = PolicyEstimate(
                1 - missed / changed, saved / unchanged, reliability, round(changed), round(missed), hosts
            )
            return number, stated
    return None, None
