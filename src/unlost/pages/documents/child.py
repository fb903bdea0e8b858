"""The process that reads documents: `python -m unlost.pages.documents.child LINE LIMITS`, run by `Documents` only.

It takes documents from its standard input and writes their texts to its standard output, until the input ends. While
it reads one, three things end it from outside, whatever it is doing: the processor's time, the clock, and that whoever
asked is gone. LINE is the number of a pipe on which nothing is ever said: its end tells that.
"""

import os
import select
import signal
import sys
from pathlib import Path

from unlost.errors import DocumentError
from unlost.pages.documents.limits import Limits
from unlost.pages.documents.messages import Answer, receive_request, send_answer
from unlost.pages.documents.readers.reading import read
from unlost.pages.text import Text

# The asking process counts the seconds, too, and is to be first: it can say what happened.
_GRACE_SECONDS = 2

_SPENT_SHARE = 2


def main(words: list[str]) -> None:
    """Read documents until there are no more."""
    line, limits = int(words[0]), Limits.of_words(words[1:])
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that whatever a library prints is no answer
    _set_limits(limits)
    while (request := receive_request(source)) is not None:
        _guard(line, limits.seconds)
        answer = Answer(_result(*request, limits), _is_spent(limits))
        del request
        _unguard(line)
        send_answer(sink, answer)
        if answer.is_spent:
            return


def _result(kind: str, body: bytes, limits: Limits) -> Text | DocumentError:
    try:
        return read(kind, body, limits)
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

    def _set_limits(limits: Limits) -> None:
        """Set what this process may take in all, and what it starts inherits."""
        _lower(resource.RLIMIT_AS, limits.memory)
        _lower(resource.RLIMIT_FSIZE, 0)  # it writes no files, whatever a document wants
        _lower(resource.RLIMIT_CORE, 0)

    def _lower(what: int, most: int) -> None:
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))

    def _guard(line: int, seconds: int) -> None:
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

    def _unguard(line: int) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) & ~os.O_ASYNC)

    def _is_spent(limits: Limits) -> bool:
        """Return whether it keeps so much memory that a later document may have too little; where that can be told."""
        try:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        except OSError:
            return False
        return pages * resource.getpagesize() > limits.memory // _SPENT_SHARE

else:

    def _set_limits(_limits: Limits) -> None:
        """Set nothing: this system has no such limits. The asking process still watches the clock."""

    def _guard(_line: int, _seconds: int) -> None:
        """Do nothing, likewise."""

    def _unguard(_line: int) -> None:
        """Do nothing, likewise."""

    def _is_spent(_limits: Limits) -> bool:
        """Say yes: each document has a process of its own here."""
        return True


if __name__ == "__main__":
    main(sys.argv[1:])
