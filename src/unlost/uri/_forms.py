"""The forms of an address: canonical, SURT, and back."""

from collections.abc import Iterable

from unlost import _core
from unlost.errors import UriError

MAX_URI_BYTES = _core.MAX_URI_BYTES
"""Longer addresses are refused as `too-long`. Chromium does not navigate past 2 MB."""

RULE_SETS = _core.RULE_SETS
"""The names of the rule sets; docs/uri.md says what each does."""

DEFAULT_RULES = RULE_SETS[0]
"""`wayback`, what Wayback and pywb indexes use."""


def surt(uri: str | bytes, rules: str = DEFAULT_RULES) -> str:
    """Return the sort-friendly form of an address: hosts reversed, then path and query, without scheme and fragment.

    Two addresses of one page have one SURT; that two different pages never share one is not promised.
    Raises UriError, or ForeignSchemeError for `dns:`, `mailto:`, `ftp:` and the like.

    >>> surt("http://www.example.com:8080/A/?b=2&a=1")
    'com,example:8080)/a?a=1&b=2'
    """
    return _core.surt(uri, rules)


def surt_many(uris: Iterable[str | bytes], rules: str = DEFAULT_RULES) -> list[str | UriError]:
    """Return for each address its SURT, or the error that `surt` would have raised for it.

    >>> surt_many(["http://example.com/", "dns:example.com"])
    ['com,example)/', ForeignSchemeError('not a web page: ...')]
    """
    return _core.surt_many(uris, rules)


def canonical(uri: str | bytes, rules: str = DEFAULT_RULES) -> str:
    """Return the canonical form of an address, with the scheme that it came with. Raises as `surt` does.

    >>> canonical("https://user@www.Example.com:443/a/../B/#top")
    'https://example.com/b'
    """
    return _core.canonical(uri, rules)


def canonical_many(uris: Iterable[str | bytes], rules: str = DEFAULT_RULES) -> list[str | UriError]:
    """Return for each address its canonical form, or the error that `canonical` would have raised for it."""
    return _core.canonical_many(uris, rules)


def unsurt(surt: str | bytes, rules: str = DEFAULT_RULES) -> str:
    """Return an address whose SURT is the given one: `surt(unsurt(s)) == surt(s)`, always.

    A SURT does not tell http from https: the answer is http, but for port 80, which only https would have shown.
    Every spelling in which indexes write SURTs is read. Raises UriError of kind `not-surt`, or `bad-host` where no
    address can have that host.

    >>> unsurt("uk,co,bbc,news)/images?height=80")
    'http://news.bbc.co.uk/images?height=80'
    """
    return _core.unsurt(surt, rules)


def unsurt_many(surts: Iterable[str | bytes], rules: str = DEFAULT_RULES) -> list[str | UriError]:
    """Return for each SURT an address, or the error that `unsurt` would have raised for it."""
    return _core.unsurt_many(surts, rules)


def foreign_scheme(uri: str | bytes) -> str | None:
    """Return the scheme of an address that is not a web page, in lower case; None for http, https and none at all.

    >>> foreign_scheme("dns:www.archive.org"), foreign_scheme("localhost:8080/x")
    ('dns', None)
    """
    return _core.foreign_scheme(uri)
