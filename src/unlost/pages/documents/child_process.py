"""A process that reads documents, as the one that asks it sees it."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

from unlost.errors import DocumentError
from unlost.pages.documents.kind import DocumentKind
from unlost.pages.documents.limits import DocumentLimits
from unlost.pages.documents.messages import ReaderResponse, receive_response, send_request
from unlost.pages.text import ExtractedText

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
        command = [sys.executable, "-P", "-B", "-m", "unlost.pages.documents.child", str(line), *limits.to_arguments()]
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
