"""Which page (URI-R) a request is about, from the bytes of its path and query."""

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

from unlost.errors import UriError

MAX_TARGET_BYTES = 1 << 14
"""The longest path with query that is answered. Browsers and archives make no longer addresses."""

# What may stand in an address as it is, as `archives.spelling` has it. All else is escaped: no byte of a request can
# end a header, a link or a line of ours. `#` is, too: a fragment is never sent, so what was escaped is no fragment.
_UNESCAPED = "!$%&'()*+,-./:;=?@_~[]|"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_SINGLE_SLASH = re.compile(r"(https?):/(?=[^/])", re.IGNORECASE)
_PLAIN = re.compile(rb"https?://[!$&'()*+,\-./0-9:;=?@A-Z_a-z~]+")  # nothing to unescape, to escape or to put in front


def parse_target_url(path: bytes, query: bytes) -> str:
    """Return the page that the rest of a path and the query name, by the rules that clients of MemGator know.

    It is unescaped once; what an address cannot have is escaped again; `http://` is put in front unless it has a
    scheme; the query is its own. Raises UriError if there is nothing.

    >>> page_of(b"http%3A%2F%2Fexample.com%2Fa%20b", b""), page_of(b"example.com:8080/", b"a=1,2&b")
    ('http://example.com/a%20b', 'http://example.com:8080/?a=1,2&b')
    >>> page_of(b"http:/example.com/%0d%0aX: y", b""), page_of("http://ü.example/%23".encode(), b"")
    ('http://example.com/%0D%0AX:%20y', 'http://%C3%BC.example/%23')
    """
    whole = path + b"?" + query if query else path
    if _PLAIN.fullmatch(whole):
        return whole.decode("ascii")
    return _escape_url(unquote_to_bytes(whole))


def parse_typed_url(text: str) -> str:
    """Return the page that somebody typed, or that a parameter holds: the same, but nothing is unescaped.

    >>> page_in(" example.com/a b%20c ")
    'http://example.com/a%20b%20c'
    """
    return _escape_url(text.encode("utf-8", "surrogatepass"))


def _escape_url(url: bytes) -> str:
    text = quote_from_bytes(url.strip(), _UNESCAPED)
    if not text:
        raise UriError("expected the address of a page, found nothing", "empty")
    if _SCHEME.match(text):
        return text
    # Servers that tidy paths make one slash of two.
    mended = _SINGLE_SLASH.sub(r"\1://", text, count=1)
    return mended if mended != text and _SCHEME.match(mended) else f"http://{text.lstrip('/')}"
