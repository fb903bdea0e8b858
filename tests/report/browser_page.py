"""Opens pages in a browser, with hostile names to put into them."""

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
def phone_page(browser: Browser) -> Iterator[Page]:
    """Open a page with the width of a phone."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    yield context.new_page()
    context.close()


class PageVisit:
    """A page opened from a file, with its errors and requests."""

    def __init__(self, page: Page, file: Path, text: str) -> None:
        self.page = page
        self.faults: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self.faults.append(message.text))
        page.on("request", lambda request: self.requests.append(request.url))
        file.write_bytes(text.encode())
        page.goto(file.as_uri())
        self.uri = file.as_uri()

    def external_requests(self) -> list[str]:
        """Return the requests except for the page itself and data URLs."""
        return [url for url in self.requests if url != self.uri and not url.startswith("data:")]

    def overflows(self) -> bool:
        """Return whether the page is wider than the viewport."""
        wide = self.page.evaluate("() => document.documentElement.scrollWidth > document.documentElement.clientWidth")
        return bool(wide)

    def has_injected_markup(self) -> bool:
        """Return whether hostile markup became part of the page."""
        return self.page.title() == "owned" or self.page.locator("main img, script, [onerror]").count() > 0


def contrast(page: Page, selector: str, background: str) -> float:
    """Return the WCAG contrast of a text to the background."""
    return contrast_ratio(page.locator(selector).first.evaluate("(each) => getComputedStyle(each).color"), background)


def contrast_ratio(one: str, other: str) -> float:
    """Return the contrast ratio of two colours."""
    lights = sorted((luminance(one), luminance(other)), reverse=True)
    return (lights[0] + 0.05) / (lights[1] + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour."""
    parts = [int(number) / 255 for number in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
