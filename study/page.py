"""docs/study.md: the introduction, and the section that each chapter left."""

import json
import sys
from pathlib import Path

from study import CHAPTERS
from study.chapter import RESULTS

INTRODUCTION = Path(__file__).with_name("introduction.md")
PAGE = Path(__file__).parents[1] / "docs" / "study.md"


def page() -> str:
    """Return the text of the page. Chapters that were never run are named, not left out silently."""
    parts = [INTRODUCTION.read_text(), in_short()]
    for name in CHAPTERS:
        section = RESULTS / f"{name}.md"
        parts.append(section.read_text() if section.exists() else f"## {name}\n\nNot run yet: `make study-{name}`.\n")
    return "\n".join(parts)


def in_short() -> str:
    """Return how many findings hold, and which do not."""
    findings = []
    for name in CHAPTERS:
        kept = RESULTS / f"{name}.json"
        if kept.exists():
            findings += [(name, each) for each in json.loads(kept.read_text())["findings"]]
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
    PAGE.write_text(page())
    print(f"{PAGE.name}: {len(CHAPTERS)} chapters", file=sys.stderr)


if __name__ == "__main__":
    main()
