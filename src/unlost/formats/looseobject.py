"""JSON objects as people write them in headers: the names of members may lack their quotes."""

import json
import math
import re

MAX_JSON_DEPTH = 32
"""Deeper nesting is refused. Headers of maps have two levels."""

# Each alternative matches whatever follows its first character, and none gives back: so it is linear.
_JSON_TOKEN = re.compile(
    r'"(?:[^"\\]|\\(?:.|\Z))*+(?:"|\Z)|([A-Za-z_$@][\w$@.-]*+)(\s*+)(:?)|[\[\]{}]', re.DOTALL | re.ASCII
)


def parse_lenient_json(text: str) -> object:
    """Return the value of a JSON text whose member names may lack quotes. Linear in time, limited in depth.

    Raises ValueError.

    >>> read_json('{uri: "http://a.com/{x: 1}", "keys": [true, 1.5]}')
    {'uri': 'http://a.com/{x: 1}', 'keys': [True, 1.5]}
    """
    pieces, end, depth = [], 0, 0
    for token in _JSON_TOKEN.finditer(text):
        found = token[0]
        depth += (found in ("[", "{")) - (found in ("]", "}"))
        if depth > MAX_JSON_DEPTH:
            raise ValueError(f"nested more than {MAX_JSON_DEPTH} deep")
        if token[3]:
            pieces += [text[end : token.start()], f'"{token[1]}":']
            end = token.end()
    pieces.append(text[end:])
    return json.loads("".join(pieces), parse_constant=_reject_constant, parse_float=_parse_finite)


def _parse_finite(text: str) -> float:
    """Return a number that can be written again, which one past all numbers cannot."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number that is too large")
    return number


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")
