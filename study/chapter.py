"""A chapter of the study: stored figures, generated text, findings and gates."""

import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

RESULTS = Path(__file__).with_name("results")


class Chapter:
    """Collects the figures and the text of one module of the study for `study/results/`.

    A finding compares a claim of a paper with the result here and never fails the run. A gate does.

    Args:
        name: Name of the module.
        title: Title of its section in docs/study.md.
        command: Command that computes the figures, shown in the section; by default that of the module.
    """

    def __init__(self, name: str, title: str, command: str | None = None) -> None:
        self.name = name
        self.command = command or f"make study-{name}"
        self.figures: dict[str, object] = {}
        self.findings: list[dict[str, object]] = []
        self.failed: list[str] = []
        self._lines = [f"## {title}", "", f"Every figure here is made by `{self.command}`.", ""]
        self._start = time.perf_counter()

    def line(self, text: str = "") -> None:
        """Add a line of Markdown and print it."""
        self._lines.append(text)
        print(text)

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Add a table of formatted cells."""
        self.line("| " + " | ".join(heads) + " |")
        self.line("|" + "---|" * len(heads))
        for row in rows:
            self.line("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |")
        self.line()

    def add_figure(self, name: str, value: object) -> None:
        """Store a figure, or any JSON of figures, in the chapter's file."""
        self.figures[name] = value

    def add_finding(self, claim: str, found: str, *, holds: bool) -> None:
        """Add a claim of a paper, the result here, and whether they agree."""
        self.findings.append({"claim": claim, "found": found, "holds": holds})

    def gate(self, what: str, value: float, *, at_least: float | None = None, at_most: float | None = None) -> None:
        """Check a figure against its limits and report the result."""
        held = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
        limit = f"at least {at_least:g}" if at_least is not None else f"at most {at_most:g}"
        self.line(f"- **{what}: {value:.2f}** (must be {limit}): {'held' if held else 'MISSED'}")
        self.add_figure(f"gate: {what}", {"value": value, "limit": limit, "held": held})
        if not held:
            self.failed.append(what)

    def finish(self) -> None:
        """Write both files; exit with 1 if a gate was missed."""
        if self.findings:
            self.line()
            rows = [(each["claim"], each["found"], "yes" if each["holds"] else "**no**") for each in self.findings]
            self.table(("the papers", "here", "holds"), rows)
        RESULTS.mkdir(exist_ok=True)
        content = {
            "chapter": self.name,
            "command": self.command,
            "seconds": round(time.perf_counter() - self._start, 1),
            "findings": self.findings,
            "figures": self.figures,
        }
        (RESULTS / f"{self.name}.json").write_text(json.dumps(content, indent=1) + "\n")
        (RESULTS / f"{self.name}.md").write_text("\n".join(self._lines).rstrip() + "\n")
        if self.failed:
            sys.exit(f"study {self.name}: a gate was missed: {', '.join(self.failed)}")
