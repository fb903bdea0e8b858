"""What pages ask of those who keep copies: `noarchive`, in a header or in the page."""

import re
from collections.abc import Iterable

from unlost.archives.asking.agent import PRODUCT_TOKEN

_MAX_HEAD_BYTES = 512 << 10  # bytes of a page: browsers look for tags of this kind at its beginning
_MAX_META_TAGS = 1_000  # tags that are looked at
_META = re.compile(r"<meta(?=[\s/])([^<>]{0,4000})>", re.IGNORECASE)
_COMMENTS_AND_SCRIPTS = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|textarea|noframes|xmp)\b.*?(?:</\1|\Z)", re.IGNORECASE | re.DOTALL
)
# Names begin where something else ended: so a long one without a value is gone through once.
_ATTRIBUTE = re.compile(r"""(?:^|(?<=[\s"'/]))([^\s"'>/=]++)\s*+=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_FORBIDDING_DIRECTIVES = {"noarchive", "none"}
_VALUED_DIRECTIVES = {"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"}


def header_forbids_archiving(values: Iterable[str]) -> bool:
    """Return whether X-Robots-Tag, with these values, asks us not to keep a copy.

    >>> header_forbids(["otherbot: noarchive, nofollow"]), header_forbids(["nofollow", "unlost: none"])
    (False, True)
    """
    return any(_directives_forbid(value) for value in values)


def _directives_forbid(value: str) -> bool:
    is_ours = True
    for rule in value.lower().split(","):
        word, colon, rest = rule.strip().partition(":")
        if colon and word.strip() not in _VALUED_DIRECTIVES:
            # A program's name: the rules behind it are for that one alone.
            is_ours, word = word.strip() == PRODUCT_TOKEN, rest
        if is_ours and word.strip() in _FORBIDDING_DIRECTIVES:
            return True
    return False


def page_forbids_archiving(body: bytes) -> bool:
    """Return whether a page asks us not to keep a copy, by `<meta name=robots>`, or with our own name.

    body: HTML, in whatever letters: tags are ASCII in all of them, but for UTF-16, which begins with a mark.

    >>> page_forbids(b"<meta content='NoArchive, nofollow' name=robots>"), page_forbids(b"<!-- <meta name=robots> -->")
    (True, False)
    """
    head = body[:_MAX_HEAD_BYTES]
    text = head.decode("utf-16", "replace") if head[:2] in (b"\xff\xfe", b"\xfe\xff") else head.decode("latin-1")
    if "<meta" not in text.lower():
        return False
    for count, found in enumerate(_META.finditer(_COMMENTS_AND_SCRIPTS.sub(" ", text))):
        if count >= _MAX_META_TAGS:
            break
        told = {name.lower(): a or b or c for name, a, b, c in _ATTRIBUTE.findall(found[1])}
        if told.get("name", "").strip().lower() in ("robots", PRODUCT_TOKEN):
            words = re.split(r"[\s,]+", told.get("content", "").lower())
            if _FORBIDDING_DIRECTIVES.intersection(words):
                return True
    return False
