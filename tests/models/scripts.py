"""Python model of `unlost.html.links`: URLs in strings of scripts, by regular expressions."""

import re
from urllib.parse import urljoin

ENDINGS = [
    "html",
    "htm",
    "shtml",
    "xhtml",
    "php",
    "php3",
    "asp",
    "aspx",
    "jsp",
    "cgi",
    "pl",
    "cfm",
    "css",
    "js",
    "mjs",
    "json",
    "xml",
    "rss",
    "atom",
    "txt",
    "pdf",
    "png",
    "jpg",
    "jpeg",
    "gif",
    "webp",
    "svg",
    "ico",
    "bmp",
    "avif",
    "woff",
    "woff2",
    "ttf",
    "otf",
    "eot",
    "mp3",
    "mp4",
    "m4a",
    "ogg",
    "ogv",
    "webm",
    "wav",
    "swf",
    "flv",
    "mov",
    "avi",
    "mpg",
    "mpeg",
    "doc",
    "docx",
    "xls",
    "xlsx",
    "ppt",
    "pptx",
    "rtf",
    "zip",
    "gz",
    "tar",
]
NAMES = {"www.w3.org", "schema.org", "ogp.me", "purl.org", "xmlns.com", "ns.adobe.com"}
STRING = re.compile(r"""(?=(["'`])((?:[A-Za-z0-9\-._~:/?#@!$&*+,;=%]|\\(?=/))*)\1)""", re.ASCII)
FILE = re.compile(rf"[^?#]*/(?:[^/?#]+\.(?:{'|'.join(ENDINGS)})|(?<=[^/?#]{{2}}/))(?:[?#].*)?", re.IGNORECASE)


def candidates(script: str, base: str) -> list[str]:
    """Return the URLs in the strings of an ASCII script."""
    found: dict[str, None] = {}
    targets = navigations(script)
    for match in re.finditer("[\"'`]", script):
        if match.end() in targets:
            address = targets[match.end()].strip().partition("#")[0]
            if address:
                found[urljoin(base, address)] = None
        else:
            found.update(dict.fromkeys(urls_by_pattern(script, match.start(), base)))
    return list(found)


def urls_by_pattern(script: str, start: int, base: str) -> list[str]:
    """Return the URL of the string at this position as a list, empty if it is not one."""
    match = STRING.match(script, start)
    if match is None:
        return []
    text = match[2].replace("\\", "")
    before = script[: match.start()].rstrip(" \t\n\r\f")
    after = script[match.start() + len(match[2]) + 2 :].lstrip(" \t\n\r\f")
    if before.endswith("+") or after.startswith("+") or not resembles_url(text, base):
        return []
    return [urljoin(base, text.partition("#")[0])]


NAVIGATION = re.compile(
    r"""(?<![\w$])location(?=((?:\.href)?\s*=|\.(?:replace|assign)\s*\()\s*(["'])((?:(?!\2)[^\\\n])+)\2)""", re.ASCII
)


def navigations(script: str) -> dict[int, str]:
    """Return the strings that a script navigates to, by position, without nested ones."""
    found: dict[int, str] = {}
    end = 0
    for match in NAVIGATION.finditer(script):
        after = script[match.end(3) + 1 :].lstrip(" \t\n\r\f")
        added = re.split("[;\n]", after[1:80])[0] if after.startswith("+") else "#"
        if match.start() >= end and after[:1] not in (".", "[") and ("#" in added or "hash" in added):
            found[match.start(3)] = match[3]
            end = match.end(3)
    return found


def resembles_url(text: str, base: str) -> bool:
    """Return whether a string may be a URL requested by a script."""
    absolute = re.match(r"(?:https?:)?//([^/?#]*)(.*)", text, re.IGNORECASE)
    path = re.split("[?#]", text)[0]
    if not absolute and not text.startswith("/"):
        return is_relative_file(path)
    if not absolute:
        return text.startswith("/") and FILE.fullmatch(text) is not None and "//" not in re.split("[?#]", text)[0]
    host = absolute[1].lower()
    if text.startswith("//") and (FILE.fullmatch(text[2:]) is None or "//" in re.split("[?#]", text[2:])[0]):
        return False
    labels = host.split(".")
    is_host = len(labels) > 1 and all(re.search("[a-z0-9]", label) for label in labels)
    return host == re.split("[/:]+", base)[1] or (is_host and host not in NAMES)


def is_relative_file(path: str) -> bool:
    """Return whether a relative path is the name of a file, perhaps in folders."""
    stem, _, ending = path.rsplit("/", maxsplit=1)[-1].rpartition(".")
    is_named = ending.lower() in ENDINGS and re.search("[A-Za-z0-9]", stem) is not None
    return is_named and re.match(r"[-.\w~%]", path, re.ASCII) is not None and not re.search(r"[:*]|//", path)
