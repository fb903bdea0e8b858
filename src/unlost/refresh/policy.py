"""The refresh policy: whether to download a page, given its headers and the past behaviour of its host.

A policy is learned from a history, stored in a scheme file, and updated by audits. `learn_policy` sorts the cells by
the probability of change and chooses how many to skip. To avoid optimistic estimates, the probabilities of a host's
cells come from the other hosts (five-fold cross-validation), and its own counts from other parts of the log.
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
"""Number of changed pages and of all pages of a host, by group of cells."""

_FOLDS = 5
_LOG_PARTS = 32  # parts of the log by time, each evaluated with the counts of the others
_SHRINKAGE = 1.0  # weight of the wider class, in pairs
_STRENGTH_BOUNDS = (0.2, 50.0)  # bounds of the prior strength in visits
_UNKNOWN_STRENGTH = 5.0  # if no page changed, so that the variance between hosts is unknown
_STEPS_PER_OCTAVE = 8  # resolution of probabilities in the core
_UNKNOWN_EFFECT = 2.0  # assumed design effect: misses in pairs
_MIN_HOSTS_WITH_MISSES = 5  # required to estimate the design effect
_Replay = tuple[list[tuple[float, float, float, float, int]], float, float, float, int]


@dataclass(frozen=True, slots=True)
class RefreshDecision:
    """Decision for a page.

    Attributes:
        download: Whether to download it.
        audit: Whether it is a skip that is downloaded all the same, to measure how often skips are wrong. The visit is
            logged with `weight`.
        change_probability: Probability that the page has changed; None if the cell was never observed.
        cell: Cell of its headers.
        group: Group of the cell.
    """

    download: bool
    audit: bool
    change_probability: float | None
    cell: int
    group: int


@dataclass(slots=True)
class Policy:
    """A learned policy.

    Attributes:
        scheme: Matrix cells to download, for clients that distinguish only the nine cells; `DOWNLOAD_ALL` for all.
        indicators: Indicators in use.
        cell_probabilities: Probability of change by cell.
        prior_strengths: For each group, the number of visits to a host that weigh as much as all other hosts; infinite
            to ignore the host.
        skip_threshold: A page is skipped if its probability of change is at most this; negative to skip nothing.
        audit_share: Fraction of skips that are audited.
        target: Requested reliability.
        by_text: Whether changes are those of the visible text.
        estimate: Estimated quality; None if nothing is skipped.
        host_changes: Past behaviour of hosts.
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
        """Number of skipped visits that an audited one stands for."""
        return max(1, round(1 / self.audit_share)) if self.audit_share > 0 else 1

    def decide(self, host: str, last: Visit, this: Visit) -> RefreshDecision:
        """Decide about a page by the headers of its snapshot and of the new response.

        Audits are selected by a hash of URL and time, so that the decision is reproducible.

        Args:
            host: Host of the page, as from `history_host`.
            last: The last visit with a stored body.
            this: The new response.
        """
        return self.decide_cell(host, compute_cell(last, this), this)

    def decide_cell(self, host: str, full_cell: int, this: Visit) -> RefreshDecision:
        """Decide by the cell of the headers, as from `compute_cell`."""
        cell, _, group = project_to_indicators(full_cell, indicator_bits(self.indicators))
        probability = self.change_probability(host, cell, group)
        skip = probability is not None and probability <= self.skip_threshold
        return RefreshDecision(not skip, skip and self._is_audited(this), probability, cell, group)

    def change_probability(self, host: str, cell: int, group: int) -> float | None:
        """Return the probability of change; None if the cell was never observed."""
        mean = self.cell_probabilities.get(cell)
        if mean is None:
            return None
        strength = self.prior_strengths[group]
        if math.isinf(strength):
            return mean
        changed, visits = self.host_changes.get(host, {}).get(group, (0, 0))
        return (strength * mean + changed) / (strength + visits)

    def record_page(self, host: str, group: int, *, changed: bool, times: int = 1) -> None:
        """Record a downloaded or audited page.

        Only changed pages count, so that trust in a host can only fall: skipped changes stay undetected, so unchanged
        pages are weaker evidence than their number suggests. Learning from the log of the harvest can raise it.

        Args:
            host: Host of the page, as from `history_host`.
            group: Group of the cell of its headers.
            changed: Whether the page had changed.
            times: Number of such pages.
        """
        if changed:
            groups = self.host_changes.setdefault(host, {})
            counts = groups.get(group, (0, 0))
            groups[group] = (counts[0] + times, counts[1] + times)

    def _is_audited(self, visit: Visit) -> bool:
        hashed = hashlib.blake2b(f"{visit.time} {visit.uri}".encode("utf-8", "replace"), digest_size=8).digest()
        return int.from_bytes(hashed, "big") < self.audit_share * 2**64


def history_host(uri: str) -> str:
    """Return host and port of a URL as a history stores them.

    >>> history_host("HTTP://me@A.example:8080/b?c")
    'a.example:8080'
    """
    authority = uri.partition("://")[2]
    for end in "/?#":
        authority = authority.partition(end)[0]
    return authority.rpartition("@")[2].lower()


def write_policy(path: str | PathLike[str], policy: Policy) -> None:
    """Write a scheme file atomically. Raises OSError."""
    with atomic_file(path) as file:
        for line in serialize_policy(policy):
            file.write(line)


def serialize_policy(policy: Policy) -> Iterator[bytes]:
    """Yield the lines of a scheme file: a header object, then one object per host, sorted by name."""
    estimate = policy.estimate
    header = {
        "format": POLICY_FORMAT,
        "version": POLICY_VERSION,
        "target": policy.target,
        "change": "text" if policy.by_text else "bytes",
        "scheme": scheme_cells(policy.scheme),
        "indicators": [name for name in INDICATORS if name in policy.indicators],
        "most": policy.skip_threshold,
        "audit": policy.audit_share,
        "strengths": {
            format_group(group): strength
            for group, strength in enumerate(policy.prior_strengths)
            if not math.isinf(strength)
        },
        "cells": {format_cell(cell): mean for cell, mean in sorted(policy.cell_probabilities.items())},
        "stated": estimate
        and {
            "reliability": estimate.reliability,
            "interval": [estimate.interval.low, estimate.interval.high],
            "usefulness": estimate.usefulness,
            "changed": estimate.changed,
            "missed": estimate.missed,
            "hosts": estimate.hosts,
        },
    }
    yield json.dumps(header, separators=(",", ":")).encode() + b"\n"
    # Formatted by hand, which takes a tenth of the time of json.dumps. Names of groups need no escapes.
    names = [f'"{format_group(group)}":' for group in range(GROUP_COUNT)]
    for host, groups in sorted(policy.host_changes.items()):
        cells = ",".join([f"{names[group]}[{changed},{pairs}]" for group, (changed, pairs) in sorted(groups.items())])
        yield f'{{"host":{encode_basestring_ascii(host)},"seen":{{{cells}}}}}\n'.encode()


def read_policy(path: str | PathLike[str]) -> Policy:
    """Read a scheme file. Raises InputError, also for an unknown version."""
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
    iterator = iter(lines)
    header = json.loads(next(iterator, b"null"))
    if header["format"] != POLICY_FORMAT or header["version"] != POLICY_VERSION:
        found = f"{str(header['format'])[:40]}, version {str(header['version'])[:10]}"
        raise InputError(f"this unlost reads {POLICY_FORMAT}, version {POLICY_VERSION}, found {found}")
    estimate = header["stated"]
    strengths = [math.inf] * GROUP_COUNT
    for name, strength in header["strengths"].items():
        strengths[parse_group(name)] = _parse_bounded(strength, 1e-9, math.inf)
    policy = Policy(
        scheme=make_scheme(header["scheme"]),
        indicators=frozenset(header["indicators"]) & ALL_INDICATORS,
        cell_probabilities={parse_cell(name): _parse_bounded(mean, 0, 1) for name, mean in header["cells"].items()},
        prior_strengths=tuple(strengths),
        skip_threshold=_parse_bounded(header["most"], -1, 1),
        audit_share=_parse_bounded(header["audit"], 0, 1),
        target=_parse_bounded(header["target"], 0, 1),
        by_text=header["change"] == "text",
        estimate=estimate
        and PolicyEstimate(
            estimate["reliability"],
            estimate["usefulness"],
            ConfidenceInterval(*estimate["interval"]),
            estimate["changed"],
            estimate["missed"],
            estimate["hosts"],
        ),
    )
    for line in iterator:
        host = json.loads(line)
        policy.host_changes[host["host"]] = {
            parse_group(group): _parse_counts(counts) for group, counts in host["seen"].items()
        }
    return policy


def _parse_bounded(value: object, least: float, most: float) -> float:
    """Parse a number. Raises InputError if it is out of bounds, ValueError or TypeError if it is not a number."""
    number = float(value)  # type: ignore[arg-type]  # raises for anything else
    if not least <= number <= most:
        raise InputError(f"expected a number from {least:g} to {most:g}, found {number:g}")
    return number


def _parse_counts(values: Sequence[object]) -> tuple[int, int]:
    """Parse the numbers of changed and of all pages. Raises InputError."""
    changed, pairs = values
    if type(changed) is not int or type(pairs) is not int or not 0 <= changed <= pairs < 2**60:
        raise InputError("expected changed pages, and of how many, as two whole numbers")
    return changed, pairs


@dataclass(frozen=True, slots=True)
class LearningOptions:
    """Requirements of a policy.

    Attributes:
        reliability: Fraction of changes that must be detected.
        by_text: Whether changes are those of the visible text.
        indicators: Indicators to use in addition to date and ETag.
        by_host: Whether to distinguish hosts by their past behaviour.
        audit_share: Fraction of skips to audit.
    """

    reliability: float = 0.999
    by_text: bool = False
    indicators: frozenset[str] = ALL_INDICATORS
    by_host: bool = True
    audit_share: float = 0.01


def learn_policy(history: ChangeHistory, options: LearningOptions | None = None) -> Policy:
    """Return the most useful policy that has the requested reliability with 97.5 % confidence.

    If there is none, the policy downloads everything, and `estimate` is None.
    """
    options = options or LearningOptions()
    bits = indicator_bits(options.indicators)
    folds = _FOLDS if history.visit_stats["hosts"] >= MIN_HOSTS else 1
    counts = history.core.cells(options.by_text, bits, folds)
    total_counts = _sum_folds(counts)
    if folds == 1:
        means = [_cell_probabilities(total_counts, bits)]
    else:
        means = [_cell_probabilities(_sum_folds(counts[:fold] + counts[fold + 1 :]), bits) for fold in range(folds)]
    strengths = _prior_strengths(history, options)
    splits = history.core.splits(_LOG_PARTS)
    replay = history.core.replay([_as_list(mean) for mean in means], strengths, bits, options.by_text, splits)
    step, estimate = _choose_threshold(replay, options.reliability)
    scheme_score = choose_scheme(score_all_schemes(history.matrix(by_text=options.by_text)), options.reliability)
    policy = Policy(
        scheme=DOWNLOAD_ALL if scheme_score is None else scheme_score.scheme,
        indicators=options.indicators,
        cell_probabilities=_cell_probabilities(total_counts, bits),
        prior_strengths=tuple(strengths),
        skip_threshold=-1.0 if step is None else 2.0 ** (-step / _STEPS_PER_OCTAVE),
        audit_share=options.audit_share,
        target=options.reliability,
        by_text=options.by_text,
        estimate=estimate,
    )
    if options.by_host and step is not None:
        policy.host_changes.update(history.host_changes(bits, splits[_LOG_PARTS // 2 - 1], by_text=options.by_text))
    return policy


def _sum_folds(counts: Sequence[Sequence[tuple[int, int, int]]]) -> dict[int, tuple[int, int]]:
    """Return changed and unchanged pairs of each cell, summed over folds."""
    sums: dict[int, tuple[int, int]] = {}
    for fold in counts:
        for cell, changed, unchanged in fold:
            sum_so_far = sums.get(cell, (0, 0))
            sums[cell] = (sum_so_far[0] + changed, sum_so_far[1] + unchanged)
    return sums


def _cell_probabilities(counts: dict[int, tuple[int, int]], bits: int) -> dict[int, float]:
    """Return the probability of change of each observed cell, shrunk towards that of its group.

    The group is shrunk towards its matrix cell in the same way. So frequent cells have their own probability, and rare
    ones that of a wider class.
    """
    matrix_sums = [(0.5, 1.0)] * len(MATRIX_CELLS)  # prior: half a changed and half an unchanged pair
    group_sums = [(0.0, 0.0)] * GROUP_COUNT
    for cell, (changed, unchanged) in counts.items():
        _, base, group = project_to_indicators(cell, bits)
        for sums, index in ((matrix_sums, base), (group_sums, group)):
            sums[index] = (sums[index][0] + changed, sums[index][1] + changed + unchanged)
    probabilities = {}
    for cell, (changed, unchanged) in counts.items():
        _, base, group = project_to_indicators(cell, bits)
        group_probability = _shrink(*group_sums[group], matrix_sums[base][0] / matrix_sums[base][1])
        probabilities[cell] = _shrink(changed, changed + unchanged, group_probability)
    return probabilities


def _shrink(changed: float, pairs: float, prior: float) -> float:
    return (changed + _SHRINKAGE * prior) / (pairs + _SHRINKAGE)


def _as_list(means: dict[int, float]) -> list[float]:
    return [means.get(cell, math.nan) for cell in range(CELL_COUNT)]


def _prior_strengths(history: ChangeHistory, options: LearningOptions) -> list[float]:
    """Return the prior strength of each group: a beta-binomial model, fitted by the method of moments.

    The variance between hosts in excess of chance gives the intra-host correlation of visits.
    """
    if not options.by_host:
        return [math.inf] * GROUP_COUNT
    strengths = []
    for hosts, pairs, squared, changed, by_pairs in history.core.spread(
        options.by_text, indicator_bits(options.indicators)
    ):
        if hosts < 2 or changed == 0 or pairs <= hosts:
            strengths.append(_UNKNOWN_STRENGTH)
            continue
        between = (by_pairs - changed * changed / pairs) / (hosts - 1)
        within = (changed - by_pairs) / (pairs - hosts)
        typical_size = (pairs - squared / pairs) / (hosts - 1)
        total = between + (typical_size - 1) * within
        correlation = (between - within) / total if total > 0 else 0.0
        strengths.append(
            min(
                max((1 - correlation) / correlation if correlation > 0 else math.inf, _STRENGTH_BOUNDS[0]),
                _STRENGTH_BOUNDS[1],
            )
        )
    return strengths


def _choose_threshold(replay: _Replay, target: float) -> tuple[int | None, PolicyEstimate | None]:
    """Return the first step at which the reliability suffices, and its estimate; None for both if there is none."""
    steps, changed, unchanged, changed_squared, hosts = replay
    if not changed or not unchanged:
        return None, None
    for step, (missed, saved, squared, product, missed_hosts) in enumerate(steps):
        if step == 0 or saved == 0:  # step 0 includes cells never observed
            continue
        cluster = ClusteredShare(missed, changed, squared, product, changed_squared, hosts)
        # The design effect cannot be estimated from few hosts with misses.
        has_enough_hosts = missed_hosts >= _MIN_HOSTS_WITH_MISSES
        effect = 1.0 if has_enough_hosts else _UNKNOWN_EFFECT
        if 1 - cluster.wilson_interval(effect).high >= target:
            interval = cluster.student_interval() if has_enough_hosts else cluster.wilson_interval(effect)
            reliability = ConfidenceInterval(1 - interval.high, 1 - interval.low)
            estimate = PolicyEstimate(
                1 - missed / changed, saved / unchanged, reliability, round(changed), round(missed), hosts
            )
            return step, estimate
    return None, None
