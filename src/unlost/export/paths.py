"""File paths of an export, unique and valid on every file system, and relative URLs of them."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from sys import intern
from urllib.parse import quote, unquote_to_bytes

from unlost.export.media_types import HTML, XHTML, extension_of, extension_to_add, is_known_extension
from unlost.uri import names as uri_names


@dataclass(frozen=True, slots=True)
class PathStyle:
    """Requirements for file names.

    Attributes:
        browsable: Whether browsers can open the files from disk: extensions match the types, and no name looks like a
            query. Otherwise paths equal the URLs, in a folder for each host.
        windows: Whether names must be valid on Windows.
    """

    browsable: bool = True
    windows: bool = False

    @property
    def query_mark(self) -> str:
        """Separator between path and query."""
        if self.windows:
            return "@"
        return "-" if self.browsable else "?"

    @property
    def max_path(self) -> int:
        """Limit on paths in bytes. With the parent folders, Windows allows 259 characters, and macOS 1,023 bytes."""
        return 180 if self.windows else 900


@dataclass(frozen=True, slots=True)
class PathCandidates:
    """Paths that a resource may have, in order of preference.

    Attributes:
        key: Key of the resource, which is unique.
        paths: Relative paths with slashes.
        index_name: Name of its file inside a folder that has the name of the first path.
        reasons: Why the first path differs from the URL; empty if it does not.
    """

    key: str
    paths: tuple[str, ...]
    index_name: str
    reasons: tuple[str, ...] = ()


MAX_NAME_BYTES = 255
"""Size of a file name on every file system in use."""
_URL_START = re.compile(r"[\0-\x20]*(?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]{2,}")
_PATH_START = re.compile(r"[/\\?]")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_SAFE_NAME = re.compile(r"[A-Za-z0-9_~!$&'()*+,;=:@ %|?#^`{}\[\]-][A-Za-z0-9_~!$&'()*+,;=:@ %|?#^`{}\[\].-]*")
_UNSAFE_CHARACTERS = frozenset('/\\<>"')  # allow markup in listings, and path traversal
_MAX_EXTENSION = 16
_DIGEST_BYTES = 6  # a collision among a million names has a probability of 1 %
# Configuration files of servers, hosting services and systems: `_worker.js` is executed, `CNAME` sets the domain.
_SERVER_CONFIG_NAMES = frozenset(
    {"web.config", "_redirects", "_headers", "_nginx", "netlify.toml", "desktop.ini", "autorun.inf", "nginx.conf",
     "php.ini", "_worker.js", "_routes.json", "vercel.json", "staticwebapp.config.json", "cname", "_config.yml"}
)  # fmt: skip
_DRIVE_LETTER = re.compile("[A-Za-z]:")
_WELL_KNOWN = ".well-known"  # the only hidden folder that belongs to a site (RFC 8615)


def split_url_path(uri: str) -> tuple[list[str], str | None]:
    """Split a URL into the decoded names of its path and its query, which is None if empty.

    The last name is empty for a folder. `.`, `..` and empty names are resolved as browsers do; bytes that are not UTF-8
    remain escaped.

    >>> split_url_path("http://example.com/a//./b/../caf%C3%A9%FF/?x=%26#top")
    (['a', 'café%FF', ''], 'x=&')
    >>> split_url_path("http://example.com")
    ([''], None)
    """
    text = uri.translate({9: None, 10: None, 13: None}).partition("#")[0]
    match = _URL_START.match(text)
    remaining = text[match.end() :] if match else text
    match = _PATH_START.search(remaining)
    path, _, query = (remaining[match.start() :] if match else "").partition("?")
    names: list[str] = []
    last = ""
    for segment in path.replace("\\", "/").split("/")[1:]:
        last = _percent_decode(segment)
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
    decoded = unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")
    return _NOT_UTF8.sub(lambda each: f"%{ord(each[0]) - 0xDC00:02X}", decoded)


def escape_unsafe(name: str) -> str:
    r"""Escape what is unsafe in a file name: control characters, markup, separators and reserved names.

    Control and direction characters, slashes, backslashes, `<`, `>` and `"` are percent-encoded. So are the first
    character of hidden files and of configuration files of servers, and the colon of a drive letter. All other
    characters are unchanged, including `?` and `:`.

    >>> escape_unsafe("a\x00b/\u202egnp.exe"), escape_unsafe(".htaccess"), escape_unsafe("_redirects")
    ('a%00b%2F%E2%80%AEgnp.exe', '%2Ehtaccess', '%5Fredirects')
    >>> escape_unsafe("Straße 1?.html")
    'Straße 1?.html'
    """
    if not _SAFE_NAME.fullmatch(name):
        name = "".join(
            char if char.isprintable() and char not in _UNSAFE_CHARACTERS else percent_encode_all(char) for char in name
        )
    if (name.startswith(".") and name != _WELL_KNOWN) or name.lower() in _SERVER_CONFIG_NAMES:
        return percent_encode_all(name[0]) + name[1:]
    return f"{name[0]}%3A{name[2:]}" if _DRIVE_LETTER.match(name) else name


def percent_encode_all(text: str) -> str:
    """Return a text with every byte percent-encoded."""
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def short_digest(text: str) -> str:
    """Return a short hexadecimal digest of a text, which is stable across versions."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


def shorten_name(name: str, max_bytes: int = MAX_NAME_BYTES) -> str:
    """Return a name of at most `max_bytes`. A longer one is cut before its extension and gets a digest.

    >>> shorten_name("a" * 300 + ".html")[-20:], len(shorten_name("ü" * 300, 100).encode())
    ('aa~05277ae66be7.html', 99)
    """
    return (
        name
        if len(name) * 4 <= max_bytes or len(name.encode()) <= max_bytes
        else add_suffix(name, short_digest(name), max_bytes)
    )


def add_suffix(name: str, suffix: str, max_bytes: int = MAX_NAME_BYTES) -> str:
    """Insert a suffix before the extension of a name, which is cut to `max_bytes`.

    >>> add_suffix("a.tar.gz", "0f"), add_suffix("a", "0f")
    ('a.tar~0f.gz', 'a~0f')
    """
    stem, dot, extension = name.rpartition(".")
    if not dot or not stem or len(extension.encode()) > _MAX_EXTENSION:
        stem, dot, extension = name, "", ""
    ending_with_suffix = f"~{suffix}{dot}{extension}"
    remaining = max_bytes - len(ending_with_suffix.encode())
    return stem.encode()[:remaining].decode("utf-8", "ignore") + ending_with_suffix


_WINDOWS_REPLACEMENTS = str.maketrans({"?": "@", "|": "%7C", ":": "+", "*": "%2A", '"': "%22", "<": "%3C", ">": "%3E"})
# With any extension; the digits of COM and LPT may also be superscript.
_WINDOWS_DEVICE = re.compile(
    r"(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9\u00b9\u00b2\u00b3]) *(?=\.|$)", re.IGNORECASE
)
_TRAILING_DOTS = re.compile(r"[. ]+$")


def windows_name(name: str) -> str:
    """Return the name of a file or folder as Windows accepts it.

    The name must not contain control characters, slashes or backslashes.

    >>> windows_name("a|b:c.php?x=*"), windows_name("nul.txt"), windows_name("etc."), windows_name("console.txt")
    ('a%7Cb+c.php@x=%2A', 'nul_.txt', 'etc%2E', 'console.txt')
    """
    name = name.translate(_WINDOWS_REPLACEMENTS)
    name = _WINDOWS_DEVICE.sub(lambda match: f"{match[0]}_", name, count=1) if _WINDOWS_DEVICE.match(name) else name
    return _TRAILING_DOTS.sub(lambda match: match[0].replace(".", "%2E").replace(" ", "%20"), name)


SAME_PATH, LETTER_CASE, FOLDER_OF_SAME_NAME = "same-path", "letter-case", "folder-of-that-name"


def fold_path(path: str) -> str:
    """Return a path as compared by file systems that ignore letter case and normalize Unicode.

    Paths may be treated as equal although they are not, but not the other way round.

    >>> fold_path("A/É") == fold_path("a/e\u0301"), fold_path("ß") == fold_path("SS"), fold_path("a") == fold_path("b")
    (True, True, False)
    """
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", path).upper().casefold())


class PathAllocator:
    """Allocates unique paths: no two are equal on any file system, and none is a folder of another.

    The result does not depend on the input order: candidates that match their URLs come first, then in alphabetical
    order.

    Attributes:
        paths: Allocated paths by key.
        renamed: Number of resources that did not get their first candidate, by reason.
    """

    def __init__(self, candidates: Iterable[PathCandidates]) -> None:
        ordered = sorted(candidates, key=lambda each: (bool(each.reasons), each.key))
        # A file never gets the name of a folder, so that every folder can be created.
        self._folders = {
            folder for each in ordered for path in each.paths for folder in _parent_folders(fold_path(path))
        }
        self._taken: dict[str, str] = {}
        self.paths: dict[str, str] = {}
        self.renamed: Counter[str] = Counter()
        del candidates
        ordered.reverse()
        while ordered:
            entry = ordered.pop()
            path, reason = self._find_free(entry)
            key = fold_path(path)
            self._taken[path if key == path else key] = path  # key and value share one string if they are equal
            self.paths[entry.key] = path
            if reason is not None:
                self.renamed[reason] += 1

    def free_path(self, candidates: PathCandidates) -> str:
        """Return a path that no resource has. It is not allocated."""
        return self._find_free(candidates)[0]

    def _find_free(self, candidates: PathCandidates) -> tuple[str, str | None]:
        """Return the first free path, and why it is not the first candidate; None if it is."""
        reason = None
        for path in candidates.paths:
            conflict = self._conflict(path)
            if conflict is None:
                return path, reason
            reason = reason or conflict
            if conflict == FOLDER_OF_SAME_NAME and self._conflict(inside := f"{path}/{candidates.index_name}") is None:
                return inside, reason
        folder, slash, name = candidates.paths[-1].rpartition("/")
        count = 0
        while True:
            digest = short_digest(f"{candidates.key}\n{count}" if count else candidates.key)
            path = f"{folder}{slash}{add_suffix(name, digest)}"
            if self._conflict(path) is None:
                return path, reason
            count += 1

    def _conflict(self, path: str) -> str | None:
        key = fold_path(path)
        if key in self._folders:
            return FOLDER_OF_SAME_NAME
        if key in self._taken:
            return SAME_PATH if self._taken[key] == path else LETTER_CASE
        return None


def _parent_folders(path: str) -> Iterable[str]:
    """Yield the parent folders of a path."""
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)


_MAX_SHORT_FOLDER = 60  # bytes; name of a folder that replaces several
_MAX_SHORT_FILE = 100  # bytes; name of a file in it
QUERY_IN_NAME, EXTENSION_ADDED, CHARACTERS_REPLACED, NAME_SHORTENED = "query", "ending", "letters", "length"


@cache
def _intern_reasons(reasons: tuple[str, ...]) -> tuple[str, ...]:
    """Return the same object for equal reasons: there are few combinations, but hundreds of thousands of resources."""
    return reasons


class PathMapper:
    """Maps resources to paths of an export.

    Args:
        style: Requirements for file names.
        home: Host whose pages are in the top folder; those of other hosts are in a folder with its name. None for a
            folder for each host.
    """

    def __init__(self, style: PathStyle, home: str | None) -> None:
        self._style = style
        self._home = home if style.browsable else None

    def candidates(self, name: str, uri: str, mime: str | None, *, is_default: bool = False) -> PathCandidates:
        """Return the candidate paths of a resource.

        Args:
            name: Its page name.
            uri: URL of its capture.
            mime: The sniffed media type; None if unknown.
            is_default: Whether it is the index of its folder (`/index.php`) and no other resource is.

        >>> PathMapper(PathStyle(), "a.example").candidates(
        ...     "a.example/b?x=1", "http://www.a.example/b/?x=1", "text/html"
        ... ).paths
        ('b/index-x=1.html',)
        >>> PathMapper(PathStyle(False), None).candidates(
        ...     "foo.org/bar/hello.html", "http://foo.org/bar/hello.html", None
        ... ).paths
        ('foo.org/bar/hello.html',)
        """
        names, query = split_url_path(uri)
        reasons: set[str] = set()
        folders = [self._legal_name(each, reasons) for each in (*self._host_folder(name), *names[:-1])]
        file = self._file_name(names[-1], query, mime, reasons)
        path = self._bounded_path(folders, file, reasons)
        index_name = "index.html" if mime in (None, HTML, XHTML) else intern(f"index{extension_to_add('index', mime)}")
        paths: tuple[str, ...] = (path,)
        if is_default and self._style.browsable and mime in (HTML, XHTML):
            paths = (self._bounded_path(folders, "index.html", reasons), path)
        return PathCandidates(name, paths, index_name, _intern_reasons(tuple(sorted(reasons))))

    def _host_folder(self, name: str) -> list[str]:
        host = name.partition("/")[0]
        if host == self._home:
            return []
        return [host.replace(":", "+") if self._style.browsable else host]

    def _file_name(self, last: str, query: str | None, mime: str | None, reasons: set[str]) -> str:
        is_html = mime in (None, HTML, XHTML)
        if not self._style.browsable:
            last = last or "index.html"
            return self._legal_name(f"{last}?{query}" if query is not None else last, reasons)
        if not last:
            if query is None and is_html:
                return "index.html"  # also for XHTML: servers use no other index by default
            last = "index"
            mime = HTML if mime is None else mime
        file = last
        if query is not None:
            file = f"{last}{self._style.query_mark}{query}"
            reasons.add(QUERY_IN_NAME)
        if "?" in file and not self._style.windows:
            file = file.replace("?", self._style.query_mark)
            reasons.add(CHARACTERS_REPLACED)
        extension = extension_to_add(file, mime, before_query=extension_of(last) if query is not None else None)
        if extension:
            reasons.add(EXTENSION_ADDED)
        return self._legal_name(file + extension, reasons)

    def _legal_name(self, name: str, reasons: set[str]) -> str:
        escaped = escape_unsafe(name)
        if self._style.windows:
            escaped = windows_name(escaped)
        elif self._style.browsable:
            escaped = escaped.replace("?", self._style.query_mark)
        if escaped != name:
            reasons.add(CHARACTERS_REPLACED)
        short = shorten_name(escaped)
        if short != escaped:
            reasons.add(NAME_SHORTENED)
        return short

    def _bounded_path(self, folders: list[str], file: str, reasons: set[str]) -> str:
        """Return the path if it is short enough; otherwise replace all folders by one with a digest."""
        path = "/".join((*folders, file))
        if len(path) * 4 <= self._style.max_path or len(path.encode()) <= self._style.max_path:
            return path
        reasons.add(NAME_SHORTENED)
        parent = "/".join(folders)
        if not folders:
            return shorten_name(file, _MAX_SHORT_FILE)
        folder = f"{shorten_name(folders[0], _MAX_SHORT_FOLDER - 13)}~{short_digest(parent)}"
        return f"{folder}/{shorten_name(file, _MAX_SHORT_FILE)}"

    def candidates_for_missing(self, name: str, uri: str, *, is_page: bool) -> PathCandidates:
        """Return the candidate paths of a resource that was not recovered.

        Args:
            name: Its page name.
            uri: Its URL.
            is_page: Whether the link is to a page and not a page requisite.
        """
        is_html = is_page and not is_known_extension(extension_of(split_url_path(uri)[0][-1]))
        return self.candidates(name, uri, HTML if is_html else None)


def is_default_page(name: str) -> bool:
    """Return whether a page name is that of a default page without a query, such as `/index.php`."""
    return "?" not in name and uri_names.folder_of_default_page(name) is not None


# Without the colon: in the first segment of a relative URL it would end a scheme (RFC 3986, section 4.2).
_UNESCAPED = "/-._~!$()*+,=@"


def relative_url(path: str) -> str:
    """Return the URL of a file relative to the top folder.

    It works from disk and from a server: reserved characters are escaped.

    >>> relative_url("img/a b%20?.png"), relative_url("é#.html")
    ('img/a%20b%2520%3F.png', '%C3%A9%23.html')
    """
    return quote(path, safe=_UNESCAPED)


def relative_to_page(url: str, page: str) -> str:
    """Return the URL of a file relative to a page; both relative to the top folder.

    >>> relative_to_page("a/b/c.png", "a/d/e.html"), relative_to_page("a/c.png", "a/d.html")
    ('../b/c.png', 'c.png')
    >>> relative_to_page("c.png", "a/b/d.html")
    '../../c.png'
    """
    folder = page[: page.rfind("/") + 1]
    if not folder:
        return url
    if url.startswith(folder):
        return url[len(folder) :]
    page_folders, segments = folder.split("/")[:-1], url.split("/")
    common = 0
    while common < min(len(page_folders), len(segments) - 1) and page_folders[common] == segments[common]:
        common += 1
    return "../" * (len(page_folders) - common) + "/".join(segments[common:])
