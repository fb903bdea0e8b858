"""What a reader sees of a page, as a digest: the same where only session ids, counters or dates in digits differ."""

import hashlib
import re

from unlost.pages.text import text_of

MOST_TEXT = 4 << 20
"""Bytes of a body whose text is compared; pages/text reads no more of one either."""

_WORD = re.compile(r"\w+")


def text_digest(body: bytes, mime: str | None, uri: str) -> str | None:
    """Return a digest of the words of a body; None if it is of a kind that has no text.

    Markup is not part of it, so neither are addresses of links, in which most session ids stand; and words with a digit
    are left out, which counters, clocks and the ids that are shown are. A price that changed is so not seen: a change
    of text is one of its wording. Letter case and punctuation do not count.

    >>> first = text_digest(b"<p>You are visitor 17 <a href='/?sid=9f'>on</a>", "text/html", "http://a.example/")
    >>> first == text_digest(b"<p>You are visitor 18! <a href='/?sid=7c'>on</a>", "text/html", "http://a.example/")
    True
    """
    text = text_of(body, mime, uri)
    if text is None:
        return None
    words = (word for word in _WORD.findall(text.text.casefold()) if not any(char.isdigit() for char in word))
    return "words-sha1:" + hashlib.sha1("\0".join(words).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
