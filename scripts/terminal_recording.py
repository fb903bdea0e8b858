"""Write docs/images/recording.svg: a terminal session that recovers the site of the examples. Run by `make docs`.

The commands are run in a copy of docs/examples, and their real output is shown. Lines appear one after another; where
animation is disabled, all lines are visible.
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
_WIDTH = 760  # pixels: the longest line and a margin
_LINE_HEIGHT = 19  # pixels per line
_TOP = 46  # baseline of the first line
_COMMAND_SECONDS = 1.2  # seconds after a command
_LINE_SECONDS = 0.08  # between lines of output
_STYLE = """\
text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d0d7de;white-space:pre;animation:come 1ms linear both}
.typed{fill:#fff;font-weight:600}.mark{fill:#3fb950}
@keyframes come{from{opacity:0}to{opacity:1}}
@media (prefers-reduced-motion:reduce){text{animation:none}}"""


def record_session() -> list[tuple[str, str]]:
    """Run the commands; return each with its output."""
    with tempfile.TemporaryDirectory() as folder, shell(Path(folder)) as opened:
        return [(command, opened.run(Step(command, ""))) for command in COMMANDS]


def render_svg(session: list[tuple[str, str]]) -> str:
    """Return a session as SVG."""
    rows: list[tuple[str, bool, float]] = []
    at = 0.3
    for command, output in session:
        rows.append((command, True, at))
        at += _COMMAND_SECONDS
        for line in output.splitlines():
            rows.append((line, False, at))
            at += _LINE_SECONDS
        at += _COMMAND_SECONDS / 2
    height = _TOP + _LINE_HEIGHT * len(rows) + 6
    texts = []
    for number, (text, is_typed, when) in enumerate(rows):
        mark = '<tspan class="mark">$ </tspan>' if is_typed else ""
        kind = ' class="typed"' if is_typed else ""
        place = f'x="20" y="{_TOP + _LINE_HEIGHT * number}"'
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
    sys.stdout.write(render_svg(record_session()))
