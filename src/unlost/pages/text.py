"""The text that a reader of a page sees."""

from dataclasses import dataclass

from unlost import _core
from unlost.pages.told import replace_surrogates


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
    mime, base, charset: what was told of it, as for `unlost.pages.links.links`; the body's first bytes correct it.

    Of markup, what browsers do not show is left out, the title is not. White space in it, and what parts words (blocks,
    line breaks, cells of tables), comes out as one space or line end; other tags part nothing. What is hidden by styles
    or shown by scripts is not known. Limits are in docs/pages.md. May be called from several threads; others run while
    a long body is read.

    >>> text_of(b"<title>A</title><p><b>un</b>lost &amp; found<td>1<td>2", "text/html", "http://a.example/")
    Text(text='A\nunlost & found 1 2', cut=False)
    >>> text_of(b"GIF89a", "image/gif", "http://a.example/a.gif")
    """
    read = _core.page_text(body, replace_surrogates(mime), replace_surrogates(base), replace_surrogates(charset))
    return None if read is None else ExtractedText(*read)
