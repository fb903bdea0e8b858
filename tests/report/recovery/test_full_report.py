"""Tests of the full report: all files, names of archives, a back link, and statements about listed archives only."""

import tracemalloc
from pathlib import Path

import pytest

from tests.report.recovery.states import SITE, SampleResource, make_state, report_html, store_listing
from unlost.recovery.state import ListingStatus, StateReader
from unlost.report.recovery import MAX_LISTED_RESOURCES, ReportPageOptions, collect_stats, render_report

FULL = ReportPageOptions(names={"a": "Archive <A>", "b": "Archive B"}, back_url="/jobs/1-x", lists_all=True)


def full_report(folder: Path, options: ReportPageOptions = FULL) -> str:
    """Return the full report of a recovery."""
    with StateReader(folder) as state:
        return "".join(render_report(state, collect_stats(state), options))


def test_full_report_lists_all_files(tmp_path: Path) -> None:
    """It lists any number of recovered and missing files; the default report is truncated."""
    many = MAX_LISTED_RESOURCES + 3
    urim = "https://a.example/2011/x"
    made = [SampleResource(f"r{number}.png", "20110401000000", mime="image/png", urim=urim) for number in range(many)]
    made += [SampleResource(f"m{number}", reason="not-held") for number in range(many)]
    folder = make_state(tmp_path, made)
    text = full_report(folder)
    for number in range(many):
        assert f"{SITE}r{number}.png<" in text
        assert f"{SITE}m{number}<" in text
    assert f'<a href="{urim}" rel="noreferrer noopener"><bdi>{SITE}r0.png</bdi></a>' in text
    assert "unlost report" not in text
    short = report_html(folder)
    assert f"{SITE}m{many - 1}<" not in short
    assert "3 more are not shown" in short
    assert 'id="recovered"' not in short


def test_memory_is_independent_of_list_length(tmp_path: Path) -> None:
    """Parts of the report are yielded as they are rendered."""
    sizes, peaks = [], []
    for count in (100, 6_000):
        folder = make_state(
            tmp_path / str(count), [SampleResource(f"{number}{'x' * 200}", "20110401000000") for number in range(count)]
        )
        with StateReader(folder) as state:
            figures = collect_stats(state)
            tracemalloc.start()
            sizes.append(sum(len(piece) for piece in render_report(state, figures, FULL)))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert sizes[1] - sizes[0] > 1_500_000
    assert peaks[1] - peaks[0] < 500_000


def test_archive_names_replace_ids(tmp_path: Path) -> None:
    """Every list has names; without names it has ids."""
    made = [
        SampleResource("r", "20110401000000"), SampleResource("f", reason="failed", others=(("b", "20150101000000"),)),
        SampleResource("v", "20140101000000", reason="rejected", verdict=("parked", 'contains "for sale"')),
    ]  # fmt: skip
    folder = make_state(tmp_path, made)
    store_listing(folder, "b", ListingStatus.TRUNCATED, None)
    text = full_report(folder)
    assert text.count("Archive &lt;A&gt;") >= 3
    assert text.count("Archive B") >= 3
    assert ">b 2015" not in text
    assert "Archive B" not in report_html(folder)


def test_back_link_is_optional(tmp_path: Path) -> None:
    """It is at the beginning and the end, and absent without a URL."""
    folder = make_state(tmp_path, [SampleResource("r", "20110401000000")])
    assert full_report(folder).count('<a href="/jobs/1-x">Back to your recovery</a>') == 2
    assert "Back to" not in report_html(folder)


@pytest.mark.parametrize("outcome", [each for each in ListingStatus if each is not ListingStatus.DONE])
def test_unlisted_archives_qualify_statements_about_absence(tmp_path: Path, outcome: ListingStatus) -> None:
    """If some archives were not listed, the report does not say that no archive has a file."""
    folder = make_state(tmp_path, [SampleResource("r", "20110401000000"), SampleResource("m", reason="not-held")])
    store_listing(folder, "a", ListingStatus.DONE, None)
    before = report_html(folder)
    assert "<small>not archived</small>" in before
    assert "linked, but never archived" in before
    store_listing(folder, "b", outcome, None)
    for text in (report_html(folder), full_report(folder)):
        assert "<small>not archived</small>" not in text
        assert "<small>not in any listed archive</small>" in text
        assert "never archived" not in text
        assert "linked, not in any listed archive" in text
