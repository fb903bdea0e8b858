"""Work of the core that may take hours: watched, and ended by Ctrl-C."""

import threading
from collections.abc import Callable
from typing import TypeVar

from unlost._core import Progress

ProgressCallback = Callable[[int, int], None]
"""Called now and then with the bytes and the lines that have been read."""

T = TypeVar("T")

_POLL_SECONDS = 0.1


def run_with_progress(
    work: Callable[[Progress], T], on_progress: ProgressCallback | None = None, progress: Progress | None = None
) -> T:
    """Return what `work` returns, or raise what it raises.

    progress: what the work reports to and is cancelled by, if somebody has one already.

    It runs in a thread of its own, so that this one sees Ctrl-C: the work is then told to end, which it does within
    moments, and nothing of it is left behind.
    """
    reported = progress or Progress()
    results: list[T] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            results.append(work(reported))
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits
            failures.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=run, name="unlost-work")
    thread.start()
    try:
        while not done.wait(_POLL_SECONDS):
            if on_progress is not None:
                on_progress(reported.bytes, reported.lines)
    except BaseException:
        reported.cancel()
        raise
    finally:
        thread.join()
    if on_progress is not None:
        on_progress(reported.bytes, reported.lines)
    if failures:
        raise failures[0]
    return results[0]
