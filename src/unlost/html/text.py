"""Text of pages, and the resemblance of two texts by shingles."""

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
    """Return what archives tell without bytes that are no text, which headers and indexes may have."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The text of a body.

    text: without markup.
    cut: whether the body was longer than what is read of one, or damaged where it was unpacked.
    """

    text: str
    cut: bool


def extract_text(body: bytes, mime: str | None, base: str, charset: str | None = None) -> ExtractedText | None:
    r"""Return the text of a body; None if it is of a kind that has none, such as an image or a PDF.

    body: HTML, XHTML, SVG or any other XML, whose markup is removed; or CSS, JavaScript, JSON or any other `text/*`,
        which are returned as they stand. Gzipped or not. Nothing is ever raised for what is in it.
    mime, base, charset: what was told of it, as for `unlost.html.links.links`; the body's first bytes correct it.

    Of markup, what browsers do not show is left out, the title is not. White space in it, and what parts words (blocks,
    line breaks, cells of tables), comes out as one space or line end; other tags part nothing. What is hidden by styles
    or shown by scripts is not known. Limits are in docs/pages.md. May be called from several threads; others run while
    a long body is read.

    >>> extract_text(b"<title>A</title><p><b>un</b>lost &amp; found<td>1<td>2", "text/html", "http://a.example/")
    ExtractedText(text='A\nunlost & found 1 2', cut=False)
    >>> extract_text(b"GIF89a", "image/gif", "http://a.example/a.gif")
    """
    read = _core.page_text(body, replace_surrogates(mime), replace_surrogates(base), replace_surrogates(charset))
    return None if read is None else ExtractedText(*read)


def text_resemblance(first: str, second: str, size: int = 10) -> float:
    """Return how much of two texts is shared, from 0.0 to 1.0: shared shingles divided by all shingles.

    A shingle is a run of `size` words; of a text of fewer words, all of them. However often it occurs, it counts once.
    Two texts without words resemble each other by 1.0, one with and one without by 0.0.

    A word is a run of letters and digits of any script, whatever their case. Where words are not written apart (Han,
    Hiragana, Katakana, Thai, Lao, Khmer, Myanmar), each letter is one.

    Shingles are told apart by hashes of 64 bits that are the same everywhere: texts of a million words, none in common,
    share one by mistake once in ten million times. May be called from several threads; others run while long texts are
    compared.

    Raises UsageError if `size` is less than 1.

    >>> text_resemblance("Unlost brings lost sites back.", "unlost: brings lost sites back!", 3)
    1.0
    >>> text_resemblance("a b c d", "a b c e", 3)
    0.3333333333333333
    """
    if size < 1:
        msg = f"{size}: a shingle has at least one word"
        raise UsageError(msg)
    return _core.resemblance(first, second, min(size, sys.maxsize))
