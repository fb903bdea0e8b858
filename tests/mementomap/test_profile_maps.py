"""Maps of profiles, and profiles of maps."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mementomap.profiles import EXAMPLES, LISTS, build, read
from tests.models import profile as model
from unlost import _core, uri
from unlost.errors import InputError
from unlost.index import UkvsReader
from unlost.mementomap import ProfileHeader, create_profile_counter, profiles_to_map, write_profiles
from unlost.problems import Problems
from unlost.text_lines import MAX_LINE_BYTES


@given(LISTS, st.lists(st.sampled_from([*uri.POLICIES, "H2Px", "H1P1"]), min_size=1, max_size=3, unique=True))
@settings(max_examples=EXAMPLES // 2)
def test_maps_of_profiles_hold_everything_that_was_counted(keys: list[str], policies: list[str]) -> None:
    """No false negative, under any policy or mixture of them, ports and addresses included; counts are conserved."""
    with tempfile.TemporaryDirectory() as folder:
        files = build(Path(folder), keys, tuple(policies))
        for chosen in [*([file] for file in files.values()), [*files.values()]]:
            file = Path(folder, "map.ukvs")
            profiles_to_map(chosen, file)
            problems = Problems()
            with file.open("rb") as opened:
                rows = {row.keys[0]: row.frequency for row in UkvsReader(opened, problems, "map")}
            assert problems.total == 0, "sorted, each key once"
            total = rows.pop("*")
            assert total is not None
            assert total.mementos == len(chosen) * len(keys)
            assert sum(frequency.mementos or 0 for frequency in rows.values() if frequency) == total.mementos
            for key in keys:
                assert any(candidate in rows for candidate in model.candidates(key)), (key, rows)


def test_maps_of_profiles_are_no_wider_than_they_must_be(tmp_path: Path) -> None:
    """A key that stands for one page stays one."""
    expected = {
        "H1P0": ["com,*"],
        "H2P0": ["com,a,*"],
        "HxP0": ["com,a)/*", "com,a,b)/*"],
        "HxP1": ["com,a)/", "com,a)/x/*", "com,a,b)/x/*"],
        "H3P2": ["com,a)/", "com,a)/x", "com,a,b)/x/y/*"],
        "HxPx": ["com,a)/", "com,a)/x", "com,a,b)/x/y"],
        "DDom": ["com,a,*"],
        "DSub": ["com,a)/*", "com,a,*"],
    }
    files = build(tmp_path, ["com,a)/?q", "com,a)/x", "com,a,b)/x/y"], tuple(expected))
    for policy, keys in expected.items():
        profiles_to_map([files[policy]], tmp_path / "map")
        rows = [line.split(" ")[0] for line in (tmp_path / "map").read_text().splitlines() if line[0] != "!"]
        assert rows == ["*", *keys], policy


def test_wildcards_cannot_be_counted_by_page(tmp_path: Path) -> None:
    """A map can feed the counter as long as its keys are pages."""
    file, out = tmp_path / "map.ukvs", tmp_path / "out"
    file.write_text("com,a)/ 7\ncom,b)/ 0\n")
    builder = create_profile_counter()
    builder.add_map(file, 1, MAX_LINE_BYTES, True, _core.Progress())
    write_profiles(builder, {"HxP0": out}, ProfileHeader("HxP0"))
    assert read(out) == {"com,a)/": (7, 1)}
    file.write_text("com,a)/* 7\n")
    builder = create_profile_counter()
    builder.add_map(file, 1, MAX_LINE_BYTES, True, _core.Progress())
    with pytest.raises(InputError, match=r"wildcard com,a\)/\*: build it from the index"):
        write_profiles(builder, {"HxP0": out, "HxP1": tmp_path / "two"}, ProfileHeader("HxP0"))
    assert {each.name for each in tmp_path.iterdir()} == {"map.ukvs", "out"}
