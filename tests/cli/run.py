"""Runs the command line, in this process or in one of its own."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO
from unittest import mock

from unlost.cli import run

UNLOST = Path(sys.executable).with_name("unlost")

_TIMEOUT = 60  # seconds

_PIPE_CAPACITY = 65_536  # bytes that a pipe of Linux takes before anything is read

# Variables that Python or the C library read when a process starts or only once.
_READ_AT_START = ("PYTHON", "LANG", "LC_", "TZ", "TMPDIR", "PATH")


def unlost(
    *arguments: str | bytes, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run `unlost` with no settings but those given, and the UNLOST_HOME of the test; stdout and stderr are bytes.

    It runs in this process, which saves the start of Python. Tests that are about processes (signals, memory, closed
    pipes, imports) use `unlost_process`. So do calls from other threads and from coroutines, bytes as arguments,
    paths of devices (/dev/stdout has to be a pipe), and more standard input than fits a pipe.
    """
    is_main = threading.current_thread() is threading.main_thread()
    is_set_up_at_start = any(name.startswith(_READ_AT_START) for name in env or {})
    is_special = any(isinstance(argument, bytes) or argument.startswith("/dev/") for argument in arguments)
    if not is_main or _is_in_event_loop() or is_set_up_at_start or is_special or len(stdin) > _PIPE_CAPACITY:
        return unlost_process(*arguments, stdin=stdin, env=env)
    words = [str(argument) for argument in arguments]
    with (
        mock.patch.dict(os.environ, _environment(env), clear=True),
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
        _standard_streams(stdin, stdout, stderr),
        _time_limit(words),
    ):
        try:
            code = run(words)
        except SystemExit as request:
            code = request.code if isinstance(request.code, int) else int(request.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(["unlost", *words], code, stdout.read(), stderr.read())


def unlost_process(
    *arguments: str | bytes, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run `unlost` as `unlost` does, in a process of its own."""
    return subprocess.run(
        [UNLOST, *arguments], input=stdin, capture_output=True, check=False, env=_environment(env), timeout=_TIMEOUT
    )


def _environment(env: dict[str, str] | None) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UNLOST_", "XDG_"))}
    return environment | {"UNLOST_HOME": os.environ["UNLOST_HOME"], "PYTHONUTF8": "1", **(env or {})}


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def _standard_streams(stdin: bytes, stdout: BinaryIO, stderr: BinaryIO) -> Iterator[None]:
    """Replace the descriptors 0, 1 and 2 and Python's streams on them, as a new process would have them."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(number) for number in range(3)]
    reading, writing = os.pipe()
    os.write(writing, stdin)
    os.close(writing)
    try:
        for number, source in enumerate((reading, stdout.fileno(), stderr.fileno())):
            os.dup2(source, number)
        os.close(reading)
        with (
            mock.patch("sys.stdin", _text_stream(0, "rb", "strict")),
            mock.patch("sys.stdout", _text_stream(1, "wb", "strict")),
            mock.patch("sys.stderr", _text_stream(2, "wb", "backslashreplace")),
        ):
            yield
    finally:
        for number, source in enumerate(saved):
            os.dup2(source, number)
            os.close(source)


def _text_stream(descriptor: int, mode: str, errors: str) -> TextIOWrapper:
    file = open(descriptor, mode, closefd=False)  # noqa: SIM115
    is_unbuffered = descriptor == 2
    return TextIOWrapper(file, "utf-8", errors, line_buffering=is_unbuffered)


@contextmanager
def _time_limit(words: list[str]) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"unlost {' '.join(words)} takes more than {_TIMEOUT} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_TIMEOUT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
