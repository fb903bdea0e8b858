"""Similarity of page texts."""

from hypothesis import given
from hypothesis import strategies as st

from unlost.refresh import PageTextSketch, TextDigestCache, sketch_page_text

URI = "http://a.example/"


def text(*words: str) -> PageTextSketch:
    """Return the text of a page of these words."""
    found = sketch_page_text(f"<p>{' '.join(words)}".encode(), "text/html", URI)
    assert found is not None
    return found


def distinct_words(count: int) -> list[str]:
    """Return different words without digits."""
    return ["".join(chr(97 + int(digit)) for digit in str(number)) + "word" for number in range(count)]


def test_one_more_word_on_a_long_page_is_no_text_change() -> None:
    """On a short page it is a change, and so is a paragraph on any page."""
    long, short = distinct_words(1_000), distinct_words(40)
    assert text(*long).is_similar(text(*long, "advertisement"))
    assert not text(*short).is_similar(text(*short, "advertisement"))
    assert not text(*long).is_similar(text(*long, *(f"{word}x" for word in distinct_words(80))))
    assert text().is_similar(text())
    assert not text().is_similar(text("something"))


def test_session_ids_and_counters_are_ignored() -> None:
    """Both in links and in visible text."""
    pages = [f"<p>Visitor {n}, session a{n}f <a href='/?sid={n}'>on</a>".encode() for n in (1, 2)]
    one, other = (sketch_page_text(page, "text/html", URI) for page in pages)
    assert one == other
    assert sketch_page_text(b"\x89PNG", "image/png", URI) is None


def test_small_changes_add_up_to_a_text_change() -> None:
    """Texts are compared with the first of a series, not with the previous one."""
    known, words = TextDigestCache(), distinct_words(1_000)
    first = known.digest(URI, text(*words))
    digests = []
    for number in range(60):
        words[number * 10] = "other"
        digests.append(known.digest(URI, text(*words)))
    assert digests[0] == first
    assert digests[-1] != first


def test_text_cache_is_bounded() -> None:
    """Evicted texts are compared by digest only."""
    known = TextDigestCache(max_pages=2)
    for number in range(9):
        known.digest(f"{URI}{number}", text("a"))
    assert len(known._texts) == 2


@given(
    st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=30),
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=30),
)
def test_similarity_is_symmetric(first: list[str], second: list[str]) -> None:
    """And every text is similar to itself."""
    one, other = text(*first), text(*second)
    assert one.is_similar(one)
    assert one.is_similar(other) == other.is_similar(one)
