"""Real URLs: no policy, weights or filter has a false negative."""

import gzip
import random
from itertools import islice
from pathlib import Path

import pytest

from tests.real_data import DATA
from unlost.research import WEIGHT_PAIRS, evaluate_index, list_configurations
from unlost.uri import POLICIES


@pytest.mark.real_data
def test_real_urls_have_no_false_negatives(tmp_path: Path) -> None:
    """Every fourth link is archived; policies order as expected, and the exact policy is always right."""
    with gzip.open(DATA / "urls" / "reddit2013-links.tsv.gz", "rt", encoding="utf-8", newline="\n") as lines:
        urls = [line.rstrip("\n").split("\t")[2] for line in islice(lines, 0, None, 20)]
    index, queries = tmp_path / "held.txt", tmp_path / "asked.txt"
    index.write_text("".join(f"{url}\n" for url in urls[::4]))
    queried = random.Random(1).sample(urls, 6000)  # noqa: S311  not a secret
    queries.write_text("".join(f"{url}\n" for url in queried))
    found = evaluate_index([index], [queries], list_configurations(WEIGHT_PAIRS, [1, 8], policies=POLICIES))
    assert found.false_negatives == []
    assert all(one.recall.value == 1.0 for one in found.results)
    lines_of = {one.configuration.policy: one.size.lines for one in found.results}
    order = [lines_of[policy] for policy in ("DDom", "DSub", "DPth", "DQry", "DIni")]
    assert order == sorted(order)
    assert lines_of["HxPx"] <= lines_of["URIR"]
    exact = next(one for one in found.results if one.configuration.policy == "URIR")
    assert exact.accuracy.value == 1.0
    hosts = next(one for one in found.results if one.configuration.name == "hosts + 8 bits")
    assert (hosts.accuracy.value or 0) > 0.97
