"""The full report lists every file, names archives, links back, and speaks only of archives that were listed."""

import tracemalloc
from pathlib import Path

import pytest

from tests.report.recovery.states import SITE, Made, html_of, make, note_list
from unlost.recover.state import ListingStatus, StateReader
from unlost.report.recovery import MAX_LISTED_RESOURCES, ReportPageOptions, collect_stats, render_report

FULL = ReportPageOptions(names={"a": "Archive <A>", "b": "Archive B"}, back_url="/jobs/1-x", lists_all=True)


def full(folder: Path, options: ReportPageOptions = FULL) -> str:
    """Return the full report of a recovery."""
    with StateReader(folder) as state:
        return "".join(render_report(state, collect_stats(state), options))


def test_every_file_is_listed(tmp_path: Path) -> None:
    """Recovered and missing ones, however many; the report of the command line stays short."""
    many = MAX_LISTED_RESOURCES + 3
    urim = "https://a.example/2011/x"
    made = [Made(f"r{number}.png", "20110401000000", mime="image/png", urim=urim) for number in range(many)]
    made += [Made(f"m{number}", reason="not-held") for number in range(many)]
    folder = make(tmp_path, made)
    text = full(folder)
    for number in range(many):
        assert f"{SITE}r{number}.png<" in text
        assert f"{SITE}m{number}<" in text
    assert f'<a href="{urim}" rel="noreferrer noopener"><bdi>{SITE}r0.png</bdi></a>' in text
    assert "unlost report" not in text
    short = html_of(folder)
    assert f"{SITE}m{many - 1}<" not in short
    assert "3 more are not shown here" in short
    assert 'id="recovered"' not in short


def test_memory_does_not_grow_with_the_list(tmp_path: Path) -> None:
    """Pieces are yielded as they are made."""
    sizes, peaks = [], []
    for count in (100, 6_000):
        folder = make(
            tmp_path / str(count), [Made(f"{number}{'x' * 200}", "20110401000000") for number in range(count)]
        )
        with StateReader(folder) as state:
            figures = collect_stats(state)
            tracemalloc.start()
            sizes.append(sum(len(piece) for piece in render_report(state, figures, FULL)))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert sizes[1] - sizes[0] > 1_500_000
    assert peaks[1] - peaks[0] < 500_000


def test_archives_have_their_names(tmp_path: Path) -> None:
    """In every list; without names, their ids."""
    made = [
        Made("r", "20110401000000"), Made("f", reason="failed", others=(("b", "20150101000000"),)),
        Made("v", "20140101000000", reason="rejected", verdict=("parked", 'it says "for sale"')),
    ]  # fmt: skip
    folder = make(tmp_path, made)
    note_list(folder, "b", ListingStatus.TRUNCATED, None)
    text = full(folder)
    assert text.count("Archive &lt;A&gt;") >= 3
    assert text.count("Archive B") >= 3
    assert ">b 2015" not in text
    assert "Archive B" not in html_of(folder)


def test_the_way_back(tmp_path: Path) -> None:
    """At the beginning and at the end; none where there is no page to go back to."""
    folder = make(tmp_path, [Made("r", "20110401000000")])
    assert full(folder).count('<a href="/jobs/1-x">Back to the order</a>') == 2
    assert "Back to" not in html_of(folder)


@pytest.mark.parametrize("outcome", [each for each in ListingStatus if each is not ListingStatus.DONE])
def test_archives_that_were_not_listed_may_have_it(tmp_path: Path, outcome: ListingStatus) -> None:
    """The report does not say that no archive has a file if some could not be listed."""
    folder = make(tmp_path, [Made("r", "20110401000000"), Made("m", reason="not-held")])
    note_list(folder, "a", ListingStatus.DONE, None)
    before = html_of(folder)
    assert "no archive has it" in before
    assert "linked, but never archived" in before
    note_list(folder, "b", outcome, None)
    for text in (html_of(folder), full(folder)):
        assert "no archive has it" not in text
        assert "no archive that was listed has it" in text
        assert "never archived" not in text
        assert "in no archive that was listed" in text
