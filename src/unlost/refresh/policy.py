"""A policy: from what headers claim, and from what a host did before, to whether a page is downloaded."""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii
from os import PathLike, fspath
from pathlib import Path

from unlost.errors import InputError
from unlost.formats.output import atomic_file
from unlost.formats.unread import unreadable_error
from unlost.refresh.cells import (
    ALL_INDICATORS,
    GROUP_COUNT,
    INDICATORS,
    indicator_bits,
    format_cell,
    parse_cell,
    compute_cell,
    format_group,
    parse_group,
    project_to_indicators,
)
from unlost.refresh.intervals import ConfidenceInterval
from unlost.refresh.schemes import DOWNLOAD_ALL, scheme_cells, make_scheme
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


@dataclass(frozen=True, slots=True)
class PolicyEstimate:
    """What a policy promises, from the part of the log that it was tried on.

    reliability, usefulness: shares. interval: in which the reliability lies with 95 % confidence.
    changed, missed: pairs of the part it was tried on. hosts: of how many hosts.
    """

    reliability: float
    usefulness: float
    interval: ConfidenceInterval
    changed: int
    missed: int
    hosts: int


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

    >>> host_of("HTTP://me@A.example:8080/b?c")
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
