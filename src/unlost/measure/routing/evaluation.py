"""Evaluating: every configuration of every archive, asked every question, against what is held."""

import tempfile
from collections.abc import Mapping, Sequence
from itertools import compress
from operator import and_
from pathlib import Path

from unlost.holdings.inputs import refuse_pipes
from unlost.holdings.queries import QueryOptions
from unlost.measure.routing.configurations import Configuration
from unlost.measure.routing.questions import Questions, Truth, read_questions
from unlost.measure.routing.ranking import probabilities
from unlost.measure.routing.results import Evaluation, Result
from unlost.measure.routing.trying import HERE, Files, Makers, Said, Trial, Weights


def evaluate(
    index: Files,
    queries: Files,
    tried: Sequence[Configuration],
    *,
    query_options: QueryOptions | None = None,
    learned: Files = (),
    truth: Truth | None = None,
) -> Evaluation:
    """Build every configuration from an index, ask it all questions, and compare with what the index holds.

    For the rest see `evaluate_archives`.
    """
    found = evaluate_archives({"": index}, queries, tried, query_options=query_options, learned=learned, truth=truth)
    return found[0]


def evaluate_archives(
    archives: Mapping[str, Files],
    queries: Files,
    tried: Sequence[Configuration],
    *,
    query_options: QueryOptions | None = None,
    learned: Files = (),
    truth: Truth | None = None,
    makers: Makers = HERE,
) -> list[Evaluation]:
    """Do the same for several archives, each with its own index, and the same questions.

    learned: files of other questions, for budgets to learn from. truth: a page is held if its key, without its query,
    is one of the index; an address, if all of it is. Policies tell queries apart, so that with them it is addresses if
    nothing is said. makers: who reads indexes. Raises InputError if index or questions cannot be read at all.
    """
    policies = [one.policy for one in tried if one.policy is not None]
    what = truth or ("address" if policies else "page")
    if makers is HERE and (policies or what == "address"):
        for index in archives.values():
            refuse_pipes(index)  # each is read twice
    with tempfile.TemporaryDirectory(prefix="unlost-evaluate-") as name:
        questions, report = read_questions(queries, Path(name), what, query_options)
        found = []
        for archive, index in archives.items():
            with tempfile.TemporaryDirectory(prefix="archive-", dir=name) as place:
                ranks = any(each.min_probability for each in tried)
                made = Trial(index, Path(place), questions, ranks=ranks, makers=makers)
                one = _evaluated(made, questions, tried, learned, what)
            one.archive, one.questions = archive, report
            found.append(one)
    return found


def _evaluated(
    made: Trial, questions: Questions, tried: Sequence[Configuration], learned: Files, truth: Truth
) -> Evaluation:
    wanted = [one.policy for one in tried if one.policy is not None]
    # Whole addresses are told by the policy that cuts nothing, whether it is asked for or not.
    exact = ["URIR"] if truth == "address" else []
    policies: dict[str, Said] = dict(made.of_policies([*dict.fromkeys([*wanted, *exact])]))
    if truth == "address":
        size, held = policies["URIR"]
        keys = size.lines
    else:
        keys, held = made.keys, made.held_pages()
    maps: dict[Weights, Said] = dict(made.of_weights([one.weights for one in tried if _is_weighed(one)]))
    found = Evaluation(index=made.report)
    for one in tried:
        if one.policy is not None:
            said = policies[one.policy]
        elif one.budget is not None:
            said = made.of_budget(one, learned)
        else:
            said = made.of_filter(maps[one.weights], one.bits) if one.bits else maps[one.weights]
        size, predicted = said
        counts = questions.counts
        if one.min_probability:
            likely = probabilities(made.bands[one.policy or one.weights], held, counts)
            predicted = [yes and p >= one.min_probability for yes, p in zip(predicted, likely, strict=True)]
        both = list(map(and_, held, predicted))
        # Whoever asks for a probability has given some recall away.
        if both != held and not one.min_probability:
            denied = next(key for key, a, b in zip(questions.addresses, held, both, strict=True) if a != b)
            found.missed.append((one.name, denied))
        found.results.append(
            Result(
                one,
                keys,
                size,
                questions=sum(counts),
                predicted=sum(compress(counts, predicted)),
                present=sum(compress(counts, both)),
                held=sum(compress(counts, held)),
            )
        )
    return found


def _is_weighed(one: Configuration) -> bool:
    return one.policy is None and one.budget is None
