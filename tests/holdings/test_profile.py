"""Profiles against the slow model, the papers' examples, and everything that can be wrong with a file."""

import gzip
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models import profile as model
from unlost import _core, uri
from unlost.errors import InputError, UriError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.problems import Problems
from unlost.formats.ukvs import UkvsReader
from unlost.holdings.profile import (
    Holding,
    Profile,
    ProfileHeader,
    build_profiles,
    check_profile,
    counter,
    merge_profiles,
    profiles_to_map,
    write_profiles,
)

SUFFIXES = {"com", "uk", "co.uk", "io", "github.io"}
RULES = "\n".join(["// ===BEGIN ICANN DOMAINS===", *sorted(SUFFIXES), "// ===END ICANN DOMAINS===", ""])
PSL = uri.SuffixList(RULES.encode())
PAPER = Path(__file__).parents[2] / "docs" / "examples" / "ukwa.cdxj"

# Few of each, so that they meet; around `/` in the order of bytes, and where ports and addresses differ from names.
HOSTS = [
    "com,a", "com,a:81", "com,a,b", "com,a,b:81", "com,a,b,c,d,e,f", "com,a-b", "com,a0", "com,a%2bb", "com", "com:81",
    "uk,co", "uk,co:81", "uk,co,bbc", "uk,co,bbc,news", "uk,co,bbc,news:8080", "io,github,x", "io,github,x,y",
    "localhost", "localhost:8080", "4,3,2,1", "4,3,2,1:81", "4,3,2,10", "[2001:db8::1]", "[2001:db8::1]:81",
]  # fmt: skip
PATHS = ["/", "/a", "/a-b", "/a.html", "/a/b", "/a/b/c/d/e/f/g", "/a/b-c", "/%2a", "/1", "/~x/y", '/"q"', "/(a)"]
QUERIES = ["", "?q", "?a=1&b=2", "?a&b&c"]
KEYS = st.builds(
    lambda *parts: "".join(parts),
    st.sampled_from(HOSTS).map("{})".format),
    st.sampled_from(PATHS),
    st.sampled_from(QUERIES),
)
EXAMPLES = settings().max_examples  # many files each: a part of what others have
LISTS = st.lists(KEYS, min_size=1, max_size=60)


def write_index(path: Path, keys: list[str]) -> Path:
    """Write rows with these keys."""
    path.write_text("".join(f'{key} 20140210000001 {{"url": "http://x.example/"}}\n' for key in keys))
    return path


def build(
    folder: Path,
    keys: list[str],
    policies: tuple[str, ...] = uri.POLICIES,
    *,
    threads: int | None = None,
    memory: int | None = None,
) -> dict[str, Path]:
    """Return the profiles of captures with these keys."""
    index = write_index(folder / "index.cdxj", keys)
    outputs = {policy: folder / f"{policy}.cdxj" for policy in policies}
    problems = Problems()
    counted = build_profiles(
        [index], outputs, ProfileHeader("HxPx"), problems, suffixes=PSL, threads=threads, memory=memory
    )
    assert (counted, problems.total) == (len(keys), 0)
    return outputs


def read(path: Path) -> dict[str, tuple[int, int]]:
    """Return keys with frequency and spread, in the order of the file."""
    rows = [line.split(" ", 1) for line in path.read_text().splitlines() if not line.startswith("@")]
    found = {key: json.loads(text) for key, text in rows}
    assert len(found) == len(rows), "each key once"
    return {key: (value["frequency"], value["spread"]) for key, value in found.items()}


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


def many_keys(count: int) -> list[str]:
    """Return the keys of many captures, seeded, not in order, with one large host."""
    rng = random.Random(4)  # noqa: S311  a test, not a secret
    hosts = [f"com,h{rng.randrange(300)}{rng.choice(['', ',a', ',b,c', ':81', '-x'])}" for _ in range(200)]
    hosts += ["uk,co,large"] * 60
    paths = ["", "a", "a-b", "a.html", "a/b", "a/b/c", "x/y/z"]
    return [
        f"{rng.choice(hosts)})/{rng.choice(paths)}".removesuffix("/")
        + (f"/{rng.randrange(400)}" if rng.random() < 0.8 else "/p")
        + rng.choice(["", "", "?q", "?q&r"])
        for _ in range(count)
    ]


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
    profile = Profile.open(PAPER)
    assert (profile.header.policy, profile.header.name) == ("H3P1", "UKWA 1996 Collection")
    assert profile.lookup("http://bbc.co.uk/images/x/y?z") == Holding("uk,co,bbc)/images", 152, 3, 1)
    assert profile.lookup("http://bbc.co.uk/") == Holding("uk,co,bbc)/", 0, 0, 0)
    assert profile.lookup_key("uk,") == Holding("uk,", 276, 3, 2)
    assert profile.lookup_key("") == Holding("", 293, 3, 4)
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
            Profile.open(document)


@given(st.lists(LISTS, min_size=1, max_size=4), st.sampled_from(["H3P1", "HxPx", "DDom", "DIni", "URIR"]))
@settings(max_examples=EXAMPLES // 5)
def test_merging_adds(parts: list[list[str]], policy: str) -> None:
    """Frequency and spread of each key, in steps or at once, plain or compressed."""
    with tempfile.TemporaryDirectory() as name:
        files = []
        for number, keys in enumerate(parts):
            folder = Path(name, str(number))
            folder.mkdir()
            files.append(build(folder, keys, (policy,))[policy])
        at_once, step, packed = Path(name, "once"), Path(name, "step"), Path(name, "packed.gz")
        merge_profiles(files, at_once)
        expected = model.merge(read(file) for file in files)
        assert read(at_once) == expected
        assert [*read(at_once)] == sorted(expected)
        packed.write_bytes(gzip.compress(files[0].read_bytes()))
        merge_profiles([packed], step)
        for file in files[1:]:
            merge_profiles([step, file], step)
        assert step.read_bytes() == at_once.read_bytes()
        assert check_profile(step).is_sound


def test_only_profiles_of_one_kind_merge(tmp_path: Path) -> None:
    """Otherwise the message says what to do instead, and nothing is written."""
    files = build(tmp_path, ["com,a)/"], ("H3P1", "HxPx", "DDom"))
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
def test_bad_profiles_do_not_merge(tmp_path: Path, rows: str, message: str) -> None:
    """A line that was left out would be a page that is not found: nothing is written, and the file is named."""
    bad, good, out = tmp_path / "bad", tmp_path / "good", tmp_path / "out"
    bad.write_text(HEAD + rows)
    good.write_text(HEAD + 'com,b)/ {"frequency": 1}\n')
    out.write_text("as it was")
    with pytest.raises(InputError, match=message):
        merge_profiles([good, bad], out)
    assert out.read_text() == "as it was"
    assert len([*tmp_path.iterdir()]) == 3


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        ('com,b)/ {"frequency": 1}\ncom,a)/ {"frequency": 1}\n', {"unsorted": 1}),
        ('com,b)/ {"frequency": 1}\ncom,b)/ {"frequency": 1}\n', {"duplicate-key": 1}),
        ('com,b)/x?q {"frequency": 1}\ncom,b)/y/ {"frequency": 1}\nrubbish {"frequency": 1}', {"bad-key": 3}),
        ("com,b)/\ncom,c)/ 7\n", {"bad-row": 2}),
        ('com,b)/ {"frequency": -1}\n', {"bad-frequency": 1}),
        ('com,b)/ {"frequency": 1, "spread": []}\n', {"bad-spread": 1}),
        ('com,b)/ {"frequency": 1, "ports": {"81": 2}}\n', {"bad-ports": 1}),
        ('com,b)/ {"frequency": 0, "spread": 1}\n', {"nothing-held": 1}),
    ],
)
def test_checking_counts_what_is_wrong(tmp_path: Path, rows: str, kinds: dict[str, int]) -> None:
    """By kind, with the first line of each."""
    file = tmp_path / "p"
    file.write_text(HEAD + rows)
    report = check_profile(file)
    assert (report.problems.counts, report.is_sound) == (kinds, False)
    assert all(str(first).isprintable() for first in report.problems.first.values())


def test_sums_past_18_digits_are_wanting(tmp_path: Path) -> None:
    """The total is said to be unknown, not wrong."""
    file = tmp_path / "p"
    file.write_text(HEAD + "".join(f'com,{host})/ {{"frequency": 999999999999999999}}\n' for host in "ab"))
    report = check_profile(file)
    assert (report.keys, report.frequency, report.is_sound) == (2, None, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not a profile"),
        (b"\x00\xff\x80rubbish", "not a profile"),
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
def test_what_is_no_profile(tmp_path: Path, text: bytes, message: str) -> None:
    """Everything that reads profiles says so, and names the file."""
    file = tmp_path / "p"
    file.write_bytes(text)
    with pytest.raises(InputError, match=message) as raised:
        Profile.open(file)
    assert str(file) in str(raised.value)
    with pytest.raises(InputError, match=message):
        check_profile(file)
    with pytest.raises(InputError, match=message):
        merge_profiles([file], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_part_of_a_compressed_profile_is_none(tmp_path: Path) -> None:
    """Where the file is cut off, a key that is not found may have been behind that."""
    whole = gzip.compress(build(tmp_path, many_keys(3000), ("URIR",))["URIR"].read_bytes())
    file = tmp_path / "cut.gz"
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="truncated"):
        merge_profiles([file], tmp_path / "out")
    with pytest.raises(InputError, match="truncated"):
        check_profile(file)
    with pytest.raises(InputError, match="truncated"):
        Profile.open(file).lookup_key("zzz")


def test_keys_are_found_wherever_they_are(tmp_path: Path) -> None:
    """In the first line and the last, in a file larger than what is read at once, plain or compressed."""
    keys = [key.partition("?")[0] for key in many_keys(20_000)]
    file = build(tmp_path, keys, ("HxPx",))["HxPx"]
    packed = tmp_path / "p.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    counts = read(file)
    plain = Profile.open(file)
    assert file.stat().st_size > 4 * 64 << 10
    for key in [*[*counts][:: len(counts) // 300], [*counts][-1]]:
        assert plain.lookup(key) == Holding(key, *counts[key], 1)
        assert plain.lookup(f"{key}/none") == Holding(f"{key}/none", 0, 0, 0)
    compressed = Profile.open(packed)
    for beginning in ["", "com,", "com,h1", "com,h10)/", "uk,co,large)/a", "zz", "!", "com,h299"]:
        expected = [value for key, value in counts.items() if key.startswith(beginning)]
        total = Holding(beginning, sum(frequency for frequency, _ in expected), min(1, len(expected)), len(expected))
        assert plain.lookup_key(beginning) == total
        assert compressed.lookup_key(beginning) == total


def test_what_is_no_address_is_not_looked_up() -> None:
    """It is an error, not a page that is not held."""
    with pytest.raises(UriError):
        Profile.open(PAPER).lookup("http://a b/")


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
    builder = counter()
    builder.add_map(file, 1, MAX_LINE_BYTES, True, _core.Progress())
    write_profiles(builder, {"HxP0": out}, ProfileHeader("HxP0"))
    assert read(out) == {"com,a)/": (7, 1)}
    file.write_text("com,a)/* 7\n")
    builder = counter()
    builder.add_map(file, 1, MAX_LINE_BYTES, True, _core.Progress())
    with pytest.raises(InputError, match=r"wildcard com,a\)/\*: build it from the index"):
        write_profiles(builder, {"HxP0": out, "HxP1": tmp_path / "two"}, ProfileHeader("HxP0"))
    assert {each.name for each in tmp_path.iterdir()} == {"map.ukvs", "out"}


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
    builder = counter()
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
