"""Canonical form, SURT and key of a URL, key policies, and the Public Suffix List.

One normaliser and one segmenter (in the Rust core), the same for building, compacting, filtering and looking up.
"""

from collections.abc import Iterable
from typing import NamedTuple

from unlost import _core
from unlost._core import KeyPolicies, SuffixList
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


__all__ = [
    "POLICIES",
    "KeyPolicies",
    "Segments",
    "SuffixList",
    "alternative_keys",
    "key",
    "key_many",
    "policy_name",
    "row_key",
    "segments",
    "spellings",
]
POLICIES = _core.POLICIES
"""The 23 policies of the profiling paper; any other `HmPn` works too."""


class Segments(NamedTuple):
    """A key, cut: `uk,co,bbc:8080)/a/b?c` is labels uk, co and bbc:8080, path a and b, query c.

    An IP address is one label, since half of one means nothing. Empty path segments do not exist.
    """

    host: tuple[str, ...]
    path: tuple[str, ...]
    query: str | None


def key(uri: str | bytes, rules: str = DEFAULT_RULES) -> str:
    """Return the key of an address or of a SURT, in whatever spelling an index has it.

    A key is a SURT in which `*` is only ever a wildcard: an asterisk of the address is `%2a`. Raises as `surt` does.

    >>> key("http://1.2.3.4/a/"), key("1.2.3.4)/a/"), key("4,3,2,1)/a")
    ('4,3,2,1)/a', '4,3,2,1)/a', '4,3,2,1)/a')
    """
    return _core.key(uri, rules)


def key_many(uris: Iterable[str | bytes], rules: str = DEFAULT_RULES) -> list[str | UriError]:
    """Return for each address or SURT its key, or the error that `key` would have raised for it."""
    return _core.key_many(uris, rules)


def alternative_keys(uri: str | bytes, rules: str = DEFAULT_RULES) -> list[str]:
    """Return the keys that other tools give a URL where they disagree with `key`; nearly always none.

    A look-up that does not find a page under its key tries these too. docs/uri.md lists the differences.

    >>> alternative_keys("http://faß.de/"), alternative_keys("http://example.com/")
    (['de,fass)/'], [])
    """
    return _core.alternative_keys(uri, rules)


def row_key(key: str | bytes, uri: str | bytes, rules: str = DEFAULT_RULES) -> str:
    """Return the key of an index row: of its own key column, or where that is empty or `-`, of its URL.

    A key column of a shape on which tools disagree is compared with the URL, and the URL decides. The URL also has the
    scheme: raises ForeignSchemeError for a `dns:` row even if its key is that of a host.

    >>> row_key("com,example)/a/", "http://www.example.com/A/")
    'com,example)/a'
    """
    return _core.row_key(key, uri, rules)


def segments(key: str | bytes) -> Segments:
    """Cut a key. Every part of unlost that looks inside a key cuts it here.

    >>> segments("com,example:81)/a/b?c=1")
    Segments(host=('com', 'example:81'), path=('a', 'b'), query='c=1')
    """
    host, path, query = _core.segments(key)
    return Segments(tuple(host), tuple(path), query)


def spellings(key: str | bytes) -> list[str]:
    """Return the spellings under which indexes in the field keep this key, the usual one first.

    With and without a trailing slash, IP addresses forwards and backwards. For asking an index that unlost did not
    make: what unlost makes has one spelling only.

    >>> spellings("4,3,2,1)/a")
    ['4,3,2,1)/a', '4,3,2,1)/a/', '1.2.3.4)/a', '1.2.3.4)/a/']
    """
    return _core.spellings(key)


def policy_name(name: str) -> str:
    """Return a policy's name as it is written in files. Raises UsageError if there is no such policy.

    >>> policy_name("hxp1")
    'HxP1'
    """
    return _core.policy_name(name)
