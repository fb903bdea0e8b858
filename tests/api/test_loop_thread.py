"""The event loop in a thread is put away, whenever Ctrl-C comes."""

import asyncio
from threading import Thread

import pytest

from unlost.api import LoopThread


def interrupt() -> None:
    """Do what Ctrl-C does."""
    raise KeyboardInterrupt


def test_interrupted_while_it_begins_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread is on its way by then: it finds that it is not wanted, and closes its loop."""
    start = Thread.start

    def starts_and_is_interrupted(thread: Thread) -> None:
        start(thread)
        interrupt()

    loop = LoopThread("test")
    monkeypatch.setattr(Thread, "start", starts_and_is_interrupted)
    with pytest.raises(KeyboardInterrupt):
        loop.__enter__()
    assert loop._loop_future.result().is_closed()


def test_interrupted_before_it_begins_it_has_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is left open, about which uvloop complains on the terminal: there is none before its thread has started."""
    monkeypatch.setattr("unlost.api.loop_thread._START_SECONDS", 0)
    loop = LoopThread("test")
    monkeypatch.setattr(Thread, "start", lambda _: interrupt())
    with pytest.raises(KeyboardInterrupt):
        loop.__enter__()
    assert not loop._loop_future.done()


def test_interrupted_while_it_ends_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What still runs in it is left to itself, the loop is closed."""
    loop = LoopThread("test").__enter__()
    assert loop.run(asyncio.sleep(0, "done")) == "done"
    monkeypatch.setattr("unlost.api.loop_thread._cancel_all_tasks", interrupt)
    with pytest.raises(KeyboardInterrupt):
        loop.__exit__(None, None, None)
    assert loop._loop.is_closed()
    assert not loop._thread.is_alive()
