"""File paths of an export, legal on every file system and unique, and the relative URLs that point to them."""

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
    """What names have to be good for.

    browsable: whether browsers open them from a disk: endings tell the type, and no name looks like a query. If not,
        they are what the addresses are, in a folder for each host.
    windows: whether Windows takes them.
    """

    browsable: bool = True
    windows: bool = False

    @property
    def query_mark(self) -> str:
        """What stands between path and query."""
        if self.windows:
            return "@"
        return "-" if self.browsable else "?"

    @property
    def max_path(self) -> int:
        """Bytes of a whole path: Windows takes 259 letters, macOS 1,023 bytes, both with where the export is put."""
        return 180 if self.windows else 900


@dataclass(frozen=True, slots=True)
class PathCandidates:
    """The paths that a resource would take, the best first, as if it were alone.

    key: what it is known by; no two resources have the same.
    paths: relative, with slashes.
    inside: the name of its file in a folder that has the name of the best path.
    reasons: why the best path is not what the address says; none if it is.
    """

    key: str
    paths: tuple[str, ...]
    index_name: str
    reasons: tuple[str, ...] = ()


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

    >>> split_url_path("http://example.com/a//./b/../caf%C3%A9%FF/?x=%26#top")
    (['a', 'café%FF', ''], 'x=&')
    >>> split_url_path("http://example.com")
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

    >>> escape_unsafe("a\x00b/\u202egnp.exe"), escape_unsafe(".htaccess"), escape_unsafe("_redirects"), escape_unsafe("Straße 1?.html")
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

    >>> shorten_name("a" * 300 + ".html")[-20:], len(shorten_name("ü" * 300, 100).encode())
    ('aa~05277ae66be7.html', 99)
    """
    return (
        name
        if len(name) * 4 <= max_bytes or len(name.encode()) <= max_bytes
        else add_suffix(name, short_digest(name), max_bytes)
    )


def add_suffix(name: str, suffix: str, max_bytes: int = MAX_NAME_BYTES) -> str:
    """Return a name with a mark before its ending, of at most so many bytes.

    >>> add_suffix("a.tar.gz", "0f"), add_suffix("a", "0f")
    ('a.tar~0f.gz', 'a~0f')
    """
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem or len(ending.encode()) > _MAX_EXTENSION:
        stem, dot, ending = name, "", ""
    tail = f"~{suffix}{dot}{ending}"
    room = max_bytes - len(tail.encode())
    return stem.encode()[:room].decode("utf-8", "ignore") + tail


_WINDOWS_REPLACEMENTS = str.maketrans({"?": "@", "|": "%7C", ":": "+", "*": "%2A", '"': "%22", "<": "%3C", ">": "%3E"})
# By whatever ending; the digits of COM and LPT may also be raised ones.
_WINDOWS_DEVICE = re.compile(
    r"(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9\u00b9\u00b2\u00b3]) *(?=\.|$)", re.IGNORECASE
)
_TRAILING_DOTS = re.compile(r"[. ]+$")


def windows_name(name: str) -> str:
    """Return the name of a file or a folder as Windows takes it.

    name: of one file or folder, without control characters, slashes and backslashes.

    >>> windows_name("a|b:c.php?x=*"), windows_name("nul.txt"), windows_name("etc."), windows_name("console.txt")
    ('a%7Cb+c.php@x=%2A', 'nul_.txt', 'etc%2E', 'console.txt')
    """
    name = name.translate(_WINDOWS_REPLACEMENTS)
    name = _WINDOWS_DEVICE.sub(lambda found: f"{found[0]}_", name, count=1) if _WINDOWS_DEVICE.match(name) else name
    return _TRAILING_DOTS.sub(lambda found: found[0].replace(".", "%2E").replace(" ", "%20"), name)


SAME_PATH, LETTER_CASE, FOLDER_OF_SAME_NAME = "same-path", "letter-case", "folder-of-that-name"


def fold_path(path: str) -> str:
    """Return a path as file systems compare it that know neither letter case nor how accents are put together.

    Too many rather than too few are equal by it.

    >>> fold_path("A/É") == fold_path("a/e\u0301"), fold_path("ß") == fold_path("SS"), fold_path("a") == fold_path("b")
    (True, True, False)
    """
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", path).upper().casefold())


class PathAllocator:
    """Paths that are given away: no two are one on any file system, and none is a folder of another.

    paths: by the keys of the wishes. renamed: how many did not get what they wished for, by the reason.

    It does not matter in which order the wishes come: those go first that are called what their address says, then
    the alphabet decides.
    """

    def __init__(self, wishes: Iterable[PathCandidates]) -> None:
        ordered = sorted(wishes, key=lambda wish: (bool(wish.reasons), wish.key))
        # No file takes a name that anybody wants for a folder; so every folder can be made.
        self._folders = {
            folder for wish in ordered for path in wish.paths for folder in _parent_folders(fold_path(path))
        }
        self._taken: dict[str, str] = {}
        self.paths: dict[str, str] = {}
        self.renamed: Counter[str] = Counter()
        del wishes
        ordered.reverse()
        while ordered:
            wish = ordered.pop()
            path, reason = self._find_free(wish)
            key = fold_path(path)
            self._taken[path if key == path else key] = path  # one text rather than two
            self.paths[wish.key] = path
            if reason is not None:
                self.renamed[reason] += 1

    def free_path(self, candidates: PathCandidates) -> str:
        """Return the path that one more would get: never that of another. It is not given away."""
        return self._find_free(candidates)[0]

    def _find_free(self, candidates: PathCandidates) -> tuple[str, str | None]:
        """Return the first path that is free, and why it is not the best one; None if it is."""
        reason = None
        for path in candidates.paths:
            why = self._conflict(path)
            if why is None:
                return path, reason
            reason = reason or why
            if why == FOLDER_OF_SAME_NAME and self._conflict(inside := f"{path}/{candidates.index_name}") is None:
                return inside, reason
        folder, slash, name = candidates.paths[-1].rpartition("/")
        count = 0
        while True:
            mark = short_digest(f"{candidates.key}\n{count}" if count else candidates.key)
            path = f"{folder}{slash}{add_suffix(name, mark)}"
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
    """Yield the folders that a path is in."""
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)


_MAX_SHORT_FOLDER = 60  # bytes of the name of a folder that stands for many
_MAX_SHORT_FILE = 100  # bytes of the name of a file in it
QUERY_IN_NAME, EXTENSION_ADDED, CHARACTERS_REPLACED, NAME_SHORTENED = "query", "ending", "letters", "length"


@cache
def _intern_reasons(reasons: tuple[str, ...]) -> tuple[str, ...]:
    """Return the same object for equal reasons: a site has a hundred thousand, of a dozen kinds."""
    return reasons


class PathMapper:
    """The paths of one export.

    home: the host whose pages are at the top; pages of others are in a folder with the name of their host. None if
        there is a folder for every host.
    """

    def __init__(self, style: PathStyle, home: str | None) -> None:
        self._style = style
        self._home = home if style.browsable else None

    def candidates(self, name: str, uri: str, mime: str | None, *, is_default: bool = False) -> PathCandidates:
        """Return where a resource would like to be.

        name: as `naming` has it. uri: its address as it was captured. mime: its true type; None if nobody knows.
        is_default: whether it is what its folder shows (`/index.php`), and nothing else is.

        >>> PathMapper(PathStyle(), "a.example").candidates("a.example/b?x=1", "http://www.a.example/b/?x=1", "text/html").paths
        ('b/index-x=1.html',)
        >>> PathMapper(PathStyle(False), None).candidates("foo.org/bar/hello.html", "http://foo.org/bar/hello.html", None).paths
        ('foo.org/bar/hello.html',)
        """
        names, query = split_url_path(uri)
        reasons: set[str] = set()
        folders = [self._legal_name(each, reasons) for each in (*self._host_folder(name), *names[:-1])]
        file = self._file_name(names[-1], query, mime, reasons)
        path = self._bounded_path(folders, file, reasons)
        inside = "index.html" if mime in (None, HTML, XHTML) else intern(f"index{extension_to_add('index', mime)}")
        paths: tuple[str, ...] = (path,)
        if is_default and self._style.browsable and mime in (HTML, XHTML):
            paths = (self._bounded_path(folders, "index.html", reasons), path)
        return PathCandidates(name, paths, inside, _intern_reasons(tuple(sorted(reasons))))

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
                return "index.html"  # also of XHTML: servers look for nothing else
            last = "index"
            mime = HTML if mime is None else mime
        whole = last
        if query is not None:
            whole = f"{last}{self._style.query_mark}{query}"
            reasons.add(QUERY_IN_NAME)
        if "?" in whole and not self._style.windows:
            whole = whole.replace("?", self._style.query_mark)
            reasons.add(CHARACTERS_REPLACED)
        ending = extension_to_add(whole, mime, before_query=extension_of(last) if query is not None else None)
        if ending:
            reasons.add(EXTENSION_ADDED)
        return self._legal_name(whole + ending, reasons)

    def _legal_name(self, name: str, reasons: set[str]) -> str:
        found = escape_unsafe(name)
        if self._style.windows:
            found = windows_name(found)
        elif self._style.browsable:
            found = found.replace("?", self._style.query_mark)
        if found != name:
            reasons.add(CHARACTERS_REPLACED)
        short = shorten_name(found)
        if short != found:
            reasons.add(NAME_SHORTENED)
        return short

    def _bounded_path(self, folders: list[str], file: str, reasons: set[str]) -> str:
        """Return a path that is not too long: of one that is, all folders become one."""
        path = "/".join((*folders, file))
        if len(path) * 4 <= self._style.max_path or len(path.encode()) <= self._style.max_path:
            return path
        reasons.add(NAME_SHORTENED)
        above = "/".join(folders)
        if not folders:
            return shorten_name(file, _MAX_SHORT_FILE)
        folder = f"{shorten_name(folders[0], _MAX_SHORT_FOLDER - 13)}~{short_digest(above)}"
        return f"{folder}/{shorten_name(file, _MAX_SHORT_FILE)}"

    def candidates_for_missing(self, name: str, uri: str, *, is_page: bool) -> PathCandidates:
        """Return where a resource would like to be of which nothing is known but a link to it.

        is_page: whether the link leads to a page, and not to a part of one.
        """
        is_html = is_page and not is_known_extension(extension_of(split_url_path(uri)[0][-1]))
        return self.candidates(name, uri, HTML if is_html else None)


def is_default_page(name: str) -> bool:
    """Return whether a name is that of a default page without a query, such as `/index.php`."""
    return "?" not in name and uri_names.folder_of_default_page(name) is not None


# A colon is not among them: what stands before it in the first name would be taken for a scheme.
_UNESCAPED = "/-._~!$()*+,=@"


def relative_url(path: str) -> str:
    """Return the address of a file, relative to the top of the export.

    It leads there from a disk and from a server: what has a meaning in addresses is escaped.

    >>> relative_url("img/a b%20?.png"), relative_url("é#.html")
    ('img/a%20b%2520%3F.png', '%C3%A9%23.html')
    """
    return quote(path, safe=_UNESCAPED)


def relative_to_page(url: str, page: str) -> str:
    """Return the address of a file, relative to that of a page; both as `address_of` has them.

    >>> relative_to_page("a/b/c.png", "a/d/e.html"), relative_to_page("a/c.png", "a/d.html"), relative_to_page("c.png", "a/b/d.html")
    ('../b/c.png', 'c.png', '../../c.png')
    """
    folder = page[: page.rfind("/") + 1]
    if not folder:
        return url
    if url.startswith(folder):
        return url[len(folder) :]
    here, there = folder.split("/")[:-1], url.split("/")
    same = 0
    while same < min(len(here), len(there) - 1) and here[same] == there[same]:
        same += 1
    return "../" * (len(here) - same) + "/".join(there[same:])
