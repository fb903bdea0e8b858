"""The event loop in a thread is closed whenever Ctrl-C comes."""

import asyncio
from threading import Thread

import pytest

from unlost.api import LoopThread


def interrupt() -> None:
    """Raise KeyboardInterrupt."""
    raise KeyboardInterrupt


def test_interruption_during_start_closes_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The running thread notices that it is not used."""
    start = Thread.start

    def starts_and_is_interrupted(thread: Thread) -> None:
        start(thread)
        interrupt()

    loop = LoopThread("test")
    monkeypatch.setattr(Thread, "start", starts_and_is_interrupted)
    with pytest.raises(KeyboardInterrupt):
        loop.__enter__()
    assert loop._loop_future.result().is_closed()


def test_interruption_before_start_creates_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """No loop is left open, about which uvloop warns."""
    monkeypatch.setattr("unlost.api.loop_thread._START_SECONDS", 0)
    loop = LoopThread("test")
    monkeypatch.setattr(Thread, "start", lambda _: interrupt())
    with pytest.raises(KeyboardInterrupt):
        loop.__enter__()
    assert not loop._loop_future.done()


def test_interruption_during_exit_closes_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Running tasks are abandoned."""
    loop = LoopThread("test").__enter__()
    assert loop.run(asyncio.sleep(0, "done")) == "done"
    monkeypatch.setattr("unlost.api.loop_thread._cancel_all_tasks", interrupt)
    with pytest.raises(KeyboardInterrupt):
        loop.__exit__(None, None, None)
    assert loop._loop.is_closed()
    assert not loop._thread.is_alive()
