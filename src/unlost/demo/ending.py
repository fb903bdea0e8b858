"""How the demonstration ends: by one signal, with everything put away, whatever comes after it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from types import FrameType

from unlost.errors import InputError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupt_once() -> Iterator[None]:
    """Let the first of Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt, and no other.

    What is put away then takes a moment, and whoever is impatient must not leave half of it behind.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def end(_number: int, _frame: FrameType | None) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in _SIGNALS:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


@contextmanager
def wait_until_interrupted(*, waits: bool) -> Iterator[None]:
    """After the block, wait until somebody ends it, if that is wanted: then the end is no interruption.

    Neither is it in the block, which says that it can be ended now: whoever reads that may be fast.
    """
    if not waits:
        yield
        return
    with suppress(KeyboardInterrupt):
        yield
        Event().wait()


@contextmanager
def demo_folder(keep: Path | None) -> Iterator[Path]:
    """Give a folder that is gone afterwards, or else the one to keep, which must be new or empty. Raises InputError."""
    if keep is None:
        with TemporaryDirectory(prefix="unlost-demo-") as folder:
            yield Path(folder)
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InputError(f"{keep}: there is something already: name a folder that is new or empty")
    keep.mkdir(parents=True, exist_ok=True)
    yield keep.resolve()
