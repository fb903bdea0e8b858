"""Detects hijacked sites by a shift of topic, and defaced pages."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache

from unlost.quality.page import PageVerdict, ParsedPage, ReferencePage, VerdictKind, page_identity, quote_text
from unlost.quality.phrase_matcher import is_unspaced, load_phrase_file, normalize_text

_WORD = re.compile(r"[^\W\d_]{3,}")
_RUN = re.compile("[\u0e00-\u0eff]+|[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_MAX_WORDS = 4000  # of a text
_SCRIPTS = {
    "latin": re.compile("[a-zà-ɏ]"),
    "cyrillic": re.compile("[Ѐ-ӿ]"),
    "arabic": re.compile("[؀-ۿ]"),
    "greek": re.compile("[Ͱ-Ͽ]"),
    "hebrew": re.compile("[֐-׿]"),
    "thai": re.compile("[฀-๿]"),
    "kana": re.compile("[぀-ヿ]"),
    "han": re.compile("[㐀-鿿]"),
    "hangul": re.compile("[가-힯]"),
}


def count_words(text: str) -> Counter[str]:
    """Return the words of a text; of one that is written without spaces, its pairs of letters."""
    plain = normalize_text(text)
    found = _WORD.findall(plain)[:_MAX_WORDS]
    if not is_unspaced(plain):
        return Counter(found)
    counted = Counter(word for word in found if not _RUN.search(word))
    for run in _RUN.findall(plain)[:_MAX_WORDS]:
        counted.update(run[place : place + 2] for place in range(min(len(run), 400) - 1))
    return counted


def detect_script(text: str) -> str:
    """Return the script in which most of a text is written; kana for all that is Japanese."""
    sample = text[:8000].lower()
    counts = {name: len(pattern.findall(sample)) for name, pattern in _SCRIPTS.items()}
    if counts["kana"] * 5 > counts["han"]:
        counts["kana"] += counts["han"]
    return max(counts, key=lambda name: counts[name])


_Topic = tuple[frozenset[str], tuple[str, ...]]


@cache
def _load_topics() -> dict[str, _Topic]:
    """Return the words of each topic of spam: those to be found among words, those to be found in the text."""
    found: dict[str, _Topic] = {}
    for topic, entry in load_phrase_file("spam").items():
        if topic == "common":
            continue
        words = [normalize_text(word).strip() for word in entry["words"]]
        single = frozenset(word for word in words if " " not in word and not _RUN.search(word))
        found[topic] = single, tuple(word for word in dict.fromkeys(words) if word not in single)
    return found


@cache
def common_words() -> frozenset[str]:
    """Return words that are on any site."""
    return frozenset(normalize_text(word).strip() for word in load_phrase_file("spam")["common"]["words"])


def find_spam_topic(text: str) -> tuple[str, float, int]:
    """Return which topic of spam is most of a text, its share of the words, and how many different words it has."""
    shares = _topic_shares(text)
    best = max(shares, key=lambda topic: shares[topic][0])
    return best, *shares[best]


def topic_share(text: str, topic: str) -> float:
    """Return how much of a text is about a topic."""
    return _topic_shares(text)[topic][0]


def _topic_shares(text: str) -> dict[str, tuple[float, int]]:
    plain = normalize_text(text)
    words = Counter(re.findall(r"\w{2,}", plain)[:_MAX_WORDS])
    total = sum(words.values()) or 1
    if is_unspaced(plain):
        total += sum(map(len, _RUN.findall(plain))) // 2
    shares = {}
    for topic, (single, within) in _load_topics().items():
        hits = [words[word] for word in single & words.keys()] + [plain.count(word) for word in within if word in plain]
        shares[topic] = sum(hits) / total, len(hits)
    return shares


_MIN_SPAM_SHARE = 0.03  # of all words, those of one topic of spam
_MIN_SPAM_WORDS = 3  # words of that topic
_HIGH_SPAM_SHARE = 0.08
_MIN_SPAM_GROWTH = 3.0  # more than before
_MIN_WORDS = 12  # words that are too few to tell
_ENOUGH_WORDS = 45
_MAX_SHARED = 0.3  # of the page's words, that were known before
_MAX_HARDLY_SHARED = 0.15
_DEFACEMENT = re.compile(
    r"\b(hacked|defaced|owned|pwned) by\b|has been hacked|hacked by|h4ck3d|\bgreetz\b", re.IGNORECASE
)
_MAX_DEFACED_LENGTH = 1500  # letters of such a page
# Most pages of a site are compared with the same few from before, whose words need not be counted each time.
_count_words_cached = lru_cache(32)(count_words)


def has_spam_topic(seen: ParsedPage) -> bool:
    """Return whether a page has so much of a topic of spam that it is worth to know what was there before."""
    _, share, different = find_spam_topic(f"{seen.title}\n{seen.text}")
    return share >= _MIN_SPAM_SHARE and different >= _MIN_SPAM_WORDS


def detect_hijacked(seen: ParsedPage) -> PageVerdict | None:
    """Return the verdict on a page whose site was about something else before; None for any other.

    Without at least one page from before nobody can tell. A new design, a successor or another language is no reason:
    something of what was on all pages is still spoken of.
    """
    before = [known for known in seen.context.earlier if known.text.strip()]
    if not before:
        return None
    text = f"{seen.title}\n{seen.text}"
    reason = _match_defacement(seen, text, before) or _match_topic_shift(seen, text, before)
    return None if reason is None else PageVerdict(VerdictKind.HIJACKED, reason)


def _match_defacement(seen: ParsedPage, text: str, before: Sequence[ReferencePage]) -> str | None:
    """Look for those who are proud of it."""
    pride = _DEFACEMENT.search(text)
    if (
        pride is None
        or seen.text_length > _MAX_DEFACED_LENGTH
        or any(_DEFACEMENT.search(known.text) for known in before)
    ):
        return None
    return f"it says {quote_text(pride[0])}"


def _match_topic_shift(seen: ParsedPage, text: str, before: Sequence[ReferencePage]) -> str | None:
    """Compare what a page is about with what the site was about."""
    past = "\n".join(known.text for known in before)
    now, then = count_words(text), _count_words_cached(past)
    few = min(sum(now.values()), sum(then.values()))
    if few < _MIN_WORDS:
        return None
    shared, kept = _shared_share(now, then), _constant_words(before, now)
    topic, share, different = find_spam_topic(text)
    is_other = (not kept and shared < _MAX_SHARED) or (
        share >= _HIGH_SPAM_SHARE and len(kept) < 2 and shared < 2 * _MAX_HARDLY_SHARED
    )
    if (
        is_other
        and share >= _MIN_SPAM_SHARE
        and different >= _MIN_SPAM_WORDS
        and share > _MIN_SPAM_GROWTH * topic_share(past, topic)
    ):
        return f"it is about {topic}, and the site was not before"
    # Pages of one site may be about anything: it must have been another page in this very place.
    is_here = any(page_identity(known.uri) == page_identity(seen.page.uri) for known in before)
    is_enough = len(before) > 1 and min(few, 2 * len(now), 2 * len(then)) >= _ENOUGH_WORDS
    if kept or not is_here or not is_enough or shared >= _MAX_HARDLY_SHARED:
        return None
    script = detect_script(text)
    if script != detect_script(past):
        return f"nothing of what all pages had is left, and its script is another ({script})"
    return "nothing of what all pages had is left, and almost no word of what they were about"


def _constant_words(before: Sequence[ReferencePage], now: Counter[str]) -> set[str]:
    """Return the words that all pages had before, and this one has: the site's name, above all."""
    constant = set.intersection(*(set(_count_words_cached(known.text)) for known in before))
    return {word for word in constant & now.keys() if len(word) != 3} - common_words()


def _shared_share(now: Counter[str], then: Counter[str]) -> float:
    """Return how much of the page's longer words was known before: the longer a word, the more it says."""
    weights = {word: min(count, 3) * _word_weight(word) for word, count in now.items() if word not in common_words()}
    return sum(found for word, found in weights.items() if word in then) / (sum(weights.values()) or 1)


def _word_weight(word: str) -> int:
    return len(word) if len(word) > 4 else int(len(word) == 2)  # a pair of letters that are words themselves
