"""Page names: what all spellings of a page's URL have in common.

A name has no scheme, `www`, default page, session id or fragment. Two URLs with one name are the same page.
"""

from collections.abc import Iterable

from unlost import _core
from unlost.errors import UriError

# What servers show for a folder, as far as `name_of` does not drop it, the most frequent first: what Apache is set up
# with by its packages (`index.cgi`, `index.pl`, `index.php`, `index.xhtml`), what IIS and ASP.NET look for
# (`Default.asp`, `Default.aspx`; both spellings, since links to Windows servers have either), the pages of PHP, server
# side includes, JSP and ColdFusion in the spellings of their time, and those of the CERN and Netscape servers.
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
_FOLDED_DEFAULT_PAGES = frozenset(root.lower() for root in _DEFAULT_PAGES)


def page_name(uri: str, *, ignore_case: bool = False) -> str:
    """Return the name of the page that an address leads to: ASCII, without scheme, with at least one slash.

    docs/choice.md lists what does not count. Two addresses with one name are taken for one page; that one page has
    only one name is not promised (`root_names`, `folded`). Raises UriError for what is no page.

    ignore_case: whether letter case does not count either: the name is `folded`.

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
    if "//" not in path:  # nearly all names, and no list has to be made
        return path.count("/") - path.endswith("/")
    return sum(segment != "" for segment in path.partition("/")[2].split("/"))


def page_names(uris: Iterable[str], *, ignore_case: bool = False) -> list[str | UriError]:
    """Return for each address its name, or the error that `name_of` would have raised for it.

    >>> names_of(["http://example.com/", "mailto:me@example.com"])
    ['example.com/', ForeignSchemeError('not a web page: ...')]
    """
    return _core.names_of(uris, ignore_case)


def fold_case(name: str) -> str:
    """Return a name in lower case: equal for names that differ only in letter case.

    >>> fold_case("example.com/BAR.html")
    'example.com/bar.html'
    """
    return name.lower()


def url_from_name(name: str) -> str:
    """Return an address that has this name; which scheme, `www` or final slash the site used, the name has lost.

    >>> url_from_name("example.com/a?x=1")
    'http://example.com/a?x=1'
    """
    return f"http://{name}"


def archive_lookup_url(uri: str, name: str) -> str:
    """Return how archives are asked for an address: as it is spelled, without user, fragment and session ids.

    name: of that address.

    >>> archive_lookup_url("https://me:secret@www.example.com/a/?b=1&sid=0123456789abcdef0123456789abcdef", "example.com/a?b=1")
    'https://www.example.com/a/?b=1'
    """
    place, _, query = uri.partition("#")[0].partition("?")
    scheme, mark, rest = place.partition("://")
    host, slash, path = rest.partition("/")
    if not mark or ";" in path:
        return url_from_name(name)
    # The name has the query in one spelling, and without what belongs to a single visit.
    named = name.partition("?")[2]
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" + (f"?{named}" if query and named else "")


def default_page_names(name: str) -> tuple[str, ...]:
    """Return the names that the default page of a folder may have, the most frequent first, if this is a folder.

    That it is one cannot be told from its name; look for these among what archives list. With `ignore_case`, fold them.

    >>> default_page_names("example.com/a?x=1")[:2]
    ('example.com/a/index.php?x=1', 'example.com/a/default.asp?x=1')
    """
    folder, mark, query = name.partition("?")
    folder = folder.removesuffix("/")
    return tuple(f"{folder}/{root}{mark}{query}" for root in _DEFAULT_PAGES)


def folder_of_default_page(name: str) -> str | None:
    """Return the name of the folder whose default page this may be: the other way round; None if it is none.

    >>> folder_of_default_page("example.com/a/index.php?x=1"), folder_of_default_page("example.com/Default.asp"), folder_of_default_page("example.com/a")
    ('example.com/a?x=1', 'example.com/', None)
    """
    path, mark, query = name.partition("?")
    folder, _, page = path.rpartition("/")
    if page.lower() not in _FOLDED_DEFAULT_PAGES:
        return None
    return (folder if "/" in folder else f"{folder}/") + mark + query
