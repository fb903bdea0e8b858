"""The text of documents, read by other processes, since what is in documents may be hostile."""

import threading
from types import TracebackType
from typing import Self

from unlost.errors import DocumentError, UsageError
from unlost.pages.documents.child_process import ReaderProcess
from unlost.pages.documents.kind import DocumentKind
from unlost.pages.documents.limits import DocumentLimits
from unlost.pages.text import ExtractedText


class DocumentReader:
    """Gives the text of documents; a context manager. May be asked by several threads.

    processes: how many documents are read at once, each by a process of its own. They are started when first needed,
        used again, replaced when a document ended one, and ended with the context.
    limits: of each document.
    """

    def __init__(self, processes: int = 2, limits: DocumentLimits = DocumentLimits()) -> None:  # noqa: B008  it is frozen
        if processes < 1:
            raise UsageError("documents are read by at least one process")
        self._limits = limits
        self._slots = threading.BoundedSemaphore(processes)
        self._lock = threading.Lock()
        self._idle: list[ReaderProcess] = []
        self._busy: set[ReaderProcess] = set()
        self._closed = False

    def __enter__(self) -> Self:
        """Start nothing yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all processes."""
        self.close()

    def extract_text(self, body: bytes, kind: DocumentKind) -> ExtractedText:
        """Return the words of a document in reading order.

        kind: as `document_kind` told. Lines and blanks mean nothing but the ends of words.

        Raises DocumentError if there is no text to be had: `damaged`, `encrypted`, `too-long`, `too-big`,
        `no-ghostscript`. A document without words (scanned pages) has the empty text.
        """
        if len(body) > self._limits.body:
            raise DocumentError(f"it has {len(body):,} bytes, and {self._limits.body:,} are read at most", "too-big")
        with self._slots:
            child = self._acquire()
            try:
                return child.extract_text(body, kind)
            finally:
                self._release(child)

    def close(self) -> None:
        """End all processes. Whoever still waits for a text gets a DocumentError, `too-long`."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for child in self._busy:
                child.abort()
        for child in idle:
            child.terminate()

    def _acquire(self) -> ReaderProcess:
        with self._lock:
            if self._closed:
                raise UsageError("documents are read inside the `with` block only")
            child = self._idle.pop() if self._idle else None
        if child is not None and not child.is_alive():
            child.terminate()
            child = None
        if child is None:
            child = ReaderProcess(self._limits)
        with self._lock:
            self._busy.add(child)
            if self._closed:  # in the meantime
                child.give_up()
        return child

    def _release(self, child: ReaderProcess) -> None:
        with self._lock:
            self._busy.discard(child)
            is_kept = child.is_usable and not self._closed
            if is_kept:
                self._idle.append(child)
        if not is_kept:
            child.terminate()
