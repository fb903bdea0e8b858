"""Sites that somebody else has taken over: what they are about has shifted."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from unlost.pages.verdicts.answer import ReferencePage, page_identity
from unlost.pages.verdicts.seen import ParsedPage, quote_text
from unlost.pages.verdicts.topics import common_words, detect_script, topic_share, find_spam_topic, count_words
from unlost.pages.verdicts.verdict import VerdictKind, PageVerdict

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
