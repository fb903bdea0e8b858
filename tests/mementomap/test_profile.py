"""Profiles against the slow model and the papers' examples; what is counted, looked up, and left behind."""

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.mementomap.profiles import (
    EXAMPLES,
    HOSTS,
    LISTS,
    PAPER,
    PATHS,
    SUFFIXES,
    build,
    many_keys,
    read,
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


def test_the_keys_of_the_tests_are_normal() -> None:
    """They go into an index as they are."""
    for host in HOSTS:
        for path in PATHS:
            assert uri.key(f"{host}){path}") == f"{host}){path}"


@given(LISTS)
@settings(max_examples=EXAMPLES // 6)
def test_profiles_are_what_the_model_counts(keys: list[str]) -> None:
    """Under all 23 policies: sorted by bytes, each key once, nothing lost."""
    with tempfile.TemporaryDirectory() as folder:
        for policy, file in build(Path(folder), keys).items():
            expected = model.profile(keys, policy, SUFFIXES)
            found = read(file)
            assert found == {key: (count, 1) for key, count in expected.items()}, policy
            assert [key.encode() for key in found] == sorted(key.encode() for key in found), policy
            assert sum(frequency for frequency, _ in found.values()) == len(keys), policy
            report = check_profile(file)
            assert report.is_sound, (policy, report.problems)
            assert (report.keys, report.frequency) == (len(found), len(keys))


def test_the_result_does_not_depend_on_how_it_is_made(tmp_path: Path) -> None:
    """Threads, memory and the order of the input do not show in a byte of it."""
    keys = many_keys(20_000)
    expected: dict[str, bytes] = {}
    for number, (threads, memory, order) in enumerate(
        [(1, 1 << 30, keys), (2, 1 << 20, sorted(keys)), (3, 100_000, keys[::-1]), (23, 0, keys[:3000])]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        files = build(folder, order, threads=threads, memory=memory)
        found = {policy: file.read_bytes() for policy, file in files.items()}
        if len(order) == len(keys):
            expected = expected or found
            assert found == expected
        else:
            for policy, file in files.items():
                assert {key: count for key, (count, _) in read(file).items()} == model.profile(order, policy, SUFFIXES)


def test_finer_policies_have_more_keys(tmp_path: Path) -> None:
    """Each policy of a family tells at least as many pages apart as the one before."""
    files = build(tmp_path, many_keys(5000))
    counts = {policy: len(read(file)) for policy, file in files.items()}
    for family in [
        "DDom DSub DPth DQry DIni",
        "HxP0 HxP1 HxP2 HxP3 HxP4 HxP5 HxPx URIR",
        "H1P0 H2P0 H3P0 H4P0 H5P0 HxP0",
    ]:
        ordered = [counts[policy] for policy in family.split()]
        assert ordered == sorted(ordered), family


def test_the_papers_keys(tmp_path: Path) -> None:
    """The keys that the papers print for their example, by their rules."""
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
    assert {policy: [*read(file)] for policy, file in outputs.items()} == {
        policy: [key] for policy, key in expected.items()
    }


def test_the_papers_profile_is_read() -> None:
    """The sample of the first paper: look-ups, and the sum of what lies under a part of a key."""
    profile = UriKeyProfile.open(PAPER)
    assert (profile.header.policy, profile.header.name) == ("H3P1", "UKWA 1996 Collection")
    assert profile.lookup("http://bbc.co.uk/images/x/y?z") == ProfileLookupResult("uk,co,bbc)/images", 152, 3, 1)
    assert profile.lookup("http://bbc.co.uk/") == ProfileLookupResult("uk,co,bbc)/", 0, 0, 0)
    assert profile.lookup_key("uk,") == ProfileLookupResult("uk,", 276, 3, 2)
    assert profile.lookup_key("") == ProfileLookupResult("", 293, 3, 4)
    assert check_profile(PAPER).is_sound


def test_headers_say_what_a_profile_is(tmp_path: Path) -> None:
    """The same rows make the same bytes; a header names version, rules and, where they matter, suffixes."""
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
        found = ProfileHeader.read(tmp_path / "p")
        assert (found.policy, found.name, found.id) == (policy, "N", "http://n.example/")


def test_json_is_one_document(tmp_path: Path) -> None:
    """With the same keys as the lines, also where they have to be escaped."""
    index = write_index(tmp_path / "a.cdxj", ['com,a)/"q"', "com,a)/b", "com,a:81)/b", "com,a:81)/c"])
    for policy in ["HxPx", "DDom"]:
        lines, document = tmp_path / "p.cdxj", tmp_path / "p.json"
        header = ProfileHeader(policy, "N", "http://n.example/")
        build_profiles([index], {policy: lines}, header, Problems())
        build_profiles([index], {policy: document}, header, Problems(), as_json=True)
        found = json.loads(document.read_text())
        assert [*found] == ["@context", "@id", "about", "profile"]
        assert found["about"] == header.about
        assert {key: (value["frequency"], value["spread"]) for key, value in found["profile"].items()} == read(lines)
        with pytest.raises(InputError, match="JSON document is for other programs"):
            UriKeyProfile.open(document)


def test_keys_are_found_wherever_they_are(tmp_path: Path) -> None:
    """In the first line and the last, in a file larger than what is read at once, plain or compressed."""
    keys = [key.partition("?")[0] for key in many_keys(20_000)]
    file = build(tmp_path, keys, ("HxPx",))["HxPx"]
    packed = tmp_path / "p.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    counts = read(file)
    plain = UriKeyProfile.open(file)
    assert file.stat().st_size > 4 * 64 << 10
    for key in [*[*counts][:: len(counts) // 300], [*counts][-1]]:
        assert plain.lookup(key) == ProfileLookupResult(key, *counts[key], 1)
        assert plain.lookup(f"{key}/none") == ProfileLookupResult(f"{key}/none", 0, 0, 0)
    compressed = UriKeyProfile.open(packed)
    for beginning in ["", "com,", "com,h1", "com,h10)/", "uk,co,large)/a", "zz", "!", "com,h299"]:
        expected = [value for key, value in counts.items() if key.startswith(beginning)]
        total = ProfileLookupResult(
            beginning, sum(frequency for frequency, _ in expected), min(1, len(expected)), len(expected)
        )
        assert plain.lookup_key(beginning) == total
        assert compressed.lookup_key(beginning) == total


def test_what_is_no_address_is_not_looked_up() -> None:
    """It is an error, not a page that is not held."""
    with pytest.raises(UriError):
        UriKeyProfile.open(PAPER).lookup("http://a b/")


def test_bad_lines_are_counted_and_the_rest_goes_on(tmp_path: Path) -> None:
    """As everywhere, with the first of each kind; what is no web page is no problem."""
    index = tmp_path / "a.cdxj"
    rows = 'com,a)/ 2014 {"url": "http://a.com/"}\n)/ 2014 {"url": "http:///"}\nrubbish\n'
    index.write_text(rows + 'com,a)/ 2014 {"url": "dns:a.com"}\n')
    problems = Problems()
    assert build_profiles([index], {"H1P0": tmp_path / "p"}, ProfileHeader("H1P0"), problems) == 1
    assert problems.counts == {"bad-row": 1, "not-surt": 1}
    assert read(tmp_path / "p") == {"com)/": (1, 1)}
    with pytest.raises(InputError, match="none: cannot be read: No such file"):
        build_profiles([tmp_path / "none"], {"H1P0": tmp_path / "q"}, ProfileHeader("H1P0"), problems)
    assert not (tmp_path / "q").exists()


def test_a_run_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    """Neither profiles nor parts of them."""
    builder = create_profile_counter()
    progress = _core.Progress()
    builder.add_file(write_index(tmp_path / "a.cdxj", many_keys(1000)), progress)
    progress.cancel()
    with pytest.raises(KeyboardInterrupt):
        write_profiles(
            builder, {name: tmp_path / name for name in uri.POLICIES}, ProfileHeader("H1P0"), progress=progress
        )
    assert [each.name for each in tmp_path.iterdir()] == ["a.cdxj"]


FULL_DISK = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from unlost.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize("policies", ["all", "URIR"])
def test_a_full_disk_leaves_all_files_or_none(tmp_path: Path, policies: str) -> None:
    """When one of 23 files does not fit, the others do not appear either, nor the folder."""
    index = write_index(tmp_path / "a.cdxj", many_keys(8000))
    command = ["profile", "build", str(index), "--policy", policies, "-o", str(tmp_path / "out")]
    done = subprocess.run([sys.executable, "-c", FULL_DISK, *command], capture_output=True, check=False, timeout=60)
    assert done.returncode == 3, done.stderr
    assert b"File too large" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["a.cdxj"]
