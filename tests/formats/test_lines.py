"""Lines: where they stand, how they end, and what happens to those without end."""

from io import BytesIO

from hypothesis import given
from hypothesis import strategies as st

from tests.formats.endless import long_line
from unlost.formats import Problems
from unlost.formats.lines import MAX_LINE_BYTES, read_lines


@given(st.lists(st.binary(max_size=9), max_size=9).map(b"\n".join), st.integers(1, 12))
def test_every_byte_is_in_a_line_or_in_a_problem(body: bytes, limit: int) -> None:
    """Lines are what splitting at LF gives, those that are too long are counted, and offsets point at them."""
    problems = Problems()
    lines = list(read_lines(BytesIO(body), problems, "x", limit))
    whole = body.split(b"\n")
    if not whole[-1]:
        whole.pop()
    ends = {number: number < len(whole) or body.endswith(b"\n") for number in range(1, len(whole) + 1)}
    expected = [
        (number, text.removesuffix(b"\r") if ends[number] else text)
        for number, text in enumerate(whole, 1)
        if len(text) <= limit
    ]
    assert [(line.number, line.text) for line in lines] == expected
    assert problems.total == len(whole) - len(lines)
    for line in lines:
        assert body[line.offset :].startswith(line.text)


def test_a_line_of_100_megabytes_is_one_problem_in_bounded_memory() -> None:
    """The lines around it are read; never more than the limit is asked for at once."""
    problems = Problems()
    file = long_line(b"first\n", b"\nlast")
    lines = list(read_lines(file, problems, "x"))
    assert [(line.number, line.text) for line in lines] == [(1, b"first"), (3, b"last")]
    assert lines[1].offset == 6 + 100 * (1 << 20) + 1
    assert problems.counts == {"too-long": 1}
    assert (problems.first["too-long"].line, problems.first["too-long"].offset) == (2, 6)
    assert file.largest <= MAX_LINE_BYTES + 1


def test_the_limit_itself_is_allowed() -> None:
    """A line of exactly so many bytes is read, with any end."""
    for end in (b"", b"\n", b"\n\n"):
        problems = Problems()
        assert next(read_lines(BytesIO(b"abcd" + end), problems, "x", 4)).text == b"abcd"
        assert not problems.counts
