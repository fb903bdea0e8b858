"""One stored copy of a resource, whatever index or archive file it was read from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capture:
    """One stored copy of a resource. What a source does not tell is None; nothing is guessed.

    uri: the original address (URI-R), as it was captured. Empty in indexes that keep only keys.
    key: its normal key, as `unlost.uri.row_key` makes it; None for what is not a web page (`dns:`, `warcinfo:`).
    datetime: when it was captured, 14 digits, UTC; missing digits filled as `unlost.dates` says.
    status: the HTTP status; None for what has none.
    mime: the media type in lower case without parameters; `warc/revisit` is told by `revisit` instead.
    digest: of the payload, with its algorithm in front (`sha1:…`) where that is known, in the one spelling that
        `unlost.formats.digests` has for it.
    length: bytes of the record as it is stored, compressed if it is.
    redirect: where it redirects to, as the source says it.
    archive: the id of the archive that holds it, in the registry.
    urim: the address of this copy in an archive (URI-M).
    migrated: whether the archive changed its format (True), kept it (False), or does not say (None).
    revisit: whether the record says "as before" and has no body of its own.
    revisit_of: the address, then the 14-digit datetime, of the capture that has the body, where the record says so.
    filename, offset: where the record is stored: a WARC's name and a position in bytes.
    skip: how many bytes of text come before it in its compressed member, if that holds other records before it.
    """

    uri: str
    key: str | None
    datetime: str
    status: int | None = None
    mime: str | None = None
    digest: str | None = None
    length: int | None = None
    redirect: str | None = None
    archive: str | None = None
    urim: str | None = None
    migrated: bool | None = None
    revisit: bool = False
    revisit_of: tuple[str, str] | None = None
    filename: str | None = None
    offset: int | None = None
    skip: int | None = None
