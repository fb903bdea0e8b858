"""Tests of tables of resources: selection of captures and memory use."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from unlost.comparison import NO_DATE, ResourceTable


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 5), st.integers(0, 2)), max_size=12))
def test_latest_capture_with_a_body_is_used(copies: list[tuple[str, int, int]]) -> None:
    """In any order; of equal captures the last is used."""
    table = ResourceTable()
    best: dict[str, tuple[tuple[bool, int], int]] = {}
    for number, (name, timestamp, size) in enumerate(copies):
        table.add(name, f"http://{name}/", timestamp, NO_DATE, "a/b", bytes(20), size, None, (number, 0, 0))
        if name not in best or best[name][0] <= (size > 0, timestamp):
            best[name] = ((size > 0, timestamp), number)
    assert {name: table.locate(each.location)[0] for name, each in table.items()} == {
        name: number for name, (_, number) in best.items()
    }


def test_a_resource_takes_little_memory() -> None:
    """Less than 500 bytes, including both strings."""
    count = 20_000
    tracemalloc.start()
    table = ResourceTable()
    for number in range(count):
        name = f"example.com/a/folder/page-{number}.html"
        digest, timestamp = number.to_bytes(20, "big"), 20140101000000 + number
        table.add(
            name,
            f"http://www.{name}",
            timestamp,
            timestamp,
            f"text/{'html'}",
            digest,
            5_000 + number,
            None,
            (0, number, 0),
        )
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used / count < 500
    assert table["example.com/a/folder/page-7.html"].datetime == "20140101000007"
