"""Sites that somebody else has taken over: what they are about has shifted."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from unlost.pages.verdicts.answer import Known, place_of
from unlost.pages.verdicts.seen import Seen, quoted
from unlost.pages.verdicts.topics import common_words, script_of, share_of, spam_of, words_of
from unlost.pages.verdicts.verdict import Kind, Verdict

_SHARE = 0.03  # of all words, those of one topic of spam
_DIFFERENT = 3  # words of that topic
_MUCH = 0.08
_TIMES = 3.0  # more than before
_LITTLE = 12  # words that are too few to tell
_ENOUGH = 45
_SHARED = 0.3  # of the page's words, that were known before
_HARDLY = 0.15
_MARK_OF_PRIDE = re.compile(
    r"\b(hacked|defaced|owned|pwned) by\b|has been hacked|hacked by|h4ck3d|\bgreetz\b", re.IGNORECASE
)
_DEFACED = 1500  # letters of such a page

# Most pages of a site are compared with the same few from before, whose words need not be counted each time.
_words_before = lru_cache(32)(words_of)


def is_spam(seen: Seen) -> bool:
    """Return whether a page has so much of a topic of spam that it is worth to know what was there before."""
    _, share, different = spam_of(f"{seen.title}\n{seen.text}")
    return share >= _SHARE and different >= _DIFFERENT


def hijacked(seen: Seen) -> Verdict | None:
    """Return the verdict on a page whose site was about something else before; None for any other.

    Without at least one page from before nobody can tell. A new design, a successor or another language is no reason:
    something of what was on all pages is still spoken of.
    """
    before = [known for known in seen.context.earlier if known.text.strip()]
    if not before:
        return None
    text = f"{seen.title}\n{seen.text}"
    reason = _defaced(seen, text, before) or _shifted(seen, text, before)
    return None if reason is None else Verdict(Kind.HIJACKED, reason)


def _defaced(seen: Seen, text: str, before: Sequence[Known]) -> str | None:
    """Look for those who are proud of it."""
    pride = _MARK_OF_PRIDE.search(text)
    if pride is None or seen.size > _DEFACED or any(_MARK_OF_PRIDE.search(known.text) for known in before):
        return None
    return f"it says {quoted(pride[0])}"


def _shifted(seen: Seen, text: str, before: Sequence[Known]) -> str | None:
    """Compare what a page is about with what the site was about."""
    past = "\n".join(known.text for known in before)
    now, then = words_of(text), _words_before(past)
    few = min(sum(now.values()), sum(then.values()))
    if few < _LITTLE:
        return None
    shared, kept = _shared(now, then), _kept(before, now)
    topic, share, different = spam_of(text)
    is_other = (not kept and shared < _SHARED) or (share >= _MUCH and len(kept) < 2 and shared < 2 * _HARDLY)
    if is_other and share >= _SHARE and different >= _DIFFERENT and share > _TIMES * share_of(past, topic):
        return f"it is about {topic}, and the site was not before"
    # Pages of one site may be about anything: it must have been another page in this very place.
    is_here = any(place_of(known.uri) == place_of(seen.page.uri) for known in before)
    is_enough = len(before) > 1 and min(few, 2 * len(now), 2 * len(then)) >= _ENOUGH
    if kept or not is_here or not is_enough or shared >= _HARDLY:
        return None
    script = script_of(text)
    if script != script_of(past):
        return f"nothing of what all pages had is left, and its script is another ({script})"
    return "nothing of what all pages had is left, and almost no word of what they were about"


def _kept(before: Sequence[Known], now: Counter[str]) -> set[str]:
    """Return the words that all pages had before, and this one has: the site's name, above all."""
    constant = set.intersection(*(set(_words_before(known.text)) for known in before))
    return {word for word in constant & now.keys() if len(word) != 3} - common_words()


def _shared(now: Counter[str], then: Counter[str]) -> float:
    """Return how much of the page's longer words was known before: the longer a word, the more it says."""
    weights = {word: min(count, 3) * _weight(word) for word, count in now.items() if word not in common_words()}
    return sum(found for word, found in weights.items() if word in then) / (sum(weights.values()) or 1)


def _weight(word: str) -> int:
    return len(word) if len(word) > 4 else int(len(word) == 2)  # a pair of letters that are words themselves
