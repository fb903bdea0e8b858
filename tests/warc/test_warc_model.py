"""The core's scanner agrees with the slow model on random files, sound and damaged."""

from pathlib import Path
from tempfile import NamedTemporaryFile

from hypothesis import given

from tests.models.warc import Model, Record
from tests.warc.warcs import damaged_files, files, record, scan


def agree(data: bytes) -> None:
    """Compare what both find in a file."""
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        records, problems = scan(Path(file.name))
    model = Model(data).read()
    found = [
        Record(r.offset, r.skip, r.length, r.type, r.uri, r.date, r.digest, r.status, r.mime, r.is_short)
        for r in records
    ]
    assert found == model.records
    assert sorted(problems) == sorted(model.problems)


@given(files())
def test_files_are_read_as_the_model_reads_them(data: bytes) -> None:
    """Whatever headers say and however members are cut, records and problems are the same."""
    agree(data)


@given(damaged_files())
def test_damaged_files_are_read_as_the_model_reads_them(data: bytes) -> None:
    """Cut off or changed anywhere, records and problems are the same."""
    agree(data)


def test_the_model_finds_what_is_there() -> None:
    """The model itself reads a plain record and tells one cut short."""
    model = Model(record() + record(length=99)).read()
    assert [(r.status, r.mime, r.is_short) for r in model.records] == [(200, "text/html", False)] * 1 + [
        (200, "text/html", True)
    ]
    assert model.problems == [("short-block", len(record()))]
