"""Runs a function in a fork that is killed or interrupted at the n-th file operation."""

import os
import signal
import sys
from collections.abc import Callable

_STEPS = frozenset(
    {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.utime", "os.symlink", "os.truncate",
     "shutil.rmtree", "shutil.copytree", "shutil.copyfile", "tempfile.mkdtemp", "tempfile.mkstemp"}
)  # fmt: skip
KILLED, INTERRUPTED, DONE = -signal.SIGKILL, 130, 0


def run_interrupted(work: Callable[[], object], step: int, *, how: int) -> int:
    """Run a function in a fork that is killed or interrupted (Ctrl-C) at a step; return the exit code."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            sys.addaudithook(_Interrupter(step, how))
            work()
            code = DONE
        except KeyboardInterrupt:
            code = INTERRUPTED
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def count_steps(work: Callable[[], object]) -> int:
    """Return the number of file operations of a function, by running it in a fork."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            interrupter = _Interrupter(-1, KILLED)
            sys.addaudithook(interrupter)
            work()
            os.write(writing, str(interrupter.count).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(process, 0)
    with os.fdopen(reading, "rb") as output:
        return int(output.read())


class _Interrupter:
    def __init__(self, step: int, how: int) -> None:
        self.count, self._step, self._how = 0, step, how

    def __call__(self, event: str, _: object) -> None:
        if event not in _STEPS:
            return
        self.count += 1
        if self.count != self._step:
            return
        if self._how == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        raise KeyboardInterrupt
