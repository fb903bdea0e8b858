"""Statistics of indexes agree with a model for all inputs and options."""

import gzip
import random
from collections import Counter
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mementomap.strategies import KEYS, YEARS, Row, url
from tests.models import statistics as model
from unlost.errors import InputError, UnsortedError
from unlost.research import IndexCountOptions, IndexCounts, IndexMetrics, count_index, estimate_index, merge_counts

_CAPTURES = st.lists(
    st.builds(
        lambda key, year, month, status: Row(key, key, url(key), f"{year}{month:02}01000000", status),
        KEYS,
        st.sampled_from(YEARS),
        st.integers(1, 12),
        st.sampled_from(["200", "404", "-"]),
    ),
    min_size=1,
    max_size=60,
)


def _sorted(rows: list[Row]) -> bytes:
    return b"".join(sorted(row.cdxj() for row in rows))


def _pairs(rows: list[Row]) -> list[model.Capture]:
    return [(row.key or "", row.timestamp) for row in rows]


def _write(folder: Path, text: bytes, name: str = "a.cdxj") -> Path:
    file = folder / name
    file.write_bytes(text)
    return file


@settings(max_examples=150)
@given(rows=_CAPTURES, block=st.sampled_from([200, 3000, 1 << 20]), threads=st.integers(1, 3))
def test_statistics_of_a_sorted_index_equal_the_model(
    rows: list[Row], block: int, threads: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For all block sizes and numbers of threads."""
    file = _write(tmp_path_factory.mktemp("stats"), _sorted(rows))
    counted, report = count_index([file], IndexCountOptions(block=block, threads=threads))
    figures, pairs = IndexMetrics(counted), _pairs(rows)
    assert report.problems.total == 0
    assert counted.captures == counted.lines == len(rows)
    assert counted.text_bytes == file.stat().st_size
    assert counted.uris == len({key for key, _ in pairs})
    assert counted.pages == len({model.page_of(key) for key, _ in pairs})
    assert counted.hosts == len({model.host_of(key) for key, _ in pairs})
    assert counted.captures_by_uri == model.captures_by_uri(pairs)
    assert {year.year: (year.uris, year.new, year.captures) for year in figures.years} == model.years(pairs)
    assert {name: both for name, both in figures.levels.items() if both[0]} == model.levels(pairs)
    depths = {depth: count for depth, count in enumerate(counted.hosts_by_depth) if count}
    assert depths == model.label_depths(pairs)
    assert figures.statuses == Counter(row.status for row in rows)
    most = Counter(key for key, _ in pairs).most_common()
    assert {(page.key, page.captures) for page in counted.busy_pages if len(page.key) < 500} == {
        (key, count) for key, count in most if len(key) < 500
    }


@given(rows=_CAPTURES, cuts=st.integers(1, 4))
def test_merged_parts_equal_the_whole(rows: list[Row], cuts: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Parts split between second-level domains, in any order, also through JSON."""
    folder = tmp_path_factory.mktemp("stats")
    whole, _ = count_index([_write(folder, _sorted(rows))])
    parts: dict[int, list[Row]] = {}
    for row in rows:
        domain = ",".join(model.host_of(row.key or "").split(":")[0].split(",")[:2])
        parts.setdefault(hash(domain) % cuts, []).append(row)
    found = [
        IndexCounts.from_json(count_index([_write(folder, _sorted(part), f"{number}.cdxj")])[0].to_json())
        for number, part in parts.items()
    ]
    random.Random(len(rows)).shuffle(found)  # noqa: S311
    together = merge_counts(found)
    for name in ("captures", "uris", "pages", "hosts", "captures_by_uri", "kinds", "page_depths", "domains", "ip"):
        assert getattr(together, name) == getattr(whole, name), name
    assert IndexMetrics(together).levels == IndexMetrics(whole).levels
    assert IndexMetrics(together).years == IndexMetrics(whole).years
    assert together.busy_pages == whole.busy_pages


def test_all_index_formats_have_the_same_statistics(tmp_path: Path) -> None:
    """CDX, CDXJ, gzip, and two files."""
    rows = [
        Row(
            f"com,h{n % 7})/p{n % 3}", f"com,h{n % 7})/p{n % 3}", f"http://h{n % 7}.com/p{n % 3}", f"20{n:02}0203040506"
        )
        for n in range(60)
    ]
    text = _sorted(rows)
    lines = text.splitlines(keepends=True)
    cut = next(at for at, line in enumerate(lines) if line.startswith(b"com,h4)"))
    forms = [
        [_write(tmp_path, text)],
        [_write(tmp_path, gzip.compress(text), "a.cdxj.gz")],
        [_write(tmp_path, b"".join(lines[:cut]), "b"), _write(tmp_path, b"".join(lines[cut:]), "c")],
        [_write(tmp_path, b" CDX N b a m s k r M S V g\n" + b"".join(sorted(row.cdx() for row in rows)), "d.cdx")],
    ]
    results = [count_index(files)[0] for files in forms]
    for found in results:
        assert found.uris == 21
        assert found.captures_by_uri == results[0].captures_by_uri
        assert found.record_bytes == 9 * 60
        assert IndexMetrics(found).levels == IndexMetrics(results[0]).levels


def test_two_spellings_of_a_page_count_once(tmp_path: Path) -> None:
    """`/a` and `/a/` are one URI-R, although other keys sort between them."""
    file = _write(
        tmp_path,
        b"com,a)/a 20140101000000 http://a.com/a text/html 200 X - - 5 6 f\n"
        b"com,a)/a-b 20140101000000 http://a.com/a-b text/html 200 X - - 5 6 f\n"
        b"com,a)/a/ 20130101000000 http://a.com/a/ text/html 200 X - - 5 6 f\n",
    )
    counted, _ = count_index([file])
    assert (counted.captures, counted.uris) == (3, 2)
    assert [year.new for year in IndexMetrics(counted).years] == [1, 1]


@given(rows=_CAPTURES, memory=st.sampled_from([0, 300]))
def test_spilled_host_has_the_same_statistics(
    rows: list[Row], memory: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In files if it exceeds memory."""
    file = _write(tmp_path_factory.mktemp("stats"), _sorted(rows))
    small, _ = count_index([file], IndexCountOptions(memory=memory, block=200))
    assert small == count_index([file])[0]


def test_pages_across_spilled_parts_count_once(tmp_path: Path) -> None:
    """Pages that are not adjacent, and URI-Rs on both sides of a cut."""
    random_ = random.Random(3)  # noqa: S311
    names = ["", "-b", ".html", "/b", "/b/c", "/b-c", "?x=1", "?x=1&y", "/"]
    rows = []
    for _ in range(4000):
        key = f"com,a)/p{random_.randrange(60)}{random_.choice(names)}"
        rows.append(Row(key, key, f"http://a.com/{key[7:]}", f"{random_.randrange(2000, 2010)}0101000000"))
    file = _write(tmp_path, _sorted(rows))
    small, _ = count_index([file], IndexCountOptions(memory=5_000, block=10_000, threads=2))
    whole, _ = count_index([file])
    assert small == whole
    assert (whole.captures, whole.hosts) == (4000, 1)
    assert {each.host_captures for each in small.busy_pages} == {4000}


def test_unsorted_index_is_rejected_or_estimated(tmp_path: Path) -> None:
    """Estimates are within their bounds, and counts of rows are exact."""
    random_ = random.Random(7)  # noqa: S311
    rows = []
    for _ in range(30_000):
        host, page = random_.randrange(300), int(random_.paretovariate(0.7))
        key = f"com,h{host})/p{page % 5000}"
        rows.append(Row(key, key, f"http://h{host}.com/p{page % 5000}", f"{random_.randrange(2000, 2010)}0101000000"))
    random_.shuffle(rows)
    file = _write(tmp_path, b"".join(row.cdxj() for row in rows))
    with pytest.raises(UnsortedError, match="not sorted"):
        count_index([file])
    counted, _ = estimate_index([file])
    exact, _ = count_index([_write(tmp_path, _sorted(rows), "sorted.cdxj")])
    assert counted.is_estimated
    assert not exact.is_estimated
    assert counted.captures == exact.captures
    assert counted.kinds == exact.kinds
    for name in ("uris", "pages", "hosts"):
        true, about = getattr(exact, name), getattr(counted, name)
        assert abs(about - true) <= 0.03 * true, name
    # There are fewer URI-Rs than the sample has room for.
    assert counted.sampled == pytest.approx(1.0)
    assert counted.captures_by_uri == exact.captures_by_uri
    assert IndexMetrics(counted).years == IndexMetrics(exact).years
    error = counted.errors["busy_pages"][1]
    top = exact.busy_pages[0]
    assert counted.busy_pages[0].key == top.key
    assert top.captures - error <= counted.busy_pages[0].captures <= top.captures
    depths = {each.name: each for each in IndexMetrics(exact).depths}
    for each in IndexMetrics(counted).depths:
        assert astuple(each.prefixes) == pytest.approx(astuple(depths[each.name].prefixes)), each.name
        assert each.parents == pytest.approx(depths[each.name].parents, rel=0.04)
    for name in ("hosts_by_depth", "pages_by_host_depth", "page_depths"):
        assert getattr(counted, name) == pytest.approx(getattr(exact, name), rel=0.03), name
    with pytest.raises(InputError, match="do not add up"):
        counted.merge(exact)


def _uneven(random_: random.Random) -> list[Row]:
    """Return rows with skewed distributions of pages by host and captures by page."""
    rows = []
    for _ in range(60_000):
        host, page = int(random_.paretovariate(0.9)) % 400, int(random_.paretovariate(0.5)) % 9000
        key = f"com,h{host})/f{page % 40}/p{page}"
        date = f"{random_.randrange(2000, 2010)}0101000000"
        rows.append(Row(key, key, f"http://h{host}.com/f{page % 40}/p{page}", date))
    rows += [Row("com,h1)/trap", "com,h1)/trap", "http://h1.com/trap", "20050101000000")] * 3000
    rows += [Row("com,alone)/trap", "com,alone)/trap", "http://alone.com/trap", "20050101000000")] * 2000
    random_.shuffle(rows)
    return rows


def test_reduced_sample_is_close_to_exact_values(tmp_path: Path) -> None:
    """Shares, medians, deviations and biases, with more URI-Rs than the sample holds."""
    rows = _uneven(random.Random(11))  # noqa: S311
    counted, _ = estimate_index(
        [_write(tmp_path, b"".join(row.cdxj() for row in rows))], IndexCountOptions(sampled=1024)
    )
    exact, _ = count_index([_write(tmp_path, _sorted(rows), "sorted.cdxj")])
    about, true = IndexMetrics(counted), IndexMetrics(exact)
    assert 0.02 < counted.sampled < 0.5
    assert 0.02 < counted.sampled_pages < 0.5
    assert counted.captures == exact.captures
    assert sum(counted.captures_by_uri.values()) == pytest.approx(exact.uris, rel=0.1)
    once = [each.captures_by_uri[1] / each.uris for each in (counted, exact)]
    assert once[0] == pytest.approx(once[1], abs=0.05)
    for year, same in zip(about.years, true.years, strict=True):
        assert year.captures == same.captures
        assert year.uris == pytest.approx(same.uris, rel=0.15)
    depths = {each.name: each.prefixes for each in true.depths}
    assert {each.name for each in about.depths} == depths.keys()
    for each in about.depths:
        right = depths[each.name]
        assert each.prefixes.count == pytest.approx(right.count, rel=0.04)
        assert each.prefixes.median == pytest.approx(right.median, rel=0.03, abs=1), each.name
        assert each.prefixes.deviation == pytest.approx(right.deviation, rel=0.3, abs=0.2), each.name
        assert each.prefixes.max == 0 or each.prefixes.max == pytest.approx(right.max, rel=0.5), each.name
    # The largest host has a good part of all pages, and so of the sample.
    assert next(each for each in about.depths if each.name == "P0").prefixes.max > 0
    for name in ("hosts_by_depth", "pages_by_host_depth", "page_depths"):
        for estimated, expected in zip(getattr(counted, name), getattr(exact, name), strict=True):
            assert estimated == pytest.approx(expected, abs=0.05 * exact.pages), name
    worst = [[each.page.key for each in figures.biases[:3]] for figures in (about, true)]
    assert worst[0] == worst[1] == ["com,h1)/f1/p1", "com,h1)/f2/p2", "com,h1)/trap"]
    # No other URI-R of its host is in the sample, so its bias is unknown.
    assert "com,alone)/trap" in {each.page.key for each in true.biases}
    assert "com,alone)/trap" not in {each.page.key for each in about.biases}
    assert next(each for each in counted.busy_pages if each.key == "com,alone)/trap").host_uris == 0


@given(text=st.binary(max_size=3000))
def test_arbitrary_bytes_are_counted_or_rejected(text: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """In place of lines."""
    row = b"com,a)/ 20140101000000 http://a.com/ text/html 200 X - - 5 6 f\n"
    file = _write(tmp_path_factory.mktemp("stats"), row + text)
    for count in (count_index, estimate_index):
        try:
            counted, report = count([file], IndexCountOptions(kind="index"))
        except InputError:
            continue
        assert counted.captures >= 1
        known = counted.captures + counted.filtered + sum(counted.foreign.values()) + report.problems.total
        assert known <= counted.lines + 1


def test_unusual_rows_are_counted_by_kind(tmp_path: Path) -> None:
    """Malformed types and statuses, invalid dates, other schemes and huge fields."""
    lines = [
        b"com,a)/ 20140101000000 http://a.com/ text/html 200 X - - 5 6 f",
        b"com,a)/b 20140101000000 http://a.com/b text 999 X - - 5 6 f",
        b"com,a)/c 10010101000000 http://a.com/c text/html OK X - - 5 6 f",
        b"com,a)/d 20141301000000 http://a.com/d " + b"x" * 100_000 + b" 200 X - - 5 6 f",
        b"com,b)/ 20140101000000 dns:b.com text/dns - X - - 5 6 f",
        b"rubbish",
        b"4,3,2,1)/ 20140101000000 http://1.2.3.4/ text/html 200 X - - 5 6 f",
    ]
    counted, report = count_index([_write(tmp_path, b"\n".join(lines) + b"\n")])
    figures = IndexMetrics(counted)
    assert counted.foreign == {"dns": 1}
    assert report.problems.counts == {"bad-row": 1}
    assert counted.odd_dates == 2
    assert sum(figures.malformed_types.values()) == 2
    assert dict(figures.malformed_statuses) == {"999": 1, "OK": 1}
    assert (counted.ip.hosts, counted.ip.captures) == (1, 1)


def test_study_filter_keeps_only_html_pages(tmp_path: Path) -> None:
    """With status 200, without robots.txt and sitemaps."""
    names = ["", "robots.txt", "sitemap.xml", "x", "y"]
    rows = [Row(f"com,a)/{name}", f"com,a)/{name}", f"http://a.com/{name}", "20140101000000") for name in names]
    rows[3] = Row("com,a)/x", "com,a)/x", "http://a.com/x", "20140101000000", status="404")
    rows[4] = Row("com,a)/y", "com,a)/y", "http://a.com/y", "20140101000000", mime="image/png")
    options = IndexCountOptions(
        status=frozenset({"200"}), mime=frozenset({"text/html"}), exclude=frozenset({"robots", "sitemaps"})
    )
    counted, _ = count_index([_write(tmp_path, _sorted(rows))], options)
    assert (counted.captures, counted.filtered) == (1, 4)
