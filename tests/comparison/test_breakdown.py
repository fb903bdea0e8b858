"""Breakdown of a comparison by type, depth, query and age."""

import pytest

from tests.comparison.dissertation import TABLE_16, Site
from tests.comparison.memory_sites import MemorySite, resource
from unlost.comparison import BreakdownRow, Comparison, SiteResource, TextSimilarity, breakdowns, compare_sites

TYPES = {"HTML": "text/html", "images": "image/gif", "other": "application/pdf"}


def tables(original: list[SiteResource], recovered: list[SiteResource]) -> dict[str, dict[str, BreakdownRow]]:
    """Return the rows of each table by label; every changed text is half the same."""
    found = compare_sites(
        MemorySite(original), MemorySite(recovered), lambda _, __: TextSimilarity(0.5), similar_at=0.5
    )
    return by_label(found)


def by_label(comparison: Comparison) -> dict[str, dict[str, BreakdownRow]]:
    """Return the rows of each table by their labels."""
    return {table.name: {row.label: row for row in table.rows} for table in breakdowns(comparison)}


def resources_of_table_16(site: Site) -> tuple[list[SiteResource], list[SiteResource]]:
    """Return a site with the printed numbers of original and recovered resources."""
    original, recovered = [], []
    for group, (all_of, back) in zip(TYPES, (site.html, site.images, site.other), strict=True):
        made = [resource(f"a.example/{group}/{number}", b"", TYPES[group]) for number in range(all_of)]
        original += made
        recovered += made[:back]
    return original, recovered


@pytest.mark.parametrize("site", TABLE_16, ids=lambda site: site.name)
def test_groups_of_24_sites_match_table_16(site: Site) -> None:
    """Shares of HTML, images and other.

    430 of 432 is printed as 99 %, where rounding gives 100: like here, incomplete is never 100 %.
    """
    groups = tables(*resources_of_table_16(site))["group"]
    rows = [groups.get(name, BreakdownRow(name)) for name in TYPES]
    counted = [(row.original, row.recovered) for row in rows]
    assert counted == [site.html, site.images, site.other]
    assert (sum(row.original for row in rows), sum(row.recovered for row in rows)) == site.total
    for row, percent in zip([*rows, BreakdownRow("all", site.total[1], missing=site.total[0] - site.total[1])],
                            [*site.percents[1:], site.percents[0]], strict=True):  # fmt: skip
        assert (row.share is None) is (percent is None)
        if row.share is not None:
            assert 100 * row.share == pytest.approx(percent, abs=0.55)


def test_row_counts_outcomes_and_formats() -> None:
    """Added resources are in no row."""
    original = [resource(f"a.example/{number}", b"1") for number in range(5)]
    original += [resource("a.example/p", b"1", "application/pdf")]
    recovered = [resource("a.example/0", b"1"), resource("a.example/1", b"2", migrated=True), resource("a.example/new")]
    recovered += [resource("a.example/p", b"2", "text/html")]
    types = tables(original, recovered)["type"]
    assert types == {
        "text/html": BreakdownRow("text/html", identical=1, changed=1, similar=1, missing=3, canonical=1, migrated=1),
        "application/pdf": BreakdownRow("application/pdf", changed=1, similar=1, migrated=1),
    }
    assert list(types) == ["text/html", "application/pdf"], "the most frequent first"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("a.example/", "0"),
        ("a.example/~bar", "1"),
        ("a.example/~bar/x.html", "2"),
        ("a.example/?x=/a/b/c", "0"),
        ("a.example/" + "a/" * 9 + "b", "10 or more"),
        ("a.example/" + "a/" * 100_000, "10 or more"),
    ],
)
def test_depth_is_the_number_of_path_segments(name: str, label: str) -> None:
    """Very deep paths share one row."""
    assert list(tables([resource(name)], [])["depth"]) == [label]


def test_query_row_ignores_fragments() -> None:
    """A `?` in the fragment does not count."""
    made = [resource("a.example/a", uri="http://a.example/a?"), resource("a.example/b", uri="http://a.example/b#?")]
    rows = tables(made, made[:1])["query"]
    assert {label: row.share for label, row in rows.items()} == {"without ?": 0.0, "with ?": 1.0}


@pytest.mark.parametrize(
    ("datetime", "modified", "label"),
    [
        ("20200101000000", None, "under a week"),
        ("20191226000000", None, "under a week"),
        ("20191225000000", None, "a week to a month"),
        ("20200101000000", "20191201000000", "a month to a year"),
        ("20200101000000", "20190102000000", "a month to a year"),
        ("20200101000000", "20190101000000", "1 to 5 years"),
        ("20100101000000", "20190101000000", "over 5 years"),
        ("20200101000000", "20300101000000", "under a week"),
        (None, "19990101000000", "over 5 years"),
        (None, None, "unknown"),
        ("20209999000000", "20200101006100", "unknown"),
    ],
)
def test_age_is_that_of_the_older_date(datetime: str | None, modified: str | None, label: str) -> None:
    """Capture or change, relative to the latest capture of the site."""
    last = resource("a.example/last", datetime="20200101000000")
    one = resource("a.example/one", datetime=datetime, modified=modified)
    rows = tables([last, one], [])["age"]
    assert rows[label].original == (2 if label == "under a week" else 1)


def test_age_in_a_folder_is_relative_to_the_latest_change() -> None:
    """Folders have no capture dates."""
    made = [resource("a.example/a", modified="20200101000000"), resource("a.example/b", modified="20180101000000")]
    assert list(tables(made, [])["age"]) == ["under a week", "1 to 5 years"]


def test_rare_types_share_one_row() -> None:
    """Long types are truncated, and no resource is lost."""
    made = [resource(f"a.example/{number}", b"", f"x/{number}" + "y" * 10_000) for number in range(100)]
    made += [resource(f"a.example/h{number}") for number in range(3)]
    rows = tables(made, made[:50])["type"]
    assert len(rows) == 41
    assert "61 other types" in rows
    assert sum(row.original for row in rows.values()) == 103
    assert sum(row.recovered for row in rows.values()) == 50
    assert all(len(label) <= 80 for label in rows)


def test_missing_type_is_unknown() -> None:
    """In the table by type."""
    assert list(tables([resource("a.example/a", b"", None)], [])["type"]) == ["unknown"]
