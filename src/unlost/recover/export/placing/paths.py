"""From addresses to paths of files, each as if it were alone: `clashes` sees to those who want the same."""

from functools import cache
from sys import intern

from unlost.recover.export.placing import windows
from unlost.recover.export.placing.endings import extension_to_add, extension_of, is_known_extension
from unlost.recover.export.placing.segments import shorten_name, short_digest, escape_unsafe, split_url_path
from unlost.recover.export.placing.style import PathStyle
from unlost.recover.export.placing.true_type import HTML, XHTML
from unlost.recover.export.placing.wish import PathCandidates
from unlost.uri import naming

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

        >>> Paths(Style(), "a.example").wish("a.example/b?x=1", "http://www.a.example/b/?x=1", "text/html").paths
        ('b/index-x=1.html',)
        >>> Paths(Style(False), None).wish("foo.org/bar/hello.html", "http://foo.org/bar/hello.html", None).paths
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
            found = windows.windows_name(found)
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
    return "?" not in name and naming.folder_of_default_page(name) is not None
