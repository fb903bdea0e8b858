"""The log of upstream responses: strict parsing and lossless round trips."""

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
RESPONSE = UpstreamLogEntry(
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


def read_log(body: bytes) -> tuple[list[UpstreamLogEntry], dict[str, int]]:
    """Return the responses of a log and the problem counts."""
    problems = Problems()
    responses = list(read_upstream_log(BytesIO(body), problems, "x"))
    assert set(problems.counts) <= set(UPSTREAM_LOG_PROBLEM_KINDS)
    return responses, problems.counts


def format_with(**values: object) -> bytes:
    """Return the line of a response with some fields changed; those with value `...` are left out."""
    fields = {**json.loads(format_log_entry(RESPONSE)), **values}
    return json.dumps({name: value for name, value in fields.items() if value is not ...}).encode() + b"\n"


def test_upstream_log_line_has_fixed_fields_and_order() -> None:
    """Other programs read the fields, their names and their order."""
    assert format_log_entry(RESPONSE) == (
        b'{"time":"2026-01-31T12:00:00.250Z","archive":"ia","uri":"http://a.com/","endpoint":"timemap","outcome":"hit",'
        b'"reason":"routed","key":"com,a)/","status":200,"mementos":7,"first":"20010101000000","last":"20140210000001",'
        b'"duration_ms":81.5,"bytes":2048,"from_cache":false}\n'
    )


def test_unknown_upstream_log_fields_are_ignored() -> None:
    """Unknown fields are ignored, and null equals a missing field."""
    assert read_log(format_with(colour="red", status=None, key=...)) == (
        [UpstreamLogEntry(**{**json.loads(format_log_entry(RESPONSE)), "status": None, "key": None})],
        {},
    )


@pytest.mark.parametrize("name", ["time", "archive", "uri", "endpoint", "outcome", "reason"])
def test_upstream_log_line_without_required_field_is_counted(name: str) -> None:
    """A response without a required field is rejected."""
    assert read_log(format_with(**{name: ...}) + format_with()) == ([RESPONSE], {"missing-field": 1})


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
def test_invalid_upstream_log_value_is_rejected(name: str, value: object) -> None:
    """Invalid values are neither read nor written."""
    responses, problems = read_log(format_with(**{name: value}) + format_with())
    assert (responses, problems) == ([RESPONSE], {"bad-field": 1})
    with pytest.raises(InputError, match=f"expected .* as `{name}`"):
        format_log_entry(UpstreamLogEntry(**{**json.loads(format_log_entry(RESPONSE)), name: value}))


@pytest.mark.parametrize(
    "line", [b"x", b"[]", b"7", b"{", b"\0", b"\xff{}", b"[" * 100_000, format_with()[:-9], b"9" * 9999]
)
def test_invalid_upstream_log_line_is_counted_with_position(line: bytes) -> None:
    """Truncated lines, garbage and deep nesting affect only themselves."""
    problems = Problems()
    body = format_with() + line.rstrip(b"\n") + b"\n\n" + format_with()
    assert list(read_upstream_log(BytesIO(body), problems, "x")) == [RESPONSE, RESPONSE]
    assert problems.counts == {"bad-json": 1}
    assert (problems.first["bad-json"].line, problems.first["bad-json"].offset) == (2, len(format_with()))


def test_upstream_log_line_of_100_megabytes_is_skipped() -> None:
    """Adjacent lines are read."""
    problems = Problems()
    responses = list(read_upstream_log(long_line(format_with() + b'{"uri": "', b'"}\n' + format_with()), problems, "x"))
    assert responses == [RESPONSE, RESPONSE]
    assert problems.counts == {"too-long": 1}


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
COUNTS = st.integers(0, 2**53 - 1)
DATES = st.none() | st.datetimes().map(lambda moment: f"{moment.year:04d}{moment:%m%d%H%M%S}")
RESPONSES = st.builds(
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


@given(st.lists(RESPONSES))
def test_upstream_log_round_trip_is_lossless(responses: list[UpstreamLogEntry]) -> None:
    """Every response is written as one line and read back."""
    file = BytesIO()
    write_upstream_log(file, responses)
    assert file.getvalue().count(b"\n") == len(responses)
    assert read_log(file.getvalue()) == (responses, {})


@given(st.binary())
def test_arbitrary_bytes_as_upstream_log_raise_no_exception(body: bytes) -> None:
    """Arbitrary bytes yield responses and problems."""
    read_log(body)


def test_upstream_log_fields_are_documented() -> None:
    """`docs/formats.md` names all fields, endpoints, outcomes and reasons."""
    page = PAGE.read_text()
    names = [
        *json.loads(format_log_entry(RESPONSE)),
        *get_args(UpstreamEndpoint),
        *get_args(UpstreamOutcome),
        *get_args(RoutingReason),
    ]
    assert [name for name in names if f"`{name}`" not in page] == []
