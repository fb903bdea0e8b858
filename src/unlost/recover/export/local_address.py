"""Addresses of files in an export, as they stand in links."""

from urllib.parse import quote

# A colon is not among them: what stands before it in the first name would be taken for a scheme.
_UNESCAPED = "/-._~!$()*+,=@"


def relative_url(path: str) -> str:
    """Return the address of a file, relative to the top of the export.

    It leads there from a disk and from a server: what has a meaning in addresses is escaped.

    >>> address_of("img/a b%20?.png"), address_of("é#.html")
    ('img/a%20b%2520%3F.png', '%C3%A9%23.html')
    """
    return quote(path, safe=_UNESCAPED)


def relative_to_page(url: str, page: str) -> str:
    """Return the address of a file, relative to that of a page; both as `address_of` has them.

    >>> relative("a/b/c.png", "a/d/e.html"), relative("a/c.png", "a/d.html"), relative("c.png", "a/b/d.html")
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
