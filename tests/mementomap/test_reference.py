"""Agreement with the published reference, PyPI's `mementomap`, on input that it reads as it should.

Such input has none of what docs and facts say it gets wrong, and the model is adjusted nowhere else:

- roots are spelled without their slash (`com,a)`), since it strips every slash at the end;
- hosts have two labels or more and are no addresses, since it drops the former and cuts the latter into four;
- no query, since cutting it off brings a key back behind its own children;
- letters and digits only, which all sort behind `/` and `,`, so that byte order keeps subtrees together;
- no wildcards, since it takes their `*` for a child; no total, since it has no comma; no headers, since it compares a
  number with a byte and drops them;
- frequencies are whole numbers from 1, since it drops others, and counts a child that is not held;
- a host that has hosts below it has only a root of its own: entering a host below one whose pages have just been rolled
  up, it notes where the new host's lines begin before it goes back to overwrite the old one's.
"""

import random
from pathlib import Path

import pytest

from tests.models import holdings as model
from tests.models.frequency import Count, Frequency
from tests.models.holdings import Compaction, Lines
from tests.neighbours import mementomap

# The 36 pairs of the second paper's evaluation use these weights, and a map as it was built has none.
WEIGHTS = [4.0, 2.0, 1.0, 0.5, 0.25, 0.0]
DOMAINS = 40  # in one file: no roll-up crosses them, so each is a case of its own


def tree(random_: random.Random, depth: int, width: int) -> list[list[str]]:
    """Return the ways to the nodes of a random tree, without its root."""
    if depth == 0:
        return []
    names = [f"{random_.choice('abc')}{n}" for n in range(random_.randrange(width))]
    found: list[list[str]] = []
    for name in names:
        found.append([name])
        if random_.random() < 1.5 / width:  # about one of them, so that deep trees stay small
            found += [[name, *rest] for rest in tree(random_, depth - 1, width)]
    return found


def case(random_: random.Random, domain: list[str]) -> Lines:
    """Return a clean map of one domain: hosts, and pages on those below which there is no other."""
    subdomains = tree(random_, random_.choice([0, 1, 1, 2, 7]), random_.choice([4, 9, 14, 50]))
    hosts = [domain, *(domain + labels for labels in subdomains)]
    lines: Lines = {}
    for host in hosts:
        paths: list[list[str]] = [[]]
        if not any(other[: len(host)] == host and other != host for other in hosts):
            depth, width = random_.choice([(1, 140), (2, 40), (3, 15), (9, 5)])
            paths += tree(random_, depth, width)
        for path in random_.sample(paths, random_.randint(1, len(paths))):
            lines[model.page(host, path), ""] = Frequency(Count(random_.randint(1, 99)))
    return lines


def clean_map(seed: int) -> Lines:
    """Return a clean map of many domains."""
    random_ = random.Random(seed)  # noqa: S311  for tests
    lines: Lines = {}
    for n in range(DOMAINS):
        lines |= case(random_, [random_.choice(["com", "org"]), f"d{n}"])
    return lines


def spelled(lines: Lines) -> list[str]:
    """Return the lines of a map as the reference spells and sorts them."""
    return model.write({(key.removesuffix("/"), extra): frequency for (key, extra), frequency in lines.items()})


@pytest.mark.parametrize("host_weight", WEIGHTS)
@pytest.mark.parametrize("path_weight", WEIGHTS)
def test_compacting_agrees_with_the_reference(host_weight: float, path_weight: float, tmp_path: Path) -> None:
    """Byte for byte, on 40 random domains for each of the paper's 36 pairs of weights: 1,440 cases."""
    seed = round(400 * host_weight + 4 * path_weight)
    lines = clean_map(seed)
    ours = spelled(model.compact(lines, Compaction(host_weight, path_weight)))
    assert mementomap.compact(spelled(lines), host_weight, path_weight, tmp_path) == ours
    assert max(host_weight, path_weight) > 1 or len(ours) < len(lines), "nothing was rolled up: a weak case"


def test_a_map_as_it_was_built_stays_as_it_is(tmp_path: Path) -> None:
    """Weights of infinity roll nothing up."""
    lines = clean_map(0)
    weight = float("inf")
    assert model.compact(lines, Compaction(weight, weight)) == lines
    assert mementomap.compact(spelled(lines), weight, weight, tmp_path) == spelled(lines)


def test_looking_up_agrees_with_the_reference(tmp_path: Path) -> None:
    """Every tenth page of a map, and twice as many that are not in it, have the same line and frequency in both."""
    whole = clean_map(1)
    lines = model.compact(whole, Compaction())
    keyed = model.by_key(lines)
    pages = [key.removesuffix("/") for key, _ in whole][::10]
    keys = [*pages, *(page + "/not" for page in pages), *(page.replace(")", ",not)") for page in pages)]
    ours = {
        key: (answer.matched.removesuffix("/"), str(answer.frequency))
        for key in keys
        if (answer := model.lookup(keyed, key)).matched
    }
    assert set(pages) < set(ours) < set(keys)
    assert mementomap.lookup(spelled(lines), keys, tmp_path) == ours
