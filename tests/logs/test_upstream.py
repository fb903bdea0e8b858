"""The log of upstream answers: strict to read, the same after writing."""

import json
from io import BytesIO
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.index.generated_file import long_line
from unlost.errors import InputError
from unlost.logs import (
    UPSTREAM_LOG_PROBLEM_KINDS,
    RoutingReason,
    UpstreamEndpoint,
    UpstreamLogEntry,
    UpstreamOutcome,
    format_log_entry,
    read_upstream_log,
    write_upstream_log,
)
from unlost.problems import Problems

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
ANSWER = UpstreamLogEntry(
    "2026-01-31T12:00:00.250Z",
    archive="ia",
    uri="http://a.com/",
    endpoint="timemap",
    outcome="hit",
    reason="routed",
    key="com,a)/",
    status=200,
    mementos=7,
    first="20010101000000",
    last="20140210000001",
    duration_ms=81.5,
    bytes=2048,
)


def read(body: bytes) -> tuple[list[UpstreamLogEntry], dict[str, int]]:
    """Return the answers of a log and the problems."""
    problems = Problems()
    found = list(read_upstream_log(BytesIO(body), problems, "x"))
    assert set(problems.counts) <= set(UPSTREAM_LOG_PROBLEM_KINDS)
    return found, problems.counts


def changed(**values: object) -> bytes:
    """Return the line of an answer with some fields changed; those that are `...` left out."""
    made = {**json.loads(format_log_entry(ANSWER)), **values}
    return json.dumps({name: value for name, value in made.items() if value is not ...}).encode() + b"\n"


def test_a_line_of_the_log() -> None:
    """The fields, their names and their order are fixed: other programs read them."""
    assert format_log_entry(ANSWER) == (
        b'{"time":"2026-01-31T12:00:00.250Z","archive":"ia","uri":"http://a.com/","endpoint":"timemap","outcome":"hit",'
        b'"reason":"routed","key":"com,a)/","status":200,"mementos":7,"first":"20010101000000","last":"20140210000001",'
        b'"duration_ms":81.5,"bytes":2048,"from_cache":false}\n'
    )


def test_fields_of_later_versions_are_ignored() -> None:
    """Null is the same as nothing, too."""
    assert read(changed(colour="red", status=None, key=...)) == (
        [UpstreamLogEntry(**{**json.loads(format_log_entry(ANSWER)), "status": None, "key": None})],
        {},
    )


@pytest.mark.parametrize("name", ["time", "archive", "uri", "endpoint", "outcome", "reason"])
def test_a_missing_field_is_counted(name: str) -> None:
    """An answer without it would be counted wrongly."""
    assert read(changed(**{name: ...}) + changed()) == ([ANSWER], {"missing-field": 1})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("time", "2026-02-31T12:00:00Z"),
        ("time", "2026-01-31T12:00:00+01:00"),
        ("time", 0),
        ("archive", ""),
        ("uri", ["http://a.com/"]),
        ("uri", "\ud800"),
        ("endpoint", "timetravel"),
        ("outcome", "HIT"),
        ("reason", {}),
        ("status", 99),
        ("status", "200"),
        ("mementos", True),
        ("mementos", -1),
        ("mementos", 10**400),
        ("first", "2014"),
        ("last", "20141310000001"),
        ("duration_ms", -0.5),
        ("duration_ms", float("nan")),
        ("duration_ms", float("inf")),
        ("bytes", 1.5),
        ("from_cache", 1),
    ],
)
def test_a_value_that_cannot_be_is_counted_and_not_written(name: str, value: object) -> None:
    """What would not be read back is not written either."""
    found, problems = read(changed(**{name: value}) + changed())
    assert (found, problems) == ([ANSWER], {"bad-field": 1})
    with pytest.raises(InputError, match=f"expected .* as `{name}`"):
        format_log_entry(UpstreamLogEntry(**{**json.loads(format_log_entry(ANSWER)), name: value}))


@pytest.mark.parametrize(
    "line", [b"x", b"[]", b"7", b"{", b"\0", b"\xff{}", b"[" * 100_000, changed()[:-9], b"9" * 9999]
)
def test_other_lines_are_counted_where_they_are(line: bytes) -> None:
    """Truncated lines, rubbish and deep nesting are lost alone."""
    problems = Problems()
    body = changed() + line.rstrip(b"\n") + b"\n\n" + changed()
    assert list(read_upstream_log(BytesIO(body), problems, "x")) == [ANSWER, ANSWER]
    assert problems.counts == {"bad-json": 1}
    assert (problems.first["bad-json"].line, problems.first["bad-json"].offset) == (2, len(changed()))


def test_a_line_of_100_megabytes_is_one_problem() -> None:
    """The lines around it are read."""
    problems = Problems()
    found = list(read_upstream_log(long_line(changed() + b'{"uri": "', b'"}\n' + changed()), problems, "x"))
    assert found == [ANSWER, ANSWER]
    assert problems.counts == {"too-long": 1}


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
COUNTS = st.integers(0, 2**53 - 1)
DATES = st.none() | st.datetimes().map(lambda moment: f"{moment.year:04d}{moment:%m%d%H%M%S}")
ANSWERS = st.builds(
    UpstreamLogEntry,
    time=st.datetimes().map(lambda moment: f"{moment.isoformat(timespec='milliseconds')}Z"),
    archive=TEXTS,
    uri=TEXTS,
    endpoint=st.sampled_from(get_args(UpstreamEndpoint)),
    outcome=st.sampled_from(get_args(UpstreamOutcome)),
    reason=st.sampled_from(get_args(RoutingReason)),
    key=st.none() | TEXTS,
    status=st.none() | st.integers(100, 999),
    mementos=st.none() | COUNTS,
    first=DATES,
    last=DATES,
    duration_ms=st.floats(0, 1e9) | COUNTS,
    bytes=COUNTS,
    from_cache=st.booleans(),
)


@given(st.lists(ANSWERS))
def test_what_is_written_reads_back(answers: list[UpstreamLogEntry]) -> None:
    """Every answer survives, one line for each."""
    file = BytesIO()
    write_upstream_log(file, answers)
    assert file.getvalue().count(b"\n") == len(answers)
    assert read(file.getvalue()) == (answers, {})


@given(st.binary())
def test_no_log_is_too_strange(body: bytes) -> None:
    """Any bytes are answers and problems; nothing is raised."""
    read(body)


def test_every_field_and_every_word_is_explained() -> None:
    """The page for other programs names all fields, outcomes and reasons."""
    page = PAGE.read_text()
    names = [
        *json.loads(format_log_entry(ANSWER)),
        *get_args(UpstreamEndpoint),
        *get_args(UpstreamOutcome),
        *get_args(RoutingReason),
    ]
    assert [name for name in names if f"`{name}`" not in page] == []
