"""What is held of a page: the last successful visit to it, and the copy that has its body."""

import re
from dataclasses import dataclass, replace

from unlost.refresh.page_text import PageTextSketch
from unlost.refresh.visit import Visit

_HEADER_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]{1,4096}")


@dataclass(frozen=True, slots=True)
class HarvestedCapture:
    """A record with a body, in a WARC of ours or of another archive.

    uri: of the record: where redirects ended. moment: 14 digits. digest: as the record says it; None if nobody knows.
    file, offset, size: where it is stored, as far as that is known. mime, status: of the answer.
    """

    uri: str
    timestamp: str
    digest: str | None = None
    file: str | None = None
    offset: int | None = None
    size: int | None = None
    mime: str | None = None
    status: int | None = 200


@dataclass(frozen=True, slots=True)
class PageSnapshot:
    """What is held of a page.

    visit: the last successful one, whose headers are compared with those that come next.
    copy: what has its body; None if it was not to be kept.
    final: where redirects ended, and conditions can be sent to.
    size: bytes of the body; None if nobody knows.
    is_ours: whether the digest was made here, of the body without codings. One of another archive that differs proves
        nothing: it may be of a body in gzip.
    text: what the text of the next one is compared with; None if it has none, or nobody looked.
    """

    visit: Visit
    capture: HarvestedCapture | None
    final_url: str
    size: int | None = None
    is_ours: bool = True
    text: PageTextSketch | None = None

    @property
    def validators(self) -> tuple[tuple[str, str], ...]:
        """The headers that ask whether it changed, verbatim: some servers compare dates as texts.

        What cannot be sent is left out: a server, or an index, may have said anything.
        """
        told = (("If-None-Match", self.visit.etag), ("If-Modified-Since", self.visit.last_modified))
        return tuple((name, value) for name, value in told if value and _HEADER_VALUE.fullmatch(value))


def has_body_changed(snapshot: PageSnapshot, visit: Visit, *, by_text: bool) -> bool | None:
    """Return whether a body that came is another one than that which is held; None if nobody can tell."""
    if by_text and snapshot.visit.text_digest and visit.text_digest:
        return snapshot.visit.text_digest != visit.text_digest
    if snapshot.visit.digest is None or visit.digest is None:
        return None
    if snapshot.visit.digest == visit.digest:
        return False
    return True if snapshot.is_ours else None


def merge_not_modified(previous: Visit, response: Visit) -> Visit:
    """Return the visit that an answer 304 stands for: what it says, and of the rest what was said before.

    >>> updated(Visit("http://a.example/", "sha1:A", etag='"1"'), Visit("http://a.example/", time=9, status=304)).etag
    '"1"'
    """
    fields = {name: getattr(previous, name) for name in _RETAINED_FIELDS if getattr(response, name) is None}
    return replace(response, **fields)


_RETAINED_FIELDS = ("etag", "last_modified", "repr_digest", "cache_control", "expires", "server", "content_length")
