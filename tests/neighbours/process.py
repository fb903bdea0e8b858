"""A server that a test starts: a free port with retry, ready when it answers, its log shown if not, ended by id."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_READY_SECONDS = 60
_TRIES = 3


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def is_open(port: int) -> bool:
    """Return whether somebody listens on a port."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def running(
    command: Callable[[int], list[str | Path]],
    ready: Callable[[int], bool],
    folder: Path,
    env: dict[str, str] | None = None,
) -> Iterator[int]:
    """Start a server in a folder and yield its port once it is ready; end its whole process group afterwards.

    The port may be taken between looking and listening: a server that ends at once is started again on another.
    """
    log = folder / "neighbour.log"
    for _ in range(_TRIES):
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
        time.sleep(0.05)  # between two polls, never instead of one
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
