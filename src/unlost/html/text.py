"""Visible text of pages, and the resemblance of two texts by shingles."""

import sys
from dataclasses import dataclass
from typing import overload

from unlost import _core
from unlost.errors import UsageError


@overload
def replace_surrogates(text: str) -> str: ...


@overload
def replace_surrogates(text: None) -> None: ...


@overload
def replace_surrogates(text: str | None) -> str | None: ...


def replace_surrogates(text: str | None) -> str | None:
    """Replace lone surrogates by question marks. They represent undecodable bytes of headers and indexes."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The text of a body.

    Attributes:
        text: The text without markup.
        cut: Whether only a part of the body was parsed: it is too long, or its compression is damaged.
    """

    text: str
    cut: bool


def extract_text(body: bytes, mime: str | None, base: str, charset: str | None = None) -> ExtractedText | None:
    r"""Extract the visible text of a body; None for types without text, such as images or PDF.

    Elements that browsers do not display are omitted, except the title. White space and element boundaries that
    separate words (blocks, line breaks, table cells) become one space or line break; other tags separate nothing. Style
    sheets and scripts are not evaluated. Invalid input never raises. Limits are in docs/pages.md. Thread-safe; releases
    the GIL while it parses a long body.

    Args:
        body: HTML, XHTML, SVG or other XML, whose markup is removed; or CSS, JavaScript, JSON or other `text/*`, which
            is returned unchanged. Gzipped or not.
        mime: Declared media type; see `unlost.html.links.extract_links`, also for `base` and `charset`.
        base: URL of the body.
        charset: Declared charset.

    >>> extract_text(b"<title>A</title><p><b>un</b>lost &amp; found<td>1<td>2", "text/html", "http://a.example/")
    ExtractedText(text='A\nunlost & found 1 2', cut=False)
    >>> extract_text(b"GIF89a", "image/gif", "http://a.example/a.gif")
    """
    extracted = _core.page_text(body, replace_surrogates(mime), replace_surrogates(base), replace_surrogates(charset))
    return None if extracted is None else ExtractedText(*extracted)


def text_resemblance(first: str, second: str, size: int = 10) -> float:
    """Return the resemblance of two texts from 0.0 to 1.0: shared shingles divided by all shingles.

    A shingle is a run of `size` words; a shorter text has one shingle of all its words. Shingles are sets: repetitions
    do not count. Two texts without words have resemblance 1.0; one with and one without words, 0.0.

    A word is a run of letters and digits in any script, compared without case. In scripts without spaces between words
    (Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar), each character is a word.

    Shingles are compared by 64-bit hashes that are the same on all platforms. Two different texts of a million words
    share a hash by accident once in ten million comparisons. Thread-safe; releases the GIL while it compares long
    texts.

    Raises:
        UsageError: `size` is less than 1.

    >>> text_resemblance("Unlost brings lost sites back.", "unlost: brings lost sites back!", 3)
    1.0
    >>> text_resemblance("a b c d", "a b c e", 3)
    0.3333333333333333
    """
    if size < 1:
        msg = f"{size}: a shingle has at least one word"
        raise UsageError(msg)
    return _core.resemblance(first, second, min(size, sys.maxsize))
