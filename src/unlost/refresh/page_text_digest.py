"""Digests and sketches of a page's visible text, which ignore session ids, counters and clocks."""

import hashlib
import re
from array import array
from collections import OrderedDict
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice

from unlost.html.text import extract_text

MAX_TEXT_BYTES = 4 << 20
"""Bytes of a body whose text is compared; pages/text reads no more of one either."""

MIN_RESEMBLANCE = 0.98
"""Resemblance from which on two texts are one: a banner of three words on a page of six hundred."""

_WORD = re.compile(r"\w+")
_SHINGLE_WORDS = 4  # words
_SKETCH_SIZE = 128  # hashes: one shingle more or less is then 0.8 %
_MAX_WORDS = 20_000  # that a sketch is made of
_MAX_CACHED_PAGES = 20_000  # whose sketches are kept at a time: some 25 MB


@dataclass(frozen=True, slots=True)
class PageTextSketch:
    """What is compared of a page's text.

    digest: of its words. sketch: the smallest hashes of its shingles, in order, by which resemblance is estimated.
    """

    digest: str
    sketch: tuple[int, ...]

    def is_similar(self, other: "PageTextSketch") -> bool:
        """Return whether both read the same: the same words, or all but a few of many."""
        return self.digest == other.digest or self._resemblance(other) >= MIN_RESEMBLANCE

    def _resemblance(self, other: "PageTextSketch") -> float:
        """Return the share of the smallest hashes of both together that both have: a bottom-k sketch's estimate."""
        mine, theirs = set(self.sketch), set(other.sketch)
        smallest = sorted(mine | theirs)[: min(_SKETCH_SIZE, max(len(mine), len(theirs)))]
        return sum(one in mine and one in theirs for one in smallest) / len(smallest) if smallest else 0.0


def sketch_page_text(body: bytes, mime: str | None, uri: str) -> PageTextSketch | None:
    """Return what is compared of a body; None if it is of a kind that has no text.

    Markup is not part of it, so neither are addresses of links, in which most session ids stand; and words with a digit
    are left out, which counters, clocks and the ids that are shown are. A price that changed is so not seen: a change
    of text is one of its wording. Letter case and punctuation do not count.

    >>> first = sketch_page_text(b"<p>You are visitor 17 <a href='/?sid=9f'>on</a>", "text/html", "http://a.example/")
    >>> first == sketch_page_text(b"<p>You are visitor 18! <a href='/?sid=7c'>on</a>", "text/html", "http://a.example/")
    True
    """
    text = extract_text(body, mime, uri)
    if text is None:
        return None
    words = [word for word in _WORD.findall(text.text.casefold()) if not any(char.isdigit() for char in word)]
    whole = "\0".join(words).encode("utf-8", "replace")
    digest = "words-sha1:" + hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    return PageTextSketch(digest, _sketch(words))


def _sketch(words: list[str]) -> tuple[int, ...]:
    some = words[:_MAX_WORDS]
    shingles = zip(*(islice(some, start, None) for start in range(_SHINGLE_WORDS)), strict=False)
    return tuple(nsmallest(_SKETCH_SIZE, {_hash("\0".join(shingle)) for shingle in shingles}))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


class TextDigestCache:
    """The texts of pages so far, the last ones of them: a text that reads like the one before gets its digest."""

    def __init__(self, max_pages: int = _MAX_CACHED_PAGES) -> None:
        self._max_pages = max_pages
        self._texts: OrderedDict[str, tuple[str, array[int]]] = OrderedDict()

    def digest(self, uri: str, text: PageTextSketch) -> str:
        """Return the digest of a page's text. It is compared with the text that its digest was first made of, so that
        many small changes are one at last.
        """  # noqa: D205  one sentence
        held = self._texts.pop(uri, None)
        if held is not None and text.is_similar(PageTextSketch(held[0], tuple(held[1]))):
            self._texts[uri] = held
            return held[0]
        self._texts[uri] = (text.digest, array("Q", text.sketch))
        if len(self._texts) > self._max_pages:
            self._texts.popitem(last=False)
        return text.digest
