"""How much text two versions of a resource have in common, whatever formats they are in."""

import re
from types import TracebackType
from typing import Self

from unlost.errors import DocumentError, InputError
from unlost.measure.comparison import TextSimilarity
from unlost.measure.kinds import likely_type
from unlost.measure.resource import SiteResource, Site
from unlost.pages.documents import DocumentReader, detect_document_kind
from unlost.pages.shingles import text_resemblance
from unlost.pages.text import ExtractedText, extract_text

_WORD = re.compile(r"[^\W_]")
_MAX_BODY_BYTES = 32 << 20  # of a body: one is in memory for each thread; pages and most documents are far below it


class TextComparer:
    """Looks at the text of resources of two sites. Use it as a context manager; it may be used by several threads."""

    def __init__(self, original: Site, recovered: Site) -> None:
        self._original = original
        self._recovered = recovered
        self._documents = DocumentReader()

    def __enter__(self) -> Self:
        """Get ready to read documents."""
        self._documents.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what reads documents."""
        self._documents.__exit__(kind, error, trace)

    def similarity(self, original: SiteResource, recovered: SiteResource) -> TextSimilarity:
        """Return how much text an original and its recovered version have in common; why not, if that is not known.

        Never raises for what is in them. Two texts without any word, such as scanned pages, are `no-words`: nothing
        says that they are alike.
        """
        first = self._text(self._original, original)
        if isinstance(first, str):
            return TextSimilarity(None, first)
        second = self._text(self._recovered, recovered)
        if isinstance(second, str):
            return TextSimilarity(None, second)
        partial = first.cut or second.cut
        if not _WORD.search(first.text) and not _WORD.search(second.text):
            return TextSimilarity(None, "no-words", partial)
        return TextSimilarity(text_resemblance(first.text, second.text), None, partial)

    def _text(self, site: Site, resource: SiteResource) -> ExtractedText | str:
        """Return the text of a resource, or in one word why there is none."""
        if resource.size > _MAX_BODY_BYTES:
            return "too-big"
        try:
            body = site.read_body(resource, _MAX_BODY_BYTES)
            if body.is_truncated:
                return "too-big"
            mime = likely_type(resource)
            kind = detect_document_kind(body.content, mime, resource.uri)
            if kind is not None:
                return self._documents.extract_text(body.content, kind)
            found = extract_text(body.content, mime, resource.uri, body.charset)
        except DocumentError as error:
            return error.kind
        except (InputError, OSError):
            return "unreadable"
        return "no-text" if found is None else found
