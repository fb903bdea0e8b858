"""Addresses as a server sees them: of a site that was, and of the files of its export."""

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, unquote_to_bytes

INDEX_NAME = "index.html"
"""What is shown for a folder."""

_URL = re.compile(
    r"https?://(?:[^/?#@]*@)?([^/?#:@\[\]]+|\[[0-9a-f:.]*\])(?::\d*)?(/[^?#]*)?(?:\?([^#]*))?",
    re.IGNORECASE | re.DOTALL,
)
_SLASHES = re.compile(rb"/{2,}")
_PERCENT = re.compile("%(?![0-9a-fA-F]{2})")

# What a request can have unescaped, beside letters and digits.
_SENT_CHARACTERS = "/:@!$&'()*+,;=-._~%[]^`{|}\\\"<>"
# What a header or a rule of any server can have as it is.
_PLAIN_CHARACTERS = "/:?@!&()*+,;=-._~%[]"


@dataclass(frozen=True, slots=True)
class OriginalUrl:
    """An address of the web.

    host: in lower case, without `www.` and port. raw: the path, as it is sent.
    path: as servers see it: without escapes, with single slashes. query: as it is sent, None if there is none.
    """

    host: str
    raw_path: str
    path: bytes
    query: str | None

    @classmethod
    def parse(cls, uri: str) -> Self | None:
        """Return the parts of an address without its fragment; None if it is none of the web."""
        found = _URL.fullmatch(uri.partition("#")[0])
        if found is None:
            return None
        host, path, query = found.groups()
        raw = quote(_PERCENT.sub("%25", path or "/"), safe=_SENT_CHARACTERS, errors="surrogatepass")
        sent = quote(query, safe=f"{_SENT_CHARACTERS}?", errors="surrogatepass") if query else None
        return cls(host.lower().removeprefix("www."), raw, decode_path(raw), sent)

    @property
    def folder(self) -> list[str] | None:
        """From where a browser reads relative links; None if no file can be in such a folder."""
        parts = [unquote_to_bytes(part) for part in self.raw_path.split("/")[1:-1]]
        if any(not part or b"/" in part for part in parts):
            return None
        return [part.decode("utf-8", "surrogateescape") for part in parts]


def decode_path(raw: str) -> bytes:
    """Return a path as servers see it.

    >>> unescaped("/a//b%2Fc%20")
    b'/a/b/c '
    """
    return _SLASHES.sub(b"/", unquote_to_bytes(raw))


def plain_path(path: str, query: str | None = None) -> str:
    """Return an address of the site, from its root, in letters that are nothing special in settings or headers.

    >>> plain("//a b$", 'x="é"')
    '/a%20b%24?x=%22%C3%A9%22'
    """
    # Two slashes would lead to another host.
    return _quote_plain("/" + path.lstrip("/\\") + ("" if query is None else f"?{query}"))


def plain_url(uri: str) -> str:
    """Return a whole address in such letters, without its fragment.

    >>> plain_whole("http://a.example/ $;#top")
    'http://a.example/%20%24;'
    """
    return _quote_plain(uri.partition("#")[0])


def _quote_plain(text: str) -> str:
    return quote(_PERCENT.sub("%25", text), safe=_PLAIN_CHARACTERS, errors="surrogatepass")


def path_bytes(path: str) -> bytes:
    """Return the path of a file as the file system has it."""
    return path.encode("utf-8", "surrogateescape")


def served_paths(path: str) -> list[bytes]:
    """Return the paths under which servers show a file by themselves.

    >>> own_addresses("a/index.html")
    [b'/a/index.html', b'/a/']
    """
    whole = b"/" + path_bytes(path)
    return [whole, whole.removesuffix(INDEX_NAME.encode())] if whole.endswith(b"/" + INDEX_NAME.encode()) else [whole]


def file_url_path(path: str) -> str:
    """Return the address of a file, from the root, escaped; of an index that of its folder.

    >>> file_address("a b/50%.html"), file_address("a/index.html")
    ('/a%20b/50%25.html', '/a/')
    """
    return quote(served_paths(path)[-1], safe="/-._~")
