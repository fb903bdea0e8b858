"""The core's scanner agrees with the Python model on random files, valid and damaged."""

from pathlib import Path
from tempfile import NamedTemporaryFile

from hypothesis import given

from tests.models.warc import Model, Record
from tests.warc.warcs import damaged_files, files, record, scan


def assert_agrees_with_model(data: bytes) -> None:
    """Compare records and problems of core and model."""
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        records, problems = scan(Path(file.name))
    model = Model(data).read()
    actual = [
        Record(r.offset, r.skip, r.length, r.type, r.uri, r.date, r.digest, r.status, r.mime, r.is_short)
        for r in records
    ]
    assert actual == model.records
    assert sorted(problems) == sorted(model.problems)


@given(files())
def test_scan_of_random_file_agrees_with_model(data: bytes) -> None:
    """For any headers and member boundaries, records and problems are equal."""
    assert_agrees_with_model(data)


@given(damaged_files())
def test_scan_of_damaged_file_agrees_with_model(data: bytes) -> None:
    """For files truncated or changed anywhere, records and problems are equal."""
    assert_agrees_with_model(data)


def test_model_reads_valid_and_truncated_record() -> None:
    """The model reads a valid record and reports a truncated one."""
    model = Model(record() + record(length=99)).read()
    assert [(r.status, r.mime, r.is_short) for r in model.records] == [(200, "text/html", False)] * 1 + [
        (200, "text/html", True)
    ]
    assert model.problems == [("short-block", len(record()))]
