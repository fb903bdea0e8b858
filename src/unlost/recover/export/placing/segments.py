"""From the path of an address to names of folders and of a file that harm nobody."""

import hashlib
import re
from urllib.parse import unquote_to_bytes

MAX_NAME = 255
"""Bytes of a name, on every file system in use."""

_BEGIN = re.compile(r"[\0-\x20]*(?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]{2,}")
_PATH = re.compile(r"[/\\?]")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_PLAIN = re.compile(r"[A-Za-z0-9_~!$&'()*+,;=:@ %|?#^`{}\[\]-][A-Za-z0-9_~!$&'()*+,;=:@ %|?#^`{}\[\].-]*")
_MARKUP = frozenset('/\\<>"')  # no script can be written without them, and no folder left
_MAX_ENDING = 16
_MARK = 6  # bytes of a digest: of a million names, one chance in a hundred that two have the same

# What servers, hosts and systems take for orders; `_worker.js` is run, and `CNAME` says which domain a site has.
_ORDERS = frozenset(
    {"web.config", "_redirects", "_headers", "_nginx", "netlify.toml", "desktop.ini", "autorun.inf", "nginx.conf",
     "php.ini", "_worker.js", "_routes.json", "vercel.json", "staticwebapp.config.json", "cname", "_config.yml"}
)  # fmt: skip
_DRIVE = re.compile("[A-Za-z]:")
_SHOWN = ".well-known"  # the only hidden folder that belongs to a site


def parts_of(uri: str) -> tuple[list[str], str | None]:
    """Return the names in the path of an address, escapes undone, and its query; None if that is empty.

    The last name is empty for a folder. `.`, `..` and empty names are resolved as browsers do it; bytes that are no
    UTF-8 stay escaped.

    >>> parts_of("http://example.com/a//./b/../caf%C3%A9%FF/?x=%26#top")
    (['a', 'café%FF', ''], 'x=&')
    >>> parts_of("http://example.com")
    ([''], None)
    """
    text = uri.translate({9: None, 10: None, 13: None}).partition("#")[0]
    begin = _BEGIN.match(text)
    rest = text[begin.end() :] if begin else text
    found = _PATH.search(rest)
    path, _, query = (rest[found.start() :] if found else "").partition("?")
    names: list[str] = []
    last = ""
    for piece in path.replace("\\", "/").split("/")[1:]:
        last = _unescaped(piece)
        if last == "..":
            del names[-1:]
        elif last not in ("", "."):
            names.append(last)
    if last in ("", ".", ".."):
        names.append("")
    return names, _unescaped(query) if query else None


def _unescaped(text: str) -> str:
    if "%" not in text and text.isascii():
        return text
    found = unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")
    return _NOT_UTF8.sub(lambda each: f"%{ord(each[0]) - 0xDC00:02X}", found)


def harmless(name: str) -> str:
    r"""Return a name without what leads elsewhere, is not to be seen, is markup, or is an order to somebody.

    Control characters, whatever turns the direction of writing, slashes, backslashes, `<`, `>` and `"` are escaped by
    percent signs, and so are the first letter of hidden files and of those by which servers are set up, and a colon
    that would make a drive of the letter before it. Other letters stay, also `?` and `:`.

    >>> harmless("a\x00b/\u202egnp.exe"), harmless(".htaccess"), harmless("_redirects"), harmless("Straße 1?.html")
    ('a%00b%2F%E2%80%AEgnp.exe', '%2Ehtaccess', '%5Fredirects', 'Straße 1?.html')
    """
    if not _PLAIN.fullmatch(name):
        name = "".join(char if char.isprintable() and char not in _MARKUP else escaped(char) for char in name)
    if (name.startswith(".") and name != _SHOWN) or name.lower() in _ORDERS:
        return escaped(name[0]) + name[1:]
    return f"{name[0]}%3A{name[2:]}" if _DRIVE.match(name) else name


def escaped(text: str) -> str:
    """Return a text with every byte of it as an escape."""
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def digest_of(text: str) -> str:
    """Return some letters that stand for a text: always the same."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_MARK).hexdigest()


def cut(name: str, most: int = MAX_NAME) -> str:
    """Return a name of at most so many bytes: a longer one keeps its beginning and its ending, and is told by a digest.

    >>> cut("a" * 300 + ".html")[-20:], len(cut("ü" * 300, 100).encode())
    ('aa~05277ae66be7.html', 99)
    """
    return name if len(name) * 4 <= most or len(name.encode()) <= most else marked(name, digest_of(name), most)


def marked(name: str, mark: str, most: int = MAX_NAME) -> str:
    """Return a name with a mark before its ending, of at most so many bytes.

    >>> marked("a.tar.gz", "0f"), marked("a", "0f")
    ('a.tar~0f.gz', 'a~0f')
    """
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem or len(ending.encode()) > _MAX_ENDING:
        stem, dot, ending = name, "", ""
    tail = f"~{mark}{dot}{ending}"
    room = most - len(tail.encode())
    return stem.encode()[:room].decode("utf-8", "ignore") + tail
