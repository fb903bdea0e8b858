"""Lines of what is already open: how long they may be. Where they stand and how they end, test_index_model tells."""

from io import BytesIO

from tests.index.endless import long_line
from unlost.problems import Problems
from unlost.text_lines import MAX_LINE_BYTES, read_stream_lines


def test_a_line_of_100_megabytes_is_one_problem_in_bounded_memory() -> None:
    """The lines around it are read; never more than the limit is asked for at once."""
    problems = Problems()
    file = long_line(b"first\n", b"\nlast")
    lines = list(read_stream_lines(file, problems, "x"))
    assert [(line.number, line.text) for line in lines] == [(1, b"first"), (3, b"last")]
    assert lines[1].offset == 6 + 100 * (1 << 20) + 1
    assert problems.counts == {"too-long": 1}
    assert (problems.first["too-long"].line, problems.first["too-long"].offset) == (2, 6)
    assert file.largest <= MAX_LINE_BYTES + 2


def test_the_limit_itself_is_allowed() -> None:
    """A line of exactly so many bytes is read, with any end."""
    for end in (b"", b"\n", b"\r\n", b"\n\n"):
        problems = Problems()
        assert next(read_stream_lines(BytesIO(b"abcd" + end), problems, "x", 4)).text == b"abcd"
        assert not problems.counts
