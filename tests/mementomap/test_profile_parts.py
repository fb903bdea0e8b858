"""Profiles with parts by year and media type."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.run import unlost
from unlost import uri
from unlost.errors import InputError, UsageError
from unlost.media_types import group_of
from unlost.mementomap import (
    PartField,
    ProfileHeader,
    UriKeyProfile,
    build_profiles,
    build_profiles_by_part,
    check_profile,
    merge_profiles,
    profiles_to_map,
)
from unlost.problems import Problems
from unlost.research import SynthIndexOptions, write_synthetic_index


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Write a synthetic index of 600 captures and one row without fields."""
    path = tmp_path / "a.cdxj"
    write_synthetic_index(SynthIndexOptions(600, seed=8), path, Problems())
    text = path.read_text() + 'zz,last:81)/ 20140101000000 {"url": "http://last.zz:81/"}\n'
    path.write_text(text)
    return path


@pytest.mark.parametrize("by", [("year",), ("mime",), ("year", "mime"), ("mime", "year")])
@pytest.mark.parametrize("policy", ["DDom", "H3P1", "URIR"])
def test_profile_parts_agree_with_rows(tmp_path: Path, index: Path, policy: str, by: tuple[PartField, ...]) -> None:
    """Keys, frequencies and ports equal those of the profile without parts."""
    plain, parted = tmp_path / "plain", tmp_path / "parted"
    header = ProfileHeader(policy, "An archive")
    build_profiles([index], {policy: plain}, header, Problems())
    assert build_profiles_by_part([index], {policy: parted}, header, Problems(), by) == 601
    policies = uri.KeyPolicies([policy])
    expected: Counter[tuple[str, str]] = Counter()
    for line in index.read_text().splitlines():
        key, date, rest = line.split(" ", 2)
        mime = json.loads(rest).get("mime")
        fields = {"year": date[:4], "mime": group_of(mime) if mime else "-"}
        expected[policies.keys(key)[0], " ".join(fields[field] for field in by)] += 1
    actual = {}
    rows = [line.split(" ", 1) for line in parted.read_text().splitlines() if not line.startswith("@")]
    for key, rest in rows:
        for part, count in json.loads(rest).pop("parts").items():
            actual[key, part] = count
    assert actual == expected
    without = {key: {n: v for n, v in json.loads(rest).items() if n != "parts"} for key, rest in rows}
    lines = [line.split(" ", 1) for line in plain.read_text().splitlines() if not line.startswith("@")]
    assert without == {key: json.loads(rest) for key, rest in lines}
    assert [key for key, _ in rows] == [key for key, _ in lines]
    assert check_profile(parted).is_sound


def test_profile_lookup_selects_year_and_media_type(tmp_path: Path) -> None:
    """Unselected look-ups count all captures; a missing part field is rejected."""
    index, profile_path = tmp_path / "a.cdxj", tmp_path / "a.profile"
    rows = [("2013", "text/html"), ("2014", "text/html"), ("2014", "image/png"), ("2014", "image/png")]
    row = 'com,a)/x {}0101000000 {{"url": "http://a.com/x", "mime": "{}", "status": "200"}}\n'
    index.write_text("".join(row.format(year, mime) for year, mime in rows))
    build_profiles_by_part([index], {"HxP1": profile_path}, ProfileHeader("HxP1"), Problems(), ["year", "mime"])
    profile = UriKeyProfile.open(profile_path)
    assert profile.lookup("http://a.com/x").frequency == 4
    assert profile.lookup("http://a.com/x", year="2014").frequency == 3
    assert profile.lookup("http://a.com/x", mime="HTML").frequency == 2
    assert profile.lookup("http://a.com/x", year="2014", mime="images").frequency == 2
    nothing = profile.lookup("http://a.com/x", year="2012")
    assert (nothing.frequency, nothing.keys) == (0, 0)
    assert profile.lookup_key("com,", year="2013").frequency == 1
    build_profiles_by_part([index], {"HxP1": profile_path}, ProfileHeader("HxP1"), Problems(), ["year"])
    with pytest.raises(UsageError, match="does not tell by mime"):
        UriKeyProfile.open(profile_path).lookup("http://a.com/x", mime="HTML")


def test_invalid_use_of_profile_parts_is_rejected(tmp_path: Path, index: Path) -> None:
    """URL lists have no dates, and profiles with different parts are not merged."""
    listed, profile_path = tmp_path / "list.txt", tmp_path / "made"
    listed.write_text("http://a.com/\n")
    with pytest.raises(InputError, match="has no dates and media types"):
        build_profiles_by_part([listed], {"DDom": profile_path}, ProfileHeader("DDom"), Problems(), ["year"])
    assert not profile_path.exists()
    twice: list[list[PartField]] = [[], ["year", "year"]]
    for invalid in twice:
        with pytest.raises(UsageError, match="each once"):
            build_profiles_by_part([index], {"DDom": profile_path}, ProfileHeader("DDom"), Problems(), invalid)
    build_profiles_by_part([index], {"DDom": profile_path}, ProfileHeader("DDom"), Problems(), ["year"])
    plain = tmp_path / "plain"
    build_profiles([index], {"DDom": plain}, ProfileHeader("DDom"), Problems())
    with pytest.raises(InputError, match=r"tells its parts by nothing, but .* by year"):
        merge_profiles([profile_path, plain], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
    profiles_to_map([profile_path], tmp_path / "a.ukvs")
    assert (tmp_path / "a.ukvs").read_text().count("\n") > 10


@pytest.mark.parametrize("policy", ["DDom", "H3P1"])
def test_merged_profile_parts_equal_parts_of_whole_index(tmp_path: Path, index: Path, policy: str) -> None:
    """Profiles of partial indexes merge to the profile of the whole, except for the spread."""
    lines = index.read_text().splitlines(keepends=True)
    header, names = ProfileHeader(policy, "An archive"), []
    for number in range(3):
        piece, profile_path = tmp_path / f"{number}.cdxj", tmp_path / f"{number}.profile"
        piece.write_text("".join(lines[number::3]))
        build_profiles_by_part([piece], {policy: profile_path}, header, Problems(), ["year", "mime"])
        names.append(profile_path)
    build_profiles_by_part([index], {policy: tmp_path / "whole"}, header, Problems(), ["year", "mime"])
    merge_profiles(names, tmp_path / "merged")
    merge_profiles(names[:2], tmp_path / "some")
    merge_profiles([tmp_path / "some", names[2]], tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "merged").read_bytes()
    contents = [(tmp_path / name).read_text().splitlines() for name in ("whole", "merged")]
    assert [line for line in contents[0] if line.startswith("@")] == [
        line for line in contents[1] if line.startswith("@")
    ]
    rows = [[line.split(" ", 1) for line in each if not line.startswith("@")] for each in contents]
    objects = [{key: {**json.loads(rest), "spread": 1} for key, rest in each} for each in rows]
    assert objects[0] == objects[1]
    assert check_profile(tmp_path / "merged").is_sound
    assert UriKeyProfile.open(tmp_path / "merged").lookup_key("zz,", year="2014").frequency == 1


@pytest.mark.parametrize(
    "parts", ["[]", '{"2014": -1}', '{"2014": 1e300}', '{"2014": true}', f'{{"2014": 1{"0" * 30}}}']
)
def test_merge_of_invalid_profile_parts_is_rejected(tmp_path: Path, parts: str) -> None:
    """The error has the line, and no output is written."""
    profile_path = tmp_path / "made"
    about = '@about {"type": "urikey#DDom", "by": ["year"]}'
    profile_path.write_text(f'{about}\ncom,a)/ {{"frequency": 1, "spread": 1, "parts": {parts}}}\n')
    with pytest.raises(InputError, match="line 2: expected parts"):
        merge_profiles([profile_path], tmp_path / "merged")
    assert [file.name for file in tmp_path.iterdir()] == ["made"]


def test_profile_commands_build_and_look_up_parts(tmp_path: Path, index: Path) -> None:
    """Parts are built by two fields and looked up by one."""
    profile_path = tmp_path / "made"
    built = unlost(
        "profile", "build", str(index), "--policy", "H1P0", "--by", "year", "--by", "mime", "-o", str(profile_path)
    )
    assert built.returncode == 0
    assert '"by": ["year", "mime"]' in profile_path.read_text()
    lookup = unlost("profile", "lookup", str(profile_path), "--key", "zz", "--year", "2014", "--json")
    assert json.loads(lookup.stdout)["frequency"] == 1
    assert (
        json.loads(unlost("profile", "lookup", str(profile_path), "--key", "zz", "--mime", "HTML", "--json").stdout)[
            "frequency"
        ]
        == 0
    )
    assert (
        unlost(
            "profile", "build", str(index), "--policy", "H1P0", "--by", "year", "--format", "json", "-o", "-"
        ).returncode
        == 2
    )
