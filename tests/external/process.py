"""Starts server processes: chooses a free port, waits until they respond, and ends them by id."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_READY_SECONDS = 60
_ATTEMPTS = 3


def free_port() -> int:
    """Return a free loopback port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def is_open(port: int) -> bool:
    """Return whether a process listens on a port."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def start_server(
    command: Callable[[int], list[str | Path]],
    ready: Callable[[int], bool],
    folder: Path,
    env: dict[str, str] | None = None,
) -> Iterator[int]:
    """Start a server in a folder, yield its port once it is ready, and end its process group.

    The port may be taken before the server listens: a server that ends at once is started again on another one.
    """
    log = folder / "server.log"
    for _ in range(_ATTEMPTS):
        port = free_port()
        with log.open("wb") as output:
            process = subprocess.Popen(
                command(port), cwd=folder, stdout=output, stderr=output, start_new_session=True, env=env
            )
        try:
            if _wait(process, ready, port):
                yield port
                return
        finally:
            _end(process)
    raise RuntimeError(f"the server did not come up:\n{log.read_text(errors='replace')[-2000:]}")


def _wait(process: subprocess.Popen[bytes], ready: Callable[[int], bool], port: int) -> bool:
    deadline = time.monotonic() + _READY_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if ready(port):
            return True
        time.sleep(0.05)  # between polls
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
