"""Evaluating: every configuration of every archive, asked every question, against what is held."""

import tempfile
from collections.abc import Mapping, Sequence
from itertools import compress
from operator import and_
from pathlib import Path

from unlost.holdings.inputs import refuse_pipes
from unlost.holdings.queries import QueryLogOptions
from unlost.measure.routing.configurations import RoutingConfiguration
from unlost.measure.routing.questions import QuerySet, GroundTruth, read_query_set
from unlost.measure.routing.ranking import estimate_probabilities
from unlost.measure.routing.results import ArchiveEvaluation, RoutingResult
from unlost.measure.routing.trying import (
    LOCAL_BUILDERS,
    FilePaths,
    IndexBuilders,
    QueryDecisions,
    ConfigurationTrial,
    WeightPair,
)


def evaluate_index(
    index: FilePaths,
    queries: FilePaths,
    configurations: Sequence[RoutingConfiguration],
    *,
    query_options: QueryLogOptions | None = None,
    training_queries: FilePaths = (),
    truth: GroundTruth | None = None,
) -> ArchiveEvaluation:
    """Build every configuration from an index, ask it all questions, and compare with what the index holds.

    For the rest see `evaluate_archives`.
    """
    found = evaluate_archives(
        {"": index},
        queries,
        configurations,
        query_options=query_options,
        training_queries=training_queries,
        truth=truth,
    )
    return found[0]


def evaluate_archives(
    archives: Mapping[str, FilePaths],
    queries: FilePaths,
    configurations: Sequence[RoutingConfiguration],
    *,
    query_options: QueryLogOptions | None = None,
    training_queries: FilePaths = (),
    truth: GroundTruth | None = None,
    builders: IndexBuilders = LOCAL_BUILDERS,
) -> list[ArchiveEvaluation]:
    """Do the same for several archives, each with its own index, and the same questions.

    learned: files of other questions, for budgets to learn from. truth: a page is held if its key, without its query,
    is one of the index; an address, if all of it is. Policies tell queries apart, so that with them it is addresses if
    nothing is said. makers: who reads indexes. Raises InputError if index or questions cannot be read at all.
    """
    policies = [one.policy for one in configurations if one.policy is not None]
    what = truth or ("address" if policies else "page")
    if builders is LOCAL_BUILDERS and (policies or what == "address"):
        for index in archives.values():
            refuse_pipes(index)  # each is read twice
    with tempfile.TemporaryDirectory(prefix="unlost-evaluate-") as name:
        questions, report = read_query_set(queries, Path(name), what, query_options)
        found = []
        for archive, index in archives.items():
            with tempfile.TemporaryDirectory(prefix="archive-", dir=name) as place:
                ranks = any(each.min_probability for each in configurations)
                made = ConfigurationTrial(index, Path(place), questions, with_bands=ranks, builders=builders)
                one = _evaluate_configurations(made, questions, configurations, training_queries, what)
            one.archive, one.query_report = archive, report
            found.append(one)
    return found


def _evaluate_configurations(
    made: ConfigurationTrial,
    questions: QuerySet,
    tried: Sequence[RoutingConfiguration],
    learned: FilePaths,
    truth: GroundTruth,
) -> ArchiveEvaluation:
    wanted = [one.policy for one in tried if one.policy is not None]
    # Whole addresses are told by the policy that cuts nothing, whether it is asked for or not.
    exact = ["URIR"] if truth == "address" else []
    policies: dict[str, QueryDecisions] = dict(made.try_policies([*dict.fromkeys([*wanted, *exact])]))
    if truth == "address":
        size, held = policies["URIR"]
        keys = size.lines
    else:
        keys, held = made.keys, made.lookup_pages()
    maps: dict[WeightPair, QueryDecisions] = dict(
        made.try_weights([one.weights for one in tried if _is_weighted_map(one)])
    )
    found = ArchiveEvaluation(index_report=made.report)
    for one in tried:
        if one.policy is not None:
            said = policies[one.policy]
        elif one.budget is not None:
            said = made.try_budget(one, learned)
        else:
            said = made.try_filter(maps[one.weights], one.bits) if one.bits else maps[one.weights]
        size, predicted = said
        counts = questions.counts
        if one.min_probability:
            likely = estimate_probabilities(made.bands[one.policy or one.weights], held, counts)
            predicted = [yes and p >= one.min_probability for yes, p in zip(predicted, likely, strict=True)]
        both = list(map(and_, held, predicted))
        # Whoever asks for a probability has given some recall away.
        if both != held and not one.min_probability:
            denied = next(key for key, a, b in zip(questions.url_keys, held, both, strict=True) if a != b)
            found.false_negatives.append((one.name, denied))
        found.results.append(
            RoutingResult(
                one,
                keys,
                size,
                query_count=sum(counts),
                predicted=sum(compress(counts, predicted)),
                present=sum(compress(counts, both)),
                held=sum(compress(counts, held)),
            )
        )
    return found


def _is_weighted_map(one: RoutingConfiguration) -> bool:
    return one.policy is None and one.budget is None
