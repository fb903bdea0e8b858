"""Writes docs/study.md from the introduction and the section of each chapter."""

import json
import sys
from pathlib import Path

from study import CHAPTERS
from study.chapter import RESULTS

INTRODUCTION = Path(__file__).with_name("introduction.md")
PAGE = Path(__file__).parents[1] / "docs" / "study.md"


def build_page() -> str:
    """Return the text of the page, with a note for chapters that were never run."""
    parts = [INTRODUCTION.read_text(), build_summary()]
    for name in CHAPTERS:
        section = RESULTS / f"{name}.md"
        parts.append(section.read_text() if section.exists() else f"## {name}\n\nNot run yet: `make study-{name}`.\n")
    return "\n".join(parts)


def build_summary() -> str:
    """Return a summary: the number of findings that hold, and those that do not."""
    findings = []
    for name in CHAPTERS:
        file = RESULTS / f"{name}.json"
        if file.exists():
            findings += [(name, each) for each in json.loads(file.read_text())["findings"]]
    wrong = [
        f"- {each['claim']}: {each['found']} (`make study-{name}`)" for name, each in findings if not each["holds"]
    ]
    held = len(findings) - len(wrong)
    return "\n".join(
        [
            "## In short",
            "",
            f"Of {len(findings)} findings that were looked at, {held} hold here. These do not:",
            "",
            *wrong,
            "",
        ]
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(build_page())
    print(f"{PAGE.name}: {len(CHAPTERS)} chapters", file=sys.stderr)


if __name__ == "__main__":
    main()
