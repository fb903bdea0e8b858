"""Write docs/images/recording.svg: a terminal in which the lost site of the examples comes back. Run by `make docs`.

The commands are really run, in a copy of docs/examples, and what they print is what is shown. Lines appear one after
the other; where nothing moves, since the reader or the program that shows it wants that, all of them are there.
"""

import sys
import tempfile
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.docs.tutorial import Step, shell

COMMANDS = (
    "unlost recover http://lost.example/ --archives lost/archives.toml",
    "unlost report lost.example.recovery",
    "unlost export lost.example.recovery -o site",
    'grep -o \'href="[^"]*"\' site/index.html',
)
_WIDTH = 760  # pixels: the longest line, and a margin
_LINE = 19  # from one line to the next
_TOP = 46  # where the first stands
_PAUSE = 1.2  # seconds for a command to be read
_BETWEEN = 0.08  # from one line of output to the next
_STYLE = """\
text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d0d7de;white-space:pre;animation:come 1ms linear both}
.typed{fill:#fff;font-weight:600}.mark{fill:#3fb950}
@keyframes come{from{opacity:0}to{opacity:1}}
@media (prefers-reduced-motion:reduce){text{animation:none}}"""


def recorded() -> list[tuple[str, str]]:
    """Return each command with what it prints."""
    with tempfile.TemporaryDirectory() as folder, shell(Path(folder)) as opened:
        return [(command, opened.run(Step(command, ""))) for command in COMMANDS]


def drawn(session: list[tuple[str, str]]) -> str:
    """Return a session as SVG."""
    rows: list[tuple[str, bool, float]] = []
    at = 0.3
    for command, output in session:
        rows.append((command, True, at))
        at += _PAUSE
        for line in output.splitlines():
            rows.append((line, False, at))
            at += _BETWEEN
        at += _PAUSE / 2
    height = _TOP + _LINE * len(rows) + 6
    texts = []
    for number, (text, is_typed, when) in enumerate(rows):
        mark = '<tspan class="mark">$ </tspan>' if is_typed else ""
        kind = ' class="typed"' if is_typed else ""
        place = f'x="20" y="{_TOP + _LINE * number}"'
        words = f"{mark}{escape(text, quote=False)}"
        texts.append(f'<text {place}{kind} style="animation-delay:{when:.2f}s">{words}</text>')
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    lights = "".join(f'<circle cx="{x}" cy="17" r="5.5" fill="#484f58"/>' for x in (22, 40, 58))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            "<title>A lost site comes back: recovered, reported, exported</title>",
            f"<style>{_STYLE}</style>",
            f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#0d1117" stroke="#484f58"/>',
            lights,
            *texts,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(drawn(recorded()))
