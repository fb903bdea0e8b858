"""The parts of profiles that tell years or media types, when these are merged."""

import json
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from pathlib import Path

from unlost.errors import InputError
from unlost.formats.problems import Problems
from unlost.formats.textfile import read_lines

_MAX_SUM = 10**18
"""Sums of more digits are refused, as those of frequencies are."""


def merge_part_lines(merged: Path, sources: Sequence[str]) -> Iterator[bytes]:
    """Yield the lines of a profile that was merged from sources, with what these have as `parts` added up by key.

    What else is wrong with sources was found when they were merged. Raises InputError for parts that are none.
    """
    told = groupby(merge(*(_read_parts(name) for name in sources), key=_row_key), key=_row_key)
    with merged.open("rb") as file:
        for line in file:
            if line.startswith(b"@"):
                yield line
                continue
            key, _, rest = line.partition(b" ")
            _, group = next(told, (key, iter(())))
            total: dict[str, int] = {}
            for _, parts in group:
                for part, count in parts.items():
                    total[part] = total.get(part, 0) + count
            if max(total.values(), default=0) >= _MAX_SUM:
                raise InputError(f"the parts under {ascii(key.decode(errors='replace'))[:80]} have more than 18 digits")
            found = {**json.loads(rest), "parts": dict(sorted(total.items()))}
            yield key + b" " + json.dumps(found).encode() + b"\n"


def _row_key(row: tuple[bytes, Mapping[str, int]]) -> bytes:
    return row[0]


def _read_parts(name: str) -> Iterator[tuple[bytes, Mapping[str, int]]]:
    """Yield the keys of a profile with their parts."""
    for line in read_lines(name, Problems()):
        key, _, rest = line.text.partition(b" ")
        if not line.text.strip() or line.text.startswith((b"@", b"\xef\xbb\xbf@")):
            continue
        try:
            parts = json.loads(rest)["parts"]
            is_sound = all(type(count) is int and 0 <= count < _MAX_SUM for count in parts.values())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            is_sound = False
        if not is_sound:
            raise InputError(f'{name}: line {line.number}: expected parts with their counts, {{"2014": 3}}')
        yield key, parts
