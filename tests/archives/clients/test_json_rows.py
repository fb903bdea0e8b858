"""Rows of a JSON array of arrays are read one at a time."""

import json
import tracemalloc
from io import BytesIO
from itertools import count
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.archives import MAX_BAD_ROWS, MAX_ROW_BYTES, JsonRowReader, cdx
from unlost.problems import Problems

_values = st.one_of(
    st.text(), st.none(), st.booleans(), st.integers().map(str), st.sampled_from(['"]', "[[", "\\", "\n"])
)
_tables = st.lists(st.lists(_values, max_size=4), max_size=6)


def read_rows(body: bytes) -> tuple[list[list[object]], JsonRowReader, Problems]:
    """Return the rows of a body."""
    problems = Problems()
    rows = JsonRowReader(BytesIO(body), problems, "test")
    return list(rows), rows, problems


@given(table=_tables, indent=st.sampled_from([None, 0, 2]), is_ascii=st.booleans(), chunk=st.integers(1, 9))
def test_rows_match_the_json(table: list[list[object]], indent: int | None, is_ascii: bool, chunk: int) -> None:
    """For any white space and chunk boundaries."""
    text = json.dumps(table, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cdx, "_CHUNK_BYTES", chunk)
        results, rows, problems = read_rows(text)
    assert results == json.loads(text.decode("utf-8", "surrogateescape"))
    assert (rows.is_list, rows.is_whole, rows.bad_rows, problems.counts) == (True, True, 0, {})


@given(body=st.lists(st.sampled_from([b"[", b"]", b'"', b"{", b"}", b",", b"\\", b"a", b"\n", b"\xff"])).map(b"".join))
def test_any_bytes_are_read_to_the_end(body: bytes) -> None:
    """No bytes raise an exception or block the reader."""
    read_rows(body)
    results, rows, _ = read_rows(b'[["a"],\n' + body)
    assert results[0] == ["a"]
    assert rows.is_list


def test_invalid_row_is_skipped_alone() -> None:
    """A wrong number of quotes affects only its own line."""
    lines = [b'["a","b"]', b'["a","b"c","d"]', b'["a","b","c]', b'["\\u12"]', b"[1 2]", b'["e"]']
    results, rows, problems = read_rows(b"[" + b",\n".join(lines) + b"]")
    assert results == [["a", "b"], ["e"]]
    assert rows.is_whole
    assert problems.counts["bad-json"] >= 4


def test_other_text_is_not_read_to_the_end() -> None:
    """Reading stops after many invalid rows."""
    results, rows, _ = read_rows(b"[" + b"{}," * (2 * MAX_BAD_ROWS) + b"[1]]")
    assert (results, rows.bad_rows, rows.is_whole) == ([], MAX_BAD_ROWS, False)


def test_numbers_are_text() -> None:
    """Large numbers are returned as written, in bounded time."""
    results, _, _ = read_rows(b"[[1, 1e400, NaN, -5, " + b"9" * 100_000 + b"]]")
    assert results == [["1", "1e400", "NaN", "-5", "9" * 100_000]]


def test_row_without_end_uses_bounded_memory() -> None:
    """An overlong row is skipped to the end of its line."""
    results, rows, problems = read_rows(b'[["a"],\n["' + b"x" * (2 * MAX_ROW_BYTES) + b'"],\n["b"]]')
    assert results == [["a"], ["b"]]
    assert rows.is_whole
    assert problems.counts == {"too-long": 1}


class GeneratedTable:
    """A body of many rows, generated while it is read."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._number = count()

    def read(self, size: int) -> bytes:
        """Return the next rows, about `size` bytes of them."""
        lines: list[bytes] = []
        for number in self._number:
            if number >= self.rows:
                return b"".join(lines) + b"]" * (number == self.rows)
            lines.append(
                b'%s["com,example)/%d","20140210000001","http://example.com/"]' % (b"[,"[number > 0 :][:1], number)
            )
            if len(lines) * 60 > size:
                return b"".join(lines)
        return b""


def test_memory_does_not_grow_with_the_rows() -> None:
    """Four megabytes of rows without line ends are read in a twentieth of that."""
    rows = JsonRowReader(cast("BinaryIO", GeneratedTable(60_000)), Problems(), "test")
    tracemalloc.start()
    try:
        assert sum(1 for _ in rows) == 60_000
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()
    assert rows.is_whole
