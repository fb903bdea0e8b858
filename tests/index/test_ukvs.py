"""UKVS files: the sample map of the paper, malformed files, and round trips."""

import subprocess
import tempfile
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.index.generated_file import long_line
from tests.index.test_frequency import FREQUENCIES
from unlost.errors import InputError
from unlost.index import UKVS_PROBLEM_KINDS, Frequency, UkvsHeader, UkvsReader, UkvsRow, write_ukvs
from unlost.problems import Problems

SAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "sample.ukvs"


def read_ukvs(body: bytes) -> tuple[UkvsHeader, list[UkvsRow], dict[str, int]]:
    """Return header, rows and problem counts of a file."""
    problems = Problems()
    reader = UkvsReader(BytesIO(body), problems, "x.ukvs")
    rows = list(reader)
    assert set(problems.counts) <= set(UKVS_PROBLEM_KINDS)
    assert all(str(first).isprintable() for first in problems.first.values())
    return reader.header, rows, problems.counts


def make_row(key: str, frequency: str) -> UkvsRow:
    """Return a row of a map."""
    return UkvsRow((key,), (frequency,), Frequency.parse(frequency))


def test_sample_map_of_paper_is_parsed() -> None:
    """Headers with unquoted and repeated names and all forms of frequencies are parsed."""
    header, rows, problems = read_ukvs(SAMPLE.read_bytes())
    assert problems == {}
    assert header == UkvsHeader(
        ("https://git.io/mementomap",),
        {"uri": "https://archive.example.org/"},
        meta={"type": "MementoMap", "name": "Example Web Archive", "year": 1996},
    )
    assert rows == [
        make_row("*", "54321/20000"),
        make_row("com,*", "10000+"),
        make_row("org,arxiv)/", "100"),
        make_row("org,arxiv)/*", "2500~/900"),
        make_row("org,arxiv)/pdf/*", "0"),
        make_row("uk,co,bbc)/images/*", "300+/20-"),
    ]


def test_ukvs_header_is_written_as_sorted_strict_json(tmp_path: Path) -> None:
    """Unquoted names are written as strict JSON, and the file is sorted by bytes."""
    header, rows, _ = read_ukvs(SAMPLE.read_bytes())
    write_ukvs(tmp_path / "a.ukvs", header, rows)
    written = (tmp_path / "a.ukvs").read_bytes()
    assert written.startswith(
        b'!context ["https://git.io/mementomap"]\n!fields {"keys": ["surt"], "values": ["frequency"]}\n'
    )
    assert read_ukvs(written) == (header, rows, {})
    subprocess.run(["sort", "--check", tmp_path / "a.ukvs"], check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})


@pytest.mark.parametrize(
    ("body", "problems", "rows"),
    [
        (b"", {}, 0),
        (b"\n  \r\n", {}, 0),
        (b"b 1\na 1\nc 1\n", {"unsorted": 1}, 3),
        (b"a 1\na 2\n", {"duplicate-key": 1}, 2),
        (b"a x\nb\n", {"bad-frequency": 2}, 2),
        (b'a 1 {"x": 1\nb 1 {x: 2}\nc 1 [3]', {"bad-json": 1}, 3),
        (b"!meta {\n!id 5\n!fields {}\n!context {}\n!fields {keys: []}\na 1", {"bad-header": 5}, 1),
        (b"!meta " + b"[" * 100_000 + b"\na 1", {"bad-header": 1}, 1),
        (b"!wrong {}\n!\na 1\n!meta {}\n", {"unknown-header": 2, "late-header": 1}, 1),
        (b"a\0b 1\n\xff 1\nz 1", {"bad-row": 2}, 1),
        (b"!fields {keys: [surt, datetime]}", {"bad-header": 1}, 0),
        (b'!fields {keys: ["surt", "datetime"], values: []}\na 2014\na 2015 7 8\nb\n', {"bad-row": 1}, 2),
        (b"\x1f\x8b\x08\x00\xff\x00" * 9, {"bad-row": 1}, 0),
    ],
)
def test_malformed_ukvs_is_counted_by_kind(body: bytes, problems: dict[str, int], rows: int) -> None:
    """Each flaw is counted by kind, and readable rows are returned."""
    _, rows_read, counts = read_ukvs(body)
    assert counts == problems
    assert len(rows_read) == rows


def test_ukvs_row_with_invalid_frequency_has_unknown_frequency() -> None:
    """The key remains, so that the map never reports a held page as missing."""
    _, rows, _ = read_ukvs(b"a lots\n")
    assert rows == [UkvsRow(("a",), ("lots",), Frequency())]


def test_ukvs_row_ending_in_open_brace_is_bad_json() -> None:
    """A row truncated after the brace is not mistaken for one without attributes."""
    assert read_ukvs(b"com,a)/ 5 {\n")[1:] == ([make_row("com,a)/", "5")], {"bad-json": 1})


def test_ukvs_header_after_byte_order_mark_is_read() -> None:
    """The header after a byte order mark is the first line."""
    header, rows, problems = read_ukvs(b"\xef\xbb\xbf!meta {a: 1}\ncom,a)/ 5\n")
    assert (header.meta, len(rows), problems) == ({"a": 1}, 1, {})


def test_ukvs_problem_has_line_and_offset() -> None:
    """A problem has its line and byte."""
    problems = Problems()
    list(UkvsReader(BytesIO(b"!meta {}\r\na 1\r\nb x\n"), problems, "x.ukvs"))
    assert str(problems.first["bad-frequency"]).startswith("x.ukvs:3 (byte 15): bad-frequency: expected a frequency")


def test_ukvs_line_of_100_megabytes_is_skipped() -> None:
    """Adjacent rows are read."""
    problems = Problems()
    rows = list(UkvsReader(long_line(b"a 1\nb", b"\nc 1\n"), problems, "x.ukvs"))
    assert [each.keys for each in rows] == [("a",), ("c",)]
    assert problems.counts == {"too-long": 1}


FIELDS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=" "), min_size=1).filter(
    lambda text: text[0] not in "!{"
)
ATTRIBUTES = st.none() | st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans()), max_size=3)
ROWS = st.dictionaries(FIELDS, st.tuples(FREQUENCIES, st.lists(FIELDS, max_size=2), ATTRIBUTES), max_size=8).map(
    lambda drawn: [
        UkvsRow((key,), (str(frequency), *values), frequency, attributes)
        for key, (frequency, values, attributes) in sorted(drawn.items(), key=lambda item: item[0].encode())
    ]
)


@given(ROWS, st.dictionaries(st.text(), st.text() | st.none(), max_size=3), st.lists(st.text(), max_size=2))
def test_ukvs_round_trip_is_lossless(rows: list[UkvsRow], meta: dict[str, object], context: list[str]) -> None:
    """Header and rows are read back unchanged, and equal rows are written as equal bytes."""
    header = UkvsHeader(tuple(context), {"uri": "http://a.example/"}, meta=meta)
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder, "one"), Path(folder, "two")
        write_ukvs(one, header, rows)
        write_ukvs(two, header, iter(rows))
        assert one.read_bytes() == two.read_bytes()
        assert read_ukvs(one.read_bytes()) == (header, rows, {})


@pytest.mark.parametrize(
    "rows",
    [
        [make_row("b", "1"), make_row("a", "1")],
        [make_row("a", "1"), make_row("a", "1")],
        [UkvsRow(("a b",), ("1",))],
        [UkvsRow(("!a",), ("1",))],
        [UkvsRow(("",), ("1",))],
        [UkvsRow(("a",), ("{1",))],
        [UkvsRow(("a", "b"), ("1",))],
        [UkvsRow(("\ud800",), ("1",))],
    ],
)
def test_unreadable_ukvs_rows_are_not_written(rows: list[UkvsRow], tmp_path: Path) -> None:
    """Unsorted rows and ambiguous fields are rejected, and the existing file is unchanged."""
    path = tmp_path / "a.ukvs"
    path.write_text("existing")
    with pytest.raises(InputError, match="expected"):
        write_ukvs(path, UkvsHeader(), rows)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.ukvs", "existing")]


@given(st.binary())
def test_arbitrary_bytes_as_ukvs_raise_no_exception(body: bytes) -> None:
    """Arbitrary bytes yield rows and problems."""
    read_ukvs(body)
    read_ukvs(b"!meta " + body)
    read_ukvs(b"a 1 {" + body)
