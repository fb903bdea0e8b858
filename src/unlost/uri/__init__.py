"""Addresses of web pages: one canonical form, SURT and back, URI-Keys, registered domains.

    https://www.news.BBC.co.uk:443/images/Logo.png?width=200&height=80#top
    ╰─┬─╯   ╰┬╯╰──────┬─────╯ ╰┬─╯╰──────┬───────╯╰────────┬─────────╯╰┬─╯
      │  dropped     host    default,   path             query,     dropped
      │                      dropped                     sorted
      not in the SURT:
    uk,co,bbc,news)/images/logo.png?height=80&width=200

>>> surt("https://www.news.BBC.co.uk:443/images/Logo.png?width=200&height=80#top")
'uk,co,bbc,news)/images/logo.png?height=80&width=200'

Addresses are `str`, or `bytes` where they may not be UTF-8; results are ASCII. `*_many` take any iterable and return
a list of the same length and order in which a bad address is answered by the `UriError` that it would have raised.
"""

from unlost.uri.keys import (
    DEFAULT_RULES,
    MAX_URI_BYTES,
    POLICIES,
    RULE_SETS,
    KeyPolicies,
    Segments,
    SuffixList,
    alternative_keys,
    canonical,
    canonical_many,
    foreign_scheme,
    key,
    key_many,
    policy_name,
    row_key,
    segments,
    spellings,
    surt,
    surt_many,
    unsurt,
    unsurt_many,
)

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
