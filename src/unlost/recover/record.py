"""One copy that was recovered, and where it is kept."""

from dataclasses import dataclass

from unlost.formats.capture import Capture


@dataclass(frozen=True, slots=True)
class RecoveryRecord:
    """A record in a WARC of the recovery.

    capture: what came back: address, date, status, type and redirect of the copy itself, its archive and its URI-M.
        `digest` is that of the body that is kept here, `sha1:` and base 32; `length` is the number of its bytes;
        `revisit_of` names the record here that has the body, if this one has none of its own.
    listed_digest: the digest that the archive's index gives for it; None if there was none.
    source: the address that the bytes came from; None where it was a file.
    truncated: why the body is known not to be whole, as in StoredCopy.
    recovered: when it was kept, 14 digits.
    file, offset, size: the WARC's name in the recovery's folder `warc`, and where in it, in bytes.
    """

    capture: Capture
    listed_digest: str | None
    source: str | None
    truncated: str | None
    recovered: str
    file: str
    offset: int
    size: int
