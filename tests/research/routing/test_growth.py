"""Growth: an index split by dates, and the size of each slice."""

from pathlib import Path

import pytest

from unlost import uri
from unlost.errors import InputError, UsageError
from unlost.problems import Problems
from unlost.research import (
    SynthIndexOptions,
    list_configurations,
    measure_growth,
    r_squared,
    slice_index,
    write_synthetic_index,
)
from unlost.statistics import fit_power_curve


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Write a compressed synthetic index of 400 captures."""
    path = tmp_path / "a.cdxj.gz"
    write_synthetic_index(SynthIndexOptions(400, seed=5), path, Problems())
    return path


def rows(index: Path) -> list[tuple[str, str]]:
    """Return key and date of each row."""
    import gzip

    with gzip.open(index, "rt") as lines:
        return [(line.split(" ")[0], line.split(" ")[1]) for line in lines]


def test_slices_by_year_have_all_rows(tmp_path: Path, index: Path) -> None:
    """In order."""
    parts = slice_index([index], tmp_path, Problems())
    assert [each.name for each in parts] == sorted({date[:4] for _, date in rows(index)})
    for each in parts:
        expected = [key for key, date in rows(index) if date[:4] == each.name]
        assert [line.split(" ")[0] for line in each.path.read_text().splitlines()] == expected
        assert each.rows == len(expected)


def test_slices_of_equal_size_are_consecutive(tmp_path: Path, index: Path) -> None:
    """About as many rows in each, no day in two, the oldest first."""
    parts = slice_index([index], tmp_path, Problems(), parts=4)
    assert len(parts) == 4
    assert sum(each.rows for each in parts) == 400
    assert all(80 <= each.rows <= 120 for each in parts)
    ends = [end for each in parts for end in each.name.split("-")]
    assert ends == sorted(ends)


def test_slices_have_headers_and_count_bad_dates(tmp_path: Path) -> None:
    """Input without dates is rejected."""
    index = tmp_path / "a.cdx"
    row = "com,a)/ {} http://a.com/ text/html 200 AB - - 7 0 a.warc.gz"
    dates = ("20100101000000", "2010", "x" * 14, "20110101000000")
    index.write_text(" CDX N b a m s k r M S V g\n" + "".join(row.format(date) + "\n" for date in dates))
    problems = Problems()
    parts = slice_index([index], tmp_path, problems)
    assert [(each.name, each.rows) for each in parts] == [("2010", 1), ("2011", 1)]
    assert all(each.path.read_text().startswith(" CDX N b a") for each in parts)
    assert problems.counts == {"bad-date": 2}
    listed = tmp_path / "list.txt"
    listed.write_text("http://a.com/\n")
    with pytest.raises(InputError, match="cannot be cut by dates"):
        slice_index([listed], tmp_path, Problems())
    with pytest.raises(UsageError, match="expected 1 to 200"):
        slice_index([index], tmp_path, Problems(), parts=201)
    undated = tmp_path / "undated.cdx"
    undated.write_text(" CDX N b a m s k r M S V g\n" + row.format("-") + "\n")
    with pytest.raises(InputError, match="no row with a date"):
        slice_index([undated], tmp_path, Problems())


def test_growth_points_equal_counts_of_sets(index: Path) -> None:
    """Captures, URLs and keys of each year, and of all years up to it."""
    found = measure_growth([index], list_configurations([(1, 1)], policies=["HxP1", "DDom"]))
    known = rows(index)
    for point in found.points:
        here = [
            key for key, date in known if (date[:4] <= point.slice if point.cumulative else date[:4] == point.slice)
        ]
        assert point.mementos == len(here)
        assert point.addresses == len(set(here))
        if point.configuration.startswith("policy "):
            policies = uri.KeyPolicies([point.configuration.removeprefix("policy ")])
            assert point.lines == len({policies.keys(key)[0] for key in here})
        if point.configuration == "all keys":
            assert point.lines == len({key.partition("?")[0] for key in here})
        assert point.compressed > 0
        assert point.seconds > 0
    assert {each.configuration for each in found.points} == {"all keys", "policy HxP1", "policy DDom", "weights 1,1"}
    heaps = found.fit_heaps_law()
    assert heaps is not None
    assert 0.5 < heaps[1] <= 1.01
    assert found.linearity("policy HxP1") is not None


def test_fits_recover_known_parameters() -> None:
    """Heaps' law with K and β of the first paper; a line; nothing for a single point."""
    points = [(float(x), 2.686 * x**0.911) for x in (1e6, 1e7, 1.7e9)]
    assert points[-1][1] == pytest.approx(0.69e9, rel=0.01)  # as its text has it
    curve = fit_power_curve(points)
    assert curve is not None
    assert (curve.a, curve.b) == pytest.approx((2.686, 0.911))
    assert fit_power_curve([(1, 1)]) is None
    assert r_squared([(1, 2), (2, 4), (3, 6)]) == pytest.approx(1.0)
    assert r_squared([(1, 1), (2, 1)]) is None
