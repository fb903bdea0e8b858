"""The body of a resource as it goes into the export."""

import io
import os
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import BinaryIO

from unlost.archives.repository import StoredCopy
from unlost.pages.banners import cleaned
from unlost.pages.redirect_stub import redirect_stub_target
from unlost.pages.rewriting import rewrite
from unlost.recover.export.links import PageLinks
from unlost.recover.export.page_charset import self_told
from unlost.recover.export.placing.true_type import GZIP, WITH_LINKS

MAX_REWRITTEN = 32 << 20
"""Bytes of a body that is rewritten, as `rewrite` has it. Longer ones are passed on as they are, piece by piece."""

_MAX_UNPACKED = 64 << 20
_MAX_STUB = 256 << 10  # bytes of a page that may be nothing but a redirect, with what an archive added
_MAX_MEMBERS = 100  # of a gzipped body: servers make one, or a few
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


@dataclass(slots=True)
class Made:
    """A body to write.

    charset: what it is written in, if the server told or it was written anew; None if nobody knows.
    changed, left: links, as `rewrite` counts them. counts: addresses, as PageLinks counts them.
    done: what else was done to it: `charset` (declared), `transcoded`, `unpacked`, `cleaned`, `too-long`.
    """

    body: BinaryIO
    charset: str | None = None
    changed: int = 0
    left: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    done: list[str] = field(default_factory=list)


def told_charset(copy: StoredCopy) -> str | None:
    """Return what a server said that a body is written in; None if it said nothing."""
    found = _CHARSET.search(copy.header("content-type") or "")
    return found[1] if found else None


def made(copy: StoredCopy, mime: str | None, links: PageLinks) -> Made:
    """Return the body of a copy with links that lead to files.

    mime: its true type. Only pages, style sheets and drawings are read into memory, and only up to 32 MiB.
    """
    told = told_charset(copy)
    if mime not in WITH_LINKS:
        return Made(copy.body, told)
    size = copy.body.seek(0, os.SEEK_END)
    copy.body.seek(0)
    if size > MAX_REWRITTEN:
        return Made(copy.body, told, done=["too-long"])
    body = before = copy.body.read()
    result = Made(copy.body, told)
    if body.startswith(GZIP):
        body = _unpacked(body)
        _note(result, "unpacked", body is not before)
    if copy.capture.migrated:
        clean = cleaned(body, copy.source or copy.capture.urim or "").body
        _note(result, "cleaned", clean != body)
        body = clean
    new = rewrite(
        body,
        mime,
        copy.capture.uri,
        told,
        links,
        drop_base=True,
        drop_integrity=True,
        drop_csp=True,
        replace_candidate=links.file_address,
        directory=links.directory,
        page=links.address,
    )
    links.count_known(new.groups)
    result.changed, result.left, result.counts = new.changed, new.left, links.counts
    _note(result, "transcoded", new.transcoded_from is not None)
    _note(result, "too-long", new.cut)
    if new.transcoded_from is not None or told is not None:
        result.charset = new.charset or told
    body = new.body
    if new.transcoded_from is None:
        body = self_told(new.body, mime, told)
        _note(result, "charset", body is not new.body)
    copy.body.seek(0)
    if body is not before:
        result.body = io.BytesIO(body)
    return result


def stub_target(copy: StoredCopy, mime: str | None) -> str | None:
    """Return the URL that a page redirects to if it is nothing but a redirect; None for anything else.

    mime: its true type. The body is read from its beginning, and is there again.
    """
    if mime is None or "html" not in mime.lower() or copy.capture.status not in (None, 200):
        return None
    copy.body.seek(0)
    body = copy.body.read(_MAX_STUB + 1)
    copy.body.seek(0)
    if len(body) > _MAX_STUB:
        return None
    if copy.capture.migrated:
        body = cleaned(body, copy.source or copy.capture.urim or "").body
    return redirect_stub_target(body, mime, copy.capture.uri, told_charset(copy))


def _note(result: Made, what: str, is_so: bool) -> None:
    if is_so:
        result.done.append(what)


def _unpacked(body: bytes) -> bytes:
    """Return what a gzipped body holds, in all its members; itself if it is damaged, or holds too much."""
    found, rest = bytearray(), body
    for _ in range(_MAX_MEMBERS):
        unpacker = zlib.decompressobj(31)
        try:
            found += unpacker.decompress(rest, _MAX_UNPACKED + 1 - len(found))
        except zlib.error:
            return body
        if not unpacker.eof or len(found) > _MAX_UNPACKED:
            return body
        rest = unpacker.unused_data
        if not rest:
            return bytes(found)
    return body
