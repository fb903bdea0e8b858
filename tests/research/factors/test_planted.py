"""`unlost report --factors` over several recoveries on which every factor, and what it does, was planted."""

import json
from bisect import bisect_right
from functools import cache
from math import exp, isnan
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.cli.run import unlost
from tests.models.regression import least_squares
from tests.report.browser_page import EVIL, PageVisit
from tests.research.factors.planted import PLANTED, Truth, plant
from unlost.report import make_template_environment
from unlost.research import FACTORS, NUMERIC_FACTORS, ExternalFactorData, analyze_factors, render_factors_page
from unlost.research import factors as renderer

SITES = 21


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    """Plant the recoveries."""
    return plant(tmp_path_factory.mktemp("planted"), SITES, 11)


def report(truth: Truth, folder: Path, *arguments: str) -> dict[str, Any]:
    """Run the command with all that is known; return what it says."""
    (folder / "ranks.csv").write_text("\n".join(truth.ranks) + "\n")
    (folder / "links.tsv").write_text("# links\n" + "\n".join(truth.backlinks) + "\n")
    originals = [word for each in truth.originals for word in ("--original", str(each))]
    done = unlost(
        "report", "--factors", *map(str, truth.folders), "--ranks", str(folder / "ranks.csv"), "--backlinks",
        str(folder / "links.tsv"), *originals, "--json", *arguments,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def found(truth: Truth, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the command says of them."""
    return report(truth, tmp_path_factory.mktemp("report"))


def test_resources_are_counted_by_bin_of_all_factors(truth: Truth, found: dict[str, Any]) -> None:
    """Shares of each group are those that were planted, of all twelve factors; none is left out."""
    assert (found["resources"], found["recovered"]) == (len(truth.came), sum(truth.came))
    assert found["left_out"] == {}
    assert len(found["factors"]) == len(FACTORS) == 12
    for at, factor in enumerate(FACTORS):
        expected: dict[object, list[int]] = {}
        for row, came, kind, tld in zip(truth.rows, truth.came, truth.types, truth.tlds, strict=True):
            if at < NUMERIC_FACTORS and isnan(row[at]):
                continue
            group = {"type": kind, "top-level domain": tld}.get(factor.name)
            if group is None:
                expected.setdefault(bisect_right(factor.bin_edges, row[at] + 1e-9) - 1, []).append(came)
            else:
                expected.setdefault(group, []).append(came)
        displayed = {each["group"]: (each["count"], each["of"]) for each in found["factors"][at]["groups"]}
        assert displayed == {group: (sum(each), len(each)) for group, each in expected.items()}, factor.name
        assert len(displayed) > 1, factor.name


def whole(truth: Truth) -> tuple[list[list[float]], list[float]]:
    """Return the rows of which all numbers are known, and what came of them."""
    rows = [(row, float(came)) for row, came in zip(truth.rows, truth.came, strict=True) if not any(map(isnan, row))]
    return [row for row, _ in rows], [came for _, came in rows]


def test_models_equal_those_of_planted_rows(truth: Truth, found: dict[str, Any]) -> None:
    """The linear one is that of the obvious least squares; at the logistic one no change makes them likelier."""
    xs, ys = whole(truth)
    names = ["constant", *PLANTED]
    values, errors = least_squares(xs, ys)
    linear = found["linear"]["coefficients"]
    assert [each["name"] for each in linear][1:] == names[1:]
    assert [each["value"] for each in linear] == pytest.approx(values, rel=1e-4, abs=1e-7)
    assert [(each["high"] - each["low"]) / 2 / 1.96 for each in linear] == pytest.approx(errors, rel=5e-3)
    assert found["linear"]["rows"] == found["logistic"]["rows"] == len(xs)
    odds = [each["value"] for each in found["logistic"]["coefficients"]]
    rows = [[1.0, *row] for row in xs]
    off = [
        y - 1 / (1 + exp(-sum(a * b for a, b in zip(odds, row, strict=True)))) for row, y in zip(rows, ys, strict=True)
    ]
    for column in zip(*rows, strict=True):
        slope = sum(a * b for a, b in zip(column, off, strict=True))
        assert abs(slope) < 1e-5 * sum(map(abs, column))


def test_planted_coefficients_are_estimated(found: dict[str, Any]) -> None:
    """All signs of what is sure are right; 95 % intervals hold the planted ones, but for one in twenty."""
    assert not found["logistic"]["is_penalised"]
    outside = []
    for each in found["logistic"]["coefficients"][1:]:
        planted = PLANTED[each["name"]]
        if not each["low"] <= planted <= each["high"]:
            outside.append(each["name"])
        half = (each["high"] - each["low"]) / 2
        assert abs(each["value"] - planted) < 1.7 * half, each["name"]
        if each["p"] < 0.001:
            assert each["value"] * planted > 0, each["name"]
    assert len(outside) <= 2, outside
    sure = [each["name"] for each in found["logistic"]["coefficients"][1:] if each["p"] < 0.001]
    assert len(sure) >= 8


def test_correlations_are_pearson_coefficients(truth: Truth, found: dict[str, Any]) -> None:
    """Each entry of the matrix is that of the obvious formula."""
    xs, ys = whole(truth)
    columns = [*zip(*xs, strict=True), ys]
    names, matrix = found["correlations"]["names"], found["correlations"]["matrix"]
    assert names == [*PLANTED, "came back"]

    @cache
    def centred(at: int) -> list[float]:
        mean = sum(columns[at]) / len(ys)
        return [value - mean for value in columns[at]]

    for one in range(len(columns)):
        for other in range(len(columns)):
            products = sum(a * b for a, b in zip(centred(one), centred(other), strict=True))
            squares = sum(a * a for a in centred(one)) * sum(b * b for b in centred(other))
            assert matrix[one][other] == pytest.approx(products / squares**0.5, abs=1e-6)


def test_external_data_is_used_only_if_given(truth: Truth, tmp_path: Path) -> None:
    """Otherwise three factors are unknown, with the option that provides them; partly known factors stay."""
    done = unlost("report", "--factors", *map(str, truth.folders[:4]), "--json")
    found = json.loads(done.stdout)
    assert {"external links", "rank", "resource size"} <= found["left_out"].keys()
    assert "--backlinks" in found["left_out"]["external links"]
    some = [word for each in truth.originals[:1] for word in ("--original", str(each))]
    found = json.loads(unlost("report", "--factors", *map(str, truth.folders[:4]), "--json", *some).stdout)
    sizes = next(each for each in found["factors"] if each["name"] == "resource size")
    first = json.loads(unlost("report", "--factors", str(truth.folders[0]), "--json", *some).stdout)
    assert sizes["known"] == first["resources"]
    assert "known for only" in found["left_out"]["resource size"]
    assert unlost("report", "--factors", str(truth.folders[0]), "--original", str(tmp_path / "none")).returncode == 3


@pytest.mark.browser
def test_page_shows_all_factors_and_models(truth: Truth, page: Page, tmp_path: Path) -> None:
    """It is self-contained, fits a phone, and has a table for each factor and each model."""
    report(truth, tmp_path, "--html", str(tmp_path / "f.html"))
    visit = PageVisit(page, tmp_path / "page.html", (tmp_path / "f.html").read_text())
    assert (visit.faults, visit.external_requests(), visit.overflows(), visit.has_injected_markup()) == (
        [],
        [],
        False,
        False,
    )
    text = page.inner_text("main")
    for factor in FACTORS:
        assert f"By {factor.name}" in text
    for title in ("The twelve factors", "Correlations", "Linear model of", "Logistic model of"):
        assert title in text
    assert f"{sum(truth.came):,} of {len(truth.came):,}" in text
    wide = (tmp_path / "f.html").read_text().replace("</main>", '<p style="width: 500px">wide</p></main>')
    assert PageVisit(page, tmp_path / "wide.html", wide).overflows()


@pytest.mark.browser
def test_folder_names_are_escaped(truth: Truth, page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they have in them is shown; only the escaping keeps it from being part of the page."""
    evil = tmp_path / EVIL.replace("/", ":")
    evil.symlink_to(truth.folders[0])
    found = analyze_factors([evil], ExternalFactorData())
    assert not PageVisit(page, tmp_path / "page.html", render_factors_page(found)).has_injected_markup()
    made = make_template_environment("unlost.research")
    made.autoescape = False
    monkeypatch.setattr(renderer, "make_template_environment", lambda _: made)
    assert PageVisit(page, tmp_path / "raw.html", render_factors_page(found)).has_injected_markup()
