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
"""The digests of no bytes at all."""


class CaptureQuality(IntEnum):
    """How good a capture is, the best first."""

    GOOD = 0
    """The page as it was captured."""
    MIGRATED = 1
    """The page in another format, or with something of the archive's in it."""
    UNKNOWN = 2
    """The index does not say: it must be fetched to know."""
    PARTIAL = 3
    """A piece of the page."""
    REDIRECT = 4
    """It redirects to another page of the site, or does not say where."""
    DOUBTFUL = 5
    """The quality verdict speaks against it: a soft 404, a parked page, a wall. Known only once it was fetched."""
    EMPTY = 6
    """A successful response with an empty body."""
    OFFSITE_REDIRECT = 7
    """It redirects to another site."""
    ERROR = 8
    """The response has a status of 400 or above."""
    NO_CONTENT = 9
    """The response has no body by definition (204, 205, 304), or its body was lost."""
    SELF_REDIRECT = 10
    """It redirects to the same page in another spelling."""
    REJECTED = 11
    """As DOUBTFUL, in a recovery that drops such pages."""


WORST_ACCEPTED = CaptureQuality.EMPTY
"""The last that counts as recovered."""


@dataclass(frozen=True, slots=True)
class CapturePreference:
    """Which captures of a page are wanted.

    at: the date, 1 to 14 digits, to be close to; None for the last.
    near: of a requisite, when the page that needs it was captured, 14 digits; it counts before `at`.
    first, last: 1 to 14 digits; captures before and after are left out.
    most_recent: take the last capture, also where the archive changed its format and another did not.
    is_requisite: whether it is for an image, a style sheet or the like; `near` counts only then.
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
    """Return what a capture is good for, by what its index says.

    is_own: whether an address belongs to the site, as `Scope.is_own` says.
    name: of the page, as `name_of` has it with the same `ignore_case`.
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
    """Return what a copy is good for that has come; never UNKNOWN.

    capture: what came back. size: how many bytes its body has. truncated: as in StoredCopy.
    """
    # What was stored without HTTP has no status, and is what it is.
    status = 200 if capture.status is None else capture.status
    known = _quality_of_status(replace(capture, status=status), is_own, name, ignore_case=ignore_case)
    if known > CaptureQuality.PARTIAL:
        return known
    if size == 0:
        return CaptureQuality.EMPTY if truncated is None else CaptureQuality.NO_CONTENT
    return CaptureQuality.PARTIAL if truncated is not None else known


def resolve_revisits(captures: Iterable[Capture]) -> list[Capture]:
    """Return captures, in their order, in which revisits have the status and type of what they repeat.

    That is the capture which they name, or one of the same digest: of the same archive before others, the last before
    it rather than a later one. A revisit of which there is none stays as it is.
    """
    captures = list(captures)
    if not any(each.revisit for each in captures):
        return captures
    originals: dict[tuple[str, ...], list[Capture]] = {}
    for each in captures:
        if each.status is not None and not each.revisit:
            for mark in _revisit_keys(each.archive, (each.uri, each.datetime), each.digest):
                originals.setdefault(mark, []).append(each)
    for candidates in originals.values():
        candidates.sort(key=_sort_key)
    return [_resolve_revisit(each, originals) if each.revisit else each for each in captures]


def rank_captures(
    captures: Sequence[Capture],
    preference: CapturePreference,
    is_own: Callable[[str], bool],
    name: str,
    *,
    ignore_case: bool = False,
) -> list[tuple[CaptureQuality, Capture]]:
    """Return captures of one page with their worth, in the order in which to fetch them until one is good.

    By worth; then those closest to the date that is wished for, or without one the last; then by archive. Those out of
    the wished time are left out. So nothing that is known to be an error, a redirect or empty comes before a capture
    that is good, however old. The order in which they were given does not matter. Raises DateError for a bad wish.
    """
    low, high = pad_range(preference.first, preference.last)
    date = (preference.page_datetime if preference.is_requisite else None) or preference.at
    first, last = date_span(date)

    def order(found: tuple[CaptureQuality, Capture]) -> tuple[object, ...]:
        value, capture = found
        value = CaptureQuality.GOOD if preference.most_recent and value is CaptureQuality.MIGRATED else value
        # Without a date the last is the closest, and comparing digits does.
        distance = 0.0 if date is None else _distance(capture, first, last)
        return value, distance, -int(capture.datetime), *_sort_key(capture)[1:]

    wanted = [capture for capture in resolve_revisits(captures) if low <= capture.datetime <= high]
    return sorted(((listed_quality(each, is_own, name, ignore_case=ignore_case), each) for each in wanted), key=order)


def distinct_versions(ranked: Iterable[tuple[CaptureQuality, Capture]]) -> list[tuple[CaptureQuality, Capture]]:
    """Return the best capture of each payload, in their order: every version of a page once.

    Without a digest nothing tells whether a capture is the same, and it is a version. Redirects, whose bodies say
    little, are told apart by where they lead, too.
    """
    found: dict[object, tuple[CaptureQuality, Capture]] = {}
    for i, (value, capture) in enumerate(ranked):
        leads_on = value in (CaptureQuality.REDIRECT, CaptureQuality.OFFSITE_REDIRECT, CaptureQuality.SELF_REDIRECT)
        found.setdefault((_payload_key(capture) or i, leads_on and capture.redirect), (value, capture))
    return list(found.values())


def has_same_payload(one: Capture, other: Capture) -> bool:
    """Return whether two captures are known to have the same body: one digest of one algorithm.

    A digest whose algorithm is not told is compared only inside one archive.
    """
    return _payload_key(one) is not None and _payload_key(one) == _payload_key(other)


def datetime_distance(capture: Capture, date: str | None) -> float:
    """Return how far a capture is from a date of 14 digits, in seconds; without one, the newer the closer."""
    if date is None:
        return -float(capture.datetime)
    return _distance(capture, *date_span(date))


def _payload_key(capture: Capture) -> object:
    if capture.digest is None or ":" in capture.digest:
        return capture.digest
    return capture.archive, capture.digest


def _is_listed_empty(capture: Capture) -> bool:
    # A revisit's record is small; its digest is that of the body which it stands for.
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
    """Return by what a revisit finds its original, the surest first."""
    own = archive or ""
    marks = [("named", own, *named), ("named", *named)] if named else []
    if digest is not None:
        marks.append(("alike", own, digest))
        if ":" in digest:
            marks.append(("alike", digest))
    return marks


def _resolve_revisit(revisit: Capture, originals: dict[tuple[str, ...], list[Capture]]) -> Capture:
    found = (originals.get(mark) for mark in _revisit_keys(revisit.archive, revisit.revisit_of, revisit.digest))
    candidates = next((each for each in found if each), None)
    if candidates is None:
        return revisit
    position = bisect_right(candidates, revisit.datetime, key=lambda each: each.datetime)
    original = candidates[max(position - 1, 0)]
    is_told = revisit.status not in (None, 304)  # 304 is what the second visit was told, not the first
    return replace(
        revisit,
        status=revisit.status if is_told else original.status,
        redirect=revisit.redirect if is_told else revisit.redirect or original.redirect,
        mime=revisit.mime or original.mime,
    )


def _distance(capture: Capture, first: str, last: str) -> float:
    try:
        return distance_rank(capture.datetime, first, last)[0]
    except DateError:
        return math.inf


def _sort_key(capture: Capture) -> tuple[str | int, ...]:
    """Return what brings captures into one order, however they came: the oldest first, then by archive."""
    places = (capture.datetime, capture.archive, capture.uri, capture.urim, capture.filename)
    texts = (*places, capture.digest, capture.mime, capture.redirect, *(capture.revisit_of or ("", "")))
    flags = (capture.revisit, capture.migrated)
    numbers = (capture.offset, capture.skip, capture.length, capture.status, *flags)
    return *(text or "" for text in texts), *(-1 if number is None else number for number in numbers)
