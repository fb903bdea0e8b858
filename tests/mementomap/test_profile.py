"""Profiles: agreement with the Python model and the papers, look-ups, cleanup after failures."""

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.mementomap.profile_files import (
    EXAMPLES,
    HOSTS,
    LISTS,
    PAPER_PROFILE,
    PATHS,
    SUFFIXES,
    build_test_profiles,
    many_keys,
    read_profile,
    write_index,
)
from tests.models import profile as model
from unlost import _core, uri
from unlost.errors import InputError, UriError
from unlost.mementomap import (
    ProfileHeader,
    ProfileLookupResult,
    UriKeyProfile,
    build_profiles,
    check_profile,
    create_profile_counter,
    write_profiles,
)
from unlost.problems import Problems


def test_profile_sample_keys_are_canonical() -> None:
    """The keys of these tests are written to indexes unchanged."""
    for host in HOSTS:
        for path in PATHS:
            assert uri.key(f"{host}){path}") == f"{host}){path}"


@given(LISTS)
@settings(max_examples=EXAMPLES // 6)
def test_profile_agrees_with_model(keys: list[str]) -> None:
    """For all 23 policies: sorted by bytes, unique keys, all captures counted."""
    with tempfile.TemporaryDirectory() as folder:
        for policy, file in build_test_profiles(Path(folder), keys).items():
            expected = model.profile(keys, policy, SUFFIXES)
            counts = read_profile(file)
            assert counts == {key: (count, 1) for key, count in expected.items()}, policy
            assert [key.encode() for key in counts] == sorted(key.encode() for key in counts), policy
            assert sum(frequency for frequency, _ in counts.values()) == len(keys), policy
            report = check_profile(file)
            assert report.is_sound, (policy, report.problems)
            assert (report.keys, report.frequency) == (len(counts), len(keys))


def test_profile_bytes_are_independent_of_processing(tmp_path: Path) -> None:
    """Threads, memory and input order do not affect the bytes."""
    keys = many_keys(20_000)
    expected: dict[str, bytes] = {}
    for number, (threads, memory, order) in enumerate(
        [(1, 1 << 30, keys), (2, 1 << 20, sorted(keys)), (3, 100_000, keys[::-1]), (23, 0, keys[:3000])]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        files = build_test_profiles(folder, order, threads=threads, memory=memory)
        contents = {policy: file.read_bytes() for policy, file in files.items()}
        if len(order) == len(keys):
            expected = expected or contents
            assert contents == expected
        else:
            for policy, file in files.items():
                assert {key: count for key, (count, _) in read_profile(file).items()} == model.profile(
                    order, policy, SUFFIXES
                )


def test_finer_profile_policy_has_at_least_as_many_keys(tmp_path: Path) -> None:
    """Policies of a family are ordered by granularity."""
    files = build_test_profiles(tmp_path, many_keys(5000))
    counts = {policy: len(read_profile(file)) for policy, file in files.items()}
    for family in [
        "DDom DSub DPth DQry DIni",
        "HxP0 HxP1 HxP2 HxP3 HxP4 HxP5 HxPx URIR",
        "H1P0 H2P0 H3P0 H4P0 H5P0 HxP0",
    ]:
        ordered = [counts[policy] for policy in family.split()]
        assert ordered == sorted(ordered), family


def test_profile_keys_match_papers(tmp_path: Path) -> None:
    """The keys of the papers' example URL under the papers' rules."""
    index = tmp_path / "index.txt"
    index.write_text("https://www.news.BBC.co.uk/images/Logo.png?width=200&height=80&rotate=90#top\n")
    expected = {
        "H1P0": "uk)/",
        "H3P0": "uk,co,bbc)/",
        "HxP1": "uk,co,bbc,news)/images",
        "DDom": "uk,co,bbc)/",
        "DPth": "uk,co,bbc)/1/2",
        "DIni": "uk,co,bbc)/1/2/3/i",
        "URIR": "uk,co,bbc,news)/images/Logo.png?height=80&rotate=90&width=200",
    }
    outputs = {policy: tmp_path / policy for policy in expected}
    build_profiles([index], outputs, ProfileHeader("HxPx", rules="papers"), Problems())
    assert {policy: [*read_profile(file)] for policy, file in outputs.items()} == {
        policy: [key] for policy, key in expected.items()
    }


def test_profile_of_paper_is_read() -> None:
    """Look-ups and prefix sums in the first paper's sample."""
    profile = UriKeyProfile.open(PAPER_PROFILE)
    assert (profile.header.policy, profile.header.name) == ("H3P1", "UKWA 1996 Collection")
    assert profile.lookup("http://bbc.co.uk/images/x/y?z") == ProfileLookupResult("uk,co,bbc)/images", 152, 3, 1)
    assert profile.lookup("http://bbc.co.uk/") == ProfileLookupResult("uk,co,bbc)/", 0, 0, 0)
    assert profile.lookup_key("uk,") == ProfileLookupResult("uk,", 276, 3, 2)
    assert profile.lookup_key("") == ProfileLookupResult("", 293, 3, 4)
    assert check_profile(PAPER_PROFILE).is_sound


def test_profile_header_describes_profile(tmp_path: Path) -> None:
    """The header has policy, version, rules and, where relevant, suffixes."""
    index = write_index(tmp_path / "a.cdxj", ["com,a)/"])
    for policy, more in [("HxPx", {}), ("DSub", {"suffixes": "icann"})]:
        header = ProfileHeader(policy, "N", "http://n.example/", "wayback", "icann")
        build_profiles([index], {policy: tmp_path / "p"}, header, Problems())
        context, identity, about, row = (tmp_path / "p").read_text().splitlines()
        assert context == "@context https://oduwsdl.github.io/contexts/archiveprofile.jsonld"
        assert identity == "@id http://n.example/"
        assert json.loads(about.removeprefix("@about ")) == {
            "name": "N", "type": f"urikey#{policy}", "rules": "wayback", **more, "version": 1,
        }  # fmt: skip
        assert row.endswith(' {"frequency": 1, "spread": 1}')
        header_read = ProfileHeader.read(tmp_path / "p")
        assert (header_read.policy, header_read.name, header_read.id) == (policy, "N", "http://n.example/")


def test_profile_as_json_is_one_document(tmp_path: Path) -> None:
    """The JSON document has the same keys as the lines, correctly escaped."""
    index = write_index(tmp_path / "a.cdxj", ['com,a)/"q"', "com,a)/b", "com,a:81)/b", "com,a:81)/c"])
    for policy in ["HxPx", "DDom"]:
        lines, document = tmp_path / "p.cdxj", tmp_path / "p.json"
        header = ProfileHeader(policy, "N", "http://n.example/")
        build_profiles([index], {policy: lines}, header, Problems())
        build_profiles([index], {policy: document}, header, Problems(), as_json=True)
        content = json.loads(document.read_text())
        assert [*content] == ["@context", "@id", "about", "profile"]
        assert content["about"] == header.about
        assert {
            key: (value["frequency"], value["spread"]) for key, value in content["profile"].items()
        } == read_profile(lines)
        with pytest.raises(InputError, match="JSON document is for other programs"):
            UriKeyProfile.open(document)


def test_profile_lookup_finds_keys_at_any_position(tmp_path: Path) -> None:
    """First and last lines of large files are found, plain and compressed."""
    keys = [key.partition("?")[0] for key in many_keys(20_000)]
    file = build_test_profiles(tmp_path, keys, ("HxPx",))["HxPx"]
    compressed_file = tmp_path / "p.gz"
    compressed_file.write_bytes(gzip.compress(file.read_bytes()))
    counts = read_profile(file)
    plain = UriKeyProfile.open(file)
    assert file.stat().st_size > 4 * 64 << 10
    for key in [*[*counts][:: len(counts) // 300], [*counts][-1]]:
        assert plain.lookup(key) == ProfileLookupResult(key, *counts[key], 1)
        assert plain.lookup(f"{key}/none") == ProfileLookupResult(f"{key}/none", 0, 0, 0)
    compressed = UriKeyProfile.open(compressed_file)
    for prefix in ["", "com,", "com,h1", "com,h10)/", "uk,co,large)/a", "zz", "!", "com,h299"]:
        expected = [value for key, value in counts.items() if key.startswith(prefix)]
        total = ProfileLookupResult(
            prefix, sum(frequency for frequency, _ in expected), min(1, len(expected)), len(expected)
        )
        assert plain.lookup_key(prefix) == total
        assert compressed.lookup_key(prefix) == total


def test_profile_lookup_of_invalid_url_raises_error() -> None:
    """An invalid URL is an error, not a missing page."""
    with pytest.raises(UriError):
        UriKeyProfile.open(PAPER_PROFILE).lookup("http://a b/")


def test_profile_build_counts_invalid_lines(tmp_path: Path) -> None:
    """Invalid lines are counted by kind; `dns:` rows are not problems."""
    index = tmp_path / "a.cdxj"
    rows = 'com,a)/ 2014 {"url": "http://a.com/"}\n)/ 2014 {"url": "http:///"}\ngarbage\n'
    index.write_text(rows + 'com,a)/ 2014 {"url": "dns:a.com"}\n')
    problems = Problems()
    assert build_profiles([index], {"H1P0": tmp_path / "p"}, ProfileHeader("H1P0"), problems) == 1
    assert problems.counts == {"bad-row": 1, "not-surt": 1}
    assert read_profile(tmp_path / "p") == {"com)/": (1, 1)}
    with pytest.raises(InputError, match="none: cannot be read: No such file"):
        build_profiles([tmp_path / "none"], {"H1P0": tmp_path / "q"}, ProfileHeader("H1P0"), problems)
    assert not (tmp_path / "q").exists()


def test_cancelled_profile_build_leaves_no_files(tmp_path: Path) -> None:
    """No profile and no temporary file remains."""
    builder = create_profile_counter()
    progress = _core.Progress()
    builder.add_file(write_index(tmp_path / "a.cdxj", many_keys(1000)), progress)
    progress.cancel()
    with pytest.raises(KeyboardInterrupt):
        write_profiles(
            builder, {name: tmp_path / name for name in uri.POLICIES}, ProfileHeader("H1P0"), progress=progress
        )
    assert [each.name for each in tmp_path.iterdir()] == ["a.cdxj"]


FULL_DISK_SCRIPT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from unlost.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize("policies", ["all", "URIR"])
def test_profile_build_on_full_disk_leaves_no_files(tmp_path: Path, policies: str) -> None:
    """If one of 23 files does not fit, none is written."""
    index = write_index(tmp_path / "a.cdxj", many_keys(8000))
    command = ["profile", "build", str(index), "--policy", policies, "-o", str(tmp_path / "out")]
    result = subprocess.run(
        [sys.executable, "-c", FULL_DISK_SCRIPT, *command], capture_output=True, check=False, timeout=60
    )
    assert result.returncode == 3, result.stderr
    assert b"File too large" in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["a.cdxj"]
