"""What may be done to an answer that is to carry a block, and what must then be said differently."""

from collections.abc import Sequence
from email.utils import parsedate_to_datetime

from unlost.vault.middleware.carrying import PageBlocks

HeaderSequence = Sequence[tuple[bytes, bytes]]

_HTML = (b"text/html", b"application/xhtml+xml")
# Of the bytes as they were; whoever checks them must not find others.
_DIGEST_HEADERS = frozenset(
    {b"content-md5", b"digest", b"content-digest", b"repr-digest", b"accept-ranges", b"signature", b"signature-input"}
)
# What is called HTML and begins so is none, or in letters of two bytes.
_BINARY_SIGNATURES = (
    b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<", b"\x89PNG", b"%PDF", b"PK\x03\x04", b"GIF8",
    b"\xff\xd8\xff", b"BZh",
)  # fmt: skip
_REWRITTEN_HEADERS = frozenset({b"content-length", b"etag", b"last-modified", *_DIGEST_HEADERS})
_INSPECTED_HEADERS = frozenset(
    {b"content-type", b"content-length", b"content-encoding", b"etag", b"last-modified", b"cache-control",
     b"content-disposition", b"content-range"}
)  # fmt: skip


def headers_with_blocks(blocks: PageBlocks, status: int, headers: HeaderSequence) -> list[tuple[bytes, bytes]] | None:
    """Return the headers of an answer that carries a block; None if it must be left as it is.

    It is left unless it is a whole page of HTML as it is: status 200, no coding, no range, no download, and nobody said
    `no-transform`.
    """
    if status != 200:
        return None
    found: dict[bytes, bytes] = {}
    made: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        lower = name.lower()
        if lower in _INSPECTED_HEADERS:
            found[lower] = value
        if lower not in _REWRITTEN_HEADERS:
            made.append((name, value))
    if not _is_plain_html(found):
        return None
    if b"content-length" in found:
        length = found[b"content-length"]
        if not length.isdigit() or int(length) + len(blocks.text) > max(blocks.limit, len(blocks.text)):
            return None
        made.append((b"content-length", b"%d" % (int(length) + len(blocks.text))))
    if b"etag" in found:
        made.append((b"etag", append_to_etag(found[b"etag"], blocks.etag_suffix)))
    if b"last-modified" in found:
        made.append((b"last-modified", _later_date(found[b"last-modified"], blocks)))
    return made


def _is_plain_html(found: dict[bytes, bytes]) -> bool:
    kind = found.get(b"content-type", b"").lower()
    return (
        kind.startswith(_HTML)
        and b"utf-16" not in kind
        and found.get(b"content-encoding", b"identity").strip().lower() in {b"", b"identity"}
        and b"no-transform" not in found.get(b"cache-control", b"").lower()
        and not found.get(b"content-disposition", b"").lstrip().lower().startswith(b"attachment")
        and b"content-range" not in found
    )


def may_be_html(beginning: bytes) -> bool:
    """Return whether a body that is called HTML may be: not what is packed, a picture, or in letters of two bytes."""
    return not beginning.startswith(_BINARY_SIGNATURES)


def not_modified_headers(blocks: PageBlocks, headers: HeaderSequence) -> list[tuple[bytes, bytes]]:
    """Return the headers of a 304 for a page that carries a block: with the entity tag that its whole answer has."""
    return [
        (name, append_to_etag(value, blocks.etag_suffix) if name.lower() == b"etag" else value)
        for name, value in headers
    ]


def append_to_etag(etag: bytes, suffix: bytes) -> bytes:
    """Return an entity tag for the page with its block.

    >>> tagged(b'W/"abc"', b"-v1")
    b'W/"abc-v1"'
    """
    return etag[:-1] + suffix + b'"' if etag.endswith(b'"') and not etag.endswith(suffix + b'"') else etag


def _later_date(modified: bytes, blocks: PageBlocks) -> bytes:
    seconds = _parse_http_date(modified)
    return blocks.changed_at_http if seconds is not None and seconds < blocks.changed_at else modified


def _parse_http_date(date: bytes) -> float | None:
    try:
        return parsedate_to_datetime(date.decode("latin-1")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def original_if_none_match(value: bytes, blocks: PageBlocks) -> bytes | None:
    """Return what If-None-Match says to the site itself, which does not know of blocks; None if nothing is left of it.

    Tags with the block that the page carries lose its mark; those with another one are of an older page. A page that
    was planned to carry a block has no tags without: whoever has one saw the page before.
    """
    if value.strip() == b"*":
        return value
    kept = []
    for each in value.split(b","):
        tag = each.strip()
        if tag.endswith(blocks.etag_suffix + b'"'):
            kept.append(tag[: -len(blocks.etag_suffix) - 1] + b'"')
        elif not blocks.is_planned and b"-v" not in tag[-15:]:
            kept.append(tag)
    return b", ".join(kept) if kept else None


def passes_if_modified_since(value: bytes, blocks: PageBlocks) -> bool:
    """Return whether If-Modified-Since may be passed on: a page that got its block later has changed since."""
    seconds = _parse_http_date(value)
    return seconds is not None and (not blocks.is_planned or seconds >= blocks.changed_at)
