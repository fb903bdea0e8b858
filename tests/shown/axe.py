"""What axe-core says of a page."""

from pathlib import Path

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page

from tests.shown.looking import Visit

_OPTIONS = {"resultTypes": ["violations"]}


def faults(page: Page) -> list[str]:
    """Return what axe finds wrong, in a line each. The page must not have a policy that keeps its script out."""
    found = Axe().run(page, options=_OPTIONS).response["violations"]
    return [f"{each['id']}: {node['html'][:150]}" for each in found for node in each["nodes"]]


def faults_of(browser: Browser, file: Path, text: str, scheme: str) -> list[str]:
    """Return what axe finds wrong with a page in a file of its own, light or dark, whatever policy it has."""
    with browser.new_context(
        bypass_csp=True,  # its policy would keep axe out, too
        color_scheme=scheme,  # type: ignore[arg-type]  # one of two words
    ) as context:
        page = context.new_page()
        Visit(page, file, text)
        return faults(page)
