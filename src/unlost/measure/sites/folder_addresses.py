"""From the names of files to addresses: `<host>/<path>` as crawlers lay sites out, or below a given address."""

import re
from urllib.parse import quote, urlsplit

from unlost.errors import UriError, UsageError
from unlost.uri.naming import page_name

# What may stand in the path and query of an address as it is; `%` is looked at by itself.
_URL_SAFE = "/?&=+:@!$'()*,;~-._[]"
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"(?:[\w-]+\.)+[\w-]+(?:[:+][0-9]{1,5})?|localhost(?:[:+][0-9]{1,5})?|\[[0-9A-Fa-f:.]+\]")
_LAST_LABEL = re.compile(r"\.(?!\d+(?:[:+]|$))[\w-]{2,}(?:[:+]\d+)?$")
_IPV4 = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}(?:[:+]\d+)?")


def is_host_name(name: str) -> bool:
    """Return whether the name of a folder is that of a host, perhaps with a port, as wget writes it.

    >>> [is_host(name) for name in ("www.example.com", "localhost:8080", "127.0.0.1+8080", "css", "v1.0", ".git")]
    [True, True, True, False, False, False]
    """
    if not _HOST.fullmatch(name):
        return False
    return name.startswith(("localhost", "[")) or bool(_IPV4.fullmatch(name)) or bool(_LAST_LABEL.search(name))


def parse_base_url(text: str) -> str:
    """Return the address of a folder, which ends in a slash, of what somebody gave. Raises UsageError.

    >>> base_of("example.com/a?x"), base_of("https://example.com")
    ('http://example.com/a/', 'https://example.com/')
    """
    try:
        page_name(text)
    except UriError as error:
        raise UsageError(f"--base {ascii(text)[1:-1][:100]}: expected the address of a website: {error}") from None
    parts = urlsplit(text if "://" in text else f"http://{text}")
    path = parts.path if parts.path.endswith("/") else f"{parts.path}/"
    return f"{parts.scheme}://{parts.netloc}{path}"


def url_of_path(path: str, base: str | None) -> str:
    """Return the address of a file, by its path with slashes below the folder of a site.

    base: the address of that folder; None if the first part of the path is the host.

    >>> address_of("www.example.com/a b.php?x=1&y=é%2f", None)
    'http://www.example.com/a%20b.php?x=1&y=%C3%A9%2f'
    >>> address_of("100%#1.html", "http://example.com/~me/")
    'http://example.com/~me/100%25%231.html'
    """
    if base is not None:
        return base + _escape_path(path)
    host, _, rest = path.partition("/")
    return f"http://{host.replace('+', ':')}/{_escape_path(rest)}"


def _escape_path(path: str) -> str:
    return quote(_LONE_PERCENT.sub("%25", path), safe=_URL_SAFE + "%")
