"""Checks pages with axe-core.

Each run also plants text with too little contrast and fails if axe does not report it. Without that, a browser in which
axe cannot examine text (for example without fonts: text has no boxes, and axe calls the rule inapplicable) would pass
every contrast check.
"""

from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page

from tests.report.browser_page import PageVisit

_OPTIONS = {"resultTypes": ["violations", "incomplete"]}
_CONTRAST = "color-contrast"
_PROBE = "contrast-probe"
_PLANT = f"""() => {{
  const probe = document.createElement("p");
  probe.id = "{_PROBE}";
  probe.textContent = "This text is too pale";
  probe.style = "color: #999; background: #888; font-size: 16px";
  (document.querySelector("main") ?? document.body).prepend(probe);
}}"""
_REMOVE = f"""() => {{
  const probe = document.getElementById("{_PROBE}"), text = document.createRange();
  text.selectNodeContents(probe);
  const {{ color, backgroundColor, fontFamily }} = getComputedStyle(probe);
  const boxes = [...text.getClientRects()].map((box) => `${{box.width}} x ${{box.height}}`);
  probe.remove();
  return `boxes of its text: ${{boxes.join(", ") || "none"}}; ${{color}} on ${{backgroundColor}}, ${{fontFamily}}`;
}}"""


class BlindCheckError(AssertionError):
    """Axe did not report the planted contrast fault, so it would not report real ones either."""


def axe_faults(page: Page) -> list[str]:
    """Return what axe finds wrong, in a line each.

    The page must not have a policy that keeps the script of axe out. Raises BlindCheckError.
    """
    page.evaluate(_PLANT)
    found = Axe().run(page, options=_OPTIONS).response
    probe = page.evaluate(_REMOVE)
    if not any(map(_is_probe, _nodes(found["violations"]))):
        undecided = [node["any"] for node in _nodes(found["incomplete"]) if _is_probe(node)]
        raise BlindCheckError(f"axe does not see text with too little contrast ({probe}); undecided: {undecided}")
    return [
        f"{each['id']}: {node['html'][:150]}"
        for each in found["violations"]
        for node in each["nodes"]
        if not _is_probe(node)
    ]


def axe_faults_of_file(browser: Browser, file: Path, text: str, scheme: str) -> list[str]:
    """Return the faults of a page in a file, light or dark, whatever its Content-Security-Policy."""
    with browser.new_context(
        bypass_csp=True,  # its policy would block axe
        color_scheme=scheme,  # type: ignore[arg-type]  # one of two words
    ) as context:
        page = context.new_page()
        PageVisit(page, file, text)
        return axe_faults(page)


def _nodes(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [node for each in rules if each["id"] == _CONTRAST for node in each["nodes"]]


def _is_probe(node: dict[str, Any]) -> bool:
    return list(node["target"]) == [f"#{_PROBE}"]
