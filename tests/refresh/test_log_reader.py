"""Reading logs and WARC files into a history, with damaged input counted."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from tests.refresh.test_pairing import _visits
from tests.warc.warcs import member, record
from unlost._core import VisitPairer
from unlost.errors import InputError
from unlost.problems import Problems
from unlost.refresh import FIELDS, ChangeHistory, Visit, VisitLogReader, add_parquet_log, serialize_visit

GOOD = [Visit("http://a.example/", f"d{time // 2}", etag=f'"{time // 2}"', time=time * 1000) for time in range(6)]


def read(*paths: Path) -> tuple[ChangeHistory, VisitLogReader]:
    """Return the history of files, and the problems."""
    reading = VisitLogReader(Problems())
    for path in paths:
        reading.read(path)
    return reading.build_history(), reading


def write_parquet(path: Path, visits: list[Visit], **row_group: int) -> None:
    """Write a log as other programs would."""
    types = [pa.string()] * 10 + [pa.int64()] * 5
    columns = {name: [getattr(visit, name) for visit in visits] for name in FIELDS}
    parquet.write_table(pa.table(columns, pa.schema(list(zip(FIELDS, types, strict=True)))), path, **row_group)


def test_plain_and_compressed_logs_are_read(tmp_path: Path) -> None:
    """Several files, compressed or not, form one history."""
    (tmp_path / "a.ndjson").write_bytes(b"".join(serialize_visit(visit) for visit in GOOD[:3]))
    (tmp_path / "b.ndjson.gz").write_bytes(gzip.compress(b"".join(serialize_visit(visit) for visit in GOOD[3:])))
    history, reading = read(tmp_path / "b.ndjson.gz", tmp_path / "a.ndjson")
    assert history.matrix() == ChangeHistory.from_visits(GOOD).matrix()
    assert reading.problems.total == 0
    assert history.visit_stats["out_of_order"] == 3


def test_bad_lines_are_counted_and_skipped(tmp_path: Path) -> None:
    """Invalid JSON, invalid values, unknown fields."""
    lines = [serialize_visit(visit) for visit in GOOD]
    lines[3:3] = [b"{\n", b"[]\n", b'{"uri": 7, "time": 1}\n', b'{"uri": "http://a.example/", "time": "noon"}\n']
    lines.append(json.dumps({"uri": "http://b.example/", "time": 1, "status": "200", "mood": "good"}).encode())
    (tmp_path / "log").write_bytes(b"".join(lines))
    history, reading = read(tmp_path / "log")
    assert reading.problems.counts == {"bad-json": 1, "bad-visit": 3}
    assert reading.unknown_fields == {"mood": 1}
    assert history.matrix() == ChangeHistory.from_visits(GOOD).matrix()
    assert history.visit_stats["without_digest"] == 1


@given(st.lists(_visits, max_size=20))
def test_parquet_and_json_lines_give_the_same_history(
    tmp_path_factory: pytest.TempPathFactory, visits: list[Visit]
) -> None:
    """Rows and columns give equal histories."""
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    write_parquet(path, visits, row_group_size=3)
    history, reading = read(path)
    assert history.matrix() == ChangeHistory.from_visits(visits).matrix()
    assert history.visit_stats == ChangeHistory.from_visits(visits).visit_stats
    assert list(history.hosts()) == list(ChangeHistory.from_visits(visits).hosts())
    assert reading.problems.total == 0


def test_parquet_with_unknown_or_mistyped_columns(tmp_path: Path) -> None:
    """Timestamps, dictionaries, a mistyped, an unknown, and missing columns."""
    path = tmp_path / "log.parquet"
    table = pa.table({
        "uri": pa.array(["http://a.example/"] * 3).dictionary_encode(),
        "time": pa.array([0, 2_000_000, 4_000_000], pa.timestamp("us", "UTC")),
        "status": pa.array([200, 200, 200], pa.int16()),
        "digest": pa.array(["a", "a", "b"], pa.large_string()),
        "etag": pa.array([1.5, 2.5, 3.5]),
        "mood": ["good", "bad", "good"],
    })  # fmt: skip
    parquet.write_table(table, path)
    history, reading = read(path)
    assert (history.matrix().changed[8], history.matrix().unchanged[8]) == (1, 1)
    assert history.core.intervals(0, False) == [(2, False), (2, True)]
    assert reading.problems.counts == {"bad-column": 1}
    assert reading.unknown_fields == {"mood": 1}


def test_sliced_columns_start_at_their_offset(tmp_path: Path) -> None:
    """Batches can start inside a row group."""
    path = tmp_path / "log.parquet"
    visits = [Visit(f"http://h{number % 9}.example/", str(number // 300), time=number) for number in range(40_000)]
    write_parquet(path, visits)
    assert read(path)[0].matrix() == ChangeHistory.from_visits(visits).matrix()


def test_damaged_parquet_is_reported(tmp_path: Path) -> None:
    """A truncated file is rejected; a file damaged in the middle gives its other rows."""
    path = tmp_path / "log.parquet"
    write_parquet(path, GOOD * 2000, row_group_size=1000)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="no Parquet"):
        read(path)
    path.write_bytes(data)
    with parquet.ParquetFile(path) as file:
        place = file.metadata.row_group(6).column(0).dictionary_page_offset
    path.write_bytes(data[:place] + b"\xff" * 20 + data[place + 20 :])
    problems = Problems()
    pairing = VisitPairer()
    add_parquet_log(pairing, path, problems, {})
    assert problems.counts == {"damaged": 1}
    assert ChangeHistory(pairing.finish()).visits == len(GOOD) * 2000 - 1000


def http_response(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """Return an HTTP message."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: text/html", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_warc_visits_revisits_and_redirects_are_read(tmp_path: Path) -> None:
    """A redirect counts as its target, a revisit as its original, a 304 has no body."""
    dates = [f"2014-02-{day:02d}T00:00:01Z" for day in range(10, 16)]
    page = "http://a.example/p"
    same = b"WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\r\n"
    identical = b"WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n"
    unmodified = b"WARC-Profile: http://netpreserve.org/warc/1.0/revisit/server-not-modified\r\n"
    records = [
        record(http_response(b"<p>one 1"), uri=page, date=dates[0], extra=same),
        record(http_response(b"", 'ETag: "2"'), uri=page, date=dates[1], kind="revisit", extra=same + identical),
        record(http_response(b"", status="304 x"), uri=page, date=dates[2], kind="revisit", extra=unmodified),
        record(http_response(b"", "Location: /p", status="301 Gone"), uri="http://a.example/", date=dates[3]),
        record(http_response(b"<p>one 2"), uri=page, date=dates[3]),
        record(http_response(b"", "Location: /p", status="301 Gone"), uri="http://a.example/", date=dates[4]),
        record(http_response(b"<p>one 3"), uri=page, date=dates[4]),
        record(http_response(b"", "Location: /lost", status="301 Gone"), uri="http://a.example/", date=dates[5]),
    ]
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(member(one) for one in records))
    history, reading = read(path)
    assert reading.problems.total == 0
    tally = history.visit_stats
    assert (tally["successful"], tally["not_modified"], tally["failed"], tally["pages"]) == (4, 1, 1, 2)
    # The page: unchanged, with a tag that came. The redirect: a new number in the same words.
    assert (history.matrix().unchanged[6], history.matrix().changed[8]) == (1, 1)
    assert history.core.bytes_and_text() == [0, 1, 0, 0]


def test_truncated_warc_is_read_to_its_end(tmp_path: Path) -> None:
    """A truncated record is a failed visit, never a change."""
    whole = [record(http_response(b"<p>same" * 50), uri="http://a.example/", date=f"2014-02-1{day}T00:00:01Z")
        for day in range(3)]  # fmt: skip
    path = tmp_path / "a.warc"
    path.write_bytes(b"".join(whole)[:-100])
    history, reading = read(path)
    assert (history.visit_stats["successful"], history.visit_stats["failed"]) == (2, 1)
    assert history.matrix().all_changed == 0
    assert reading.problems.total == 1
