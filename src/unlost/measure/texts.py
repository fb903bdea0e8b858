"""How much text two versions of a resource have in common, whatever formats they are in."""

import re
from types import TracebackType
from typing import Self

from unlost.errors import DocumentError, InputError
from unlost.measure.comparison import Likeness
from unlost.measure.kinds import likely_type
from unlost.measure.resource import Resource, Site
from unlost.pages.documents import Documents, document_kind
from unlost.pages.shingles import resemblance
from unlost.pages.text import Text, text_of

_WORD = re.compile(r"[^\W_]")
_MOST_BYTES = 32 << 20  # of a body: one is in memory for each thread; pages and most documents are far below it


class Texts:
    """Looks at the text of resources of two sites. Use it as a context manager; it may be used by several threads."""

    def __init__(self, original: Site, recovered: Site) -> None:
        self._original = original
        self._recovered = recovered
        self._documents = Documents()

    def __enter__(self) -> Self:
        """Get ready to read documents."""
        self._documents.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what reads documents."""
        self._documents.__exit__(kind, error, trace)

    def likeness(self, original: Resource, recovered: Resource) -> Likeness:
        """Return how much text an original and its recovered version have in common; why not, if that is not known.

        Never raises for what is in them. Two texts without any word, such as scanned pages, are `no-words`: nothing
        says that they are alike.
        """
        first = self._text(self._original, original)
        if isinstance(first, str):
            return Likeness(None, first)
        second = self._text(self._recovered, recovered)
        if isinstance(second, str):
            return Likeness(None, second)
        partial = first.cut or second.cut
        if not _WORD.search(first.text) and not _WORD.search(second.text):
            return Likeness(None, "no-words", partial)
        return Likeness(resemblance(first.text, second.text), None, partial)

    def _text(self, site: Site, resource: Resource) -> Text | str:
        """Return the text of a resource, or in one word why there is none."""
        if resource.size > _MOST_BYTES:
            return "too-big"
        try:
            body = site.body(resource, _MOST_BYTES)
            if body.cut:
                return "too-big"
            mime = likely_type(resource)
            kind = document_kind(body.content, mime, resource.uri)
            if kind is not None:
                return self._documents.text_of(body.content, kind)
            found = text_of(body.content, mime, resource.uri, body.charset)
        except DocumentError as error:
            return error.kind
        except (InputError, OSError):
            return "unreadable"
        return "no-text" if found is None else found
