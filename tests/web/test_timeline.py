"""The timeline of the search page is bounded."""

import asyncio
import re

from unlost.aggregate import AggregateResult
from unlost.memento import Mementos, MementoTuple
from unlost.webui import CaptureFilter, SearchPage

OPTIONS = {"uri": "http://example.com/"} | dict.fromkeys(("archives", "broadcast", "top_k", "archive", "year"), "")


def page_of(mementos: list[MementoTuple], choice: CaptureFilter = CaptureFilter()) -> str:  # noqa: B008
    """Return the page with these captures."""
    found = AggregateResult("http://example.com/", Mementos(mementos), (), (), 1.0, 2.0)
    return asyncio.run(
        SearchPage({}).render_home(OPTIONS | {"archive": choice.archive, "year": choice.year}, found, "", choice)
    )


def years_in(page: str) -> list[str]:
    """Return the years in the header row."""
    return re.findall(r'<th scope="col">(\d{4})</th>', page)


def test_timeline_has_no_gaps() -> None:
    """Years without captures have a column, too."""
    mementos = [MementoTuple(f"{year}0101000000", "a", "http://a/") for year in (1999, 2003)]
    assert years_in(page_of(mementos)) == ["1999", "2000", "2001", "2002", "2003"]


def test_implausible_dates_do_not_extend_the_timeline() -> None:
    """An archive with dates from year 1 to 9999 does not make the page large, and other years are shown."""
    evil = [MementoTuple(f"{year:04d}0101000000", "evil", "http://evil/") for year in range(1, 10_000, 7)]
    sound = [MementoTuple(f"2014{month:02d}01000000", "a", f"http://a/{month}") for month in range(1, 13)]
    page = page_of([*evil, *sound])
    assert "2014" in years_in(page)
    assert len(years_in(page)) == 120
    assert len(page) < 200_000


def test_selected_captures_are_listed_and_counted() -> None:
    """At most 500 captures are listed, with the total number; an invalid year has none."""
    mementos = [
        MementoTuple(f"2014010100{n // 60:02d}{n % 60:02d}", name, f"http://{name}/{n}")
        for n in range(600)
        for name in "ab"
    ]
    mementos += [MementoTuple("20150101000000", "a", "http://a/2015")]
    assert page_of(mementos).count("<li>") == 500
    one = page_of(mementos, CaptureFilter("a", "2014"))
    assert "600 captures in a from 2014" in one
    assert "100 more are not shown" in one
    assert page_of(mementos, CaptureFilter("a", "2015")).count("<li>") == 1
    for year in ("0000", "20", "\0", "<b>", "2014-"):
        page = page_of(mementos, CaptureFilter("", year))
        assert "<li>" not in page
        assert "0 captures" in page


def test_captures_in_files_link_to_the_proxy() -> None:
    """A browser cannot show a record of a WARC file."""
    crawled = "https://data.example/x.warc.gz#7-99"
    page = page_of(
        [MementoTuple("20140101000000", "a", "file:a.warc.gz#7-99"), MementoTuple("20150101000000", "b", crawled)]
    )
    assert re.findall(r'href="(/memento/[^"]*)"', page) == [
        f"/memento/proxy/{year}0101000000/http://example.com/" for year in (2014, 2015)
    ]
    assert f'href="{crawled}"' not in page
