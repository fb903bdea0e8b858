"""Profiles are merged and checked; invalid profiles are rejected."""

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mementomap.profile_files import EXAMPLES, LISTS, build_test_profiles, many_keys, read_profile
from tests.models import profile as model
from unlost.errors import InputError
from unlost.mementomap import UriKeyProfile, check_profile, merge_profiles, profiles_to_map


@given(st.lists(LISTS, min_size=1, max_size=4), st.sampled_from(["H3P1", "HxPx", "DDom", "DIni", "URIR"]))
@settings(max_examples=EXAMPLES // 5)
def test_profile_merge_adds_frequency_and_spread(key_lists: list[list[str]], policy: str) -> None:
    """In steps or at once, plain or compressed."""
    with tempfile.TemporaryDirectory() as name:
        files = []
        for number, keys in enumerate(key_lists):
            folder = Path(name, str(number))
            folder.mkdir()
            files.append(build_test_profiles(folder, keys, (policy,))[policy])
        at_once, step, compressed = Path(name, "once"), Path(name, "step"), Path(name, "packed.gz")
        merge_profiles(files, at_once)
        expected = model.merge(read_profile(file) for file in files)
        assert read_profile(at_once) == expected
        assert [*read_profile(at_once)] == sorted(expected)
        compressed.write_bytes(gzip.compress(files[0].read_bytes()))
        merge_profiles([compressed], step)
        for file in files[1:]:
            merge_profiles([step, file], step)
        assert step.read_bytes() == at_once.read_bytes()
        assert check_profile(step).is_sound


def test_merge_of_different_profile_kinds_is_rejected(tmp_path: Path) -> None:
    """The message suggests an alternative, and no output is written."""
    files = build_test_profiles(tmp_path, ["com,a)/"], ("H3P1", "HxPx", "DDom"))
    with pytest.raises(InputError, match=r"HxPx\.cdxj: a profile of HxPx.*to-map"):
        merge_profiles([files["H3P1"], files["HxPx"]], tmp_path / "out")
    other = tmp_path / "other"
    other.write_text('@about {"type": "urikey#DDom", "suffixes": "icann"}\n')
    with pytest.raises(InputError, match="differ in the suffixes"):
        merge_profiles([files["DDom"], other], tmp_path / "out")
    other.write_text('@about {"type": "urikey#HxPx", "rules": "papers"}\n')
    for function in (merge_profiles, profiles_to_map):
        with pytest.raises(InputError, match="made by the rules papers"):
            function([files["HxPx"], other], tmp_path / "out")
    assert not (tmp_path / "out").exists()


HEAD = '@about {"type": "urikey#HxPx"}\n'


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('com,b)/ {"frequency": 1}\ncom,a)/ {"frequency": 1}\n', "line 3: the key belongs before"),
        ('com,b)/ {"frequency": 1}\ncom,b)/ {"frequency": 1}\n', "line 3: the key stands in the line above"),
        ("com,b)/\n", "line 2: expected a key and an object"),
        ('com,b)/ {"frequency": "many"}\n', "line 2: expected a `frequency`"),
        ('com,b)/ {"frequency": 1234567890123456789}\n', "line 2: expected a `frequency` of at most 18"),
        ('com,b)/ {"frequency": 999999999999999999}\n', "more than 18 digits under com,b"),
    ],
)
def test_merge_of_invalid_profile_is_rejected(tmp_path: Path, rows: str, message: str) -> None:
    """Skipping a line would lose pages; the error names file and line."""
    bad, good, out = tmp_path / "bad", tmp_path / "good", tmp_path / "out"
    bad.write_text(HEAD + rows)
    good.write_text(HEAD + 'com,b)/ {"frequency": 1}\n')
    out.write_text("existing")
    with pytest.raises(InputError, match=message):
        merge_profiles([good, bad], out)
    assert out.read_text() == "existing"
    assert len([*tmp_path.iterdir()]) == 3


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        ('com,b)/ {"frequency": 1}\ncom,a)/ {"frequency": 1}\n', {"unsorted": 1}),
        ('com,b)/ {"frequency": 1}\ncom,b)/ {"frequency": 1}\n', {"duplicate-key": 1}),
        ('com,b)/x?q {"frequency": 1}\ncom,b)/y/ {"frequency": 1}\ngarbage {"frequency": 1}', {"bad-key": 3}),
        ("com,b)/\ncom,c)/ 7\n", {"bad-row": 2}),
        ('com,b)/ {"frequency": -1}\n', {"bad-frequency": 1}),
        ('com,b)/ {"frequency": 1, "spread": []}\n', {"bad-spread": 1}),
        ('com,b)/ {"frequency": 1, "ports": {"81": 2}}\n', {"bad-ports": 1}),
        ('com,b)/ {"frequency": 0, "spread": 1}\n', {"nothing-held": 1}),
    ],
)
def test_profile_check_counts_problems_by_kind(tmp_path: Path, rows: str, kinds: dict[str, int]) -> None:
    """The first line of each kind is reported."""
    file = tmp_path / "p"
    file.write_text(HEAD + rows)
    report = check_profile(file)
    assert (report.problems.counts, report.is_sound) == (kinds, False)
    assert all(str(first).isprintable() for first in report.problems.first.values())


def test_profile_total_beyond_18_digits_is_unknown(tmp_path: Path) -> None:
    """The total is None."""
    file = tmp_path / "p"
    file.write_text(HEAD + "".join(f'com,{host})/ {{"frequency": 999999999999999999}}\n' for host in "ab"))
    report = check_profile(file)
    assert (report.keys, report.frequency, report.is_sound) == (2, None, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not a profile"),
        (b"\x00\xff\x80garbage", "not a profile"),
        (b"com,a)/ 2014 {}\n", "not a profile"),
        (b"!meta {}\ncom,a)/ 1\n", "begins as a map does"),
        (b"@about {\n", "not a profile"),
        (b"@about " + b"[" * 100_000 + b"\n", "not a profile"),
        (b'@about {"type": "urikey#H0P1"}\n', "unknown policy"),
        (b'@about {"type": "urikey#H1P0", "rules": "other"}\n', "unknown rules"),
        (b'@about {"type": "urikey#DDom", "suffixes": 7}\n', "unknown suffixes"),
        (b'@about {"type": "urikey#H1P0", "version": 2}\n', "version 2 of the format"),
    ],
)
def test_invalid_profile_file_is_rejected(tmp_path: Path, text: bytes, message: str) -> None:
    """All readers name the file and the cause."""
    file = tmp_path / "p"
    file.write_bytes(text)
    with pytest.raises(InputError, match=message) as raised:
        UriKeyProfile.open(file)
    assert str(file) in str(raised.value)
    with pytest.raises(InputError, match=message):
        check_profile(file)
    with pytest.raises(InputError, match=message):
        merge_profiles([file], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_truncated_compressed_profile_is_rejected(tmp_path: Path) -> None:
    """A missing key might be in the truncated part."""
    whole = gzip.compress(build_test_profiles(tmp_path, many_keys(3000), ("URIR",))["URIR"].read_bytes())
    file = tmp_path / "cut.gz"
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="truncated"):
        merge_profiles([file], tmp_path / "out")
    with pytest.raises(InputError, match="truncated"):
        check_profile(file)
    with pytest.raises(InputError, match="truncated"):
        UriKeyProfile.open(file).lookup_key("zzz")
