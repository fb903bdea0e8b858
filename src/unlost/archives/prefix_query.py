"""Prefix queries: one page, URLs with a common prefix, a host, or a domain with all its hosts."""

from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import urlsplit

from unlost import uri as addresses
from unlost.capture import Capture
from unlost.errors import ListCutError, UriError
from unlost.uri.normalize import normalize_input_url

_DOMAIN_MARK = "*."


@dataclass(frozen=True, slots=True)
class PrefixQuery:
    """What is asked for, in terms of keys: as in the index of an archive, scheme, `www` and letter case do not count.

    match: `exact`, `prefix`, `host` or `domain`, as index servers call it.
    address: what to ask an index server for: an address, or a host, without any asterisk.
    ranges: the keys that it covers, as pairs of the first and the first behind; in order, without overlap.
    folder: of a prefix that ends with a slash, the page of that folder itself.
    """

    match: str
    url: str
    ranges: tuple[tuple[str, str], ...]
    folder: "PrefixQuery | None" = None

    @classmethod
    def for_page(cls, uri: str) -> Self:
        r"""Return what asks for one page. Raises UriError.

        >>> PrefixQuery.for_page("http://www.example.com/A").ranges
        (('com,example)/a', 'com,example)/a\x00'),)
        """
        key = addresses.key(uri)
        return cls("exact", normalize_input_url(uri), ((key, key + "\0"),))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what a prefix asks for, as `Repository.under` has it. Raises UriError if it is none.

        `*.example.com` is a domain: all its hosts, on all ports. `http://example.com`, without any slash behind it, is
        a host, on all ports unless one is named. Everything else is a beginning: `/a` covers `/ab`; `/a/` does not, but
        covers `/a`, since keys have no slash at their end; with a query, what begins with that query. A fragment does
        not count.

        >>> PrefixQuery.parse("http://example.com/a/").ranges[1:]
        (('com,example)/a/', 'com,example)/a0'), ('com,example)/a?', 'com,example)/a@'))
        >>> PrefixQuery.parse("www.example.com").match, PrefixQuery.parse("*.example.com").ranges[1]
        ('host', ('com,example,', 'com,example-'))
        """
        if text.startswith(_DOMAIN_MARK):
            host = text.removeprefix(_DOMAIN_MARK).removesuffix("/")
            if not host or set(host) & set("/?#@") or _has_port(host):
                raise UriError("expected a host behind `*.`, and nothing behind that", "bad-host")
            begin = _host_key(host)
            return cls("domain", host, _key_ranges(f"{begin})", f"{begin},", f"{begin}:"))
        address, key = normalize_input_url(text), addresses.key(text)
        place = address.partition("://")[2]
        if not set(place) & set("/?"):
            host, begin = place.rpartition("@")[2], key.partition(")")[0]
            return cls("host", host, _key_ranges(f"{begin})", *([] if _has_port(host) else [f"{begin}:"])))
        path, _, query = place.partition("?")
        if query or not path.endswith("/") or key.endswith(")/"):
            return cls("prefix", address, _key_ranges(key))
        deeper = [] if address.endswith("?") else [key + "/"]
        folder = PrefixQuery.for_page(address)
        return cls("prefix", address, (*folder.ranges, *_key_ranges(*deeper, key + "?")), folder)

    def covers(self, key: str | None) -> bool:
        """Return whether a key was asked for. Archives give more: other hosts, similar pages."""
        return key is not None and any(low <= key < high for low, high in self.ranges)

    def adapted_to(self, matches: Collection[str]) -> "PrefixQuery | None":
        """Return how a lister is asked that answers only some kinds of questions; None if it cannot be asked this."""
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
    """Return the part of a key that is the host, without its bracket."""
    return addresses.key(f"http://{text}/").partition(")")[0]


def _key_ranges(*beginnings: str) -> tuple[tuple[str, str], ...]:
    return tuple((beginning, beginning[:-1] + chr(ord(beginning[-1]) + 1)) for beginning in beginnings)


async def list_with_folder_page(
    prefix: PrefixQuery, list_query: Callable[[PrefixQuery], AsyncIterator[Capture]]
) -> AsyncIterator[Capture]:
    """Yield what an index server gives for a prefix, each capture once. Raises ListCutError at the end.

    A server's keys have no slash at the end of a folder, and what begins with one leaves the page of the folder out: it
    is asked for by itself.
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
