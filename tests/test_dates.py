"""Dates: 14 digits in UTC, and back."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost import dates
from unlost.errors import DateError

MOMENTS = st.integers(86_400, 9998 * 365 * 86_400).map(
    lambda seconds: datetime(1, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)


@given(MOMENTS)
def test_date_formats_round_trip(moment: datetime) -> None:
    """14 digits, ISO and HTTP dates."""
    digits = dates.from_datetime(moment)
    assert len(digits) == 14
    assert dates.to_datetime(digits) == moment
    assert dates.from_iso(dates.to_iso(digits)) == digits
    if moment.year >= 1000:  # the parser of mail dates takes smaller years for abbreviations
        assert dates.from_http(dates.to_http(digits)) == digits


@given(MOMENTS, st.integers(1, 14))
def test_padding_gives_first_and_last_moment(moment: datetime, length: int) -> None:
    """Of a date truncated anywhere."""
    digits = dates.from_datetime(moment)
    first, last = dates.pad(digits[:length]), dates.pad(digits[:length], round_up=True)
    assert first <= digits <= last
    assert first[:length] == last[:length] == digits[:length]
    for edge, step in ((first, timedelta(seconds=-1)), (last, timedelta(seconds=1))):
        beyond = dates.from_datetime(dates.to_datetime(edge) + step) if "0001" < edge[:4] < "9999" else None
        assert beyond is None or beyond[:length] != digits[:length]


@pytest.mark.parametrize(
    "text",
    ["", "x", "2014x", "201413", "20140230", "2014021024", "20140210006", "١٤", "123456789012345"],
)
def test_invalid_date_prefix_is_rejected(text: str) -> None:
    """Month 13, 30 February, non-ASCII digits."""
    with pytest.raises(DateError, match="expected"):
        dates.pad(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2014", "20140101000000"),
        ("2014-01", "20140101000000"),
        ("2014-02-10T00:00:01.01Z", "20140210000001"),
        ("2014-02-10T00:00:01.000000002Z", "20140210000001"),
        ("2014-02-10t00:00z", "20140210000000"),
        ("2014-02-10 01:00:00+01:00", "20140210000000"),
        ("2008-10-294T05:21:46-0700", "20081020122146"),
        ("2016-12-31T23:59:60Z", "20161231235959"),
    ],
)
def test_iso_dates_in_the_wild(text: str, expected: str) -> None:
    """WARCs have every precision, ordinal dates and offsets without a colon."""
    assert dates.from_iso(text) == expected


@pytest.mark.parametrize(
    "text", ["", "2014-1", "2014-13-01", "2014-02-30", "2014-02-10T25:00:00Z", "2014-01-000", "now"]
)
def test_invalid_iso_date_is_rejected(text: str) -> None:
    """The message has the expected format."""
    with pytest.raises(DateError, match="expected a date such as 2014"):
        dates.from_iso(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mon, 10 Feb 2014 00:00:01 GMT", "20140210000001"),
        ("Sun, 1 Feb 2014 00:00:01 UTC", "20140201000001"),
        ("Sun, 01 Feb 2014 00:00:01 +0100", "20140131230001"),
        ("10 Feb 2014 00:00:01", "20140210000001"),
    ],
)
def test_http_dates_in_the_wild(text: str, expected: str) -> None:
    """With wrong weekdays, one-digit days and other time zones."""
    assert dates.from_http(text) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "Mon, 32 Feb 2014 00:00:01 GMT", "Mon, 10 Feb 99999 00:00:01 GMT"])
def test_invalid_http_date_is_rejected(text: str) -> None:
    """The message has the expected format."""
    with pytest.raises(DateError, match="expected a date such as Mon"):
        dates.from_http(text)


@pytest.mark.usefixtures("berlin")
def test_local_time_has_its_zone() -> None:
    """To the minute; the end of a wait is rounded up."""
    assert dates.to_local(1_795_000_380) == "2026-11-18 12:13 CET"
    assert dates.to_local(1_784_000_001) == "2026-07-14 05:33 CEST"
    assert dates.to_local(1_784_000_001, round_up=True) == "2026-07-14 05:34 CEST"
    with pytest.raises(DateError, match="expected seconds since 1970"):
        dates.to_local(1e30)
