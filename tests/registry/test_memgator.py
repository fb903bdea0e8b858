"""MemGator's list of archives, as it is published."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.errors import InputError
from unlost.registry import ArchiveKind, Registry, RequestKind, SourcedNumber, load_registry

ENTRY = {
    "id": "example",
    "name": "Example Archive",
    "timemap": "http://archive.example/timemap/link/",
    "timegate": "http://archive.example/timegate/",
    "probability": 0.25,
    "ignore": False,
}


def load(tmp_path: Path, entries: object) -> Registry:
    """Return the registry of a list, in a file without a telling name."""
    file = tmp_path / "archives"
    file.write_text(entries if isinstance(entries, str) else json.dumps(entries, indent=2))
    return load_registry(file)


def test_every_field_is_read(tmp_path: Path) -> None:
    """All six of them."""
    (archive,) = load(tmp_path, [ENTRY])
    assert (archive.id, archive.name, archive.kind) == ("example", "Example Archive", ArchiveKind.MEMENTO)
    assert (archive.timemap, archive.timegate) == (ENTRY["timemap"], ENTRY["timegate"])
    assert (archive.hit_rate, archive.enabled) == (SourcedNumber(0.25, "`probability` in archives"), True)
    assert {work for limit in archive.limits for work in limit.works} == {RequestKind.INDEX, RequestKind.REPLAY}


def test_ignored_archive_is_disabled(tmp_path: Path) -> None:
    """It can still be requested by id."""
    registry = load(tmp_path, [ENTRY, ENTRY | {"id": "dead", "ignore": True}])
    assert [archive.id for archive in registry.only()] == ["example"]
    assert [archive.id for archive in registry.only(["dead"])] == ["dead"]


def test_only_id_and_timemap_are_required(tmp_path: Path) -> None:
    """As for MemGator; an empty probability is none."""
    (archive,) = load(tmp_path, [{"id": "a", "timemap": "http://a.example/", "probability": 0}])
    assert (archive.name, archive.timegate, archive.hit_rate, archive.enabled) == ("a", None, None, True)


def test_known_archive_has_its_limits(tmp_path: Path) -> None:
    """Missing fields are those of the shipped registry, if the host is the same."""
    ours = load_registry().get("archive.today")
    entry = {"id": "archive.today", "timemap": "https://archive.today/timemap/"}
    (known,) = load(tmp_path, [entry])
    assert (known.kind, known.limits, known.quotas) == (ours.kind, ours.limits, ours.quotas)
    assert known.timemap == "https://archive.today/timemap/"
    (elsewhere,) = load(tmp_path, [entry | {"timemap": "http://127.0.0.1:1208/timemap/"}])
    assert (elsewhere.kind, elsewhere.timegate, elsewhere.quotas) == (ArchiveKind.MEMENTO, None, ())


@pytest.mark.parametrize(
    ("name", "timemap", "ours"),
    [
        ("ia", "http://web.archive.org/web/timemap/link/", "web.archive.org"),
        ("archive.is", "http://archive.today/timemap/", "archive.today"),
        ("archiveit", "http://wayback.archive-it.org/all/timemap/link/", "wayback.archive-it.org"),
    ],
)
def test_known_archive_with_another_id_has_its_limits(tmp_path: Path, name: str, timemap: str, ours: str) -> None:
    """The list that MemGator shipped for years has other ids, but the same hosts."""
    (known,) = load(tmp_path, [{"id": name, "timemap": timemap}])
    same = load_registry().get(ours)
    assert (known.id, known.timemap) == (name, timemap)
    assert (known.kind, known.limits, known.quotas) == (same.kind, same.limits, same.quotas)


def test_unknown_fields_are_ignored_with_a_note(tmp_path: Path) -> None:
    """As by MemGator."""
    registry = load(tmp_path, [ENTRY | {"dormant": True}, ENTRY | {"id": "b", "dormant": False}])
    assert len(registry.archives) == 2
    assert registry.notes == (f"{tmp_path}/archives: archive `example`: dormant: no field of MemGator's: passed over",)


def test_timegate_is_sufficient(tmp_path: Path) -> None:
    """An archive without a TimeMap is queried by its TimeGate."""
    (archive,) = load(tmp_path, [{"id": "a", "timegate": "http://archive.example/timegate/"}]).archives
    assert (archive.timemap, archive.timegate) == (None, "http://archive.example/timegate/")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("[{]", "not JSON"),
        ('[{"a":' + "[" * 100_000, "not JSON"),
        ('[{"id": "a", "probability": ' + "9" * 5_000 + "}]", "not JSON"),
        ({"archives": []}, "expected a list of archives, as MemGator has it, found a table"),
        ([], "no archive in it"),
        ([ENTRY, 7], "archive 2: expected a table, found 7"),
        ([{}], "archive 1: id: expected lower-case letters"),
        ([ENTRY, ENTRY], "archive `example`: id: there twice"),
        ([{"id": "a"}], "archive `a`: timemap: expected an http or https address, found nothing"),
        ([ENTRY | {"timegate": None}], "archive `example`: timegate: expected an http or https address, found nothing"),
        ([ENTRY | {"name": 3}], "archive `example`: name: expected a line of text, found 3"),
        ([ENTRY | {"probability": 2}], "archive `example`: probability: expected a number from 0 to 1, found 2"),
        ([ENTRY | {"probability": float("nan")}], "probability: expected a number from 0 to 1, found nan"),
        ([ENTRY | {"ignore": "yes"}], "archive `example`: ignore: expected true or false, found `yes`"),
    ],
)  # fmt: skip
def test_invalid_field_is_named(tmp_path: Path, entries: object, message: str) -> None:
    """With file, archive, field, expected and found value."""
    with pytest.raises(InputError) as error:
        load(tmp_path, entries)
    assert str(tmp_path / "archives") in str(error.value)
    assert message in str(error.value)


_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("http://a.example/")
)


@given(
    entries=st.lists(
        st.dictionaries(st.sampled_from([*ENTRY, "x"]), _VALUES | st.lists(_VALUES), max_size=6), max_size=3
    )
)
def test_any_list_is_a_registry_or_rejected(
    tmp_path_factory: pytest.TempPathFactory, entries: list[dict[str, Any]]
) -> None:
    """Only InputError is raised."""
    with suppress(InputError):
        assert load(tmp_path_factory.getbasetemp(), entries).archives
