"""Python models of `unlost.html`: srcset, CSS, refresh, and well-formed pages."""

import re
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin

from tests.models.scripts import ENDINGS, candidates

BLANK = " \t\n\f\r"
MEDIA = {"application", "audio", "font", "image", "model", "multipart", "text", "video"}


def srcset(value: str) -> list[str]:
    """Return the URLs of a `srcset` by the algorithm of the HTML standard."""
    found: list[str] = []
    rest = value
    while True:
        rest = rest.lstrip(BLANK + ",")
        if not rest:
            return found
        url = re.match(rf"[^{BLANK}]+", rest)
        assert url is not None
        rest = rest[url.end() :]
        url_text = url[0].rstrip(",")
        if url_text:
            found.append(url_text)
        if url_text != url[0]:
            continue
        # Descriptors extend to a comma outside parentheses; unclosed parentheses extend to the end.
        sizes = re.match(r"(?:[^,(]|\([^)]*(?:\)|\Z))*", rest)
        assert sizes is not None
        rest = rest[sizes.end() :]


def refresh(content: str) -> str | None:
    """Return the URL of a refresh by one regular expression equivalent to the standard's steps."""
    found = re.match(
        rf"[{BLANK}]*[0-9.]+(?:[{BLANK}]*[;,][{BLANK}]*|[{BLANK}]+)(?:url[{BLANK}]*=[{BLANK}]*)?(.*)",
        content,
        re.IGNORECASE | re.DOTALL,
    )
    if found is None:
        return None
    url_text = found[1]
    if url_text[:1] in ("'", '"'):
        url_text = url_text[1:].partition(url_text[0])[0]
    return url_text or None


STRING = r"""(?:"(?P<{0}d>(?:[^"\\\n]|\\.)*)"|'(?P<{0}s>(?:[^'\\\n]|\\.)*)')"""
# In well-formed CSS without blocks in parentheses, only comments, `url()`, imports and other strings matter.
CSS = re.compile(
    r"/\*.*?\*/"
    rf"|(?P<import>@import\s+{STRING.format('i')})"
    rf"|url\(\s*(?:{STRING.format('u')}|(?P<bare>(?:[^\s\"'()\\]|\\.)*))\s*\)"
    rf"|{STRING.format('x')}",
    re.DOTALL | re.IGNORECASE,
)


def css(text: str) -> list[str]:
    """Return the URLs of a well-formed style sheet by one regular expression."""
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
    ("img", "data-src"): "requisite",
    ("img", "data-lazy-src"): "requisite",
    ("div", "data-lazy-src"): "requisite",
    ("iframe", "data-lazy-src"): "page",
}
# These are links only if the value resembles a URL; they may be CSS.
LAZY = ("data-original", "data-bg", "data-background-image")
SETS = {("img", "srcset"), ("source", "srcset"), ("img", "data-srcset"), ("img", "data-lazy-srcset")}


def looks_like_url(value: str) -> bool:
    """Return whether the value of an attribute read by scripts resembles a URL."""
    text = value.strip("".join(map(chr, range(33))))
    if not text or re.search(r"[\x00-\x20\"'<>\\^`{|}(]", text) or text[0] in "#?":
        return False
    if scheme := re.match("([^/?#]*?)://", text):
        has_host = text[scheme.end() : scheme.end() + 1] not in {"", "?", "#"}
        return has_host and scheme[1].lower() in {"http", "https"}
    path = re.split("[?#]", text)[0]
    if "/" not in path:
        return is_file(path) and not re.search("[:*]", path)
    first, _, rest = path.partition("/")
    is_media = first.lower() in MEDIA and "/" not in rest and not is_file(rest)
    return not is_media and ":" not in first and re.search("[A-Za-z]|[^\0-\x7f]", path) is not None


def is_file(name: str) -> bool:
    """Return whether a name has a file extension."""
    stem, _, ending = name.rpartition(".")
    return ending.lower() in ENDINGS and re.search("[A-Za-z0-9]", stem) is not None


class Page(HTMLParser):
    """Parses a page with Python's parser."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.base: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the links of a tag."""
        for name, value in attrs:
            if tag == "base" and name == "href" and self.base is None:
                self.base = value
            elif (use := ATTRIBUTES.get((tag, name))) and value:
                self.found.append((value, use))
            elif name in LAZY and "url(" in (value or ""):
                self.found += [(each, "requisite") for each in css(value or "")]
            elif name in LAZY and looks_like_url(value or ""):
                self.found.append((value or "", "requisite"))
            elif (tag, name) in SETS:
                self.found += [(each, "requisite") for each in srcset(value or "")]


def page(text: str, base: str) -> list[tuple[str, str]]:
    """Return URL and kind of the links of a page, for the attributes of the model; ASCII only."""
    reader = Page()
    reader.feed(text)
    reader.close()
    base = urljoin(base, reader.base) if reader.base else base
    found: dict[tuple[str, str], None] = {}
    for value, use in reader.found:
        url_text = urldefrag(value.strip(BLANK)).url
        if url_text:
            found[urljoin(base, url_text), use] = None
    return [each for each in found if each[0].startswith(("http://", "https://"))]


class Scripts(HTMLParser):
    """Collects script candidates of a page with Python's parser."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, bool]] = []
        self._is_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take attributes that are not links: data that looks like a URL, and code."""
        self._is_script = tag == "script"
        for name, value in attrs:
            text = (value or "").strip()
            is_link = (tag, name) in ATTRIBUTES or (tag, name) in SETS or name in LAZY
            if name.startswith("on") or (name.startswith("data-") and text[:1] in {"{", "["}):
                self.found.append((text, True))
            elif name.startswith("data-") and not is_link and looks_like_url(text):
                self.found.append((text, False))

    def handle_data(self, data: str) -> None:
        """Collect a script."""
        if self._is_script:
            self.found.append((data, True))

    def handle_endtag(self, _: str) -> None:
        """End a script."""
        self._is_script = False


def script_candidates(text: str, base: str) -> list[str]:
    """Return the URLs that scripts of a page may request, for well-formed ASCII pages without `<base>`."""
    reader = Scripts()
    reader.feed(text)
    reader.close()
    found: dict[str, None] = {}
    for part, is_code in reader.found:
        if is_code:
            found.update(dict.fromkeys(candidates(part, base)))
        else:
            found[urljoin(base, urldefrag(part).url)] = None
    return list(found)
