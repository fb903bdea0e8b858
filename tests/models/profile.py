"""Python model of profiles: dictionaries of counts, and map look-ups."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from tests.models import uri


def profile(keys: Iterable[str], policy: str, suffixes: set[str]) -> dict[str, int]:
    """Return how many captures, given by their canonical keys, are under each key of a policy."""
    return dict(Counter(uri.key(policy, key, suffixes) for key in keys))


def lines(counts: Mapping[str, tuple[int, int]]) -> list[str]:
    """Return the lines of keys with their frequency and spread."""
    return [
        f'{key} {{"frequency": {frequency}, "spread": {spread}}}'
        for key, (frequency, spread) in sorted(counts.items(), key=lambda item: item[0].encode())
    ]


def merge(profiles: Iterable[Mapping[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    """Return the merged profile, with frequency and spread added."""
    merged: dict[str, tuple[int, int]] = {}
    for each in profiles:
        for key, (frequency, spread) in each.items():
            before = merged.get(key, (0, 0))
            merged[key] = before[0] + frequency, before[1] + spread
    return merged


def candidates(key: str) -> list[str]:
    """Return the map lines that may match a page, the most specific first, without exclusions and total."""
    page = key.partition("?")[0]
    host, _, path = page.partition(")")
    segments = [segment for segment in path.split("/") if segment]
    is_ip = re.fullmatch(r"(\d+(,\d+){3}|\[.*\])(:\d+)?", host)
    labels = [host] if is_ip else host.split(",")
    above = [f"{host})/" + "".join(f"{segment}/" for segment in segments[:n]) + "*" for n in range(len(segments) + 1)]
    hosts = [",".join(labels[:n]) + ",*" for n in range(1, len(labels) + 1)]
    return [page, *above[::-1], *hosts[::-1]]
