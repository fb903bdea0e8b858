"""Keys: what profiles, maps and filters keep of an address."""

from collections.abc import Iterable
from typing import NamedTuple

from unlost import _core
from unlost._core import KeyPolicies
from unlost.errors import UriError
from unlost.uri._forms import DEFAULT_RULES

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
