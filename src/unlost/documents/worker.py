"""The reader process: `python -m unlost.documents.worker PIPE LIMITS`, started by `unlost.documents.sandbox` only.

Reads documents from standard input and writes their text to standard output until the input ends. Limits on CPU time,
wall-clock time and memory end the process, and so does the end of the pipe PIPE when the parent exits.
"""

import os
import select
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from unlost.documents.limits import DocumentLimits, TextCollector, TextLimitError
from unlost.documents.sandbox import ReaderResponse, receive_request, send_result
from unlost.errors import DocumentError
from unlost.html.text import ExtractedText

# Module and function that read each kind. A module is imported, with its libraries, when it is first needed.
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

_GRACE_SECONDS = 2  # the parent has the same time limit and should act first, since it can report the reason
_EXHAUSTED_DIVISOR = 2  # a process is replaced when it uses more than half of its memory limit


def read_document(kind: str, body: bytes, limits: DocumentLimits) -> ExtractedText:
    """Return the text of a document. Raises DocumentError, MemoryError and any exception of the libraries."""
    module, function = _READERS[kind]
    reader = getattr(import_module(f"unlost.documents.{module}"), function)
    collector = TextCollector(limits.text)
    with suppress(TextLimitError):
        reader(body, collector, limits)
    return collector.text()


def main(arguments: list[str]) -> None:
    """Read documents until the input ends."""
    pipe_end, limits = int(arguments[0]), DocumentLimits.from_arguments(arguments[1:])
    requests, responses = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that output of libraries does not get into the responses
    _set_limits(limits)
    while (request := receive_request(requests)) is not None:
        _start_guards(pipe_end, limits.seconds)
        response = ReaderResponse(_read_safely(*request, limits), _is_exhausted(limits))
        del request
        _stop_guards(pipe_end)
        send_result(responses, response)
        if response.is_exhausted:
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
    except BaseException as error:  # noqa: BLE001  libraries raise anything; panics of Rust are BaseExceptions
        return DocumentError(f"it cannot be read ({type(error).__name__})", "damaged")


if sys.platform != "win32":
    import fcntl
    import resource

    def _set_limits(limits: DocumentLimits) -> None:
        """Set the resource limits of this process and its children."""
        _lower_limit(resource.RLIMIT_AS, limits.memory)
        _lower_limit(resource.RLIMIT_FSIZE, 0)  # the process writes no files
        _lower_limit(resource.RLIMIT_CORE, 0)

    def _lower_limit(kind: int, limit: int) -> None:
        hard = resource.getrlimit(kind)[1]
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, limit))

    def _start_guards(pipe_end: int, seconds: int) -> None:
        """Arrange that this process ends at the time limit, and when the parent exits.

        Signals do that, since their default action also interrupts libraries. The pipe sends one when it is closed
        (O_ASYNC). Standard input cannot serve as that pipe: its signal for new data may arrive after the data was read.
        """
        used = resource.getrusage(resource.RUSAGE_SELF)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        limit = int(used.ru_utime + used.ru_stime) + seconds + _GRACE_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
        signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE_SECONDS)
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(pipe_end, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(pipe_end, fcntl.F_SETFL, fcntl.fcntl(pipe_end, fcntl.F_GETFL) | os.O_ASYNC)
        watched = select.poll()  # `select` fails for descriptors above 1023, and the parent may have many files open
        watched.register(pipe_end)
        if watched.poll(0):  # the parent ended before the signal was set up
            sys.exit(1)

    def _stop_guards(pipe_end: int) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        fcntl.fcntl(pipe_end, fcntl.F_SETFL, fcntl.fcntl(pipe_end, fcntl.F_GETFL) & ~os.O_ASYNC)

    def _is_exhausted(limits: DocumentLimits) -> bool:
        """Return whether the process uses more than its share of memory; False if that is unknown."""
        try:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        except OSError:
            return False
        return pages * resource.getpagesize() > limits.memory // _EXHAUSTED_DIVISOR

else:

    def _set_limits(_limits: DocumentLimits) -> None:
        """Do nothing: this system has no such limits. The parent still enforces the timeout."""

    def _start_guards(_pipe_end: int, _seconds: int) -> None:
        pass

    def _stop_guards(_pipe_end: int) -> None:
        pass

    def _is_exhausted(_limits: DocumentLimits) -> bool:
        """Return True: on this system each document has a process of its own."""
        return True


if __name__ == "__main__":
    main(sys.argv[1:])
