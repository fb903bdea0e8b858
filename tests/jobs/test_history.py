"""The history of jobs as JSON, CSV and XML."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.jobs.in_memory_store import ORDER
from unlost.jobs import HISTORY_MEDIA_TYPES, Job, JobState, history_row, write_history

JOB = Job(1, ORDER, JobState.COMPLETE, 0.0, 0.0, confirmed=1.0, figures={"requests": 7})


def whole(jobs: Sequence[Job], form: str) -> str:
    """Return a complete history."""
    return "".join(write_history(jobs, form))


@given(st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_all_formats_have_the_same_rows(texts: list[tuple[str, str]]) -> None:
    """All formats can be parsed and contain the same values, for any text in orders and messages."""
    jobs = [
        replace(JOB, number=number, order=replace(ORDER, name=name), message=message)
        for number, (name, message) in enumerate(texts, 1)
    ]
    rows = [history_row(job) for job in jobs]
    assert json.loads(whole(jobs, "json")) == rows
    table = list(csv.DictReader(io.StringIO(whole(jobs, "csv"), newline="")))
    assert [row["number"] for row in table] == [str(row["number"]) for row in rows]
    assert [row["message"].removeprefix("'") for row in table] == [message.removeprefix("'") for _, message in texts]
    tree = ET.fromstring(whole(jobs, "xml").encode("utf-8", "replace"))  # noqa: S314  our own
    assert [each.findtext("number") for each in tree] == [str(row["number"]) for row in rows]
    assert all(each.findtext("requests") == "7" for each in tree)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\tx", "\rx"])
def test_csv_formulas_are_escaped(text: str) -> None:
    """A value that starts like a formula gets an apostrophe."""
    (row,) = csv.DictReader(io.StringIO(whole([replace(JOB, message=text)], "csv"), newline=""))
    assert row["message"] == f"'{text}"


def test_empty_history() -> None:
    """Each format is valid without jobs."""
    assert {form: whole([], form) for form in HISTORY_MEDIA_TYPES} == {
        "json": "[]\n",
        "csv": ",".join(history_row(JOB)) + "\r\n",
        "xml": '<?xml version="1.0" encoding="UTF-8"?>\n<jobs>\n</jobs>\n',
    }
