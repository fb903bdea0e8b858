"""Tests that counted requests equal those that archives receive."""

from pathlib import Path

from unlost.demo import measure_routing
from unlost.testing import FakeArchive, Fault

A, B, BOTH, NONE = (f"http://lost.example/{name}" for name in ("a", "b", "both", "none"))


def maps(folder: Path, held: dict[str, list[str]]) -> dict[str, Path]:
    """Write a map for each archive."""
    from unlost.api import build_map

    found = {}
    for name, urls in held.items():
        (folder / f"{name}.txt").write_text("".join(f"{url}\n" for url in urls))
        found[name] = folder / f"{name}.ukvs"
        build_map(folder / f"{name}.txt", found[name])
    return found


def test_sent_requests_equal_received_requests(tmp_path: Path) -> None:
    """With maps only holders are queried, without them all archives; the captures are the same."""
    held = {"a": [A, BOTH], "b": [B, BOTH]}
    with (
        FakeArchive({url: [("2012", "x")] for url in held["a"]}, id="a") as a,
        FakeArchive({url: [("2013", "y")] for url in held["b"]}, id="b") as b,
    ):
        entries = {each.id: each.registry_entry() for each in (a, b)}
        found = measure_routing(entries, maps(tmp_path, held), [A, B, BOTH, NONE], tmp_path)
        seen = {each.id: len(each.requests) for each in (a, b)}
    assert (found.sent, found.not_sent) == ({"a": 2, "b": 2}, {"a": 2, "b": 2})
    assert seen == {"a": 2 + 4, "b": 2 + 4}
    assert (found.requests, found.saved, found.found, found.found_by_all, found.failed) == (4, 4, 4, 4, 0)


def test_failed_requests_are_counted(tmp_path: Path) -> None:
    """No error is raised, and captures of other archives are found."""
    with FakeArchive({A: [("2012", "x")]}, id="a") as a, FakeArchive({A: [("2013", "x")]}, id="b") as b:
        b.fail(Fault.unavailable())
        entries = {each.id: each.registry_entry() for each in (a, b)}
        found = measure_routing(entries, maps(tmp_path, {"a": [A], "b": [A]}), [A], tmp_path)
    assert (found.found, found.failed) == (1, 2)
