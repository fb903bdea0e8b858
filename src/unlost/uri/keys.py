"""Canonical form, SURT and key of a URL, key policies, and the Public Suffix List.

The only normalizer and the only segmenter are in the Rust core: building, compacting, filtering and looking up agree on
every key, so that no page that went into a map is missed.
"""

from collections.abc import Iterable
from typing import NamedTuple

from unlost import _core
from unlost._core import KeyPolicies, SuffixList
from unlost.errors import UriError

__all__ = [
    "DEFAULT_RULES",
    "MAX_URI_BYTES",
    "POLICIES",
    "RULE_SETS",
    "KeyPolicies",
    "Segments",
    "SuffixList",
    "alternative_keys",
    "canonical",
    "canonical_many",
    "foreign_scheme",
    "key",
    "key_many",
    "policy_name",
    "row_key",
    "segments",
    "spellings",
    "surt",
    "surt_many",
    "unsurt",
    "unsurt_many",
]

MAX_URI_BYTES = _core.MAX_URI_BYTES
"""Longer URLs are rejected as `too-long`. Chromium does not navigate to URLs of more than 2 MB."""
RULE_SETS = _core.RULE_SETS
"""Names of the rule sets; docs/formats.md describes them."""
DEFAULT_RULES = RULE_SETS[0]
"""`wayback`, the rules of Wayback and pywb indexes."""
POLICIES = _core.POLICIES
"""The 23 key policies of the archive profiling paper. Any other `HmPn` is valid as well."""


def surt(uri: str | bytes, rules: str = DEFAULT_RULES) -> str:
    """Return the Sort-friendly URI Reordering Transform (SURT) of a URL.

    A SURT consists of the reversed host, the path and the query, without scheme and fragment. All spellings of a page's
    URL have one SURT, but different pages may share it.

    Raises:
        UriError: The URL is invalid.
        ForeignSchemeError: The URL has a scheme such as `dns:`, `mailto:` or `ftp:`.

    >>> surt("http://www.example.com:8080/A/?b=2&a=1")
    'com,example:8080)/a?a=1&b=2'
    """
    return _core.surt(uri, rules)


def surt_many(uris: Iterable[str | bytes], rules: str = DEFAULT_RULES) -> list[str | UriError]:
    """Return for each URL its SURT, or the error that `surt` would raise.

    >>> surt_many(["http://example.com/", "dns:example.com"])
    ['com,example)/', ForeignSchemeError('not a web page: ...')]
    """
    return _core.surt_many(uris, rules)


def canonical(uri: str | bytes, rules: str = DEFAULT_RULES) -> str:
    """Return the canonical form of a URL, with its scheme. Raises as `surt` does.

    >>> canonical("https://user@www.Example.com:443/a/../B/#top")
    'https://example.com/b'
    """
    return _core.canonical(uri, rules)


def canonical_many(uris: Iterable[str | bytes], rules: str = DEFAULT_RULES) -> list[str | UriError]:
    """Return for each URL its canonical form, or the error that `canonical` would raise."""
    return _core.canonical_many(uris, rules)


def unsurt(surt: str | bytes, rules: str = DEFAULT_RULES) -> str:
    """Return a URL with the given SURT: `surt(unsurt(s)) == surt(s)`.

    A SURT does not distinguish http from https: the result is http, except for port 80, which a SURT has only for
    https. All spellings of SURTs in indexes are accepted. Raises UriError of kind `not-surt`, or `bad-host` for an
    invalid host.

    >>> unsurt("uk,co,bbc,news)/images?height=80")
    'http://news.bbc.co.uk/images?height=80'
    """
    return _core.unsurt(surt, rules)


def unsurt_many(surts: Iterable[str | bytes], rules: str = DEFAULT_RULES) -> list[str | UriError]:
    """Return for each SURT a URL, or the error that `unsurt` would raise."""
    return _core.unsurt_many(surts, rules)


def foreign_scheme(uri: str | bytes) -> str | None:
    """Return the scheme of a URL that is not a web page, in lower case; None for http, https and no scheme.

    >>> foreign_scheme("dns:www.archive.org"), foreign_scheme("localhost:8080/x")
    ('dns', None)
    """
    return _core.foreign_scheme(uri)


class Segments(NamedTuple):
    """Segments of a key.

    `uk,co,bbc:8080)/a/b?c` has the host `uk`, `co`, `bbc:8080`, the path `a`, `b` and the query `c`. An IP address is
    one segment. There are no empty path segments.
    """

    host: tuple[str, ...]
    path: tuple[str, ...]
    query: str | None


def key(uri: str | bytes, rules: str = DEFAULT_RULES) -> str:
    """Return the key of a URL, or of a SURT in any spelling.

    A key is a SURT in which `*` is only used for wildcards: an asterisk in the URL becomes `%2a`. Raises as `surt`
    does.

    >>> key("http://1.2.3.4/a/"), key("1.2.3.4)/a/"), key("4,3,2,1)/a")
    ('4,3,2,1)/a', '4,3,2,1)/a', '4,3,2,1)/a')
    """
    return _core.key(uri, rules)


def key_many(uris: Iterable[str | bytes], rules: str = DEFAULT_RULES) -> list[str | UriError]:
    """Return for each URL or SURT its key, or the error that `key` would raise."""
    return _core.key_many(uris, rules)


def alternative_keys(uri: str | bytes, rules: str = DEFAULT_RULES) -> list[str]:
    """Return the keys that other tools compute for a URL where they differ from `key`; usually none.

    A look-up that finds nothing under a page's key should try these: IDNA 2003 hosts, default ports, escaped dot
    segments. docs/formats.md lists the differences.

    >>> alternative_keys("http://faß.de/"), alternative_keys("http://example.com/")
    (['de,fass)/'], [])
    """
    return _core.alternative_keys(uri, rules)


def row_key(key: str | bytes, uri: str | bytes, rules: str = DEFAULT_RULES) -> str:
    """Return the key of an index row: from its key column, or from its URL if the column is empty or `-`.

    The URL decides for keys of the shapes on which tools disagree; parsing the URL of every row would cost several
    times as much as the row itself. The URL also determines the scheme: a `dns:` row raises ForeignSchemeError even if
    its key is that of a host.

    >>> row_key("com,example)/a/", "http://www.example.com/A/")
    'com,example)/a'
    """
    return _core.row_key(key, uri, rules)


def segments(key: str | bytes) -> Segments:
    """Split a key into segments. This is the only function that parses keys.

    >>> segments("com,example:81)/a/b?c=1")
    Segments(host=('com', 'example:81'), path=('a', 'b'), query='c=1')
    """
    host, path, query = _core.segments(key)
    return Segments(tuple(host), tuple(path), query)


def spellings(key: str | bytes) -> list[str]:
    """Return the spellings under which indexes may store this key, the usual one first.

    They differ in trailing slashes and in the order of the numbers of an IP address. For look-ups in indexes of other
    tools; unlost writes only one spelling.

    >>> spellings("4,3,2,1)/a")
    ['4,3,2,1)/a', '4,3,2,1)/a/', '1.2.3.4)/a', '1.2.3.4)/a/']
    """
    return _core.spellings(key)


def policy_name(name: str) -> str:
    """Return the canonical name of a policy. Raises UsageError for an unknown policy.

    >>> policy_name("hxp1")
    'HxP1'
    """
    return _core.policy_name(name)
