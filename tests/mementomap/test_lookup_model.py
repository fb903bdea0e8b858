"""Looking pages up agrees with the slow model, whatever a map has, in the file and in memory."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.mementomap.lookups import map_of
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


def agree(text: str, keys: list[str], *, fields: int = 1, rolled_up: bool = False) -> None:
    """Check that both forms say what the model says, each key alone and all together."""
    held = model.rows(text, fields)
    with tempfile.TemporaryDirectory() as folder:
        for form in (Map.open, Map.load):
            holdings = map_of(Path(folder), text, form)
            answers = holdings.lookup_keys_many(keys)
            assert answers == holdings.lookup_keys_many(keys[::-1])[::-1]
            for key, answer in zip(keys, answers, strict=True):
                is_held, matched, frequencies = model.lookup(held, key, rolled_up=rolled_up)
                assert (answer.key, answer.held, answer.matched) == (key.split("?")[0], is_held, matched), key
                assert holdings.lookup(key) == answer
                if frequencies is None:
                    assert answer.frequency is None
                elif len(frequencies) == 1 and frequencies[0]:
                    assert answer.frequency == Frequency.parse(frequencies[0])


@pytest.mark.parametrize("key", EXTREMES, ids=lambda key: key[:40])
def test_each_candidate_is_found_alone(key: str) -> None:
    """Whichever of a key's candidates a map has, it answers; with the others beside it, the most specific does."""
    candidates = [candidate for candidate, _ in model.candidates(key)]
    if len(candidates) > 60:
        candidates = candidates[:5] + candidates[-5:]
    for candidate in candidates:
        agree(f"{candidate} 7\n", [key])
        agree("".join(f"{each} {'0' if each == candidate else '1'}\n" for each in sorted(set(candidates))), [key])


def test_large_maps_agree_with_the_model() -> None:
    """Of which some rows are remembered, once enough was asked."""
    keys = [f"{host}{i}{key[key.index(')') :]}" for key in KEYS for i in range(40) for host in ("com,a", "net,b,c")]
    rows = {candidate for key in keys[::2] for candidate, _ in model.candidates(key)[:: 1 + len(key) % 3]} - {"com,*"}
    agree("".join(f"{row} {len(row) % 3}\n" for row in sorted(rows)), keys + KEYS)


@st.composite
def maps(draw: st.DrawFn) -> str:
    """Return a sorted map of candidates of odd keys, in odd spelling."""
    possible = sorted({candidate for key in KEYS for candidate, _ in model.candidates(key)} | {"*", "com,%*", "~"})
    # What is no key is a row among others; a file that begins with it is no map.
    keys = sorted(draw(st.sets(st.sampled_from(possible), max_size=30).filter(lambda keys: keys != {"~"})))
    frequency = st.sampled_from(["0", "1", "0-", "0+", "0/20", "/", "300+/20-", "2500~/900", "/5"])
    end = draw(st.sampled_from(["\n", "\r\n", "\n\n", ' {"a": 1}\n', "\n!late {}\n"]))
    header = draw(st.sampled_from(["", "!meta {}\n", '!id {uri: "x"}\n!meta {}\n\n!meta {"a": 1}\n']))
    text = header + "".join(f"{key} {draw(frequency)}{end}" for key in keys)
    return text.rstrip("\r\n") if draw(st.booleans()) else text


ASKED = st.lists(st.sampled_from([*KEYS, *(f"{key}?q=1/2,3" for key in KEYS)]), max_size=40)


@given(maps(), ASKED)
@example("!meta {}\n", KEYS)
@example("com,a)/ 1", KEYS)
@example("com,a)/*  \t 0 \r\n", KEYS)
def test_both_forms_agree_with_the_model(text: str, keys: list[str]) -> None:
    """Whatever the map has, and in whatever order is asked."""
    if text.strip():
        agree(text, keys)


@given(maps(), ASKED)
def test_both_forms_agree_where_everything_was_rolled_up(text: str, keys: list[str]) -> None:
    """The same, with `*` for what nothing else covers."""
    agree('!meta {"rolled_up": true}\n' + text, keys, rolled_up=True)


SEGMENTS = st.text("ab*%-./+,!:~)0", min_size=1, max_size=3).filter(lambda text: text.strip("."))


@given(st.lists(st.tuples(st.lists(SEGMENTS, max_size=4), st.booleans()), min_size=1, max_size=30))
def test_what_went_in_is_held(pages: list[tuple[list[str], bool]]) -> None:
    """No false negative: each address whose key, or whose wildcard, is in a map is held; what lies below it too."""
    addresses = ["http://a.com/" + "/".join(path) for path, _ in pages]
    keys = [uri.key(address).split("?")[0] for address in addresses]
    rows = {key if not wild else f"{key.removesuffix('/')}/*" for key, (_, wild) in zip(keys, pages, strict=True)}
    text = "".join(f"{row} 1\n" for row in sorted(rows, key=str.encode))
    with tempfile.TemporaryDirectory() as folder:
        for form in (Map.open, Map.load):
            holdings = map_of(Path(folder), text, form)
            assert all(isinstance(answer, LookupResult) and answer.held for answer in holdings.lookup_many(addresses))
            below = [f"{key.removesuffix('/')}/x" for key, (_, wild) in zip(keys, pages, strict=True) if wild]
            assert all(answer.held for answer in holdings.lookup_keys_many(below))
