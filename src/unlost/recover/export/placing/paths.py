"""From addresses to paths of files, each as if it were alone: `clashes` sees to those who want the same."""

from functools import cache
from sys import intern

from unlost.recover.export.placing import windows
from unlost.recover.export.placing.endings import added_ending, ending_of, is_known
from unlost.recover.export.placing.segments import cut, digest_of, harmless, parts_of
from unlost.recover.export.placing.style import Style
from unlost.recover.export.placing.true_type import PAGE, XHTML
from unlost.recover.export.placing.wish import Wish
from unlost.uri import naming

_FOLDED_DIRECTORY = 60  # bytes of the name of a folder that stands for many
_FOLDED_FILE = 100  # bytes of the name of a file in it

QUERY, ENDING, LETTERS, LENGTH = "query", "ending", "letters", "length"


@cache
def _same(reasons: tuple[str, ...]) -> tuple[str, ...]:
    """Return the same object for equal reasons: a site has a hundred thousand, of a dozen kinds."""
    return reasons


class Paths:
    """The paths of one export.

    home: the host whose pages are at the top; pages of others are in a folder with the name of their host. None if
        there is a folder for every host.
    """

    def __init__(self, style: Style, home: str | None) -> None:
        self._style = style
        self._home = home if style.browsable else None

    def wish(self, name: str, uri: str, mime: str | None, *, is_default: bool = False) -> Wish:
        """Return where a resource would like to be.

        name: as `naming` has it. uri: its address as it was captured. mime: its true type; None if nobody knows.
        is_default: whether it is what its folder shows (`/index.php`), and nothing else is.

        >>> Paths(Style(), "a.example").wish("a.example/b?x=1", "http://www.a.example/b/?x=1", "text/html").paths
        ('b/index-x=1.html',)
        >>> Paths(Style(False), None).wish("foo.org/bar/hello.html", "http://foo.org/bar/hello.html", None).paths
        ('foo.org/bar/hello.html',)
        """
        names, query = parts_of(uri)
        reasons: set[str] = set()
        folders = [self._legal(each, reasons) for each in (*self._host(name), *names[:-1])]
        file = self._file(names[-1], query, mime, reasons)
        path = self._bounded(folders, file, reasons)
        inside = "index.html" if mime in (None, PAGE, XHTML) else intern(f"index{added_ending('index', mime)}")
        paths: tuple[str, ...] = (path,)
        if is_default and self._style.browsable and mime in (PAGE, XHTML):
            paths = (self._bounded(folders, "index.html", reasons), path)
        return Wish(name, paths, inside, _same(tuple(sorted(reasons))))

    def _host(self, name: str) -> list[str]:
        host = name.partition("/")[0]
        if host == self._home:
            return []
        return [host.replace(":", "+") if self._style.browsable else host]

    def _file(self, last: str, query: str | None, mime: str | None, reasons: set[str]) -> str:
        is_html = mime in (None, PAGE, XHTML)
        if not self._style.browsable:
            last = last or "index.html"
            return self._legal(f"{last}?{query}" if query is not None else last, reasons)
        if not last:
            if query is None and is_html:
                return "index.html"  # also of XHTML: servers look for nothing else
            last = "index"
            mime = PAGE if mime is None else mime
        whole = last
        if query is not None:
            whole = f"{last}{self._style.query_mark}{query}"
            reasons.add(QUERY)
        if "?" in whole and not self._style.windows:
            whole = whole.replace("?", self._style.query_mark)
            reasons.add(LETTERS)
        ending = added_ending(whole, mime, before_query=ending_of(last) if query is not None else None)
        if ending:
            reasons.add(ENDING)
        return self._legal(whole + ending, reasons)

    def _legal(self, name: str, reasons: set[str]) -> str:
        found = harmless(name)
        if self._style.windows:
            found = windows.legal(found)
        elif self._style.browsable:
            found = found.replace("?", self._style.query_mark)
        if found != name:
            reasons.add(LETTERS)
        short = cut(found)
        if short != found:
            reasons.add(LENGTH)
        return short

    def _bounded(self, folders: list[str], file: str, reasons: set[str]) -> str:
        """Return a path that is not too long: of one that is, all folders become one."""
        path = "/".join((*folders, file))
        if len(path) * 4 <= self._style.max_path or len(path.encode()) <= self._style.max_path:
            return path
        reasons.add(LENGTH)
        above = "/".join(folders)
        if not folders:
            return cut(file, _FOLDED_FILE)
        folder = f"{cut(folders[0], _FOLDED_DIRECTORY - 13)}~{digest_of(above)}"
        return f"{folder}/{cut(file, _FOLDED_FILE)}"

    def missing(self, name: str, uri: str, *, is_page: bool) -> Wish:
        """Return where a resource would like to be of which nothing is known but a link to it.

        is_page: whether the link leads to a page, and not to a part of one.
        """
        is_html = is_page and not is_known(ending_of(parts_of(uri)[0][-1]))
        return self.wish(name, uri, PAGE if is_html else None)


def is_default_page(name: str) -> bool:
    """Return whether a name is that of a default page without a query, such as `/index.php`."""
    return "?" not in name and naming.folder_name(name) is not None
