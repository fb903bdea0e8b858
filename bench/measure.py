"""Measurements: the best of a few runs, ratios to a baseline of the same run, and a stored report."""

import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

RESULTS = Path(__file__).with_name("results")


def best_of(runs: int, task: Callable[[], object]) -> float:
    """Return the seconds of the fastest run, which other processes disturbed least."""
    fastest = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        task()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


class Report:
    """A page of results in `bench/results/`, with gates that fail the run.

    Gates apply to ratios within one run, never to absolute figures, since machines differ.
    """

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.lines = [f"# {title}", "", f"Python {platform.python_version()}, {platform.machine()}.", ""]
        self.failed = False

    def line(self, text: str) -> None:
        """Add a line and print it."""
        self.lines.append(text)
        print(text)

    def gate(self, what: str, ratio: float, *, at_least: float | None = None, at_most: float | None = None) -> None:
        """Check a ratio against its limits and report the result."""
        low, high = at_least or 0.0, at_most or float("inf")
        held = low <= ratio <= high
        limit = f"at least {low:g}" if at_least is not None else f"at most {high:g}"
        self.line(f"- **{what}: {ratio:.2f}** (must be {limit}): {'held' if held else 'MISSED'}")
        self.failed |= not held

    def finish(self) -> None:
        """Store the report; exit with 1 if a gate was missed."""
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{self.name}.md").write_text("\n".join(self.lines) + "\n")
        if self.failed:
            sys.exit(f"bench {self.name}: a gate was missed")
