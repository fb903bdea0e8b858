"""Index keys that differ between tools: every row is found by its URL, and repairs are counted."""

import json
from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.external import surt as reference
from tests.uri import hostile
from tests.uri.test_agreement import HOSTILE_KINDS, KINDS, LOST
from unlost.aggregate import Evidence, HoldingsLookup
from unlost.mementomap import ArchiveHoldings, Filter, FilterOptions, Map, MapOptions, build_filter, build_map

ROWS = [
    ("com,a):8080/x", "http://a.com:8080/x"),
    ("com,a:443)/x", "https://a.com/x"),
    ("com,a:80)/x", "http://a.com:80/x"),
    ("com,a:80)/x", "https://a.com:80/x"),
    ("com,b)/y", "http://b.com/y"),
    ("170.245.7.15)/", "http://www.170.245.7.15/"),
    ("com,a)/a/x", "http://a.com/a%2Fb/../x"),
    ("com,c)/a%2fb/../x", "http://c.com/a%2Fb/../x"),
    ("de,strasse)/", "http://straße.de/"),
    ("gr,xn--4xa)/", "http://ς.gr/"),
]
REPAIRED = 4  # both default ports, the unresolved `..`, and the final sigma


def write_index(path: Path, rows: list[tuple[str, str]], *, cdx: bool = False) -> Path:
    """Write an index as CDXJ or CDX."""
    with path.open("w") as out:
        for key, url in rows:
            if cdx:
                out.write(f"{key} 20200102030405 {url} text/html 200 X - - 7 8 a.warc.gz\n")
            else:
                out.write(f"{key} 20200102030405 {json.dumps({'url': url, 'status': '200', 'mime': 'text/html'})}\n")
    return path


@pytest.mark.parametrize("cdx", [False, True], ids=["cdxj", "cdx"])
@pytest.mark.parametrize("weight", [None, 0.0], ids=["whole", "compacted"])
def test_row_with_foreign_key_is_found_by_url(tmp_path: Path, cdx: bool, weight: float | None) -> None:
    """Maps and filters find every row, separately and combined, singly and in batches."""
    index = write_index(tmp_path / "index", ROWS, cdx=cdx)
    report = build_map([index], tmp_path / "map", MapOptions(host_weight=weight, path_weight=weight))
    assert (report.counted, report.repaired) == (len(ROWS), REPAIRED)
    urls = [url for _, url in ROWS]
    opened = Map.open(tmp_path / "map")
    assert opened.lookup_many(urls).held == [True] * len(ROWS)
    assert all(opened.lookup(url).held for url in urls)
    for key in ("hxpx", "urir"):
        filtered = build_filter([index], tmp_path / "filter", FilterOptions(bits=16, key=key))
        assert filtered.repaired == REPAIRED
        pages = Filter.open(tmp_path / "filter")
        assert pages.lookup_many(urls) == [pages.lookup(url) for url in urls] == [True] * len(ROWS)
        both = ArchiveHoldings(opened, [pages])
        assert all(both.lookup(url).should_query for url in urls)


def test_keys_are_repaired_with_status_filter(tmp_path: Path) -> None:
    """A status filter parses rows differently, with the same result."""
    index = write_index(tmp_path / "index", ROWS)
    report = build_map([index], tmp_path / "map", MapOptions())
    filtered = build_map([index], tmp_path / "filtered", MapOptions(status=frozenset({"200"})))
    assert filtered.repaired == report.repaired == REPAIRED
    rows = [
        [line for line in (tmp_path / name).read_text().splitlines() if line[0] != "!"] for name in ("map", "filtered")
    ]
    assert rows[0] == rows[1]


def test_repaired_keys_cause_no_false_positives(tmp_path: Path) -> None:
    """Only key variants of the same URL are tried."""
    build_map([write_index(tmp_path / "index", ROWS)], tmp_path / "map")
    opened = Map.open(tmp_path / "map")
    for url in (
        "http://a.com/",
        "http://strassen.de/",
        "http://straßen.de/",
        "http://a.com/b%2Fb/../y",
        "http://a.com:81/x",
    ):
        assert not opened.lookup(url).held, url


def test_hostile_urls_of_surt_index_are_found(tmp_path: Path) -> None:
    """All URLs are found, except the kinds documented as lost in docs/formats.md."""
    keys = reference.compute_surts(hostile.URLS)[0]
    index = write_index(tmp_path / "index", sorted(zip(keys, hostile.URLS, strict=True)))
    report = build_map([index], tmp_path / "map")
    assert report.problems.total == 0
    assert report.repaired > 0
    kinds = {**HOSTILE_KINDS, **KINDS}
    urls = [url for url in hostile.URLS if not any(kinds[kind].match(url) for kind in LOST)]
    held = Map.open(tmp_path / "map").lookup_many(urls).held
    assert [url for url, is_held in zip(urls, held, strict=True) if not is_held] == []


def test_aggregator_routes_by_foreign_keys(tmp_path: Path) -> None:
    """Evidence is found for an archive whose index has another tool's keys."""
    index = write_index(tmp_path / "index", ROWS)
    build_map([index], tmp_path / "map")
    build_filter([index], tmp_path / "filter", FilterOptions(bits=16))
    holdings_by_archive = {
        "map": ArchiveHoldings(Map.load(tmp_path / "map")),
        "filter": ArchiveHoldings(None, [Filter.load(tmp_path / "filter")]),
    }

    class StubHoldings:
        def holdings(self) -> dict[str, ArchiveHoldings]:
            return holdings_by_archive

        def mark_damaged(self, archive: str, problem: str) -> None:
            raise AssertionError(archive, problem)

    holdings_lookup = HoldingsLookup(StubHoldings())
    for _, url in ROWS:
        assert holdings_lookup.find_evidence(url, {}) == {"map": Evidence.LISTED, "filter": Evidence.FILTER}, url
    assert holdings_lookup.find_evidence("http://straßen.de/", {}) == {
        "map": Evidence.DENIED,
        "filter": Evidence.DENIED,
    }


def test_key_with_default_port_is_found(tmp_path: Path) -> None:
    """Map and filter store the key without the port."""
    index = write_index(tmp_path / "index", [("com,a:80)/x", "http://a.com:80/x"), ("com,b:443)/", "https://b.com/")])
    build_map([index], tmp_path / "map")
    build_filter([index], tmp_path / "filter", FilterOptions(bits=16))
    keys = ["com,a:80)/x", "com,b:443)/", "com,a:81)/x"]
    assert Map.open(tmp_path / "map").lookup_many(keys).held == [True, True, False]
    assert Filter.open(tmp_path / "filter").lookup_many(keys) == [True, True, False]


def test_repaired_keys_are_reported_by_commands(tmp_path: Path) -> None:
    """`map build` and `filter build` report the count as text and JSON."""
    index = write_index(tmp_path / "index", ROWS)
    for command in ("map", "filter"):
        result = unlost(command, "build", str(index), "-o", str(tmp_path / "out"))
        assert f"{REPAIRED} keys repaired by their URLs" in result.stderr.decode()
        result = unlost(command, "build", str(index), "-o", str(tmp_path / "out"), "--json")
        assert json.loads(result.stdout)["repaired_keys"] == REPAIRED
