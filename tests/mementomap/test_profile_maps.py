"""Conversions between maps and profiles."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mementomap.profile_files import EXAMPLES, LISTS, build_test_profiles, read_profile
from tests.models import profile as model
from unlost import _core, uri
from unlost.errors import InputError
from unlost.index import UkvsReader
from unlost.mementomap import ProfileHeader, create_profile_counter, profiles_to_map, write_profiles
from unlost.problems import Problems
from unlost.text_lines import MAX_LINE_BYTES


@given(LISTS, st.lists(st.sampled_from([*uri.POLICIES, "H2Px", "H1P1"]), min_size=1, max_size=3, unique=True))
@settings(max_examples=EXAMPLES // 2)
def test_map_of_profiles_has_no_false_negatives(keys: list[str], policies: list[str]) -> None:
    """For any mixture of policies, including ports and IP addresses; counts are preserved."""
    with tempfile.TemporaryDirectory() as folder:
        files = build_test_profiles(Path(folder), keys, tuple(policies))
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


def test_map_of_profile_has_narrowest_wildcards(tmp_path: Path) -> None:
    """A key that represents one page is not widened."""
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
    files = build_test_profiles(tmp_path, ["com,a)/?q", "com,a)/x", "com,a,b)/x/y"], tuple(expected))
    for policy, keys in expected.items():
        profiles_to_map([files[policy]], tmp_path / "map")
        rows = [line.split(" ")[0] for line in (tmp_path / "map").read_text().splitlines() if line[0] != "!"]
        assert rows == ["*", *keys], policy


def test_profile_of_map_with_wildcards_is_rejected(tmp_path: Path) -> None:
    """A map can be counted only if its keys are pages."""
    file, out = tmp_path / "map.ukvs", tmp_path / "out"
    file.write_text("com,a)/ 7\ncom,b)/ 0\n")
    builder = create_profile_counter()
    builder.add_map(file, 1, MAX_LINE_BYTES, True, _core.Progress())
    write_profiles(builder, {"HxP0": out}, ProfileHeader("HxP0"))
    assert read_profile(out) == {"com,a)/": (7, 1)}
    file.write_text("com,a)/* 7\n")
    builder = create_profile_counter()
    builder.add_map(file, 1, MAX_LINE_BYTES, True, _core.Progress())
    with pytest.raises(InputError, match=r"wildcard com,a\)/\*: build it from the index"):
        write_profiles(builder, {"HxP0": out, "HxP1": tmp_path / "two"}, ProfileHeader("HxP0"))
    assert {each.name for each in tmp_path.iterdir()} == {"map.ukvs", "out"}
