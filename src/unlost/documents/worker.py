"""The reader process: `python -m unlost.documents.worker PIPE LIMITS`, started by `unlost.documents.sandbox` only.

Reads documents from standard input and writes their text to standard output until the input ends. Limits on CPU
time, wall-clock time and memory end the process, and so does the end of the pipe PIPE when the parent exits.
"""

import fcntl
import os
import resource
import select
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from unlost.documents.limits import DocumentLimits, TextCollector, TextLimitError
from unlost.documents.sandbox import ReaderResponse, receive_request, send_response
from unlost.errors import DocumentError
from unlost.html.text import ExtractedText

# Which module reads a kind, and by which function: each is imported, with its libraries, when first needed.
_READERS = {
    "pdf": ("pdf", "read_pdf"),
    "postscript": ("postscript", "read_postscript"),
    "doc": ("office_binary", "read_doc"),
    "xls": ("spreadsheets", "read_sheets"),
    "ppt": ("office_binary", "read_ppt"),
    "docx": ("office_xml", "read_docx"),
    "xlsx": ("spreadsheets", "read_sheets"),
    "pptx": ("office_xml", "read_pptx"),
    "odt": ("office_xml", "read_odt"),
    "ods": ("spreadsheets", "read_sheets"),
    "odp": ("office_xml", "read_odp"),
    "rtf": ("rtf", "read_rtf"),
}


def read_document(kind: str, body: bytes, limits: DocumentLimits) -> ExtractedText:
    """Return the text of a document. Raises DocumentError, MemoryError and whatever libraries raise."""
    module, function = _READERS[kind]
    reader = getattr(import_module(f"unlost.documents.{module}"), function)
    gathered = TextCollector(limits.text)
    with suppress(TextLimitError):
        reader(body, gathered, limits)
    return gathered.text()


# The asking process counts the seconds, too, and is to be first: it can say what happened.
_GRACE_SECONDS = 2
_EXHAUSTED_DIVISOR = 2


def main(arguments: list[str]) -> None:
    """Read documents until there are no more."""
    line, limits = int(arguments[0]), DocumentLimits.from_arguments(arguments[1:])
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that whatever a library prints is no answer
    _set_limits(limits)
    while (request := receive_request(source)) is not None:
        _start_guards(line, limits.seconds)
        answer = ReaderResponse(_read_safely(*request, limits), _is_exhausted(limits))
        del request
        _stop_guards(line)
        send_response(sink, answer)
        if answer.is_exhausted:
            return


def _read_safely(kind: str, body: bytes, limits: DocumentLimits) -> ExtractedText | DocumentError:
    try:
        return read_document(kind, body, limits)
    except DocumentError as error:
        return error
    except MemoryError:
        return DocumentError(f"reading it takes more than {limits.memory:,} bytes of memory", "too-big")
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001  libraries fail in any way they like; Rust's panics are no Exception
        return DocumentError(f"it cannot be read ({type(error).__name__})", "damaged")


if sys.platform != "win32":
    import fcntl
    import resource

    def _set_limits(limits: DocumentLimits) -> None:
        """Set what this process may take in all, and what it starts inherits."""
        _lower_limit(resource.RLIMIT_AS, limits.memory)
        _lower_limit(resource.RLIMIT_FSIZE, 0)  # it writes no files, whatever a document wants
        _lower_limit(resource.RLIMIT_CORE, 0)

    def _lower_limit(what: int, most: int) -> None:
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))

    def _start_guards(line: int, seconds: int) -> None:
        """See to it that this process ends if it takes too long, or if who asked is gone.

        Signals do that, which also reach it in the middle of a library. Its input would not do as the line: the signal
        about what was written there may come after all of it was read.
        """
        used = resource.getrusage(resource.RUSAGE_SELF)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        most = int(used.ru_utime + used.ru_stime) + seconds + _GRACE_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE_SECONDS)
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
        watched = select.poll()  # `select` takes no number above 1023, and whoever asks may have many files open
        watched.register(line)
        if watched.poll(0):  # it ended before the signal was asked for
            sys.exit(1)

    def _stop_guards(line: int) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) & ~os.O_ASYNC)

    def _is_exhausted(limits: DocumentLimits) -> bool:
        """Return whether it keeps so much memory that a later document may have too little; where that can be told."""
        try:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        except OSError:
            return False
        return pages * resource.getpagesize() > limits.memory // _EXHAUSTED_DIVISOR

else:

    def _set_limits(_limits: DocumentLimits) -> None:
        """Set nothing: this system has no such limits. The asking process still watches the clock."""

    def _start_guards(_line: int, _seconds: int) -> None:
        """Do nothing, likewise."""

    def _stop_guards(_line: int) -> None:
        """Do nothing, likewise."""

    def _is_exhausted(_limits: DocumentLimits) -> bool:
        """Say yes: each document has a process of its own here."""
        return True


if __name__ == "__main__":
    main(sys.argv[1:])
