"""Pairing of visits: the core matches the Python model, loses nothing, and has bounded memory."""

from hypothesis import given
from hypothesis import strategies as st

from tests.models.refresh import cell, pairs
from unlost._core import VisitPairer
from unlost.refresh import ALL_INDICATORS, ChangeHistory, Visit, compute_cell, format_cell, indicator_bits

_dates = st.sampled_from([None, "Mon, 10 Feb 2014 00:00:01 GMT", "Mon, 10 Feb 2014 00:00:03 GMT", "yesterday", "soon",
    "Thu, 01 Jan 1970 00:01:40 GMT", "Thu, 01 Jan 1970 00:01:42 GMT"])  # fmt: skip
_tags = st.sampled_from([None, '"a"', 'W/"a"', '"a-gzip"', '"b"', "a", 'W/"b-br"', ""])
_visits = st.builds(
    Visit,
    st.sampled_from(["http://a.example/", "https://b.example:8080/x?y", "ftp://c.example/", "http://a.example/2"]),
    st.sampled_from([None, "x", "y", "z"]),
    st.sampled_from([None, "s", "t"]),
    _tags,
    _dates,
    _dates,
    st.sampled_from([None, "sha-256=:a:", "sha-256=:b:"]),
    st.sampled_from([None, "max-age=60", "no-store, max-age=60", "max-age=x", "Max-Age=7"]),
    _dates,
    st.sampled_from([None, "Apache/2.4", "nginx"]),
    st.integers(0, 8).map(lambda number: number * 20_000),
    st.sampled_from([200, 200, 200, 206, 304, 404, 0]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, 0, 30, 500]),
    st.sampled_from([None, None, 1, 50]),
)


@given(st.lists(_visits, max_size=30))
def test_core_pairing_matches_the_reference_model(visits: list[Visit]) -> None:
    """Cells, changes and counts of visits equal those of the Python model."""
    history = ChangeHistory.from_visits(visits)
    found, tally = pairs(visits)
    counted = {
        (format_cell(cell), changed): count
        for cell, *both in history.core.cells(False, indicator_bits(ALL_INDICATORS), 1)[0]
        for changed, count in zip((True, False), both, strict=True)
        if count
    }
    assert counted == dict(found)
    names = ("successful", "not_modified", "failed", "without_digest", "without_host", "duplicate", "out_of_order")
    assert {name: history.visit_stats[name] for name in names} == {name: tally[name] for name in names}
    assert history.visits == len(visits)


@given(_visits, _visits)
def test_cell_of_two_visits_matches_the_reference_model(last: Visit, this: Visit) -> None:
    """Harvests decide by the same cells that were learned."""
    assert format_cell(compute_cell(last, this)) == cell(last, this)


@given(st.lists(_visits, max_size=30))
def test_spilled_visits_are_read_back(visits: list[Visit]) -> None:
    """The history is the same without memory for visits."""
    pairing = VisitPairer(0)
    pairing.add_rows([visit.row for visit in visits])
    spilled, in_memory = ChangeHistory(pairing.finish()), ChangeHistory.from_visits(visits)
    assert spilled.matrix() == in_memory.matrix()
    assert spilled.visit_stats == in_memory.visit_stats
    assert list(spilled.hosts()) == list(in_memory.hosts())


def test_visits_are_compared_with_the_last_successful_one() -> None:
    """A failed visit neither forms nor breaks a pair."""
    visits = [
        Visit("http://a.example/", "x", etag='"1"', time=0),
        Visit("http://a.example/", time=1000, status=503),
        Visit("http://a.example/", "y", etag='"1"', time=2000),
    ]
    assert ChangeHistory.from_visits(visits).matrix().changed[7] == 1  # date missing, tag same: a lie


def test_changes_of_text_and_bytes_are_counted_separately() -> None:
    """A new session id changes the bytes but not the text."""
    visits = [Visit("http://a.example/", f"body {time}", "words", time=time * 1000) for time in range(4)]
    history = ChangeHistory.from_visits(visits)
    assert history.core.bytes_and_text() == [0, 3, 0, 0]
    assert history.matrix().all_changed == 3
    assert history.matrix(by_text=True).all_changed == 0
