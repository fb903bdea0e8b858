"""Text resemblance by shingles."""

import random
import threading

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.models import shingles as model
from unlost.errors import UsageError
from unlost.html import text_resemblance

TWELVE = "one two three four five six seven eight nine ten eleven twelve"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [("one", 2 / 4), ("two", 1 / 5), ("three", 0.0), ("ten", 0.0), ("eleven", 1 / 5), ("twelve", 2 / 4)],
)
def test_changed_word_affects_shingles_containing_it(changed: str, expected: float) -> None:
    """Twelve words have three shingles of ten."""
    assert text_resemblance(TWELVE, TWELVE.replace(changed, "x")) == expected


def test_short_text_is_one_shingle() -> None:
    """A text of at most ten words is one shingle, an empty text has none."""
    ten, nine = " ".join(TWELVE.split()[:10]), " ".join(TWELVE.split()[:9])
    assert text_resemblance(ten, ten + ".") == 1.0
    assert text_resemblance(nine, nine + ".") == 1.0
    assert text_resemblance(ten, nine) == 0.0
    assert text_resemblance(ten, TWELVE) == 1 / 3
    assert text_resemblance("", " — … !") == 1.0
    assert text_resemblance("", "x") == text_resemblance("x", "") == 0.0


def test_repeated_shingle_counts_once() -> None:
    """Shingles are a set."""
    assert text_resemblance("a a a a", "a a", 2) == 1.0
    assert text_resemblance("a b a b a b", "a b a", 2) == 1.0
    assert text_resemblance("a b a b a b c", "a b a", 2) == 2 / 3


def test_word_order_changes_shingles() -> None:
    """The same words in another order are different shingles."""
    assert text_resemblance("a b c", "c b a", 3) == 0.0
    assert text_resemblance("a b c", "c b a", 1) == 1.0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Über-Größe", "über größe"),
        ("ΟΔΟΣ ΣΑΣ", "οδος σας"),
        ("ПРИВЕТ, Ёж", "привет ёж"),
        ("日本語、です", "日本語です"),
        ("日本", "日\n本"),
        ("ภาษา ไทย", "ภาษาไทย"),
        ("x日y", "x 日 y"),
        ("don\u2019t", "don't"),
        ("٣٤ ⅷ", "٣٤-Ⅷ"),
    ],
)
def test_case_and_punctuation_are_ignored(first: str, second: str) -> None:
    """White space is ignored in scripts without word spacing."""
    assert text_resemblance(first, second) == 1.0


@pytest.mark.parametrize(
    ("first", "second"),
    [("unlost", "un lost"), ("日本", "本日"), ("über", "uber"), ("привет", "при вет"), ("한국", "한 국")],
)
def test_different_words_are_distinguished(first: str, second: str) -> None:
    """Word boundaries and diacritics matter in scripts with spaces."""
    assert text_resemblance(first, second) == 0.0


@pytest.mark.parametrize("size", [0, -1, -(10**30)])
def test_invalid_shingle_size_is_rejected(size: int) -> None:
    """A shingle has at least one word."""
    with pytest.raises(UsageError, match="at least one word"):
        text_resemblance("a", "b", size)


def test_shingle_size_beyond_text_yields_one_shingle() -> None:
    """The whole text is one shingle."""
    assert text_resemblance("a b", "A. B.", 10**30) == 1.0
    assert text_resemblance("a b", "a b c", 10**30) == 0.0


def test_lone_surrogate_separates_words() -> None:
    """Invalid characters are separators."""
    assert text_resemblance("a\udce9b", "a b") == 1.0


WORDS = st.sampled_from(
    ["a", "b", "C", "Übung", "ß", "Σ", "ΣΣ", "日本", "ไทย", "x1", "abcdefgh", "abcdefghi", "\U0001d4b3", "ﬁ"]
)
TEXTS = st.lists(st.tuples(WORDS, st.sampled_from([" ", ", ", "", "\n", "-", "\u00a0", "·"]))).map(
    lambda parts: "".join(map("".join, parts))
)
CHARACTERS = st.text(st.characters(exclude_categories=["Mn", "Mc", "Me", "Cn", "Cs", "Co"]))


@given(st.one_of(TEXTS, CHARACTERS), st.one_of(TEXTS, CHARACTERS), st.integers(1, 12))
@example("ΑΣ日Σ", "ας日σ", 1)
@example("İ", "i̇", 1)
def test_resemblance_agrees_with_model(first: str, second: str, size: int) -> None:
    """The core equals sets of word tuples exactly."""
    assert text_resemblance(first, second, size) == model.resemblance(first, second, size)
    assert text_resemblance(first, first + second, size) == model.resemblance(first, first + second, size)


@given(st.one_of(TEXTS, st.text()), st.one_of(TEXTS, st.text()), st.integers(1, 5))
def test_resemblance_is_symmetric_and_between_0_and_1(first: str, second: str, size: int) -> None:
    """A text fully resembles itself."""
    share = text_resemblance(first, second, size)
    assert share == text_resemblance(second, first, size)
    assert 0.0 <= share <= 1.0
    assert text_resemblance(first, first, size) == 1.0
    assert text_resemblance(first, first + " ", size) == 1.0


@given(st.lists(st.text("abcxyzäéжя019", min_size=1)), st.randoms(use_true_random=False))
def test_separators_and_case_do_not_change_resemblance(words: list[str], rng: random.Random) -> None:
    """Case, punctuation and white space between words are ignored."""
    gaps = [" ", "\n\n", " - ", ", ", "…", "\u00a0", "“"]
    changed = "".join(rng.choice([word, word.upper()]) + rng.choice(gaps) for word in words)
    assert text_resemblance(" ".join(words), changed, 3) == 1.0


def test_resemblance_of_long_texts_agrees_with_model() -> None:
    """Thousands of words, half of them shared."""
    rng = random.Random(8)  # noqa: S311
    vocabulary = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(1, 12))) for _ in range(500)]
    first = rng.choices(vocabulary, k=5_000)
    second = [*first[:2_500], *rng.choices(vocabulary, k=2_500)]
    texts = " ".join(first), " ".join(second)
    for size in (1, 2, 10, 100):
        assert text_resemblance(*texts, size) == model.resemblance(*texts, size)
    assert 0.3 < text_resemblance(*texts) < 0.35


def test_word_hashes_have_no_collisions() -> None:
    """A million different short words are distinguished."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [f"{one}{number}" for one in letters for number in range(40_000)]
    text = " ".join(words)
    assert text_resemblance(text, text + " new", 1) == len(words) / (len(words) + 1)


def test_resemblance_releases_gil() -> None:
    """Other threads run while long texts are compared."""
    text = " ".join(str(number) for number in range(1_000_000))
    compared = threading.Event()

    def compare() -> None:
        text_resemblance(text, text + " x")
        compared.set()

    thread = threading.Thread(target=compare)
    thread.start()
    iterations = 0
    while not compared.is_set():
        iterations += 1
    thread.join()
    assert iterations > 1_000
