"""Processes that store captures until they are killed: `python -m tests.recovery.killed_store`.

Each line of standard input names a folder, a seed, a file and a step. For each line, a forked process stores captures
in the folder and logs each result in the file. It kills itself at that step, or runs until it is killed if there is no
step.
"""

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.recovery.sample_captures import capture, make_fetched_capture, open_store

MAX_BYTES = 2_500_000


STEPS = ("write", "rename", "fsync", "ftruncate", "unlink")


def die_at(step: int, drawn: random.Random) -> None:
    """Kill this process at a system call that changes files: before, after, or in the middle of it."""
    left = step

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            nonlocal left
            left -= 1
            if left == 0:
                if call.__name__ == "write":
                    call(arguments[0], arguments[1][: drawn.randint(0, len(arguments[1]))])
                elif drawn.random() < 0.5:
                    call(*arguments, **options)
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return called

    for name in STEPS:
        setattr(os, name, dying(getattr(os, name)))


def store_captures(folder: Path, seed: int, log: Path, step: int) -> None:
    """Store captures of all sizes in an endless loop; large ones are written in pieces."""
    drawn = random.Random(seed)  # noqa: S311
    die_at(step, drawn)
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    # The state may be older than the WARCs: it knows some of the records, and the rest is adopted.
    known = {file: offset + size for file, offset, size, _ in logged[: drawn.randint(0, len(logged))]}
    warcs, adopted = open_store(folder, known, max_bytes=MAX_BYTES)
    output = log.open("ab", buffering=0)
    last = adopted[-1] if adopted else None
    while True:
        number = drawn.randrange(1 << 60)
        if last is not None and drawn.random() < 0.2:
            last = warcs.store_revisit(capture(number), last)
        else:
            body = drawn.randbytes(drawn.choice([0, 100, 10_000, 10_000, 100_000, 1_500_000]))
            last = warcs.store(make_fetched_capture(body, of=capture(number)), None)
        line = [last.file, last.offset, last.size, last.capture.digest]
        output.write(f"{json.dumps(line)}\n".encode())


def main() -> None:
    """Fork a process for each line of standard input."""
    for line in sys.stdin:
        folder, seed, log, step = line.split()
        child = os.fork()
        if child == 0:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, 0)
            os.dup2(nowhere, 1)
            try:
                store_captures(Path(folder), int(seed), Path(log), int(step))
            finally:
                os._exit(1)
        print("process", child, flush=True)
        print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
