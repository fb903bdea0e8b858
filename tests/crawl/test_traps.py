"""Endless sites are stopped; finite ones are crawled completely."""

import itertools
import sys
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.crawl import MAX_PATH_SEGMENTS, MAX_SIMILAR_NAMES, MAX_URL_CHARS, TrapDetector, url_shape

ACCEPTED = [
    "example.com/",
    "example.com/a?b=1",
    "example.com/news/news/today",
    "example.com/a/b/a/b/c",
    "example.com/11/11/11",
    "example.com/2011/11/11/11/11",
    "example.com/a/x/a/y/a/z",
    "example.com/" + "/".join(map(chr, range(ord("a"), ord("a") + MAX_PATH_SEGMENTS))),
    "example.com/" + "x" * (MAX_URL_CHARS - 12),
]
DETECTED = [
    ("example.com/a/b/a/b/a/b", "repeats"),
    ("example.com/x/images/images/images/logo.png", "repeats"),
    ("example.com/1/a/1/a/1/a?b", "repeats"),
    ("example.com/" + "/".join(map(chr, range(ord("a"), ord("a") + MAX_PATH_SEGMENTS + 1))), "folders deep"),
    ("example.com/" + "x" * MAX_URL_CHARS, "characters"),
    ("example.com/?" + "x" * MAX_URL_CHARS, "characters"),
]


@pytest.mark.parametrize("name", ACCEPTED)
def test_names_of_real_sites_are_accepted(name: str) -> None:
    """No trap rule matches ordinary names."""
    assert TrapDetector().check(name) is None


@pytest.mark.parametrize(("name", "word"), DETECTED)
def test_trap_is_detected_by_a_single_name(name: str, word: str) -> None:
    """Too long, too deep, repeating: detected at once, with the reason."""
    assert word in (TrapDetector().check(name) or "")


ENDLESS = {
    "calendar": lambda i: f"example.com/cal/{2000 + i // 372}/{i // 31 % 12 + 1}/{i % 31 + 1}",
    "calendar in the query": lambda i: f"example.com/cal?month={i}&view=day",
    "sessions": lambda i: f"example.com/s/{uuid.UUID(int=i)}/index.php",
    "tokens": lambda i: f"example.com/{(i + 1) * 0x1234567890ABCDEF:032x}a1/page",
    "words generated": lambda i: "example.com/wiki/" + "".join(chr(97 + int(c)) for c in str(i)),
    "folders generated": lambda i: "example.com/" + "".join(chr(97 + int(c)) for c in str(i)) + "/page",
    "values generated": lambda i: "example.com/?q=" + "".join(chr(97 + int(c)) for c in str(i)),
    "hosts generated": lambda i: "".join(chr(97 + int(c)) for c in str(i)) + ".example.com/",
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_endless_url_spaces_are_stopped(kind: str) -> None:
    """Generated names are rejected eventually, and stay rejected."""
    traps = TrapDetector(max_similar=100, max_in_folder=300, max_shapes=1_000)
    reasons = [traps.check(ENDLESS[kind](i)) for i in range(2_000)]
    accepted = [reason for reason in reasons if reason is None]
    assert 50 <= len(accepted) <= 1_000
    assert all(reasons[len(accepted) :])


def test_trap_does_not_exclude_other_pages() -> None:
    """Other pages are still accepted after a calendar reached its limit."""
    traps = TrapDetector(max_similar=10)
    for i in range(20):
        traps.check(f"example.com/cal/{i}")
    assert traps.check("example.com/cal/20") is not None
    assert traps.check("example.com/cal/about") is None
    assert traps.check("example.com/a.html") is None


def test_large_site_is_not_a_trap() -> None:
    """As many numbered pages as the dissertation's largest sites had are accepted, and one more is not."""
    traps = TrapDetector()
    assert all(traps.check(f"example.com/viewtopic.php?t={i}") is None for i in range(MAX_SIMILAR_NAMES))
    assert traps.check("example.com/viewtopic.php?t=x") is not None


def test_trap_detector_memory_is_bounded() -> None:
    """The number of counted shapes never exceeds the limit."""
    traps = TrapDetector(max_shapes=500)
    for i in range(5_000):
        traps.check(ENDLESS["folders generated"](i))
    assert len(traps._counts) <= 500
    assert sys.getsizeof(traps._counts) < 100_000


names = st.builds(
    lambda path, query: "example.com/" + "/".join(path) + query,
    st.lists(st.sampled_from(["a", "b", "1", "23", "2014", "deadbeef12", "x.html"]), max_size=6),
    st.sampled_from(["", "?a=1", "?a=b", "?a=2&b=3"]),
)


@given(st.lists(names, unique=True, max_size=60), st.randoms(use_true_random=False))
def test_checking_the_same_names_again_restores_the_counts(seen: list[str], random: object) -> None:
    """Accepted names in any order give the same later results."""
    first = TrapDetector(max_similar=3, max_in_folder=5, max_shapes=40)
    accepted = [name for name in seen if first.check(name) is None]
    again = TrapDetector(max_similar=3, max_in_folder=5, max_shapes=40)
    random.shuffle(accepted)  # type: ignore[attr-defined]
    assert all(again.check(name) is None for name in accepted)
    for name in ("example.com/9", "example.com/a/b/zz", "example.com/x.html?a=9", "example.com/q/q.html"):
        assert again.check(name) == first.check(name)


@given(st.text(max_size=300), st.text(max_size=300))
def test_trap_detector_accepts_any_text(path: str, query: str) -> None:
    """No name raises an exception, and shapes are idempotent."""
    verdict = TrapDetector().check(f"example.com/{path}?{query}")
    assert verdict is None or verdict
    assert url_shape(url_shape(path)) == url_shape(path) or any(char.isdigit() for char in path)


def test_changing_parts_have_one_shape() -> None:
    """Numbers and random tokens do not change the shape; words do."""
    for one, other in itertools.pairwise(["a/1/p2.html", "a/12/p345.html", "a/2024/p0.html"]):
        assert url_shape(one) == url_shape(other)
    assert url_shape("a/3f2504e0-4f89-11d3-9a0c-0305e82c3301") == url_shape("a/deadbeef01")
    assert url_shape("a/facade") != url_shape("a/decade")
