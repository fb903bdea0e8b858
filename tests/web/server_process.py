"""Servers as separate processes."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.web.client import Client


@contextmanager
def run_process(command: list[str | Path], env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process, and kill it at the end of the block."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, **env}, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def wait_for_client(process: subprocess.Popen[bytes]) -> Client:
    """Wait until the server reports its URL, and return a client."""
    assert process.stderr is not None
    line = process.stderr.readline().decode()
    assert line.startswith("unlost: listening at http://127.0.0.1:"), line
    return Client(int(line.rpartition(":")[2].strip().rstrip("/")))
