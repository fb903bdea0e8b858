"""URLs of web pages: canonical form, SURT and back, URI-Keys, registered domains, page names.

    https://www.news.BBC.co.uk:443/images/Logo.png?width=200&height=80#top
    ╰─┬─╯   ╰┬╯╰──────┬─────╯ ╰┬─╯╰──────┬───────╯╰────────┬─────────╯╰┬─╯
      │  dropped     host    default,   path             query,     dropped
      │                      dropped                     sorted
      not in the SURT:
    uk,co,bbc,news)/images/logo.png?height=80&width=200

>>> surt("https://www.news.BBC.co.uk:443/images/Logo.png?width=200&height=80#top")
'uk,co,bbc,news)/images/logo.png?height=80&width=200'

URLs are `str`, or `bytes` where they may not be UTF-8; results are ASCII. The functions `*_many` accept any iterable
and return a list of the same length and order, with a `UriError` in place of the result for an invalid URL.

Modules in reading order:

- `keys`: Canonical form, SURT, keys and key policies; all its names are exported here.
- `names`: Page names, one for all spellings of a page's URL.
- `normalize`: The form in which archives are queried.

Imports only the top level and the Rust core.
"""

from unlost.lazy_exports import lazy_exports
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

__getattr__ = lazy_exports(__name__)
