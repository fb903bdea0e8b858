"""Map look-ups agree with the Python model for any map, in file and memory."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.mementomap.opened_maps import open_map
from tests.models import lookup as model
from unlost import uri
from unlost.index import Frequency
from unlost.mementomap import LookupResult, Map

KEYS = [
    "com,a)/", "com,a)/a", "com,a)/a-b", "com,a)/a.html", "com,a)/a/b", "com,a)/a/b/c", "com,a)/%2a", "com,a)/!",
    "com,a)/a+b",
    "com,a:8080)/", "com,a:8080)/a", "com,a,b)/", "com,a%2bb)/", "com,a%2cb)/a", "com,a-b)/", "localhost)/",
    "localhost:81)/a",
    "4,3,2,1)/", "4,3,2,1)/a", "4,3,2,1:81)/a", "4,3,2,9)/", "4,3,2,x)/", "[2001:db8::1])/a", "[2001:db8::1]:81)/a",
    "com)/", "org)/a", "com,a,b,c,d,e,f,g,h,i,j)/a/b/c/d/e/f/g/h/i/j/k",
]  # fmt: skip
EXTREMES = [*KEYS, "com,a)/" + "x" * 5000, "com,a)/" + "y/" * 3000 + "z", "com," + "l," * 500 + "m)/"]


def assert_agrees_with_model(text: str, keys: list[str], *, fields: int = 1, rolled_up: bool = False) -> None:
    """Compare file and memory look-ups with the model, for each key and in batches."""
    held = model.rows(text, fields)
    with tempfile.TemporaryDirectory() as folder:
        for form in (Map.open, Map.load):
            holdings = open_map(Path(folder), text, form)
            results = holdings.lookup_keys_many(keys)
            assert results == holdings.lookup_keys_many(keys[::-1])[::-1]
            for key, result in zip(keys, results, strict=True):
                is_held, matched, frequencies = model.lookup(held, key, rolled_up=rolled_up)
                assert (result.key, result.held, result.matched) == (key.split("?")[0], is_held, matched), key
                assert holdings.lookup(key) == result
                if frequencies is None:
                    assert result.frequency is None
                elif len(frequencies) == 1 and frequencies[0]:
                    assert result.frequency == Frequency.parse(frequencies[0])


@pytest.mark.parametrize("key", EXTREMES, ids=lambda key: key[:40])
def test_lookup_finds_each_candidate_key(key: str) -> None:
    """Each single candidate matches; of several the most specific one does."""
    candidates = [candidate for candidate, _ in model.candidates(key)]
    if len(candidates) > 60:
        candidates = candidates[:5] + candidates[-5:]
    for candidate in candidates:
        assert_agrees_with_model(f"{candidate} 7\n", [key])
        assert_agrees_with_model(
            "".join(f"{each} {'0' if each == candidate else '1'}\n" for each in sorted(set(candidates))), [key]
        )


def test_lookup_in_large_map_agrees_with_model() -> None:
    """The map is large enough for cached rows to be used."""
    keys = [f"{host}{i}{key[key.index(')') :]}" for key in KEYS for i in range(40) for host in ("com,a", "net,b,c")]
    rows = {candidate for key in keys[::2] for candidate, _ in model.candidates(key)[:: 1 + len(key) % 3]} - {"com,*"}
    assert_agrees_with_model("".join(f"{row} {len(row) % 3}\n" for row in sorted(rows)), keys + KEYS)


@st.composite
def maps(draw: st.DrawFn) -> str:
    """Return a sorted map of candidate keys with varying formatting."""
    possible = sorted({candidate for key in KEYS for candidate, _ in model.candidates(key)} | {"*", "com,%*", "~"})
    # An invalid key is skipped, but a file that begins with one is not a map.
    keys = sorted(draw(st.sets(st.sampled_from(possible), max_size=30).filter(lambda keys: keys != {"~"})))
    frequency = st.sampled_from(["0", "1", "0-", "0+", "0/20", "/", "300+/20-", "2500~/900", "/5"])
    end = draw(st.sampled_from(["\n", "\r\n", "\n\n", ' {"a": 1}\n', "\n!late {}\n"]))
    header = draw(st.sampled_from(["", "!meta {}\n", '!id {uri: "x"}\n!meta {}\n\n!meta {"a": 1}\n']))
    text = header + "".join(f"{key} {draw(frequency)}{end}" for key in keys)
    return text.rstrip("\r\n") if draw(st.booleans()) else text


QUERIES = st.lists(st.sampled_from([*KEYS, *(f"{key}?q=1/2,3" for key in KEYS)]), max_size=40)


@given(maps(), QUERIES)
@example("!meta {}\n", KEYS)
@example("com,a)/ 1", KEYS)
@example("com,a)/*  \t 0 \r\n", KEYS)
def test_lookup_agrees_with_model(text: str, keys: list[str]) -> None:
    """For any map and order of queries."""
    if text.strip():
        assert_agrees_with_model(text, keys)


@given(maps(), QUERIES)
def test_lookup_in_rolled_up_map_agrees_with_model(text: str, keys: list[str]) -> None:
    """`*` matches keys without a more specific row."""
    assert_agrees_with_model('!meta {"rolled_up": true}\n' + text, keys, rolled_up=True)


SEGMENTS = st.text("ab*%-./+,!:~)0", min_size=1, max_size=3).filter(lambda text: text.strip("."))


@given(st.lists(st.tuples(st.lists(SEGMENTS, max_size=4), st.booleans()), min_size=1, max_size=30))
def test_lookup_has_no_false_negatives(pages: list[tuple[list[str], bool]]) -> None:
    """Every URL whose key or wildcard is in the map is held, and so are URLs below a wildcard."""
    urls = ["http://a.com/" + "/".join(path) for path, _ in pages]
    keys = [uri.key(url).split("?")[0] for url in urls]
    rows = {key if not wild else f"{key.removesuffix('/')}/*" for key, (_, wild) in zip(keys, pages, strict=True)}
    text = "".join(f"{row} 1\n" for row in sorted(rows, key=str.encode))
    with tempfile.TemporaryDirectory() as folder:
        for form in (Map.open, Map.load):
            holdings = open_map(Path(folder), text, form)
            assert all(isinstance(result, LookupResult) and result.held for result in holdings.lookup_many(urls))
            below = [f"{key.removesuffix('/')}/x" for key, (_, wild) in zip(keys, pages, strict=True) if wild]
            assert all(result.held for result in holdings.lookup_keys_many(below))
