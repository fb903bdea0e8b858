"""Dates as 14 digits in UTC (`YYYYMMDDhhmmss`), as in CDX files and URI-Ms, and conversions from and to other forms.

The other forms are ISO 8601 (WARC-Date), HTTP dates (RFC 9110, section 5.6.7, and the Memento headers of RFC 7089),
seconds since 1970, and user input.
"""

import calendar
import math
import re
from datetime import UTC, datetime, timedelta

from unlost.errors import DateError

_ISO = re.compile(
    r"(\d{4})(?:-(\d{2})(?:-(\d{2,3})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,]\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?)?)?",
    re.ASCII | re.IGNORECASE,
)

# Fast path: complete dates up to the 28th of a month.
_COMMON_DATE = re.compile(
    r"(?!0000)\d{4}(?:0[1-9]|1[0-2])(?:0[1-9]|1\d|2[0-8])(?:[01]\d|2[0-3])[0-5]\d[0-5]\d", re.ASCII
)


def pad(digits: str, *, round_up: bool = False) -> str:
    """Complete a date prefix of 1 to 14 digits to 14 digits: the first second that it covers, or the last one.

    Indexes and APIs truncate dates anywhere: `2014021` is a day from the 10th to the 19th. 17 digits (milliseconds) are
    truncated. Raises DateError if no date has this prefix.

    Args:
        digits: The prefix.
        round_up: Return the last second.

    >>> pad("2014"), pad("2014", round_up=True), pad("201402", round_up=True), pad("20140210000001999")
    ('20140101000000', '20141231235959', '20140228235959', '20140210000001')
    >>> pad("2014021"), pad("2014021", round_up=True), pad("19", round_up=True)
    ('20140210000000', '20140219235959', '19991231235959')
    """
    if _COMMON_DATE.fullmatch(digits):
        return digits
    if not (digits.isascii() and digits.isdigit() and (len(digits) <= 14 or len(digits) == 17)):
        raise DateError(f"expected 1 to 14 digits, or 17, found `{digits[:40]}`")
    filled = ""
    for width, lowest, highest in ((4, 1, 9999), (2, 1, 12), (2, 1, 31), (2, 0, 23), (2, 0, 59), (2, 0, 59)):
        given = digits[len(filled) : len(filled) + width]
        # Second 60 is accepted where it is given (a leap second), but padding does not produce it.
        last = _days_in_month(filled) if len(filled) == 6 else 60 if len(filled) == 12 and given == "60" else highest
        first, final = max(lowest, int(given.ljust(width, "0"))), min(last, int(given.ljust(width, "9")))
        if first > final:
            raise DateError(f"expected a date as YYYYMMDDhhmmss, found `{digits[:40]}`")
        filled += f"{final if round_up else first:0{width}d}"
    return filled


def _days_in_month(month: str) -> int:
    return calendar.monthrange(int(month[:4]), int(month[4:]))[1]


def to_datetime(digits: str) -> datetime:
    """Convert 14 digits to an aware datetime in UTC. Raises DateError.

    >>> to_datetime("20140210000001").isoformat()
    '2014-02-10T00:00:01+00:00'
    """
    # datetime does not support leap seconds; use the second before.
    seconds = "59" if digits[12:] == "60" else digits[12:]
    try:
        if len(digits) == 14 and digits.isascii() and digits.isdigit():  # ten times faster than strptime
            year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:8])
            return datetime(year, month, day, int(digits[8:10]), int(digits[10:12]), int(seconds), tzinfo=UTC)
        return datetime.strptime(digits[:12] + seconds, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise DateError(f"expected a date as YYYYMMDDhhmmss, found `{digits[:40]}`") from None


def from_datetime(moment: datetime) -> str:
    """Convert an aware datetime to 14 digits in UTC; fractions of a second are truncated.

    >>> from_datetime(datetime(2014, 2, 10, 0, 0, 1, 999999, tzinfo=UTC))
    '20140210000001'
    """
    return moment.astimezone(UTC).strftime("%Y%m%d%H%M%S").rjust(14, "0")


def from_epoch(seconds: str) -> str:
    """Convert seconds since 1970, as decimal text, to 14 digits in UTC. Raises DateError.

    >>> from_epoch("1392076801")
    '20140211000001'
    """
    try:
        return from_datetime(datetime.fromtimestamp(int(seconds), UTC))
    except (ValueError, OverflowError, OSError):
        raise DateError(f"expected seconds since 1970, found `{seconds[:40]}`") from None


def from_iso(text: str) -> str:
    """Convert an ISO 8601 date of any precision, as in WARCs, to 14 digits in UTC. Raises DateError.

    Missing components are the earliest possible; fractions are truncated; the default zone is UTC. A three-digit day
    after a month is the day of the year, as some crawlers write it.

    >>> from_iso("2014-01"), from_iso("2014-02-10T00:00:01.999Z"), from_iso("2008-10-294T05:21:46-0700")
    ('20140101000000', '20140210000001', '20081020122146')
    """
    match = _ISO.fullmatch(text.strip())
    if not match:
        raise DateError(f"expected a date such as 2014-02-10T00:00:01Z, found `{text[:40]}`")
    year, month, day, hour, minute, second, zone = match.groups()
    try:
        if len(day or "") == 3:
            moment = datetime.strptime(f"{year} {day}", "%Y %j").replace(tzinfo=UTC)
        else:
            moment = datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC)
        # datetime does not support leap seconds; use the second before.
        moment = moment.replace(hour=int(hour or 0), minute=int(minute or 0), second=min(int(second or 0), 59))
        return from_datetime(moment - _parse_offset(zone))
    except (ValueError, OverflowError):
        raise DateError(f"expected a date such as 2014-02-10T00:00:01Z, found `{text[:40]}`") from None


def _parse_offset(zone: str | None) -> timedelta:
    if not zone or zone in "Zz":
        return timedelta()
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return -offset if zone[0] == "-" else offset


def from_http(text: str) -> str:
    """Convert an HTTP date to 14 digits in UTC. Raises DateError.

    Lenient, because servers are: one-digit days, wrong weekdays, `UTC` and offsets are accepted.

    >>> from_http("Mon, 10 Feb 2014 00:00:01 GMT"), from_http("Tue, 1 Feb 2014 00:00:01 +0100")
    ('20140210000001', '20140131230001')
    """
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  start-up time

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        raise DateError(f"expected a date such as Mon, 10 Feb 2014 00:00:01 GMT, found `{text[:40]}`") from None
    return from_datetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def to_http(digits: str) -> str:
    """Convert 14 digits to an HTTP date, always in GMT, as RFC 7089 requires. Raises DateError.

    >>> to_http("20140210000001")
    'Mon, 10 Feb 2014 00:00:01 GMT'
    """
    moment = to_datetime(digits)
    # Not strftime: its names depend on the locale.
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[moment.weekday()]
    month = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")[moment.month - 1]
    clock = f"{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}"
    return f"{day}, {moment.day:02d} {month} {moment.year:04d} {clock} GMT"


def to_iso(digits: str) -> str:
    """Convert 14 digits to ISO 8601 in UTC. Raises DateError.

    >>> to_iso("20140210000001")
    '2014-02-10T00:00:01Z'
    """
    moment = to_datetime(digits)
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}Z"


def to_local(seconds: float, *, round_up: bool = False) -> str:
    """Format seconds since 1970 as local time with its zone, to the minute, for messages.

    Args:
        seconds: The time.
        round_up: Round up to the next minute, for a time that must have passed before a retry.

    >>> to_local(1_392_076_801) == datetime.fromtimestamp(1_392_076_801).astimezone().strftime("%Y-%m-%d %H:%M %Z")
    True
    """
    if round_up:
        seconds = math.ceil(seconds / 60) * 60
    try:
        return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M %Z").strip()
    except (ValueError, OverflowError, OSError):
        raise DateError(f"expected seconds since 1970, found `{seconds}`") from None


def from_user_input(text: str) -> str:
    """Parse a date in any of the forms that users enter. Returns 14 digits. Raises DateError.

    >>> from_user_input("2014"), from_user_input("2014-02-10"), from_user_input("Mon, 10 Feb 2014 00:00:01 GMT")
    ('20140101000000', '20140210000000', '20140210000001')
    """
    for parse in (pad, from_iso, from_http):
        try:
            return parse(text)
        except DateError:
            continue
    raise DateError(f"expected such as 20140210, 2014-02-10T00:00:01Z or an HTTP date, found `{text[:40]}`")
