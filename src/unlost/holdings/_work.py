"""Long work of the core, which Ctrl-C can end."""

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

from unlost import _core

_Result = TypeVar("_Result")


def run(progress: _core.Progress, work: Callable[[], _Result]) -> _Result:
    """Return what `work` does, which runs in a thread of its own; when this one is interrupted, it is cancelled.

    The core does not look at signals, and Python does so only between its own steps. Raises what `work` raises.
    """
    results: list[_Result] = []
    errors: list[BaseException] = []

    def keep() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  raised again below
            errors.append(error)

    thread = Thread(target=keep, name="unlost-work")
    thread.start()
    try:
        thread.join()
    except BaseException:
        progress.cancel()
        thread.join()
        raise
    for error in errors:
        raise error
    return results[0]
