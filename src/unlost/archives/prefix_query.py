"""Prefix queries: one page, URLs with a common prefix, a host, or a domain with all its hosts."""

from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import urlsplit

from unlost import uri as addresses
from unlost.capture import Capture
from unlost.errors import ListCutError, UriError
from unlost.uri.normalize import normalize_input_url

_DOMAIN_PREFIX = "*."


@dataclass(frozen=True, slots=True)
class PrefixQuery:
    """A query in terms of keys. As in the index of an archive, scheme, `www` and letter case are ignored.

    Attributes:
        match: The match type of CDX servers: `exact`, `prefix`, `host` or `domain`.
        url: The URL or host to request from a CDX server, without asterisk.
        ranges: The keys that match, as half-open ranges in order, without overlap.
        folder: For a prefix that ends with a slash, the query for the page of that directory itself.
    """

    match: str
    url: str
    ranges: tuple[tuple[str, str], ...]
    folder: "PrefixQuery | None" = None

    @classmethod
    def for_page(cls, uri: str) -> Self:
        r"""Return a query for one page. Raises UriError.

        >>> PrefixQuery.for_page("http://www.example.com/A").ranges
        (('com,example)/a', 'com,example)/a\x00'),)
        """
        key = addresses.key(uri)
        return cls("exact", normalize_input_url(uri), ((key, key + "\0"),))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a prefix. Raises UriError if it is invalid.

        `*.example.com` is a domain: all its hosts, on all ports. `http://example.com`, without a slash after it, is a
        host, on all ports unless one is named. Everything else is a URL prefix: `/a` covers `/ab`; `/a/` does not, but
        covers `/a`, because keys have no trailing slash; one with a query covers everything that begins with that
        query. A fragment is ignored.

        >>> PrefixQuery.parse("http://example.com/a/").ranges[1:]
        (('com,example)/a/', 'com,example)/a0'), ('com,example)/a?', 'com,example)/a@'))
        >>> PrefixQuery.parse("www.example.com").match, PrefixQuery.parse("*.example.com").ranges[1]
        ('host', ('com,example,', 'com,example-'))
        """
        if text.startswith(_DOMAIN_PREFIX):
            host = text.removeprefix(_DOMAIN_PREFIX).removesuffix("/")
            if not host or set(host) & set("/?#@") or _has_port(host):
                raise UriError("expected a host behind `*.`, and nothing behind that", "bad-host")
            begin = _host_key(host)
            return cls("domain", host, _key_ranges(f"{begin})", f"{begin},", f"{begin}:"))
        url, key = normalize_input_url(text), addresses.key(text)
        rest = url.partition("://")[2]
        if not set(rest) & set("/?"):
            host, begin = rest.rpartition("@")[2], key.partition(")")[0]
            return cls("host", host, _key_ranges(f"{begin})", *([] if _has_port(host) else [f"{begin}:"])))
        path, _, query = rest.partition("?")
        if query or not path.endswith("/") or key.endswith(")/"):
            return cls("prefix", url, _key_ranges(key))
        deeper = [] if url.endswith("?") else [key + "/"]
        folder = PrefixQuery.for_page(url)
        return cls("prefix", url, (*folder.ranges, *_key_ranges(*deeper, key + "?")), folder)

    def covers(self, key: str | None) -> bool:
        """Return whether a key matches. Archives return more: other hosts, similar pages."""
        return key is not None and any(low <= key < high for low, high in self.ranges)

    def adapted_to(self, matches: Collection[str]) -> "PrefixQuery | None":
        """Return the query for an archive that supports only some match types; None if it does not support this one."""
        if self.match in matches:
            return self
        if self.match == "host" and "prefix" in matches:
            return replace(self, match="prefix", url=f"http://{self.url}/")
        return None


def _has_port(host: str) -> bool:
    try:
        return urlsplit(f"http://{host}").port is not None
    except ValueError:
        return True


def _host_key(text: str) -> str:
    """Return the host of a key, without the parenthesis."""
    return addresses.key(f"http://{text}/").partition(")")[0]


def _key_ranges(*beginnings: str) -> tuple[tuple[str, str], ...]:
    return tuple((beginning, beginning[:-1] + chr(ord(beginning[-1]) + 1)) for beginning in beginnings)


async def list_with_folder_page(
    prefix: PrefixQuery, list_query: Callable[[PrefixQuery], AsyncIterator[Capture]]
) -> AsyncIterator[Capture]:
    """Yield the captures of a prefix, each once. Raises ListCutError after the last one.

    The keys of a CDX server have no trailing slash, so that a prefix with one does not match the page of the directory
    itself: it is queried separately.
    """
    cut = None
    for part in (prefix.folder, prefix) if prefix.folder else (prefix,):
        try:
            async for capture in list_query(part):
                if part is prefix.folder or not (prefix.folder and prefix.folder.covers(capture.key)):
                    yield capture
        except ListCutError as error:
            cut = cut or error
    if cut is not None:
        raise cut
