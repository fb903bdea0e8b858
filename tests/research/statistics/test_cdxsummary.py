"""Statistics agree with `cdxsummary`."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.external.cdxsummary import summarize
from tests.real_data import DATA
from unlost.research import IndexMetrics, count_index


def _compare(file: Path) -> None:
    expected: dict[str, Any] = summarize(file)
    counted, _ = count_index([file])
    figures = IndexMetrics(counted)
    assert counted.captures == expected["captures"]
    assert counted.hosts == expected["hosts"]
    assert counted.uris == expected["urls"]
    assert counted.record_bytes == expected["bytes"]
    assert (counted.first, counted.last) == (expected["first"], expected["last"])
    months = {
        f"{year}{month}": count
        for year, counts in expected["yearmonth"].items()
        for month, count in counts.items()
        if count
    }
    assert {month: captures for month, (captures, _) in counted.months.items() if captures} == months
    for name in ("HTML", "Image", "CSS", "JavaScript", "PDF", "Revisit"):
        assert figures.groups[name] == expected["mimestatus"][name], name
    classes = {
        name: sum(each[name] for each in expected["mimestatus"].values()) for name in ("2XX", "3XX", "4XX", "5XX")
    }
    assert {name: sum(each[name] for each in figures.groups.values()) for name in classes} == classes
    cells = {
        (path, query): expected["pathquery"][path if path != "P5" else "Other"][query if query != "Q5" else "Other"]
        for path in ("P0", "P1", "P2", "P3", "P4", "P5")
        for query in ("Q0", "Q1", "Q2", "Q3", "Q4", "Q5")
    }
    assert list(counted.path_query) == list(cells.values())
    hosts = {".".join(reversed(each.host.split(","))): each.captures for each in counted.busy_hosts}
    assert all(hosts[host] == count for host, count in expected["tophosts"].items())
    assert len(counted.samples) == min(10, figures.groups["HTML"]["2XX"])


def test_synthetic_index_matches_cdxsummary(tmp_path: Path) -> None:
    """Types, statuses, months, depths, queries, hosts and bytes."""
    types = ["text/html", "image/png", "text/css", "application/pdf", "application/javascript", "warc/revisit"]
    statuses = ["200", "301", "404", "503", "-"]
    rows = []
    for n in range(400):
        host, path = f"h{n % 9}", "/".join(f"s{n % 4}" for _ in range(n % 7))
        query = "" if n % 3 else "?" + "&".join(f"k{at}={n}" for at in range(n % 6 + 1))
        date = f"{2001 + n % 12}{n % 12 + 1:02}0203{n % 60:02}05"
        rows.append(
            f"com,{host})/{path}{query} {date} http://{host}.com/{path}{query} {types[n % 6]} {statuses[n % 5]} "
            f"X - - {100 + n} {n} a.warc.gz\n"
        )
    file = tmp_path / "a.cdx"
    file.write_text("".join(sorted(rows)))
    _compare(file)


@pytest.mark.real_data
def test_real_index_matches_cdxsummary(tmp_path: Path) -> None:
    """Two thousand captures of one page."""
    file = tmp_path / "root.cdx"
    file.write_bytes(gzip.decompress((DATA / "cdx" / "archive-org-root.cdx11.gz").read_bytes()))
    _compare(file)
