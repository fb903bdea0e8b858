"""Evaluation of profiles: every policy against a model, several archives, and the Pareto front."""

import json
import random
from pathlib import Path

import pytest

from unlost import uri
from unlost.research import (
    WEIGHT_PAIRS,
    ConfigurationSize,
    ConfigurationTrial,
    QuerySet,
    RoutingConfiguration,
    RoutingResult,
    evaluate_archives,
    evaluate_index,
    list_configurations,
    pareto_optimal_results,
    read_profile_blocks,
    routing_evaluation,
    upstream_loads,
)
from unlost.statistics import Proportion

RNG = random.Random(7)  # noqa: S311  made-up addresses
HOSTS = ["a.com", "www.b.co.uk", "x.b.co.uk", "c.org:8080", "1.2.3.4", "xn--mnchen-3ya.de"]


def random_urls(count: int) -> list[str]:
    """Return random URLs, many of them close to each other."""
    words = ["a", "b", "c.html", "a-b", "%20x", "2014"]
    queries = ["", "", "?q=1", "?b=2&a=1"]
    return [
        f"http://{RNG.choice(HOSTS)}/{'/'.join(RNG.choices(words, k=RNG.randrange(4)))}{RNG.choice(queries)}"
        for _ in range(count)
    ]


ARCHIVED, QUERIES = random_urls(150), random_urls(200)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Write an index, as a URL list, and queries."""
    index, queries = tmp_path / "held.txt", tmp_path / "asked.txt"
    index.write_text("".join(f"{url}\n" for url in ARCHIVED))
    queries.write_text("".join(f"{url}\n" for url in QUERIES))
    return index, queries


def test_every_policy_equals_a_set_of_its_keys(files: tuple[Path, Path]) -> None:
    """Keys, predicted, present and held of all 23."""
    found = evaluate_index([files[0]], [files[1]], list_configurations(policies=uri.POLICIES))
    exact = {uri.key(url) for url in ARCHIVED}
    for result in found.results[1:]:
        policies = uri.KeyPolicies([str(result.configuration.policy)])
        keys = {policies.keys(url)[0] for url in ARCHIVED}
        predicted = [policies.keys(url)[0] in keys for url in QUERIES]
        archived = [uri.key(url) in exact for url in QUERIES]
        assert result.size.lines == len(keys), result.configuration.name
        assert (result.predicted, result.held) == (sum(predicted), sum(archived)), result.configuration.name
        assert result.present == sum(archived)
        assert result.keys == len(exact)
    assert found.false_negatives == []
    assert {one.configuration.name for one in found.results if one.accuracy.value == 1.0} >= {"policy URIR"}
    by_policy = {one.configuration.policy: one.size.lines for one in found.results}
    order = [by_policy[policy] for policy in ("DDom", "DSub", "DPth", "DQry", "DIni")]
    assert order == sorted(order)
    assert by_policy["HxPx"] <= by_policy["URIR"]


def test_chained_compaction_equals_direct_compaction(tmp_path: Path, files: tuple[Path, Path]) -> None:
    """For all 36 pairs of weights: same size, same answers."""
    keys = [uri.key(url).partition("?")[0] for url in QUERIES]
    questions = QuerySet(keys, keys, [1] * len(keys))
    (tmp_path / "chained").mkdir()
    chained = dict(ConfigurationTrial([files[0]], tmp_path / "chained", questions).try_weights(WEIGHT_PAIRS))
    assert set(chained) == set(WEIGHT_PAIRS)
    for number, pair in enumerate(WEIGHT_PAIRS):
        folder = tmp_path / f"alone-{number}"
        folder.mkdir()
        assert chained[pair] == dict(ConfigurationTrial([files[0]], folder, questions).try_weights([pair]))[pair]
    # What no other is made of any more is gone.
    assert [path.name for path in (tmp_path / "chained").iterdir()] == ["full.ukvs"]


def test_false_negative_of_a_profile_is_reported(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """With its URL; recall is below 1."""
    lost = next(url for url in QUERIES if uri.key(url) in {uri.key(each) for each in ARCHIVED})
    key = uri.KeyPolicies(["H3P1"]).keys(lost)[0].encode()
    blocks = read_profile_blocks

    def forgetful(path: Path) -> list[bytes]:
        lines = b"".join(blocks(path)).splitlines(keepends=True)
        return [b"".join(line for line in lines if "H3P1" not in path.name or not line.startswith(key + b" "))]

    monkeypatch.setattr(routing_evaluation, "read_profile_blocks", forgetful)
    found = evaluate_index([files[0]], [files[1]], list_configurations(policies=["H3P1", "HxPx"]))
    assert [name for name, _ in found.false_negatives] == ["policy H3P1"]
    result = next(one for one in found.results if one.configuration.policy == "H3P1")
    assert result.present < result.held


def test_ground_truth_by_page_or_by_url(tmp_path: Path) -> None:
    """A page with another query is archived as a page, but not as a URL."""
    index, queries = tmp_path / "held.txt", tmp_path / "asked.txt"
    index.write_text("http://a.com/x?q=1\n")
    queries.write_text("http://a.com/x?q=2\nhttp://a.com/x?q=1\n")
    configurations = list_configurations()
    assert evaluate_index([index], [queries], configurations).results[0].held == 2
    (exact,) = evaluate_index([index], [queries], configurations, truth="address").results
    assert (exact.query_count, exact.held, exact.predicted, exact.present) == (2, 1, 2, 1)


def test_loads_of_several_archives_add_up(tmp_path: Path, files: tuple[Path, Path]) -> None:
    """Broadcast is every query to every archive; routed is what each predicts."""
    other = tmp_path / "other.txt"
    other.write_text("http://a.com/\nhttp://elsewhere.net/\n")
    found = evaluate_archives({"one": [files[0]], "two": [other]}, [files[1]], list_configurations([(1, 1)], [8]))
    assert [each.archive for each in found] == ["one", "two"]
    for place, together in enumerate(upstream_loads(found)):
        results = [each.results[place] for each in found]
        assert together.broadcast == 2 * len(QUERIES)
        assert together.routed == sum(each.predicted for each in results)
        assert together.present == sum(each.held for each in results)
        assert together.saved == Proportion(together.broadcast - together.routed, together.broadcast)
    json.dumps([each.to_row() for each in upstream_loads(found)])


def make_result(compressed: int, right: int) -> RoutingResult:
    """Return a result with this size and number of correct predictions."""
    return RoutingResult(
        RoutingConfiguration(f"{compressed}-{right}"), 10, ConfigurationSize(1, 1, compressed), 100, 100, right, right
    )


def test_pareto_front_has_no_dominated_result() -> None:
    """Compared with all pairs."""
    rng = random.Random(3)  # noqa: S311
    for _ in range(50):
        results = [make_result(rng.randrange(1, 9), rng.randrange(5)) for _ in range(8)]
        front = pareto_optimal_results(results)

        def beats(one: RoutingResult, other: RoutingResult) -> bool:
            a, b = (one.size.compressed, -one.present), (other.size.compressed, -other.present)
            return a != b and a[0] <= b[0] and a[1] <= b[1]

        unbeaten = {(one.size.compressed, one.present) for one in results if not any(beats(o, one) for o in results)}
        assert {(one.size.compressed, one.present) for one in front} == unbeaten
        assert len(front) == len(unbeaten)
