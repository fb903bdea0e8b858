"""Agreement with the reference implementation, PyPI's `mementomap`, on input that it handles correctly.

Such input avoids the known defects of the reference; the model is not adjusted otherwise:

- roots have no slash (`com,a)`), since it strips trailing slashes;
- hosts have two or more labels and are not IP addresses, since it drops the former and splits the latter;
- no queries, since removing them moves a key after its children;
- only letters and digits, which sort after `/` and `,`, so that subtrees are contiguous in byte order;
- no wildcards, since it counts `*` as a child; no total, since it has no comma; no headers, since it compares a
  number with a byte and drops them;
- frequencies are integers from 1, since it drops others and counts children that are not held;
- a host with subdomains has only a root page: when it enters a subdomain of a host whose pages were just rolled
  up, it records the offset of the new host's lines before it overwrites the old ones.
"""

import random
from pathlib import Path

import pytest

from tests.external import mementomap
from tests.models import mementomap as model
from tests.models.frequency import Count, Frequency
from tests.models.mementomap import Compaction, Lines

# The 36 pairs of the second paper's evaluation use these weights.
WEIGHTS = [4.0, 2.0, 1.0, 0.5, 0.25, 0.0]
DOMAINS = 40  # in one file: no roll-up crosses domains, so each is a separate case


def random_tree(random_: random.Random, depth: int, width: int) -> list[list[str]]:
    """Return the paths to the nodes of a random tree, without its root."""
    if depth == 0:
        return []
    names = [f"{random_.choice('abc')}{n}" for n in range(random_.randrange(width))]
    paths: list[list[str]] = []
    for name in names:
        paths.append([name])
        if random_.random() < 1.5 / width:  # about one child, so that deep trees remain small
            paths += [[name, *rest] for rest in random_tree(random_, depth - 1, width)]
    return paths


def random_domain(random_: random.Random, domain: list[str]) -> Lines:
    """Return a map of one domain, with pages only on hosts without subdomains."""
    subdomains = random_tree(random_, random_.choice([0, 1, 1, 2, 7]), random_.choice([4, 9, 14, 50]))
    hosts = [domain, *(domain + labels for labels in subdomains)]
    lines: Lines = {}
    for host in hosts:
        paths: list[list[str]] = [[]]
        if not any(other[: len(host)] == host and other != host for other in hosts):
            depth, width = random_.choice([(1, 140), (2, 40), (3, 15), (9, 5)])
            paths += random_tree(random_, depth, width)
        for path in random_.sample(paths, random_.randint(1, len(paths))):
            lines[model.page(host, path), ""] = Frequency(Count(random_.randint(1, 99)))
    return lines


def random_map(seed: int) -> Lines:
    """Return a map of many domains."""
    random_ = random.Random(seed)  # noqa: S311  for tests
    lines: Lines = {}
    for n in range(DOMAINS):
        lines |= random_domain(random_, [random_.choice(["com", "org"]), f"d{n}"])
    return lines


def format_for_reference(lines: Lines) -> list[str]:
    """Return the lines of a map as the reference writes and sorts them."""
    return model.write({(key.removesuffix("/"), extra): frequency for (key, extra), frequency in lines.items()})


@pytest.mark.parametrize("host_weight", WEIGHTS)
@pytest.mark.parametrize("path_weight", WEIGHTS)
def test_compaction_agrees_with_reference(host_weight: float, path_weight: float, tmp_path: Path) -> None:
    """Byte for byte, on 40 random domains for each of the paper's 36 pairs of weights: 1,440 cases."""
    seed = round(400 * host_weight + 4 * path_weight)
    lines = random_map(seed)
    ours = format_for_reference(model.compact(lines, Compaction(host_weight, path_weight)))
    assert mementomap.compact(format_for_reference(lines), host_weight, path_weight, tmp_path) == ours
    assert max(host_weight, path_weight) > 1 or len(ours) < len(lines), "nothing was rolled up: a weak case"


def test_compaction_with_infinite_weights_changes_nothing(tmp_path: Path) -> None:
    """Infinite weights roll nothing up."""
    lines = random_map(0)
    weight = float("inf")
    assert model.compact(lines, Compaction(weight, weight)) == lines
    assert mementomap.compact(format_for_reference(lines), weight, weight, tmp_path) == format_for_reference(lines)


def test_lookup_agrees_with_reference(tmp_path: Path) -> None:
    """Listed and unlisted pages match the same line with the same frequency."""
    whole = random_map(1)
    lines = model.compact(whole, Compaction())
    keyed = model.by_key(lines)
    pages = [key.removesuffix("/") for key, _ in whole][::10]
    keys = [*pages, *(page + "/not" for page in pages), *(page.replace(")", ",not)") for page in pages)]
    ours = {
        key: (result.matched.removesuffix("/"), str(result.frequency))
        for key in keys
        if (result := model.lookup(keyed, key)).matched
    }
    assert set(pages) < set(ours) < set(keys)
    assert mementomap.lookup(format_for_reference(lines), keys, tmp_path) == ours
