"""Simple SVG drawings for docs/: boxes, arrows and text.

They have their own background, light or dark by the preference of the reader's system, so that they are readable on any
page.
"""

from html import escape

_STYLE = """\
:root{--paper:#fff;--ink:#1f2328;--soft:#656d76;--line:#8c959f;--box:#f6f8fa;--yes:#dafbe1;--yes-line:#1a7f37;\
--no:#ffebe9;--no-line:#cf222e;--ask:#ddf4ff;--ask-line:#0969da}
@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--soft:#9198a1;--line:#6e7681;--box:#161b22;\
--yes:#12261e;--yes-line:#3fb950;--no:#25171c;--no-line:#f85149;--ask:#121d2f;--ask-line:#58a6ff}}
text{white-space:pre;font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--ink)}
.code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px}
.soft{fill:var(--soft)}.bold{font-weight:600}
.plain{fill:var(--box);stroke:var(--line)}.yes{fill:var(--yes);stroke:var(--yes-line)}
.no{fill:var(--no);stroke:var(--no-line)}.ask{fill:var(--ask);stroke:var(--ask-line)}
.arrow{stroke:var(--line);stroke-width:1.5;fill:none;marker-end:url(#head)}.dashed{stroke-dasharray:5 4}
.head{fill:var(--line)}.paper{fill:var(--paper)}"""


class Drawing:
    """A drawing with a size in pixels. title: accessible description."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._size = (width, height)
        self._title = title
        self._parts: list[str] = []

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """Write a line of text; y is its baseline. kind: `code`, `soft`, `bold`, or several."""
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(text, quote=False)}</text>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, *lines: str, kind: str = "plain", text_kind: str = ""
    ) -> None:
        """Draw a box with centred lines. kind: `plain`, `yes`, `no`, `ask`. text_kind: kind of the lines."""
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" class="{kind}"/>')
        first = y + height / 2 - 8.5 * (len(lines) - 1) + 4.5
        for number, line in enumerate(lines):
            self.text(x + width / 2, first + 17 * number, line, text_kind, "middle")

    def arrow(self, *points: tuple[float, float], kind: str = "") -> None:
        """Draw an arrow along some points. kind: `dashed`."""
        path = " L".join(f"{x:g} {y:g}" for x, y in points)
        self._parts.append(f'<path d="M{path}" class="arrow {kind}"/>')

    def svg(self) -> str:
        """Return the SVG."""
        width, height = self._size
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        marker = (
            '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8z" class="head"/></marker>'
        )
        paper = f'<rect width="{width}" height="{height}" rx="8" class="paper"/>'
        parts = [head, f"<title>{escape(self._title)}</title>", f"<style>{_STYLE}</style>", f"<defs>{marker}</defs>"]
        return "\n".join([*parts, paper, *self._parts, "</svg>"]) + "\n"
