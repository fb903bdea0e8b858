"""Ranks the captures of one resource by what their index records say, best first."""

import hashlib
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from urllib.parse import urljoin

from unlost.archives.datetime_negotiation import date_span, distance_rank, pad_range
from unlost.capture import Capture, normalize_digest
from unlost.errors import DateError, UriError
from unlost.uri.names import page_name, url_from_name

EMPTY_DIGESTS = frozenset(
    normalize_digest(f"{each}:{hashlib.new(each, usedforsecurity=False).hexdigest()}")
    for each in ("md5", "sha1", "sha256", "sha512")
)
"""Digests of the empty body."""


class CaptureQuality(IntEnum):
    """How good a capture is, the best first."""

    GOOD = 0
    """The page as captured."""
    MIGRATED = 1
    """The page in another format, or with content added by the archive."""
    UNKNOWN = 2
    """The index does not say."""
    PARTIAL = 3
    """An incomplete body."""
    REDIRECT = 4
    """A redirect within the site, or to an unknown target."""
    DOUBTFUL = 5
    """Rejected by the quality classifier as a soft 404, a parked page or a login wall. Known only after fetching."""
    EMPTY = 6
    """A successful response with an empty body."""
    OFFSITE_REDIRECT = 7
    """A redirect to another site."""
    ERROR = 8
    """The response has a status of 400 or above."""
    NO_CONTENT = 9
    """The response has no body by definition (204, 205, 304), or the body was lost."""
    SELF_REDIRECT = 10
    """A redirect to another spelling of the same URL."""
    REJECTED = 11
    """Like DOUBTFUL, in a recovery that drops rejected pages."""


WORST_ACCEPTED = CaptureQuality.EMPTY
"""The worst quality that counts as recovered."""


@dataclass(frozen=True, slots=True)
class CapturePreference:
    """Which captures of a page are preferred.

    Attributes:
        at: Preferred date, 1 to 14 digits; None for the latest.
        page_datetime: For a page requisite, the datetime of the page that needs it, 14 digits. Precedes `at`.
        first: Earliest date, 1 to 14 digits.
        last: Latest date, 1 to 14 digits.
        most_recent: Prefer the latest capture even if the archive migrated it to another format.
        is_requisite: Whether the resource is a page requisite. Otherwise `page_datetime` is ignored.
    """

    at: str | None = None
    page_datetime: str | None = None
    first: str | None = None
    last: str | None = None
    most_recent: bool = False
    is_requisite: bool = False


def listed_quality(
    capture: Capture, is_own: Callable[[str], bool], name: str, *, ignore_case: bool = False
) -> CaptureQuality:
    """Return the quality of a capture according to its index.

    Args:
        capture: The capture.
        is_own: Returns whether a URL belongs to the site, as `RecoveryScope.is_own`.
        name: Page name of the resource, computed with the same `ignore_case`.
        ignore_case: Whether letter case is ignored in names.
    """
    if capture.status is None or (capture.status == 304 and capture.revisit):
        return CaptureQuality.EMPTY if _is_listed_empty(capture) else CaptureQuality.UNKNOWN
    known = _quality_of_status(capture, is_own, name, ignore_case=ignore_case)
    return CaptureQuality.EMPTY if known <= CaptureQuality.PARTIAL and _is_listed_empty(capture) else known


def stored_quality(
    capture: Capture,
    is_own: Callable[[str], bool],
    name: str,
    *,
    size: int,
    truncated: str | None = None,
    ignore_case: bool = False,
) -> CaptureQuality:
    """Return the quality of a fetched capture; never UNKNOWN.

    Args:
        capture: The capture as fetched.
        is_own: As for `listed_quality`.
        name: As for `listed_quality`.
        size: Size of the body in bytes.
        truncated: As in `FetchedCapture`.
        ignore_case: As for `listed_quality`.
    """
    # A capture that was stored without HTTP has no status; it counts as 200.
    status = 200 if capture.status is None else capture.status
    known = _quality_of_status(replace(capture, status=status), is_own, name, ignore_case=ignore_case)
    if known > CaptureQuality.PARTIAL:
        return known
    if size == 0:
        return CaptureQuality.EMPTY if truncated is None else CaptureQuality.NO_CONTENT
    return CaptureQuality.PARTIAL if truncated is not None else known


def resolve_revisits(captures: Iterable[Capture]) -> list[Capture]:
    """Return the captures in order, with the status and type of revisits taken from their originals.

    The original is the capture that the revisit names, or one with the same digest: one from the same archive first,
    and the last one before the revisit first. A revisit without an original is returned unchanged.
    """
    captures = list(captures)
    if not any(each.revisit for each in captures):
        return captures
    originals_by_key: dict[tuple[str, ...], list[Capture]] = {}
    for each in captures:
        if each.status is not None and not each.revisit:
            for key in _revisit_keys(each.archive, (each.uri, each.datetime), each.digest):
                originals_by_key.setdefault(key, []).append(each)
    for candidates in originals_by_key.values():
        candidates.sort(key=_sort_key)
    return [_resolve_revisit(each, originals_by_key) if each.revisit else each for each in captures]


def rank_captures(
    captures: Sequence[Capture],
    preference: CapturePreference,
    is_own: Callable[[str], bool],
    name: str,
    *,
    ignore_case: bool = False,
) -> list[tuple[CaptureQuality, Capture]]:
    """Return the captures of one page with their quality, in the order in which to fetch them until one is good.

    Captures are ordered by quality, then by distance from the preferred date (or latest first), then by archive; the
    input order does not matter. Captures outside the time range are left out. A capture known to be an error, a
    redirect or empty therefore never precedes a good one, however old.

    Raises:
        DateError: A date of the preference is invalid.
    """
    low, high = pad_range(preference.first, preference.last)
    date = (preference.page_datetime if preference.is_requisite else None) or preference.at
    first, last = date_span(date)

    def order(ranked: tuple[CaptureQuality, Capture]) -> tuple[object, ...]:
        quality, capture = ranked
        quality = CaptureQuality.GOOD if preference.most_recent and quality is CaptureQuality.MIGRATED else quality
        # Without a date, the latest capture is preferred; the 14 digits are compared as a number.
        distance = 0.0 if date is None else _distance(capture, first, last)
        return quality, distance, -int(capture.datetime), *_sort_key(capture)[1:]

    in_range = [capture for capture in resolve_revisits(captures) if low <= capture.datetime <= high]
    return sorted(((listed_quality(each, is_own, name, ignore_case=ignore_case), each) for each in in_range), key=order)


def distinct_versions(ranked: Iterable[tuple[CaptureQuality, Capture]]) -> list[tuple[CaptureQuality, Capture]]:
    """Return the best capture of each payload, in the given order.

    A capture without a digest counts as a version of its own. Redirects are also distinguished by their targets,
    because their bodies are often identical.
    """
    versions: dict[object, tuple[CaptureQuality, Capture]] = {}
    for i, (quality, capture) in enumerate(ranked):
        is_redirect = quality in (
            CaptureQuality.REDIRECT,
            CaptureQuality.OFFSITE_REDIRECT,
            CaptureQuality.SELF_REDIRECT,
        )
        versions.setdefault((_payload_key(capture) or i, is_redirect and capture.redirect), (quality, capture))
    return list(versions.values())


def has_same_payload(one: Capture, other: Capture) -> bool:
    """Return whether two captures are known to have the same body, by the digest.

    A digest without an algorithm is compared only within its archive.
    """
    return _payload_key(one) is not None and _payload_key(one) == _payload_key(other)


def datetime_distance(capture: Capture, date: str | None) -> float:
    """Return the distance of a capture from a date (14 digits) in seconds; without a date, the latest is closest."""
    if date is None:
        return -float(capture.datetime)
    return _distance(capture, *date_span(date))


def _payload_key(capture: Capture) -> object:
    if capture.digest is None or ":" in capture.digest:
        return capture.digest
    return capture.archive, capture.digest


def _is_listed_empty(capture: Capture) -> bool:
    # The length of a revisit is that of its own record; its digest is that of the original body.
    return capture.digest in EMPTY_DIGESTS or (capture.length == 0 and not capture.revisit)


def _quality_of_status(
    capture: Capture, is_own: Callable[[str], bool], name: str, *, ignore_case: bool
) -> CaptureQuality:
    status = capture.status or 0
    if status in (204, 205, 304):  # by definition without a body
        return CaptureQuality.NO_CONTENT
    if status == 206:
        return CaptureQuality.PARTIAL
    if 200 <= status < 300:
        return CaptureQuality.MIGRATED if capture.migrated else CaptureQuality.GOOD
    if 300 <= status < 400:
        return _quality_of_redirect(capture, is_own, name, ignore_case=ignore_case)
    return CaptureQuality.ERROR


def _quality_of_redirect(
    capture: Capture, is_own: Callable[[str], bool], name: str, *, ignore_case: bool
) -> CaptureQuality:
    if not capture.redirect:
        return CaptureQuality.REDIRECT
    try:
        target = urljoin(capture.uri or url_from_name(name), capture.redirect.strip())
        if page_name(target, ignore_case=ignore_case) == name:
            return CaptureQuality.SELF_REDIRECT
    except (UriError, ValueError):
        return CaptureQuality.OFFSITE_REDIRECT
    return CaptureQuality.REDIRECT if is_own(target) else CaptureQuality.OFFSITE_REDIRECT


def _revisit_keys(archive: str | None, named: tuple[str, str] | None, digest: str | None) -> list[tuple[str, ...]]:
    """Return the keys by which a revisit finds its original, most reliable first."""
    own = archive or ""
    keys = [("named", own, *named), ("named", *named)] if named else []
    if digest is not None:
        keys.append(("payload", own, digest))
        if ":" in digest:
            keys.append(("payload", digest))
    return keys


def _resolve_revisit(revisit: Capture, originals: dict[tuple[str, ...], list[Capture]]) -> Capture:
    matches = (originals.get(key) for key in _revisit_keys(revisit.archive, revisit.revisit_of, revisit.digest))
    candidates = next((each for each in matches if each), None)
    if candidates is None:
        return revisit
    position = bisect_right(candidates, revisit.datetime, key=lambda each: each.datetime)
    original = candidates[max(position - 1, 0)]
    has_own_status = revisit.status not in (None, 304)  # 304 is the response to the second visit, not the first
    return replace(
        revisit,
        status=revisit.status if has_own_status else original.status,
        redirect=revisit.redirect if has_own_status else revisit.redirect or original.redirect,
        mime=revisit.mime or original.mime,
    )


def _distance(capture: Capture, first: str, last: str) -> float:
    try:
        return distance_rank(capture.datetime, first, last)[0]
    except DateError:
        return math.inf


def _sort_key(capture: Capture) -> tuple[str | int, ...]:
    """Return a total order on captures that does not depend on the input order: oldest first, then by archive."""
    identifiers = (capture.datetime, capture.archive, capture.uri, capture.urim, capture.filename)
    texts = (*identifiers, capture.digest, capture.mime, capture.redirect, *(capture.revisit_of or ("", "")))
    flags = (capture.revisit, capture.migrated)
    numbers = (capture.offset, capture.skip, capture.length, capture.status, *flags)
    return *(text or "" for text in texts), *(-1 if number is None else number for number in numbers)
