"""All archives agree on the capture closest to a date, also for partial dates."""

import asyncio
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.archives.archive_files import files, page, write
from tests.archives.helpers import make_http_client
from tests.external.wayback_cdx import StoredCapture, fake_wayback
from unlost import dates
from unlost.archives import ArchiveClient, create_client, datetime_negotiation
from unlost.errors import DateError
from unlost.registry import Archive, ArchiveKind

HELD = {
    "http://example.com/": ["20130101000000", "20140615120000", "20141224180000", "20160301000000"],
    "http://example.com/early": ["20100101000000", "20131231235959", "20150101000001"],
    "http://example.com/one": ["19990704000000"],
}
ASKED = [None, "2", "19", "2014", "201412", "2015", "20141224", "2014122418", "20150101000000", "2011", "20260101"]


def distance(moment: str, date: str | None) -> float:
    """Return the distance of a time from a date; without a date, from the end of time."""
    first, last = (dates.to_datetime(each) for each in datetime_negotiation.date_span(date))
    when = dates.to_datetime(moment)
    return max((first - when).total_seconds(), (when - last).total_seconds(), 0.0)


async def assert_closest(client: ArchiveClient) -> None:
    """Query every page at every date, and compare with the model."""
    for uri, held in HELD.items():
        for date in ASKED:
            fetched = await client.get(uri, date)
            assert fetched is not None
            fetched.body.close()
            assert distance(fetched.capture.datetime, date) == min(distance(each, date) for each in held), (uri, date)
    with pytest.raises(DateError):
        await client.get("http://example.com/", "201413")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_files_return_the_closest_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a local folder."""
    monkeypatch.setenv("UNLOST_HOME", str(tmp_path / "home"))
    records = [page(uri, dates.to_datetime(each).isoformat()[:19] + "Z") for uri, held in HELD.items() for each in held]
    write(tmp_path / "w" / "a.warc.gz", *records)
    asyncio.run(assert_closest(files(tmp_path / "w")))


@pytest.mark.parametrize(
    "kind", [ArchiveKind.WAYBACK, ArchiveKind.PYWB, ArchiveKind.MEMENTO, ArchiveKind.ARCHIVE_TODAY]
)
def test_remote_archives_return_the_closest_capture(kind: ArchiveKind) -> None:
    """By raw replay with the middle of the period, or by a TimeMap."""
    stored = [StoredCapture(uri, each) for uri, held in HELD.items() for each in held]

    async def query() -> None:
        async with fake_wayback(stored) as fake, make_http_client() as http_client:
            position = f"{fake.base}/web"
            archive = Archive(
                "a", "A", kind, timemap=f"{position}/timemap/link/", replay=f"{position}/{{datetime}}id_/{{uri}}"
            )
            await assert_closest(create_client(archive, http_client))

    asyncio.run(query())


moments = st.datetimes(datetime(1990, 1, 1), datetime(2030, 12, 31)).map(lambda each: each.strftime("%Y%m%d%H%M%S"))  # noqa: DTZ001


@given(st.lists(moments, min_size=1), moments, st.integers(1, 14))
def test_closest_to_the_middle_of_a_period_is_closest_to_the_period(held: list[str], date: str, digits: int) -> None:
    """Up to half a second, the resolution of 14 digits."""
    date = date[:digits]
    try:
        middle = dates.to_datetime(datetime_negotiation.target_datetime(date))
    except DateError:
        return
    chosen = min(held, key=lambda each: abs(dates.to_datetime(each) - middle))
    assert distance(chosen, date) <= min(distance(each, date) for each in held) + 1
    first, last = datetime_negotiation.date_span(date)
    assert distance(min(held, key=lambda each: datetime_negotiation.distance_rank(each, first, last)), date) == min(
        distance(each, date) for each in held
    )
