"""Digests and sketches of a page's visible text, insensitive to session ids, counters and clocks."""

import hashlib
import re
from array import array
from collections import OrderedDict
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice

from unlost.html.text import extract_text

MAX_TEXT_BYTES = 4 << 20
"""Size in bytes of the largest body whose text is compared; `html.text` reads no more."""

MIN_RESEMBLANCE = 0.98
"""Resemblance at which two texts count as equal: tolerates a banner of three words on a page of 600 words."""

_WORD = re.compile(r"\w+")
_SHINGLE_WORDS = 4
_SKETCH_SIZE = 128  # hashes; one different shingle changes the resemblance by 0.8 %
_MAX_WORDS = 20_000
_MAX_CACHED_PAGES = 20_000  # about 25 MB of sketches


@dataclass(frozen=True, slots=True)
class PageTextSketch:
    """Comparable representation of a page's text.

    Attributes:
        digest: Hash of its words.
        sketch: The smallest hashes of its shingles in ascending order (a bottom-k sketch), to estimate resemblance.
    """

    digest: str
    sketch: tuple[int, ...]

    def is_similar(self, other: "PageTextSketch") -> bool:
        """Return whether both texts are equal, apart from a few of many words."""
        return self.digest == other.digest or self._resemblance(other) >= MIN_RESEMBLANCE

    def _resemblance(self, other: "PageTextSketch") -> float:
        """Return the estimated Jaccard similarity of the shingles."""
        own, others = set(self.sketch), set(other.sketch)
        smallest = sorted(own | others)[: min(_SKETCH_SIZE, max(len(own), len(others)))]
        return sum(one in own and one in others for one in smallest) / len(smallest) if smallest else 0.0


def sketch_page_text(body: bytes, mime: str | None, uri: str) -> PageTextSketch | None:
    """Return the sketch of a body; None if its media type has no text.

    Markup, link URLs, letter case and punctuation are ignored, as are words with digits, which include most counters,
    clocks and visible ids. A changed price is therefore not detected: a change of text is a change of wording.

    >>> first = sketch_page_text(b"<p>You are visitor 17 <a href='/?sid=9f'>on</a>", "text/html", "http://a.example/")
    >>> first == sketch_page_text(b"<p>You are visitor 18! <a href='/?sid=7c'>on</a>", "text/html", "http://a.example/")
    True
    """
    text = extract_text(body, mime, uri)
    if text is None:
        return None
    words = [word for word in _WORD.findall(text.text.casefold()) if not any(char.isdigit() for char in word)]
    joined = "\0".join(words).encode("utf-8", "replace")
    digest = "words-sha1:" + hashlib.sha1(joined, usedforsecurity=False).hexdigest()
    return PageTextSketch(digest, _sketch(words))


def _sketch(words: list[str]) -> tuple[int, ...]:
    selected = words[:_MAX_WORDS]
    shingles = zip(*(islice(selected, start, None) for start in range(_SHINGLE_WORDS)), strict=False)
    return tuple(nsmallest(_SKETCH_SIZE, {_hash("\0".join(shingle)) for shingle in shingles}))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


class TextDigestCache:
    """Digests of the last texts of recently visited pages. A text similar to a page's last one gets the same digest."""

    def __init__(self, max_pages: int = _MAX_CACHED_PAGES) -> None:
        self._max_pages = max_pages
        self._texts: OrderedDict[str, tuple[str, array[int]]] = OrderedDict()

    def digest(self, uri: str, text: PageTextSketch) -> str:
        """Return the digest of a page's text.

        It is compared with the first of a series of similar texts, so that small changes add up to a change.
        """
        cached = self._texts.pop(uri, None)
        if cached is not None and text.is_similar(PageTextSketch(cached[0], tuple(cached[1]))):
            self._texts[uri] = cached
            return cached[0]
        self._texts[uri] = (text.digest, array("Q", text.sketch))
        if len(self._texts) > self._max_pages:
            self._texts.popitem(last=False)
        return text.digest
