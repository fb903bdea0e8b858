"""Power laws of compaction are fitted."""

from pathlib import Path

import pytest

from unlost.errors import InputError
from unlost.mementomap import Compaction, build_map, fit_compaction, fit_decay_curve

HOST_MEANS = [8.53, 8.95, 7.77, 6.28, 3.42, 4.55, 1.00]
"""Mean number of children at H3 to H9, Table 8 of the second paper."""

PATH_MEANS = [25.00, 7.25, 4.96, 3.26, 3.29, 2.70, 2.48, 2.09, 2.01]
"""Mean number of children at P1 to P9, the same table."""


def test_fit_of_published_table_yields_published_parameters() -> None:
    """Hosts are fitted over H3 to H9 with x one less than the children's depth, paths over P1 to P9."""
    hosts = fit_decay_curve(list(enumerate(HOST_MEANS, 2)))
    paths = fit_decay_curve(list(enumerate(PATH_MEANS, 1)))
    assert hosts == pytest.approx((Compaction().host_a, Compaction().host_k), rel=1e-3)
    assert paths == pytest.approx((Compaction().path_a, Compaction().path_k), rel=1e-3)


def test_fit_of_index_uses_mean_children_per_depth(tmp_path: Path) -> None:
    """The means are 4 and 2 below hosts, and 6, 3 and 1 below paths."""
    urls = [
        f"http://{deep}.{sub}.a.com/{one}/{two}/x"
        for sub in "abcd"
        for deep in "ef"
        for one in "abcdef"
        for two in "ghi"
    ]
    file = tmp_path / "urls.txt"
    file.write_text("\n".join(urls))
    fitted = fit_compaction(file, Compaction(host_weight=7))
    assert (fitted.host_a, fitted.host_k) == pytest.approx(fit_decay_curve([(2, 4.0), (3, 2.0)]))
    assert (fitted.path_a, fitted.path_k) == pytest.approx(fit_decay_curve([(1, 6.0), (2, 3.0), (3, 1.0)]))
    assert fitted.host_weight == 7


def test_fit_of_flat_index_is_rejected(tmp_path: Path) -> None:
    """The error names the cause."""
    file = tmp_path / "urls.txt"
    file.write_text("http://a.com/\nhttp://b.com/\n")
    with pytest.raises(InputError, match="too few depths"):
        fit_compaction(file, Compaction())


def test_fitted_exponent_is_not_negative(tmp_path: Path) -> None:
    """An index that branches more at greater depth gets a flat curve."""
    file = tmp_path / "urls.txt"
    urls = [f"http://{deep}.{sub}.a.com/x/{deep}/" for sub in "ab" for deep in "cdefghij"]
    file.write_text("\n".join(urls))
    fitted = fit_compaction(file, Compaction())
    assert (fitted.host_a, fitted.host_k) == pytest.approx((5.0, 0.0), abs=1e-6)


def test_fit_of_map_ignores_years_and_rules(tmp_path: Path) -> None:
    """Only the tree matters."""
    lines = [f"{sub}.a.com/{one}/{two}" for sub in ("b.c", "d.c", "e.f") for one in "gh" for two in "ij"]
    urls, plain, years = tmp_path / "urls.txt", tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    urls.write_text("".join(f"http://{line}\n" for line in lines))
    build_map([urls], plain)
    header = '!fields {"keys": ["surt", "datetime"], "values": ["frequency"]}\n!meta {"rules": "papers"}\n'
    rows = [line.split() for line in plain.read_text().splitlines() if ")" in line]
    years.write_text(header + "".join(f"{key} 2014 {count}\n" for key, count in rows))
    assert (
        fit_compaction(years, Compaction()) == fit_compaction(plain, Compaction()) == fit_compaction(urls, Compaction())
    )
