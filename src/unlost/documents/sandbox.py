"""Reads documents in separate processes with limits, since documents are untrusted.

PDFium is C++, and every format has files that take all time or memory. The first document costs 0.1 to 0.2 s for the
process; a later one of some pages takes 1 to 3 ms in all.

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

_REQUEST = struct.Struct("<16sQ")  # kind of document, number of bytes that follow
_RESPONSE = struct.Struct("<c?Q")  # type of the response, whether the process is exhausted, number of bytes that follow

_UTF8_MAX_BYTES = 4  # per character
_MAX_MESSAGE_BYTES = 1 << 16
# Signals that end a process at a limit. Rust code aborts when an allocation fails.
_TIMEOUT_SIGNALS = {"SIGXCPU", "SIGALRM"}
_MEMORY_SIGNALS = {"SIGABRT", "SIGKILL"}


@dataclass(frozen=True, slots=True)
class ReaderResponse:
    """The response of a reader process.

    Attributes:
        result: The text, or the error that prevented its extraction.
        is_exhausted: Whether the process uses so much memory that it should be replaced.
    """

    result: ExtractedText | DocumentError
    is_exhausted: bool


def send_request(stream: IO[bytes], kind: str, body: bytes) -> None:
    """Send a document to the reader process."""
    stream.write(_REQUEST.pack(kind.encode(), len(body)))
    stream.write(body)
    stream.flush()


def receive_request(stream: IO[bytes]) -> tuple[str, bytes] | None:
    """Wait for a document, and return its kind and its bytes; None at the end of the stream."""
    header = _read_exactly(stream, _REQUEST.size)
    if header is None:
        return None
    kind, length = _REQUEST.unpack(header)
    body = _read_exactly(stream, length)
    return None if body is None else (kind.rstrip(b"\0").decode(), body)


def send_result(stream: IO[bytes], response: ReaderResponse) -> None:
    """Send the result to the parent process."""
    if isinstance(response.result, ExtractedText):
        type_mark = b"c" if response.result.cut else b"t"
        content = response.result.text.encode("utf-8", "replace")
    else:
        type_mark = b"e"
        content = f"{response.result.kind}\n{response.result}".encode("utf-8", "replace")
    stream.write(_RESPONSE.pack(type_mark, response.is_exhausted, len(content)))
    stream.write(content)
    stream.flush()


def receive_response(stream: IO[bytes], max_bytes: int) -> ReaderResponse | None:
    """Wait for a response; None if the stream ends, or if the response exceeds `max_bytes`."""
    header = _read_exactly(stream, _RESPONSE.size)
    if header is None:
        return None
    type_mark, is_exhausted, length = _RESPONSE.unpack(header)
    content = _read_exactly(stream, length) if length <= max_bytes else None
    if content is None:
        return None
    text = content.decode("utf-8", "replace")
    if type_mark == b"e":
        kind, _, message = text.partition("\n")
        return ReaderResponse(DocumentError(message, kind), is_exhausted)
    return ReaderResponse(ExtractedText(text, cut=type_mark == b"c"), is_exhausted)


def _read_exactly(stream: IO[bytes], length: int) -> bytes | None:
    """Read `length` bytes; None if the stream ends before."""
    content = stream.read(length)
    return content if len(content) == length else None


class ReaderProcess:
    """A process that reads one document after the other, for one thread at a time.

    The process ends when its parent ends, even if that is killed: it notices that the pipe is closed. The signal for
    the death of the parent (PR_SET_PDEATHSIG) would not do, since it is sent when the parent's *thread* ends.
    """

    def __init__(self, limits: DocumentLimits) -> None:
        self._limits = limits
        self._aborted = threading.Event()
        self.is_usable = True
        # -P keeps the working directory, which may contain untrusted modules, off the import path. The process has its
        # own session, so that Ctrl-C reaches the parent only, and so that its children can be killed with it.
        pipe_end, self._pipe = os.pipe()
        command = [sys.executable, "-P", "-B", "-m", "unlost.documents.worker", str(pipe_end), *limits.to_arguments()]
        try:
            self._process = subprocess.Popen(  # noqa: S603  no untrusted arguments
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=() if sys.platform == "win32" else (pipe_end,),
            )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(pipe_end)

    @property
    def pid(self) -> int:
        """Process ID."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process accepts documents. It may have been killed while it was idle."""
        return self.is_usable and self._process.poll() is None

    def extract_text(self, body: bytes, kind: DocumentKind) -> ExtractedText:
        """Return the text of a document.

        Raises DocumentError. Afterwards `is_usable` is whether the process can be reused.
        """
        self.is_usable = False  # until the response is complete; also stays False after an interrupt
        timer = threading.Timer(self._limits.seconds, self.abort)
        timer.daemon = True
        timer.start()
        try:
            response = self._exchange(body, kind)
        finally:
            timer.cancel()
            timer.join()  # otherwise it could kill another process with a reused ID
        if response is None:
            raise self._failure()
        self.is_usable = not (response.is_exhausted or self._aborted.is_set())
        if isinstance(response.result, DocumentError):
            raise response.result
        return response.result

    def _exchange(self, body: bytes, kind: DocumentKind) -> ReaderResponse | None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # noqa: S101  for types
        assert stdout is not None  # noqa: S101
        try:
            send_request(stdin, kind, body)
            return receive_response(stdout, self._limits.text * _UTF8_MAX_BYTES + _MAX_MESSAGE_BYTES)
        except OSError:  # the process ended before it had read everything
            return None

    def _failure(self) -> DocumentError:
        """Return an error that says why there is no response."""
        was_aborted = self._aborted.is_set()
        self.terminate()
        code = self._process.returncode
        name = signal.Signals(-code).name if code < 0 and -code in set(signal.Signals) else f"exit code {code}"
        if was_aborted or name in _TIMEOUT_SIGNALS:
            return DocumentError(f"reading it takes longer than {self._limits.seconds} seconds", "too-long")
        if name in _MEMORY_SIGNALS:
            return DocumentError(f"reading it takes more memory than there is ({name})", "too-big")
        return DocumentError(f"it made its reader crash ({name})", "damaged")

    def abort(self) -> None:
        """Kill the process. May be called from any thread."""
        self._aborted.set()
        self._kill()

    def terminate(self) -> None:
        """Kill the process and its children, and release its resources."""
        self.is_usable = False
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # flushing fails if the process has ended
                    stream.close()
        self._kill()
        self._process.wait()
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def _kill(self) -> None:
        if self._process.returncode is None:  # not reaped yet, so the ID cannot have been reused
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except (AttributeError, ProcessLookupError, PermissionError):  # Windows, or it has just ended
                self._process.kill()


class DocumentReader:
    """Extracts the text of documents. A context manager; thread-safe.

    Args:
        processes: Number of documents that are read at once, each in a process of its own. Processes are started on
            demand, reused, replaced when a document ends one, and ended with the context.
        limits: Limits for each document.
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
        """Return the reader itself. Processes are started on demand."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all processes."""
        self.close()

    def extract_text(self, body: bytes, kind: DocumentKind) -> ExtractedText:
        """Return the words of a document in reading order; empty for a document without words, such as scanned pages.

        White space only separates words. `kind` is the result of `detect_document_kind`.

        Raises:
            DocumentError: There is no text. Its kind is `damaged`, `encrypted`, `too-long`, `too-big` or
                `no-ghostscript`.
        """
        if len(body) > self._limits.body:
            raise DocumentError(f"it has {len(body):,} bytes, and {self._limits.body:,} are read at most", "too-big")
        with self._slots:
            process = self._acquire()
            try:
                return process.extract_text(body, kind)
            finally:
                self._release(process)

    def close(self) -> None:
        """End all processes. Pending calls of `extract_text` raise DocumentError (`too-long`)."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for process in self._busy:
                process.abort()
        for process in idle:
            process.terminate()

    def _acquire(self) -> ReaderProcess:
        with self._lock:
            if self._closed:
                raise UsageError("documents are read inside the `with` block only")
            process = self._idle.pop() if self._idle else None
        if process is not None and not process.is_alive():
            process.terminate()
            process = None
        if process is None:
            process = ReaderProcess(self._limits)
        with self._lock:
            self._busy.add(process)
            if self._closed:  # by another thread
                process.abort()
        return process

    def _release(self, process: ReaderProcess) -> None:
        with self._lock:
            self._busy.discard(process)
            is_reused = process.is_usable and not self._closed
            if is_reused:
                self._idle.append(process)
        if not is_reused:
            process.terminate()
