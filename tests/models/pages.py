"""The slow, obvious models of `unlost.pages`: lists of candidates, CSS, refreshes, and pages that are well formed."""

import re
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin

BLANK = " \t\n\f\r"


def srcset(value: str) -> list[str]:
    """Return the addresses of a `srcset`, step by step as the HTML standard says."""
    found: list[str] = []
    rest = value
    while True:
        rest = rest.lstrip(BLANK + ",")
        if not rest:
            return found
        url = re.match(rf"[^{BLANK}]+", rest)
        assert url is not None
        rest = rest[url.end() :]
        address = url[0].rstrip(",")
        if address:
            found.append(address)
        if address != url[0]:
            continue
        # The sizes: letters up to a comma that is not in brackets; brackets that are not closed go to the end.
        sizes = re.match(r"(?:[^,(]|\([^)]*(?:\)|\Z))*", rest)
        assert sizes is not None
        rest = rest[sizes.end() :]


def refresh(content: str) -> str | None:
    """Return the address of a refresh, which is the one big pattern that the standard spells out in steps."""
    found = re.match(
        rf"[{BLANK}]*[0-9.]+(?:[{BLANK}]*[;,][{BLANK}]*|[{BLANK}]+)(?:url[{BLANK}]*=[{BLANK}]*)?(.*)",
        content,
        re.IGNORECASE | re.DOTALL,
    )
    if found is None:
        return None
    address = found[1]
    if address[:1] in ("'", '"'):
        address = address[1:].partition(address[0])[0]
    return address or None


STRING = r"""(?:"(?P<{0}d>(?:[^"\\\n]|\\.)*)"|'(?P<{0}s>(?:[^'\\\n]|\\.)*)')"""
# In well-formed CSS without blocks in brackets, what counts is a comment, a `url()`, an import or another string.
CSS = re.compile(
    r"/\*.*?\*/"
    rf"|(?P<import>@import\s+{STRING.format('i')})"
    rf"|url\(\s*(?:{STRING.format('u')}|(?P<bare>(?:[^\s\"'()\\]|\\.)*))\s*\)"
    rf"|{STRING.format('x')}",
    re.DOTALL | re.IGNORECASE,
)


def css(text: str) -> list[str]:
    """Return the addresses of a well-formed style sheet, by one pattern."""
    names = ("id", "is", "ud", "us", "bare")
    found = [match[name] for match in CSS.finditer(text) for name in names if match[name] is not None]
    return [re.sub(r"\\(.)", r"\1", each) for each in found]


ATTRIBUTES = {
    ("a", "href"): "page",
    ("area", "href"): "page",
    ("iframe", "src"): "page",
    ("frame", "src"): "page",
    ("img", "src"): "requisite",
    ("script", "src"): "requisite",
    ("source", "src"): "requisite",
    ("video", "src"): "requisite",
    ("video", "poster"): "requisite",
    ("body", "background"): "requisite",
    ("td", "background"): "requisite",
}


class Page(HTMLParser):
    """Reads a page with Python's own parser."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.base: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what a tag refers to."""
        for name, value in attrs:
            if tag == "base" and name == "href" and self.base is None:
                self.base = value
            elif (use := ATTRIBUTES.get((tag, name))) and value:
                self.found.append((value, use))
            elif name == "srcset" and tag in {"img", "source"}:
                self.found += [(each, "requisite") for each in srcset(value or "")]


def page(text: str, base: str) -> list[tuple[str, str]]:
    """Return address and use of the links of a page, of the attributes that the model knows; in ASCII only."""
    reader = Page()
    reader.feed(text)
    reader.close()
    base = urljoin(base, reader.base) if reader.base else base
    found: dict[tuple[str, str], None] = {}
    for value, use in reader.found:
        address = urldefrag(value.strip(BLANK)).url
        if address:
            found[urljoin(base, address), use] = None
    return [each for each in found if each[0].startswith(("http://", "https://"))]
