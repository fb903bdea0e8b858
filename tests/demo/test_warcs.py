"""Tests of the WARCs, indexes and maps of the archives."""

from pathlib import Path

from unlost.demo import build_maps, lost_site, write_holdings
from unlost.index import read_index_captures
from unlost.mementomap import Map
from unlost.problems import Problems

SITE = lost_site()


def test_indexes_and_maps_contain_every_capture(tmp_path: Path) -> None:
    """An index lists each capture with date and status, and a map has each URL of its archive."""
    holdings = write_holdings(SITE, tmp_path)
    build_maps(holdings)
    for each in holdings:
        problems = Problems()
        listed = sorted((row.uri, row.datetime, row.status) for row in read_index_captures(each.index, problems))
        held = [
            (resource.url, capture.date, capture.response.status) for resource, capture in SITE.captures_in(each.id)
        ]
        assert (listed, problems.total) == (sorted(held), 0)
        assert all(Map.open(each.map).lookup(url).held for url, _, _ in held)


def test_files_are_reproducible(tmp_path: Path) -> None:
    """They do not depend on the clock."""
    first, second = (write_holdings(SITE, tmp_path / name) for name in ("first", "second"))
    for one, other in zip(first, second, strict=True):
        assert one.warc.read_bytes() == other.warc.read_bytes()
        assert one.index.read_bytes() == other.index.read_bytes()
