"""Processes that share a folder of limits, for `test_limit_store`: WHAT FOLDER COUNT."""

import asyncio
import json
import os
import signal
import sys
from types import FrameType

from unlost.clock import SystemClock
from unlost.errors import NotNowError
from unlost.http import FileLimitStore, RateLimiter, RateLimitState, WaitBudget
from unlost.registry import Archive, ArchiveKind, RateLimit, RequestKind

LIMIT = RateLimit(50, 0.5, (RequestKind.INDEX,), "a test")
QUOTA = RateLimit(200, 86_400, (RequestKind.REPLAY,), "a test")
ARCHIVE = Archive("a/b", "A", ArchiveKind.MEMENTO, limits=(LIMIT,), quotas=(QUOTA,))


def add_one(ledger: RateLimitState) -> tuple[RateLimitState, int]:
    """Increment the number of waits, and return it."""
    return RateLimitState(waits=ledger.waits + 1), ledger.waits + 1


async def acquire(folder: str, work: RequestKind, questions: int) -> None:
    """Acquire permits in real time, and print when each was granted."""
    turns, slot, given = RateLimiter(FileLimitStore(folder), SystemClock()), asyncio.Semaphore(4), []
    for _ in range(questions):
        try:
            turn = await turns.acquire(ARCHIVE, work, slot, WaitBudget(30))
        except NotNowError:
            break
        given.append(turn.at)
        turn.release()
    print(json.dumps(given))


def killed_at(folder: str, line: int) -> bool:
    """Change a state in a child that kills itself after this number of lines; return whether it did."""
    child = os.fork()
    if not child:
        left = line

        def trace(frame: FrameType, event: str, _: object) -> object:
            nonlocal left
            if "limit_store" not in frame.f_code.co_filename:
                return None
            left -= event == "line"
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)  # type: ignore[arg-type]  # its own type is not to be had
        while True:
            FileLimitStore(folder).update("a", add_one)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def kill(folder: str, points: int) -> None:
    """Kill changes at one line after another; print the number of kills, and the state after each."""
    killed, output = 0, []
    for point in range(points):
        killed += killed_at(folder, 1 + point)
        output.append(FileLimitStore(folder, sys.exit).update("a", lambda ledger: (ledger, ledger.waits)))
    print(json.dumps([killed, *output]))


if __name__ == "__main__":
    what, where, count = sys.argv[1:]
    if what == "kill":
        kill(where, int(count))
    else:
        asyncio.run(acquire(where, RequestKind(what), int(count)))
