"""What logs tell of requests, by whatever program wrote them."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.logs import UpstreamLogEntry, UpstreamOutcome, format_log_entry
from unlost.problems import Problems
from unlost.research import (
    LOG_KINDS,
    AccessStats,
    ArchiveOutcomes,
    access_stats_to_json,
    access_tables,
    collect_access_stats,
    detect_access_log_kind,
    magnitude_of,
    open_request_counter,
    render_access_page,
    tabulate_holdings,
    write_access_report,
)

# Table 3 of the second paper: requests, hits and misses in per cent.
TABLE_3 = {
    "Internet Archive": (4_723_880, 35.76, 63.68),
    "Archive-It": (5_011_385, 9.14, 90.38),
    "Archive Today": (5_151_720, 8.44, 88.96),
    "Library of Congress": (4_862_458, 4.77, 94.31),
    "Arquivo.pt": (4_300_221, 3.35, 96.29),
    "Icelandic": (5_126_706, 2.22, 97.14),
    "Stanford": (5_178_835, 1.54, 98.02),
    "UK Web Archive": (5_113_984, 1.49, 86.30),
    "Perma": (4_116_099, 1.32, 98.67),
    "PRONI": (5_165_805, 0.75, 98.72),
    "UK Parliament": (5_181_991, 0.63, 98.85),
    "NRS": (2_683_311, 0.21, 99.77),
    "UK National": (5_178_184, 0.10, 99.45),
    "PastPages": (22_058, 0.00, 62.90),
}


def _answers(requests: int, hit: float, miss: float) -> ArchiveOutcomes:
    hits, misses = round(requests * hit / 100), round(requests * miss / 100)
    return ArchiveOutcomes(hits, misses, requests - hits - misses)


def test_totals_equal_table_3() -> None:
    """The archives of the paper come to its totals: 61,816,637 requests, 5.44 % hits, 92.92 % misses."""
    accesses = AccessStats({name: _answers(*row) for name, row in TABLE_3.items()})
    last = access_tables(accesses)["archives"].rows[-1]
    assert last[:4] == ("All", "61,816,637", "5.44", "92.92")
    assert access_tables(accesses)["archives"].rows[0][0] == "Internet Archive"


def test_upstream_log_is_counted(tmp_path: Path) -> None:
    """Hits, misses and errors by archive; cached responses are no requests."""
    reported: list[tuple[str, str, UpstreamOutcome, bool]] = [
        ("ia", "http://a.com/", "hit", False),
        ("ia", "http://b.com/", "miss", False),
        ("pt", "http://b.com/", "miss", False),
        ("pt", "http://c.com/", "timeout", False),
        ("pt", "http://c.com/", "hit", True),
    ]
    results = [
        UpstreamLogEntry("2026-01-31T12:00:00Z", archive, uri, "timemap", outcome, "routed", from_cache=cached)
        for archive, uri, outcome, cached in reported
    ]
    log = tmp_path / "upstream.ndjson"
    log.write_bytes(b"".join(map(format_log_entry, results)) + b"{rubbish\n")
    problems = Problems()
    assert detect_access_log_kind(log) == "upstream"
    accesses = collect_access_stats([log], problems)
    assert accesses.archives == {"ia": ArchiveOutcomes(1, 1, 0), "pt": ArchiveOutcomes(0, 1, 1)}
    assert (accesses.request_count, accesses.cached_count) == (4, 1)
    assert accesses.missing.first(10) == [("http://b.com/", 2, 2)]
    assert accesses.pages.estimate()[0] == 3
    assert problems.counts == {"bad-json": 1}


def test_access_log_is_counted(tmp_path: Path) -> None:
    """Redirects to copies are hits, 404 is a miss, the rest are errors."""
    log = tmp_path / "access.log"
    log.write_text(
        "".join(
            f'1.2.3.4 - - [10/Oct/2000:13:55:36 +0000] "GET /web/2001/{uri} HTTP/1.0" {status} 23 "-" "x"\n'
            for uri, status in [
                ("http://a.com/", 200),
                ("http://a.com/", 302),
                ("http://b.com/", 404),
                ("http://c.com/", 503),
            ]
        )
    )
    assert detect_access_log_kind(log) == "access"
    accesses = collect_access_stats([log], Problems())
    assert accesses.archives == {"access.log": ArchiveOutcomes(2, 1, 1)}
    assert accesses.missing.first(10) == [("http://b.com/", 1, 1)]


def test_memgator_log_is_counted(tmp_path: Path) -> None:
    """Empty TimeMaps and 404 are misses; dormant archives are counted separately; times are logged twice."""
    log = tmp_path / "memgator.log"
    stamp = "2019/01/16 10:00:00.000001"
    log.write_text(
        f"INFO: {stamp} Aggregating Mementos for http://a.com/\n"
        f"INFO: {stamp} ia => Success: 12 mementos\n"
        f"INFO: {stamp} is => Success: 0 mementos\n"
        f"INFO: {stamp} loc => Response error: 404 Not Found\n"
        f"INFO: {stamp} loc => Response error: 503 Service Unavailable\n"
        f"ERROR: {stamp} main.go:259: ukwa => Network error: timeout\n"
        f"INFO: {stamp} ukwa => Dormant after 3 consecutive failures\n"
        f'BENCHMARK: {stamp} 1 {{"origin": "ia", "info": "ia => Success: 12 mementos"}}\n'
    )
    assert detect_access_log_kind(log) == "memgator"
    accesses = collect_access_stats([log], Problems())
    assert accesses.request_count == 1
    assert accesses.archives == {
        "ia": ArchiveOutcomes(1, 0, 0),
        "is": ArchiveOutcomes(0, 1, 0),
        "loc": ArchiveOutcomes(0, 1, 1),
        "ukwa": ArchiveOutcomes(0, 0, 1, 1),
    }


def test_matrix_compares_archived_and_requested_pages(tmp_path: Path) -> None:
    """URI-Rs by powers of ten of both; spellings of a page are one."""
    index = tmp_path / "a.cdxj"
    rows = [("com,a)/", 12), ("com,b)/x?q=1", 1), ("com,c)/", 3)]
    index.write_text(
        "".join(
            f'{key} 20{n:02}0101000000 {{"url": "http://x.com/", "mime": "text/html", "status": "200"}}\n'
            for key, count in rows
            for n in range(count)
        )
    )
    with open_request_counter() as requests:
        for uri, times in [("http://A.com", 5), ("http://www.a.com/", 7), ("http://c.com/", 1), ("http://d.com/", 100)]:
            for _ in range(times):
                requests.add(uri)
        requests.add("mailto:x@y")
        matrix = tabulate_holdings([index], Problems(), requests.cross_tabulate)
    cells = {(row, column): count for row, counts in enumerate(matrix) for column, count in enumerate(counts) if count}
    assert cells == {(2, 2): 1, (1, 0): 1, (1, 1): 1, (0, 3): 1}


def test_frequent_misses_are_found_in_bounded_memory(tmp_path: Path) -> None:
    """With more pages than fit, counts are within the reported error."""
    rng = random.Random(3)  # noqa: S311
    requested = [f"http://h{int(rng.paretovariate(0.6)) % 10**7}.com/" for _ in range(150_000)]
    accesses, true = AccessStats(), Counter(requested)
    for uri in requested:
        accesses.missing.add(uri)
    error = accesses.missing_error
    for uri, least, most in accesses.missing.first(20):
        assert least <= true[uri] <= most <= least + error
    different, low, high = 0, 0, 0
    for uri in requested:
        accesses.pages.add(uri)
    different, low, high = accesses.pages.estimate()
    assert low <= different <= high
    assert abs(different - len(true)) <= 0.03 * len(true)
    assert write_access_report(accesses, None, tmp_path / "report", "x")


@given(text=st.binary(max_size=2000))
def test_arbitrary_bytes_are_accepted_as_log(text: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each line is counted or reported as a problem."""
    folder = tmp_path_factory.mktemp("logs")
    log = Path(folder, "x.log")
    log.write_bytes(text)
    for kind in LOG_KINDS:
        problems = Problems()
        accesses = collect_access_stats([log], problems, kind=kind)
        assert json.dumps(access_stats_to_json(accesses))
        assert "<html" in render_access_page(accesses, None, "x")


def test_magnitudes_are_powers_of_ten() -> None:
    """None, ones, tens, and all beyond in the last."""
    assert [magnitude_of(number) for number in (0, 5, 10, 999, 10**12)] == [0, 1, 2, 3, 6]
