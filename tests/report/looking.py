"""Looks at pages for people in a real browser, and names that nobody should meet, to put into them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
HIDDEN = "\u202egnp.exe\x1b[31m\x00\udcff"
RIGHT_TO_LEFT = "שלום/مرحبا"
LONG = "a" * 100_000


@contextmanager
def phone(browser: Browser) -> Iterator[Page]:
    """Open a window as wide as a phone."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    yield context.new_page()
    context.close()


class Visit:
    """A page that was opened from a file, and everything that it did."""

    def __init__(self, page: Page, file: Path, text: str) -> None:
        self.page = page
        self.faults: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self.faults.append(message.text))
        page.on("request", lambda request: self.requests.append(request.url))
        file.write_bytes(text.encode())
        page.goto(file.as_uri())
        self.address = file.as_uri()

    def asked_for(self) -> list[str]:
        """Return what was asked for besides the page itself, and what is in it."""
        return [url for url in self.requests if url != self.address and not url.startswith("data:")]

    def overflows(self) -> bool:
        """Return whether the page is wider than the screen."""
        wide = self.page.evaluate("() => document.documentElement.scrollWidth > document.documentElement.clientWidth")
        return bool(wide)

    def is_harmed(self) -> bool:
        """Return whether anything of what was planted became part of the page."""
        return self.page.title() == "owned" or self.page.locator("main img, script, [onerror]").count() > 0


def contrast(page: Page, selector: str, background: str) -> float:
    """Return the contrast of a text to the page, as WCAG counts it."""
    return ratio(page.locator(selector).first.evaluate("(each) => getComputedStyle(each).color"), background)


def ratio(one: str, other: str) -> float:
    """Return the contrast of two colours."""
    lights = sorted((luminance(one), luminance(other)), reverse=True)
    return (lights[0] + 0.05) / (lights[1] + 0.05)


def luminance(colour: str) -> float:
    """Return how light a colour is."""
    parts = [int(number) / 255 for number in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
