"""Page names: one name for all spellings of a page's URL.

A name has no scheme, `www`, default page, session ID or fragment. URLs with the same name are the same page.
"""

from collections.abc import Iterable

from unlost import _core
from unlost.errors import UriError

# Default pages of folders that `page_name` does not drop, the most frequent first: those of Apache's packages
# (`index.cgi`, `index.pl`, `index.php`, `index.xhtml`), of IIS and ASP.NET (`Default.asp`, `Default.aspx`; in lower and
# upper case, since links to Windows servers use either), of PHP, server-side includes, JSP and ColdFusion, and of the
# CERN and Netscape servers.
_DEFAULT_PAGES = (
    "index.php",
    "default.asp",
    "Default.asp",
    "default.aspx",
    "Default.aspx",
    "index.shtml",
    "index.asp",
    "index.aspx",
    "index.jsp",
    "index.cfm",
    "index.cgi",
    "index.pl",
    "index.php3",
    "index.phtml",
    "index.shtm",
    "index.xhtml",
    "index.do",
    "default.html",
    "Default.html",
    "home.html",
    "home.htm",
    "home.php",
    "welcome.html",
    "Welcome.html",
    "iisstart.htm",
)
_FOLDED_DEFAULT_PAGES = frozenset(page.lower() for page in _DEFAULT_PAGES)


def page_name(uri: str, *, ignore_case: bool = False) -> str:
    """Return the name of the page at a URL: ASCII text without a scheme and with at least one slash.

    docs/ranking.md lists what is dropped. URLs with the same name are the same page, but a page may have several names
    (see `default_page_names`, `fold_case`). Raises UriError for an invalid URL.

    Args:
        uri: The URL.
        ignore_case: Apply `fold_case`.

    >>> page_name("HTTPS://me@www.Example.com:443/A//b/../index.html?x=1#top")
    'example.com/A?x=1'
    >>> page_name("http://example.com/A%20%7euser/%c3%bc", ignore_case=True)
    'example.com/a+~user/%c3%bc'
    """
    return _core.name_of(uri, ignore_case)


def path_depth(name: str) -> int:
    """Return the number of path segments of a page, given its name.

    The name of a folder's index page is that of the folder, so `/a/` and `/a/index.html` are equally deep.

    >>> [path_depth(name) for name in ("a.example/", "a.example/~bar", "a.example/~bar/x.html?y=/z/")]
    [0, 1, 2]
    """
    path = name.partition("?")[0]
    if "//" not in path:  # fast path for nearly all names
        return path.count("/") - path.endswith("/")
    return sum(segment != "" for segment in path.partition("/")[2].split("/"))


def page_names(uris: Iterable[str], *, ignore_case: bool = False) -> list[str | UriError]:
    """Return for each URL its name, or the error that `page_name` would raise.

    >>> page_names(["http://example.com/", "mailto:me@example.com"])
    ['example.com/', ForeignSchemeError('not a web page: ...')]
    """
    return _core.names_of(uris, ignore_case)


def fold_case(name: str) -> str:
    """Return a name in lower case.

    >>> fold_case("example.com/BAR.html")
    'example.com/bar.html'
    """
    return name.lower()


def url_from_name(name: str) -> str:
    """Return a URL with this name. The site may have used another scheme, `www` or a trailing slash.

    >>> url_from_name("example.com/a?x=1")
    'http://example.com/a?x=1'
    """
    return f"http://{name}"


def archive_lookup_url(uri: str, name: str) -> str:
    """Return the URL with which archives are queried: as spelled, without userinfo, fragment and session IDs.

    Args:
        uri: The URL.
        name: Its page name.

    >>> url = "https://me:secret@www.example.com/a/?b=1&sid=0123456789abcdef0123456789abcdef"
    >>> archive_lookup_url(url, "example.com/a?b=1")
    'https://www.example.com/a/?b=1'
    """
    location, _, query = uri.partition("#")[0].partition("?")
    scheme, separator, rest = location.partition("://")
    host, slash, path = rest.partition("/")
    if not separator or ";" in path:
        return url_from_name(name)
    # The query of the name is normalized and has no session IDs.
    clean_query = name.partition("?")[2]
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" + (f"?{clean_query}" if query and clean_query else "")


def default_page_names(name: str) -> tuple[str, ...]:
    """Return the names that the default page of a folder may have, the most frequent first.

    A name does not say whether it is that of a folder, so look these up among the archived pages. Apply `fold_case` to
    them if names are compared with `ignore_case`.

    >>> default_page_names("example.com/a?x=1")[:2]
    ('example.com/a/index.php?x=1', 'example.com/a/default.asp?x=1')
    """
    folder, separator, query = name.partition("?")
    folder = folder.removesuffix("/")
    return tuple(f"{folder}/{page}{separator}{query}" for page in _DEFAULT_PAGES)


def folder_of_default_page(name: str) -> str | None:
    """Return the name of the folder whose default page this is; None for other pages.

    The reverse of `default_page_names`.

    >>> folder_of_default_page("example.com/a/index.php?x=1"), folder_of_default_page("example.com/a")
    ('example.com/a?x=1', None)
    >>> folder_of_default_page("example.com/Default.asp")
    'example.com/'
    """
    path, separator, query = name.partition("?")
    folder, _, page = path.rpartition("/")
    if page.lower() not in _FOLDED_DEFAULT_PAGES:
        return None
    return (folder if "/" in folder else f"{folder}/") + separator + query
