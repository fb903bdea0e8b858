"""The refresh policy: whether to download a page, given its headers and what its host did before.

A policy is learned from a history, stored in a scheme file, and updated by audits. `learn_policy` sorts the cells by
the probability of change and chooses how many to skip. Nothing is promised for pairs that were learned from: the
probabilities of a host's cells come from the other hosts (five folds), and what is known of the host comes from other
parts of the log.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii
from os import PathLike, fspath
from pathlib import Path

from unlost.atomic import atomic_file
from unlost.errors import InputError
from unlost.problems import unreadable_error
from unlost.refresh.confidence import ClusteredShare, ConfidenceInterval
from unlost.refresh.decision_matrix import (
    ALL_INDICATORS,
    CELL_COUNT,
    GROUP_COUNT,
    INDICATORS,
    MATRIX_CELLS,
    compute_cell,
    format_cell,
    format_group,
    indicator_bits,
    parse_cell,
    parse_group,
    project_to_indicators,
)
from unlost.refresh.history import MIN_HOSTS, ChangeHistory
from unlost.refresh.schemes import (
    DOWNLOAD_ALL,
    PolicyEstimate,
    choose_scheme,
    make_scheme,
    scheme_cells,
    score_all_schemes,
)
from unlost.refresh.visit import Visit

POLICY_FORMAT = "unlost-refresh-scheme"
POLICY_VERSION = 1
HostChanges = dict[int, tuple[int, int]]
"""What a host did: for groups of cells, how many pages had changed, and of how many."""


@dataclass(frozen=True, slots=True)
class RefreshDecision:
    """What to do with a page.

    download: whether to. audit: whether it is one of the skips that are downloaded nevertheless, to know how often
        skipping is wrong. A page of an audit is to be logged with `weight`.
    chance: the probability that the page changed, as far as it is known; None where nobody has seen such headers.
    cell: what the headers claim, and group: where what a host did before counts.
    """

    download: bool
    audit: bool
    change_probability: float | None
    cell: int
    group: int


@dataclass(slots=True)
class Policy:
    """What was learned from a log; `decide` uses it, `note` learns on.

    scheme: the cells of the nine to download, for whoever can tell only these apart; 511 for all.
    indicators: which are looked at. means: the probability of change of each cell. strengths: for each group,
        how many visits to a host weigh as much as all other hosts together; infinite to leave hosts alone.
    most: a page is skipped if the probability that it changed is at most this; negative if nothing is to be skipped.
    audit: the share of skips that are audited. target: the reliability that was asked for. by_text: whether changes are
        those of text. stated: what it promises; None if nothing is skipped.
    seen: what each host did.
    """

    scheme: int = DOWNLOAD_ALL
    indicators: frozenset[str] = ALL_INDICATORS
    cell_probabilities: Mapping[int, float] = field(default_factory=dict)
    prior_strengths: tuple[float, ...] = (math.inf,) * GROUP_COUNT
    skip_threshold: float = -1.0
    audit_share: float = 0.01
    target: float = 0.999
    by_text: bool = False
    estimate: PolicyEstimate | None = None
    host_changes: dict[str, HostChanges] = field(default_factory=dict)

    @property
    def audit_weight(self) -> int:
        """How many skipped visits an audited one stands for."""
        return max(1, round(1 / self.audit_share)) if self.audit_share > 0 else 1

    def decide(self, host: str, last: Visit, this: Visit) -> RefreshDecision:
        """Return what to do with a page, of the headers of the copy that is held and of those that came now.

        host: as `host_of` has it. The same page at the same time is audited or not, whoever asks.
        """
        return self.decide_cell(host, compute_cell(last, this), this)

    def decide_cell(self, host: str, claimed: int, this: Visit) -> RefreshDecision:
        """Return the same of what the headers claim, as `cell_of` has it."""
        cell, _, group = project_to_indicators(claimed, indicator_bits(self.indicators))
        chance = self.change_probability(host, cell, group)
        skip = chance is not None and chance <= self.skip_threshold
        return RefreshDecision(not skip, skip and self._is_audited(this), chance, cell, group)

    def change_probability(self, host: str, cell: int, group: int) -> float | None:
        """Return the probability of change; None of a cell that nobody has seen."""
        mean = self.cell_probabilities.get(cell)
        if mean is None:
            return None
        strength = self.prior_strengths[group]
        if math.isinf(strength):
            return mean
        changed, visits = self.host_changes.get(host, {}).get(group, (0, 0))
        return (strength * mean + changed) / (strength + visits)

    def note(self, host: str, group: int, *, changed: bool, times: int = 1) -> None:
        """Learn from a page that was downloaded or audited. times: how many of them did the same.

        Trust only falls: more visits without a lie than were tried prove less than the sum says, since what changes
        unseen stays unseen. Learn anew from the log of the harvest to raise it.
        """
        if changed:
            known = self.host_changes.setdefault(host, {})
            before = known.get(group, (0, 0))
            known[group] = (before[0] + times, before[1] + times)

    def _is_audited(self, visit: Visit) -> bool:
        picked = hashlib.blake2b(f"{visit.time} {visit.uri}".encode("utf-8", "replace"), digest_size=8).digest()
        return int.from_bytes(picked, "big") < self.audit_share * 2**64


def url_host(uri: str) -> str:
    """Return host and port of an address as a history has them.

    >>> url_host("HTTP://me@A.example:8080/b?c")
    'a.example:8080'
    """
    authority = uri.partition("://")[2]
    for end in "/?#":
        authority = authority.partition(end)[0]
    return authority.rpartition("@")[2].lower()


def write_policy(path: str | PathLike[str], policy: Policy) -> None:
    """Write a scheme file, whole or not at all. Raises OSError."""
    with atomic_file(path) as file:
        for line in serialize_policy(policy):
            file.write(line)


def serialize_policy(policy: Policy) -> Iterator[bytes]:
    """Yield the lines of a scheme file: an object that says how to decide, then one for each host, by name."""
    stated = policy.estimate
    head = {
        "format": POLICY_FORMAT,
        "version": POLICY_VERSION,
        "target": policy.target,
        "change": "text" if policy.by_text else "bytes",
        "scheme": scheme_cells(policy.scheme),
        "indicators": [name for name in INDICATORS if name in policy.indicators],
        "most": policy.skip_threshold,
        "audit": policy.audit_share,
        "strengths": {
            format_group(group): one for group, one in enumerate(policy.prior_strengths) if not math.isinf(one)
        },
        "cells": {format_cell(cell): mean for cell, mean in sorted(policy.cell_probabilities.items())},
        "stated": stated
        and {
            "reliability": stated.reliability,
            "interval": [stated.interval.low, stated.interval.high],
            "usefulness": stated.usefulness,
            "changed": stated.changed,
            "missed": stated.missed,
            "hosts": stated.hosts,
        },
    }
    yield json.dumps(head, separators=(",", ":")).encode() + b"\n"
    # By hand, a tenth of the time: there is one for each host. Names of groups need no escapes.
    names = [f'"{format_group(group)}":' for group in range(GROUP_COUNT)]
    for host, seen in sorted(policy.host_changes.items()):
        cells = ",".join([f"{names[group]}[{changed},{pairs}]" for group, (changed, pairs) in sorted(seen.items())])
        yield f'{{"host":{encode_basestring_ascii(host)},"seen":{{{cells}}}}}\n'.encode()


def read_policy(path: str | PathLike[str]) -> Policy:
    """Return the policy of a scheme file. Raises InputError, also for a version that is not known here."""
    try:
        with Path(path).open("rb") as file:
            return _parse_policy(iter(file))
    except OSError as error:
        raise unreadable_error(path, error) from error
    except InputError as error:
        raise InputError(f"{fspath(path)}: expected a scheme file of `unlost refresh learn`: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        message = "expected a scheme file of `unlost refresh learn`, found something else, or damage"
        raise InputError(f"{fspath(path)}: {message}") from error


def _parse_policy(lines: Iterable[bytes]) -> Policy:
    rest = iter(lines)
    head = json.loads(next(rest, b"null"))
    if head["format"] != POLICY_FORMAT or head["version"] != POLICY_VERSION:
        found = f"{str(head['format'])[:40]}, version {str(head['version'])[:10]}"
        raise InputError(f"this unlost reads {POLICY_FORMAT}, version {POLICY_VERSION}, found {found}")
    stated = head["stated"]
    strengths = [math.inf] * GROUP_COUNT
    for name, strength in head["strengths"].items():
        strengths[parse_group(name)] = _parse_bounded(strength, 1e-9, math.inf)
    policy = Policy(
        scheme=make_scheme(head["scheme"]),
        indicators=frozenset(head["indicators"]) & ALL_INDICATORS,
        cell_probabilities={parse_cell(name): _parse_bounded(mean, 0, 1) for name, mean in head["cells"].items()},
        prior_strengths=tuple(strengths),
        skip_threshold=_parse_bounded(head["most"], -1, 1),
        audit_share=_parse_bounded(head["audit"], 0, 1),
        target=_parse_bounded(head["target"], 0, 1),
        by_text=head["change"] == "text",
        estimate=stated
        and PolicyEstimate(
            stated["reliability"],
            stated["usefulness"],
            ConfidenceInterval(*stated["interval"]),
            stated["changed"],
            stated["missed"],
            stated["hosts"],
        ),
    )
    for line in rest:
        host = json.loads(line)
        policy.host_changes[host["host"]] = {
            parse_group(group): _parse_counts(counts) for group, counts in host["seen"].items()
        }
    return policy


def _parse_bounded(value: object, least: float, most: float) -> float:
    """Return a number of a file. Raises InputError for one that is out of bounds, or none."""
    number = float(value)  # type: ignore[arg-type]  # whatever is none raises
    if not least <= number <= most:
        raise InputError(f"expected a number from {least:g} to {most:g}, found {number:g}")
    return number


def _parse_counts(values: Sequence[object]) -> tuple[int, int]:
    """Return how many pages had changed, and of how many. Raises InputError."""
    changed, pairs = values
    if type(changed) is not int or type(pairs) is not int or not 0 <= changed <= pairs < 2**60:
        raise InputError("expected changed pages, and of how many, as two whole numbers")
    return changed, pairs


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
