"""A chapter of the study: figures that are kept, text that is written from them, and findings that are judged."""

import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

RESULTS = Path(__file__).with_name("results")


class Chapter:
    """What one module of the study finds, on its way to `study/results/`.

    name: of the module. title: of its section in docs/study.md. command: what makes the figures, which the section
    names; that of the module if none is given.

    A chapter says what a paper claims and whether that is so (`finding`), which never fails the run: it is what is
    found. What must be so (`gate`) does fail it.
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
        """Add a line of Markdown, and show it."""
        self._lines.append(text)
        print(text)

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Add a table; what is in it is written as it stands, so figures come formatted."""
        self.line("| " + " | ".join(heads) + " |")
        self.line("|" + "---|" * len(heads))
        for row in rows:
            self.line("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |")
        self.line()

    def keep(self, name: str, value: object) -> None:
        """Keep a figure, or any JSON of figures, in the chapter's file."""
        self.figures[name] = value

    def finding(self, claim: str, found: str, *, holds: bool) -> None:
        """Say what a paper found, what was found here, and whether that is the same."""
        self.findings.append({"claim": claim, "found": found, "holds": holds})

    def gate(self, what: str, value: float, *, at_least: float | None = None, at_most: float | None = None) -> None:
        """Judge a figure that must be so, and say so."""
        held = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
        limit = f"at least {at_least:g}" if at_least is not None else f"at most {at_most:g}"
        self.line(f"- **{what}: {value:.2f}** (must be {limit}): {'held' if held else 'MISSED'}")
        self.keep(f"gate: {what}", {"value": value, "limit": limit, "held": held})
        if not held:
            self.failed.append(what)

    def finish(self) -> None:
        """Write both files; leave with 1 if a gate was missed."""
        if self.findings:
            self.line()
            rows = [(each["claim"], each["found"], "yes" if each["holds"] else "**no**") for each in self.findings]
            self.table(("the papers", "here", "holds"), rows)
        RESULTS.mkdir(exist_ok=True)
        kept = {
            "chapter": self.name,
            "command": self.command,
            "seconds": round(time.perf_counter() - self._start, 1),
            "findings": self.findings,
            "figures": self.figures,
        }
        (RESULTS / f"{self.name}.json").write_text(json.dumps(kept, indent=1) + "\n")
        (RESULTS / f"{self.name}.md").write_text("\n".join(self._lines).rstrip() + "\n")
        if self.failed:
            sys.exit(f"study {self.name}: a gate was missed: {', '.join(self.failed)}")
