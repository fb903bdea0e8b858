"""Reads documents in separate processes, since documents may be hostile.

Defines the messages between the processes, one reader process, and a pool of them.
"""

import os
import signal
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

from unlost.documents.kind import DocumentKind
from unlost.documents.limits import DocumentLimits
from unlost.errors import DocumentError, UsageError
from unlost.html.text import ExtractedText

_REQUEST = struct.Struct("<16sQ")  # the kind of document, how many bytes follow
_RESPONSE = struct.Struct("<c?Q")  # what it is, whether the process is spent, how many bytes follow


@dataclass(frozen=True, slots=True)
class ReaderResponse:
    """What came of a document.

    result: its text, or why there is none.
    is_spent: whether the process has grown so that it should read no other document.
    """

    result: ExtractedText | DocumentError
    is_exhausted: bool


def send_request(stream: IO[bytes], kind: str, body: bytes) -> None:
    """Send a document."""
    stream.write(_REQUEST.pack(kind.encode(), len(body)))
    stream.write(body)
    stream.flush()


def receive_request(stream: IO[bytes]) -> tuple[str, bytes] | None:
    """Wait for a document and return its kind and its bytes; None if there will be none."""
    head = _read_exactly(stream, _REQUEST.size)
    if head is None:
        return None
    kind, length = _REQUEST.unpack(head)
    body = _read_exactly(stream, length)
    return None if body is None else (kind.rstrip(b"\0").decode(), body)


def send_response(stream: IO[bytes], response: ReaderResponse) -> None:
    """Send what came of a document."""
    if isinstance(response.result, ExtractedText):
        mark = b"c" if response.result.cut else b"t"
        content = response.result.text.encode("utf-8", "replace")
    else:
        mark = b"e"
        content = f"{response.result.kind}\n{response.result}".encode("utf-8", "replace")
    stream.write(_RESPONSE.pack(mark, response.is_exhausted, len(content)))
    stream.write(content)
    stream.flush()


def receive_response(stream: IO[bytes], max_bytes: int) -> ReaderResponse | None:
    """Wait for what came of a document; None if nothing does, or not within so many bytes."""
    head = _read_exactly(stream, _RESPONSE.size)
    if head is None:
        return None
    mark, is_spent, length = _RESPONSE.unpack(head)
    content = _read_exactly(stream, length) if length <= max_bytes else None
    if content is None:
        return None
    text = content.decode("utf-8", "replace")
    if mark == b"e":
        kind, _, message = text.partition("\n")
        return ReaderResponse(DocumentError(message, kind), is_spent)
    return ReaderResponse(ExtractedText(text, cut=mark == b"c"), is_spent)


def _read_exactly(stream: IO[bytes], length: int) -> bytes | None:
    """Return so many bytes; None if the stream ends before."""
    content = stream.read(length)
    return content if len(content) == length else None


_UTF8_MAX_BYTES = 4  # bytes that a character takes at most
_MAX_MESSAGE_BYTES = 1 << 16
# What a process ends by, where that says more than that it crashed. Rust aborts when it gets no memory.
_TIMEOUT_SIGNALS = {"SIGXCPU", "SIGALRM"}
_MEMORY_SIGNALS = {"SIGABRT", "SIGKILL"}


class ReaderProcess:
    """A process that reads one document after another, for one thread at a time.

    It ends by itself when nobody holds the other end of its line to us any more, however that came about.
    """

    def __init__(self, limits: DocumentLimits) -> None:
        self._limits = limits
        self._aborted = threading.Event()
        self.is_usable = True
        # Not where we are (-P), where anybody may have put a module; a session of its own, so that Ctrl-C is for us to
        # deal with, and so that its own children can be ended with it.
        line, self._pipe = os.pipe()
        command = [sys.executable, "-P", "-B", "-m", "unlost.documents.worker", str(line), *limits.to_arguments()]
        try:
            self._process = subprocess.Popen(  # noqa: S603  nothing of it comes from outside
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=() if sys.platform == "win32" else (line,),
            )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(line)

    @property
    def pid(self) -> int:
        """Which process it is."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether it can be asked: it may have been ended by others while it waited."""
        return self.is_usable and self._process.poll() is None

    def extract_text(self, body: bytes, kind: DocumentKind) -> ExtractedText:
        """Return the text of a document. Raises DocumentError.

        Afterwards `is_usable` says whether it can be asked again.
        """
        self.is_usable = False  # until we know better, also if we are interrupted
        timer = threading.Timer(self._limits.seconds, self.abort)
        timer.daemon = True
        timer.start()
        try:
            answer = self._exchange(body, kind)
        finally:
            timer.cancel()
            timer.join()  # or it might end a process that is no longer ours
        if answer is None:
            raise self._failure()
        self.is_usable = not (answer.is_exhausted or self._aborted.is_set())
        if isinstance(answer.result, DocumentError):
            raise answer.result
        return answer.result

    def _exchange(self, body: bytes, kind: DocumentKind) -> ReaderResponse | None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # noqa: S101  for types
        assert stdout is not None  # noqa: S101
        try:
            send_request(stdin, kind, body)
            return receive_response(stdout, self._limits.text * _UTF8_MAX_BYTES + _MAX_MESSAGE_BYTES)
        except OSError:  # it has ended before it took all of it
            return None

    def _failure(self) -> DocumentError:
        """Return why there is no answer."""
        given_up = self._aborted.is_set()
        self.terminate()
        code = self._process.returncode
        name = signal.Signals(-code).name if code < 0 and -code in set(signal.Signals) else f"exit code {code}"
        if given_up or name in _TIMEOUT_SIGNALS:
            return DocumentError(f"reading it takes longer than {self._limits.seconds} seconds", "too-long")
        if name in _MEMORY_SIGNALS:
            return DocumentError(f"reading it takes more memory than there is ({name})", "too-big")
        return DocumentError(f"it made its reader crash ({name})", "damaged")

    def abort(self) -> None:
        """End it in the middle of its work. May be called from any thread while another one asks."""
        self._aborted.set()
        self._kill()

    def terminate(self) -> None:
        """End it, and whatever it has started."""
        self.is_usable = False
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # what was to be flushed has no reader any more
                    stream.close()
        self._kill()
        self._process.wait()
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def _kill(self) -> None:
        if self._process.returncode is None:  # not waited for yet, so the id is still its own
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except (AttributeError, ProcessLookupError, PermissionError):  # another system; or it is ending already
                self._process.kill()


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
                child.abort()
        return child

    def _release(self, child: ReaderProcess) -> None:
        with self._lock:
            self._busy.discard(child)
            is_kept = child.is_usable and not self._closed
            if is_kept:
                self._idle.append(child)
        if not is_kept:
            child.terminate()
