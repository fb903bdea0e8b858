"""What a text is about: its words, the topics of spam in it, its script."""

import re
from collections import Counter
from functools import cache

from unlost.pages.verdicts.wording import is_unspaced, normalize_text, load_phrase_file

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
