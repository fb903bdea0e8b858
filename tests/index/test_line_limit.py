"""Line length limits of open streams. `test_index_model.py` covers positions and line ends."""

from io import BytesIO

from tests.index.generated_file import long_line
from unlost.problems import Problems
from unlost.text_lines import MAX_LINE_BYTES, read_stream_lines


def test_line_of_100_megabytes_is_skipped_in_bounded_memory() -> None:
    """Adjacent lines are read, and no read exceeds the limit."""
    problems = Problems()
    file = long_line(b"first\n", b"\nlast")
    lines = list(read_stream_lines(file, problems, "x"))
    assert [(line.number, line.text) for line in lines] == [(1, b"first"), (3, b"last")]
    assert lines[1].offset == 6 + 100 * (1 << 20) + 1
    assert problems.counts == {"too-long": 1}
    assert (problems.first["too-long"].line, problems.first["too-long"].offset) == (2, 6)
    assert file.largest <= MAX_LINE_BYTES + 2


def test_line_of_maximum_length_is_read() -> None:
    """A line of exactly the maximum length is read, with any line end."""
    for end in (b"", b"\n", b"\r\n", b"\n\n"):
        problems = Problems()
        assert next(read_stream_lines(BytesIO(b"abcd" + end), problems, "x", 4)).text == b"abcd"
        assert not problems.counts
