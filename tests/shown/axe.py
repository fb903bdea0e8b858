"""What axe-core says of a page."""

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

_OPTIONS = {"resultTypes": ["violations"]}


def faults(page: Page) -> list[str]:
    """Return what axe finds wrong, in a line each. The page must not have a policy that keeps its script out."""
    found = Axe().run(page, options=_OPTIONS).response["violations"]
    return [f"{each['id']}: {node['html'][:150]}" for each in found for node in each["nodes"]]
