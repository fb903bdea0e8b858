"""Tests of the assertions: they accept a correct recovery and detect every difference."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests.recovery.archives import digest_of
from tests.recovery.assertions import assert_recovered
from tests.recovery.expected import Run, outcome
from tests.recovery.recovery_output import read_warcs, warc_files
from tests.recovery.reference_site import reference_site
from tests.recovery.site import ROOT, Held

RUN = Run(start=f"{ROOT}special/")


def _iso(date: str) -> str:
    return f"{date[:4]}-{date[4:6]}-{date[6:8]}T{date[8:10]}:{date[10:12]}:{date[12:]}Z"


def _written(writer: WARCWriter, held: Held, seen: dict[str, Held]) -> None:
    fields = [("Content-Type", held.mime), *([("Location", held.location)] if held.location else [])]
    head = StatusAndHeaders(f"{held.status} Whatever", fields, protocol="HTTP/1.1")
    dated, digest = {"WARC-Date": _iso(held.date)}, digest_of(held.body)
    if digest in seen and held.target is None:
        first = seen[digest]
        record = writer.create_revisit_record(held.uri, digest, first.uri, _iso(first.date), head, dated)
    else:
        seen[digest] = held
        body = io.BytesIO(held.body)
        record = writer.create_warc_record(held.uri, "response", body, http_headers=head, warc_headers_dict=dated)
    writer.write_record(record)
    record.raw_stream.close()
    about = writer.create_warc_record(held.uri, "metadata", io.BytesIO(b"archive: x\r\n"), warc_headers_dict=dated)
    writer.write_record(about)
    about.raw_stream.close()


def write_recovery(folder: Path, found: dict[str, Held | None]) -> Path:
    """Write the output of a recovery; return its summary."""
    (folder / "warc").mkdir(parents=True)
    lines, seen = [], dict[str, Held]()
    with (folder / "warc" / "unlost-00001.warc.gz").open("wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version="1.1")
        for name, held in found.items():
            if held is None:
                lines.append(f"2026-01-01T00:00:00Z\thttp://{name}\tMISSING\n")
                continue
            place = f"unlost-00001.warc.gz:{file.tell()}"
            _written(writer, held, seen)
            fields = [held.uri, held.mime.partition(";")[0], place, held.archive, held.date, ""]
            lines.append("\t".join(["2026-01-01T00:00:00Z", *fields]) + "\n")
    summary = folder.parent / "summary.tsv"
    summary.write_text("".join(lines))
    return summary


def test_correct_recovery_passes(tmp_path: Path) -> None:
    """A recovery with all expected captures passes."""
    folder = tmp_path / "recovery"
    assert_recovered(reference_site(), RUN, folder, write_recovery(folder, outcome(reference_site(), RUN)))


Fault = Callable[[dict[str, Held | None]], None]
_ALL = "lost.example/special/all.html"


def _other(found: dict[str, Held | None], index: int) -> None:
    found[_ALL] = reference_site().resources[_ALL].held[index]


def _body(found: dict[str, Held | None]) -> None:
    held = found[_ALL]
    assert held is not None
    found[_ALL] = Held(held.archive, held.date, held.uri, held.body + b" ")


@pytest.mark.parametrize(
    "fault",
    [
        lambda found: _other(found, 0),
        lambda found: found.pop(_ALL),
        lambda found: found.update({_ALL: None}),
        lambda found: found.pop("lost.example/special/nowhere.html"),
        lambda found: found.update(
            {"lost.example/forgotten/1.html": reference_site().resources["lost.example/forgotten/1.html"].held[0]}
        ),
        _body,
    ],
    ids=["another capture", "left out", "missing", "missing left out", "additional", "another body"],
)
def test_faulty_recovery_fails(fault: Fault, tmp_path: Path) -> None:
    """A recovery with one fault fails."""
    found = outcome(reference_site(), RUN)
    fault(found)
    folder = tmp_path / "recovery"
    summary = write_recovery(folder, found)
    with pytest.raises(AssertionError):
        assert_recovered(reference_site(), RUN, folder, summary)


def test_truncated_warc_yields_only_complete_records(tmp_path: Path) -> None:
    """All records before the end of a truncated WARC are read, and the incomplete one is not."""
    folder = tmp_path / "recovery"
    write_recovery(folder, {name: held for name, held in outcome(reference_site(), RUN).items() if held is not None})
    whole = read_warcs(folder)
    assert whole == read_warcs(folder, may_be_torn=True)
    (path,) = warc_files(folder)
    data = path.read_bytes()
    places = [offset for _, offset in whole]
    begin, end = places[-2], places[-1]
    for cut in range(begin + 1, end, 7):
        path.write_bytes(data[:cut])
        assert list(read_warcs(folder, may_be_torn=True)) == list(whole)[:-2]
    path.write_bytes(data[: begin + 100])
    with pytest.raises(AssertionError, match="torn"):
        read_warcs(folder)
