"""From the path of an address to names of folders and of a file that harm nobody."""

import hashlib
import re
from urllib.parse import unquote_to_bytes

MAX_NAME_BYTES = 255
"""Bytes of a name, on every file system in use."""

_URL_START = re.compile(r"[\0-\x20]*(?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]{2,}")
_PATH_START = re.compile(r"[/\\?]")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_SAFE_NAME = re.compile(r"[A-Za-z0-9_~!$&'()*+,;=:@ %|?#^`{}\[\]-][A-Za-z0-9_~!$&'()*+,;=:@ %|?#^`{}\[\].-]*")
_UNSAFE_CHARACTERS = frozenset('/\\<>"')  # no script can be written without them, and no folder left
_MAX_EXTENSION = 16
_DIGEST_BYTES = 6  # bytes of a digest: of a million names, one chance in a hundred that two have the same

# What servers, hosts and systems take for orders; `_worker.js` is run, and `CNAME` says which domain a site has.
_SERVER_CONFIG_NAMES = frozenset(
    {"web.config", "_redirects", "_headers", "_nginx", "netlify.toml", "desktop.ini", "autorun.inf", "nginx.conf",
     "php.ini", "_worker.js", "_routes.json", "vercel.json", "staticwebapp.config.json", "cname", "_config.yml"}
)  # fmt: skip
_DRIVE_LETTER = re.compile("[A-Za-z]:")
_WELL_KNOWN = ".well-known"  # the only hidden folder that belongs to a site


def split_url_path(uri: str) -> tuple[list[str], str | None]:
    """Return the names in the path of an address, escapes undone, and its query; None if that is empty.

    The last name is empty for a folder. `.`, `..` and empty names are resolved as browsers do it; bytes that are no
    UTF-8 stay escaped.

    >>> parts_of("http://example.com/a//./b/../caf%C3%A9%FF/?x=%26#top")
    (['a', 'café%FF', ''], 'x=&')
    >>> parts_of("http://example.com")
    ([''], None)
    """
    text = uri.translate({9: None, 10: None, 13: None}).partition("#")[0]
    begin = _URL_START.match(text)
    rest = text[begin.end() :] if begin else text
    found = _PATH_START.search(rest)
    path, _, query = (rest[found.start() :] if found else "").partition("?")
    names: list[str] = []
    last = ""
    for piece in path.replace("\\", "/").split("/")[1:]:
        last = _percent_decode(piece)
        if last == "..":
            del names[-1:]
        elif last not in ("", "."):
            names.append(last)
    if last in ("", ".", ".."):
        names.append("")
    return names, _percent_decode(query) if query else None


def _percent_decode(text: str) -> str:
    if "%" not in text and text.isascii():
        return text
    found = unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")
    return _NOT_UTF8.sub(lambda each: f"%{ord(each[0]) - 0xDC00:02X}", found)


def escape_unsafe(name: str) -> str:
    r"""Return a name without what leads elsewhere, is not to be seen, is markup, or is an order to somebody.

    Control characters, whatever turns the direction of writing, slashes, backslashes, `<`, `>` and `"` are escaped by
    percent signs, and so are the first letter of hidden files and of those by which servers are set up, and a colon
    that would make a drive of the letter before it. Other letters stay, also `?` and `:`.

    >>> harmless("a\x00b/\u202egnp.exe"), harmless(".htaccess"), harmless("_redirects"), harmless("Straße 1?.html")
    ('a%00b%2F%E2%80%AEgnp.exe', '%2Ehtaccess', '%5Fredirects', 'Straße 1?.html')
    """
    if not _SAFE_NAME.fullmatch(name):
        name = "".join(
            char if char.isprintable() and char not in _UNSAFE_CHARACTERS else percent_encode_all(char) for char in name
        )
    if (name.startswith(".") and name != _WELL_KNOWN) or name.lower() in _SERVER_CONFIG_NAMES:
        return percent_encode_all(name[0]) + name[1:]
    return f"{name[0]}%3A{name[2:]}" if _DRIVE_LETTER.match(name) else name


def percent_encode_all(text: str) -> str:
    """Return a text with every byte of it as an escape."""
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def short_digest(text: str) -> str:
    """Return some letters that stand for a text: always the same."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


def shorten_name(name: str, max_bytes: int = MAX_NAME_BYTES) -> str:
    """Return a name of at most so many bytes: a longer one keeps its beginning and its ending, and is told by a digest.

    >>> cut("a" * 300 + ".html")[-20:], len(cut("ü" * 300, 100).encode())
    ('aa~05277ae66be7.html', 99)
    """
    return (
        name
        if len(name) * 4 <= max_bytes or len(name.encode()) <= max_bytes
        else add_suffix(name, short_digest(name), max_bytes)
    )


def add_suffix(name: str, suffix: str, max_bytes: int = MAX_NAME_BYTES) -> str:
    """Return a name with a mark before its ending, of at most so many bytes.

    >>> marked("a.tar.gz", "0f"), marked("a", "0f")
    ('a.tar~0f.gz', 'a~0f')
    """
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem or len(ending.encode()) > _MAX_EXTENSION:
        stem, dot, ending = name, "", ""
    tail = f"~{suffix}{dot}{ending}"
    room = max_bytes - len(tail.encode())
    return stem.encode()[:room].decode("utf-8", "ignore") + tail
