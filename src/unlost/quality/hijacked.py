"""Detects hijacked sites, by defacements and shifts of topic.

A page is compared with earlier pages of its site: how many of its words they have, which words all of them share (above
all the site's name), and how many belong to a topic for which expired domains are bought (`phrases/spam.toml`).
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache

from unlost.quality.page import PageVerdict, ParsedPage, ReferencePage, VerdictKind, page_identity, quote_text
from unlost.quality.phrase_matcher import is_unspaced, load_phrase_file, normalize_text

_WORD = re.compile(r"[^\W\d_]{3,}")
# Runs of scripts without spaces between words: Thai and Lao; Japanese and Chinese.
_UNSPACED_RUN = re.compile("[\u0e00-\u0eff]+|[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_MAX_WORDS = 4000
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

_Topic = tuple[frozenset[str], tuple[str, ...]]  # single words, and phrases that are searched in the text

# Thresholds. docs/pages.md has the error rates that they lead to.
_MIN_SPAM_SHARE = 0.03  # share of one spam topic among all words
_MIN_SPAM_WORDS = 3  # distinct words of that topic
_HIGH_SPAM_SHARE = 0.08
_MIN_SPAM_GROWTH = 3.0  # factor, compared with earlier pages
_MIN_WORDS = 12  # texts with fewer words are not compared
_ENOUGH_WORDS = 45
_MAX_SHARED = 0.3  # share of the page's words that earlier pages have, too; higher shares mean the same site
_MAX_HARDLY_SHARED = 0.15  # the same where other evidence is weaker
_DEFACEMENT = re.compile(
    r"\b(hacked|defaced|owned|pwned) by\b|has been hacked|hacked by|h4ck3d|\bgreetz\b", re.IGNORECASE
)
_MAX_DEFACED_LENGTH = 1500  # characters of a defaced page


def count_words(text: str) -> Counter[str]:
    """Count the words of a text; in scripts without spaces, the pairs of adjacent characters."""
    normalized = normalize_text(text)
    words = _WORD.findall(normalized)[:_MAX_WORDS]
    if not is_unspaced(normalized):
        return Counter(words)
    counts = Counter(word for word in words if not _UNSPACED_RUN.search(word))
    for run in _UNSPACED_RUN.findall(normalized)[:_MAX_WORDS]:
        counts.update(run[index : index + 2] for index in range(min(len(run), 400) - 1))
    return counts


def detect_script(text: str) -> str:
    """Return the predominant script of a text; `kana` for Japanese."""
    sample = text[:8000].lower()
    counts = {name: len(pattern.findall(sample)) for name, pattern in _SCRIPTS.items()}
    if counts["kana"] * 5 > counts["han"]:  # Japanese mixes both; Chinese has next to no kana
        counts["kana"] += counts["han"]
    return max(counts, key=lambda name: counts[name])


@cache
def _load_topics() -> dict[str, _Topic]:
    """Return the vocabulary of each spam topic."""
    topics: dict[str, _Topic] = {}
    for topic, entry in load_phrase_file("spam").items():
        if topic == "common":
            continue
        words = [normalize_text(word).strip() for word in entry["words"]]
        single = frozenset(word for word in words if " " not in word and not _UNSPACED_RUN.search(word))
        topics[topic] = single, tuple(word for word in dict.fromkeys(words) if word not in single)
    return topics


@cache
def common_words() -> frozenset[str]:
    """Return words that are common on sites of any topic."""
    return frozenset(normalize_text(word).strip() for word in load_phrase_file("spam")["common"]["words"])


def find_spam_topic(text: str) -> tuple[str, float, int]:
    """Return the spam topic with the largest share of a text's words, that share, and its number of distinct words."""
    shares = _topic_shares(text)
    best = max(shares, key=lambda topic: shares[topic][0])
    return best, *shares[best]


def topic_share(text: str, topic: str) -> float:
    """Return the share of a text's words that belong to a spam topic."""
    return _topic_shares(text)[topic][0]


def _topic_shares(text: str) -> dict[str, tuple[float, int]]:
    normalized = normalize_text(text)
    words = Counter(re.findall(r"\w{2,}", normalized)[:_MAX_WORDS])
    total = sum(words.values()) or 1
    if is_unspaced(normalized):
        total += sum(map(len, _UNSPACED_RUN.findall(normalized))) // 2  # about two characters a word
    shares = {}
    for topic, (single, phrases) in _load_topics().items():
        hits = [words[word] for word in single & words.keys()] + [
            normalized.count(word) for word in phrases if word in normalized
        ]
        shares[topic] = sum(hits) / total, len(hits)
    return shares


# Most pages of a site are compared with the same few earlier pages.
_count_words_cached = lru_cache(32)(count_words)


def has_spam_topic(page: ParsedPage) -> bool:
    """Return whether a page has enough words of a spam topic to make earlier captures worth fetching."""
    _, share, distinct = find_spam_topic(f"{page.title}\n{page.text}")
    return share >= _MIN_SPAM_SHARE and distinct >= _MIN_SPAM_WORDS


def detect_hijacked(page: ParsedPage) -> PageVerdict | None:
    """Return the verdict on a page of a hijacked site; None for any other page, or without earlier pages to compare.

    A redesign, a successor or another language is not a hijacking: some words that all earlier pages share remain.
    """
    earlier = [known for known in page.context.earlier if known.text.strip()]
    if not earlier:
        return None
    text = f"{page.title}\n{page.text}"
    reason = _match_defacement(page, text, earlier) or _match_topic_shift(page, text, earlier)
    return None if reason is None else PageVerdict(VerdictKind.HIJACKED, reason)


def _match_defacement(page: ParsedPage, text: str, earlier: Sequence[ReferencePage]) -> str | None:
    """Match the signature of a defacement, such as "hacked by"."""
    signature = _DEFACEMENT.search(text)
    if (
        signature is None
        or page.text_length > _MAX_DEFACED_LENGTH
        or any(_DEFACEMENT.search(known.text) for known in earlier)
    ):
        return None
    return f"contains {quote_text(signature[0])}"


def _match_topic_shift(page: ParsedPage, text: str, earlier: Sequence[ReferencePage]) -> str | None:
    """Compare the topic of a page with that of earlier pages."""
    earlier_text = "\n".join(known.text for known in earlier)
    words, earlier_words = count_words(text), _count_words_cached(earlier_text)
    fewest = min(sum(words.values()), sum(earlier_words.values()))
    if fewest < _MIN_WORDS:
        return None
    shared, constant = _shared_share(words, earlier_words), _constant_words(earlier, words)
    topic, share, distinct = find_spam_topic(text)
    is_off_topic = (not constant and shared < _MAX_SHARED) or (
        share >= _HIGH_SPAM_SHARE and len(constant) < 2 and shared < 2 * _MAX_HARDLY_SHARED
    )
    if (
        is_off_topic
        and share >= _MIN_SPAM_SHARE
        and distinct >= _MIN_SPAM_WORDS
        and share > _MIN_SPAM_GROWTH * topic_share(earlier_text, topic)
    ):
        return f"about {topic}, unlike earlier captures of the site"
    # Pages of one site may have any topics, so only an earlier page at the same URL is evidence.
    is_same_page = any(page_identity(known.uri) == page_identity(page.response.uri) for known in earlier)
    has_enough_words = len(earlier) > 1 and min(fewest, 2 * len(words), 2 * len(earlier_words)) >= _ENOUGH_WORDS
    if constant or not is_same_page or not has_enough_words or shared >= _MAX_HARDLY_SHARED:
        return None
    script = detect_script(text)
    if script != detect_script(earlier_text):
        return f"nothing in common with earlier pages, and another script ({script})"
    return "nothing in common with earlier pages, and almost none of their words"


def _constant_words(earlier: Sequence[ReferencePage], words: Counter[str]) -> set[str]:
    """Return the words that the page shares with all earlier pages, such as the site's name."""
    constant = set.intersection(*(set(_count_words_cached(known.text)) for known in earlier))
    return {word for word in constant & words.keys() if len(word) != 3} - common_words()


def _shared_share(words: Counter[str], earlier_words: Counter[str]) -> float:
    """Return the share of the page's words that earlier pages have, weighted by length."""
    weights = {word: min(count, 3) * _word_weight(word) for word, count in words.items() if word not in common_words()}
    return sum(weight for word, weight in weights.items() if word in earlier_words) / (sum(weights.values()) or 1)


def _word_weight(word: str) -> int:
    return len(word) if len(word) > 4 else int(len(word) == 2)  # pairs of characters in scripts without spaces
