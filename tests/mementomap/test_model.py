"""The Python model: the paper's examples and figures, and the properties required of the core."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.index.test_ukvs import SAMPLE
from tests.mementomap import strategies
from tests.models import mementomap as model
from tests.models.frequency import Frequency
from tests.models.mementomap import Answer, Compaction, Lines
from unlost import uri


def parse_frequency(text: str) -> Frequency:
    """Parse a frequency."""
    return Frequency.parse(text)


def parse_map(text: str) -> Lines:
    """Parse a map written as `key frequency, key frequency`."""
    return model.read(text.split(", "))


@pytest.mark.parametrize(
    ("first", "second", "total", "overlapping"),
    [
        ("3", "4", "7", "7"),
        ("3+", "4-", "7~", "7~"),
        ("3", "/", "3+", "3+"),
        ("3-", "/", "3~", "3~"),
        ("/", "/", "/", "/"),
        ("3/2", "4/1", "7/3", "7/3-"),
        ("3/2+", "4/1", "7/3+", "7/3~"),
        ("3/2", "4", "7/2+", "7/2+"),
        ("0", "4/1", "4/1", "4/1"),
        ("0", "0", "0", "0"),
        ("0/20", "4/1", "4/21", "4/21-"),
        ("0/20", "4", "4/20+", "4/20+"),
    ],
)
def test_frequency_sum_combines_bounds(first: str, second: str, total: str, overlapping: str) -> None:
    """Numbers are added and bounds are joined; pages of two archives may overlap."""
    pairs = [(parse_frequency(first), parse_frequency(second)), (parse_frequency(second), parse_frequency(first))]
    assert {str(a.plus(b)) for a, b in pairs} == {total}
    assert {str(a.plus(b, overlapping=True)) for a, b in pairs} == {overlapping}


@pytest.mark.parametrize(
    ("key", "labels", "segments"),
    [
        ("uk,co,bbc:8080)/a/b?c=1/2", ["uk", "co", "bbc:8080"], ["a", "b"]),
        ("4,3,2,1)/a", ["4,3,2,1"], ["a"]),
        ("4,3,2,1:81)/", ["4,3,2,1:81"], []),
        ("[2001:db8::1])/", ["[2001:db8::1]"], []),
        ("[2001:db8::1]:81)/?q", ["[2001:db8::1]:81"], []),
        ("localhost)/a)b", ["localhost"], ["a)b"]),
    ],
)
def test_model_splits_keys_like_core(key: str, labels: list[str], segments: list[str]) -> None:
    """The examples are those of the core's segmenter."""
    assert model.split(key) == (labels, segments)


@given(strategies.KEYS)
def test_strategies_generate_canonical_keys(key: str) -> None:
    """Every key is canonical, and every variant normalises to it."""
    assert uri.key(key) == key
    assert uri.key(strategies.url(key)) == key
    assert {uri.row_key(spelling, strategies.url(key)) for spelling in strategies.spellings(key)} == {key}


# Look-up.

SAMPLE_MAP = model.by_key(model.read(line for line in SAMPLE.read_text().splitlines() if not line.startswith("!")))


@pytest.mark.parametrize(
    ("key", "held", "matched"),
    [
        ("com,example)/a", True, "com,*"),
        ("com)/", True, "com,*"),
        ("com,example:8080)/", True, "com,*"),
        ("org,arxiv)/", True, "org,arxiv)/"),
        ("org,arxiv)/?q", True, "org,arxiv)/"),
        ("org,arxiv)/abs/1", True, "org,arxiv)/*"),
        ("org,arxiv)/pdf/1", False, "org,arxiv)/pdf/*"),
        ("org,arxiv)/pdf", True, "org,arxiv)/*"),
        ("org,arxiv)/pdf-x", True, "org,arxiv)/*"),
        ("org,arxiv,export)/", False, None),
        ("org,arxiv:81)/", False, None),
        ("uk,co,bbc)/images", True, "uk,co,bbc)/images/*"),
        ("uk,co,bbc)/images/a/b?c", True, "uk,co,bbc)/images/*"),
        ("uk,co,bbc)/", False, None),
        ("org)/", False, None),
        ("4,3,2,1)/", False, None),
    ],
)
def test_model_lookup_in_sample_map_matches_paper(key: str, held: bool, matched: str | None) -> None:
    """The most specific line of the paper's sample map matches."""
    assert model.lookup(SAMPLE_MAP, key) == Answer(held, matched, SAMPLE_MAP[matched] if matched else None)


def test_model_total_matches_only_if_rolled_up() -> None:
    """`*` is a total, not a wildcard."""
    assert model.lookup(SAMPLE_MAP, "org)/", rolled_up=True) == Answer(True, "*", parse_frequency("54321/20000"))
    assert not model.lookup(SAMPLE_MAP, "org,arxiv)/pdf/1", rolled_up=True).held


@pytest.mark.parametrize(
    ("lines", "key", "held"),
    [
        ("com,a)/* 5, com,a)/b/* 0", "com,a)/b", True),
        ("com,a)/* 5, com,a)/b/* 0", "com,a)/b/c", False),
        ("com,a)/* 5, com,a)/b 0", "com,a)/b", False),
        ("com,a)/* 5, com,a)/b 0", "com,a)/b/c", True),
        ("com,* 5, com,a)/* 0", "com,a)/", True),
        ("com,* 5, com,a)/* 0", "com,a)/b", False),
        ("com,* 5, com,a,* 0", "com,a)/", False),
        ("com,* 5, com,a,* 0", "com,a,b)/c", False),
        ("com,a,* 5", "com,a:81)/", False),
        ("com,a:81,* 5", "com,a:81)/b", True),
        ("4,* 5, 4,3,2,* 5", "4,3,2,1)/", False),
        ("4,3,2,1,* 5", "4,3,2,1)/b", True),
        ("com,a)/b 0/20, com,* 5", "com,a)/b", False),
        ("com,a)/b /", "com,a)/b", True),
    ],
)
def test_model_lookup_with_wildcards_and_exclusions(lines: str, key: str, held: bool) -> None:
    """A path wildcard holds its own page but does not exclude it; a host wildcard does both."""
    assert model.lookup(model.by_key(parse_map(lines)), key).held is held


def test_model_combines_years_of_key() -> None:
    """A page is held if it was held in any year; pages may overlap."""
    lines = model.read(["com,a)/ 2013 0", "com,a)/ 2014 3/2", "com,a)/ 2015 4/2"], width=2)
    assert model.lookup(model.by_key(lines), "com,a)/") == Answer(True, "com,a)/", parse_frequency("7/4-"))


# Count.


def test_model_counts_captures_and_pages() -> None:
    """Captures and pages are counted per key without query, and in total."""
    rows = [("com,a)/b", "20140101000000"), ("com,a)/b?q", "20150101000000"), ("com,a)/", "20150101000000")]
    rows.append(("com,a)/b", "20150601000000"))
    assert model.write(model.count(rows)) == ["* 4", "com,a)/ 1", "com,a)/b 3"]
    assert model.write(model.count(rows, urir=True)) == ["* 4/3", "com,a)/ 1/1", "com,a)/b 3/2"]
    yearly = ["* 2014 1/1", "* 2015 3/3", "com,a)/ 2015 1/1", "com,a)/b 2014 1/1", "com,a)/b 2015 2/2"]
    assert model.write(model.count(rows, urir=True, by_year=True)) == yearly


@given(strategies.ROWS, st.booleans(), st.booleans())
def test_model_count_has_every_key(rows: list[strategies.Row], urir: bool, by_year: bool) -> None:
    """Every input key is held, and the lines add up to the total."""
    lines = model.count(strategies.captures(rows), urir=urir, by_year=by_year)
    keyed = model.by_key(lines)
    assert all(model.lookup(keyed, key).matched == key.split("?")[0] for key, _ in strategies.captures(rows))
    assert model.sums(lines).items() <= lines.items()


# Compaction.


def test_model_cutoffs_match_paper() -> None:
    """The cut-offs at weight 1 equal the published figures."""
    plain = Compaction()
    assert [round(plain.host_cutoff(depth), 2) for depth in (1, 2, 3, 4)] == [math.inf, 9.95, 7.45, 6.07]
    assert [round(plain.path_cutoff(depth), 2) for depth in (0, 1, 2, 3)] == [24.55, 9.12, 5.11, 3.39]


@pytest.mark.parametrize(
    ("prefix", "limit", "wildcard"),
    [
        ("com,a,{})/", 9, "com,a,*"),
        ("com,a,b,{})/x", 7, "com,a,b,*"),
        ("com,a,b,c,{}:81)/", 6, "com,a,b,c,*"),
        ("com,a)/{}", 24, "com,a)/*"),
        ("localhost)/{}", 24, "localhost)/*"),
        ("4,3,2,1)/{}", 24, "4,3,2,1)/*"),
        ("com,a)/x/{}", 9, "com,a)/x/*"),
        ("com,a)/x/y/{}", 5, "com,a)/x/y/*"),
        ("com,a)/x/y/z/{}/q", 3, "com,a)/x/y/z/*"),
    ],
)
def test_model_rolls_up_above_cutoff(prefix: str, limit: int, wildcard: str) -> None:
    """Children up to the cut-off remain; one more is rolled up."""
    few = {(prefix.format(n), ""): parse_frequency("2/1") for n in range(limit)}
    many = few | {(prefix.format(limit), ""): parse_frequency("2/1")}
    assert model.compact(few, Compaction()) == few
    assert model.compact(many, Compaction()) == {(wildcard, ""): parse_frequency(f"{2 * limit + 2}/{limit + 1}")}


@pytest.mark.parametrize("key", ["com,s{})/", "4,3,2,{})/", "com,a:{})/", "s{})/"])
def test_model_never_rolls_up_top_level(key: str) -> None:
    """Top-level domains and parts of IP addresses are rolled up only on request."""
    lines = {(key.format(n), ""): parse_frequency("1") for n in range(100)}
    assert model.compact(lines, Compaction(0, 0)) == lines
    if key.startswith("com"):
        assert model.write(model.compact(lines, Compaction(0, 0, rollup=("com,*",)))) == ["com,* 100"]


@pytest.mark.parametrize(
    ("lines", "how", "expected"),
    [
        ("* 9, com,a)/b 4, com,a)/b/c 5", Compaction(0, 1), ["* 9", "com,a)/b 4", "com,a)/b/c 5"]),
        ("* 9, com,a)/b 4, com,a)/b/c 5", Compaction(1, 0.2), ["* 9", "com,a)/b 4", "com,a)/b/c 5"]),
        ("* 9, com,a)/b 4, com,a)/b/c 5", Compaction(1, 0.04), ["* 9", "com,a)/* 9"]),
        ("* 9, com,a)/ 4, com,a)/b 5", Compaction(1, 0), ["* 9", "com,a)/* 9"]),
        ("com,a)/ 4", Compaction(0, 0), ["com,a)/ 4"]),
        ("com,a)/ 4, com,a,b)/c 5, com,a,b)/d 0, com,b)/ 1", Compaction(0, 1), ["com,a,* 9", "com,b)/ 1"]),
        ("com,a)/b/* 0, com,a)/c 0", Compaction(0, 0), ["com,a)/b/* 0", "com,a)/c 0"]),
        ("com,a)/b/* 4, com,a)/b/c 0", Compaction(0, 0), ["com,a)/* 4"]),
        ("com,a)/* 4, com,a)/c 0", Compaction(0, 0), ["com,a)/* 4", "com,a)/c 0"]),
        ("com,a,* 4, com,a)/c 3", Compaction(0, 0), ["com,a)/* 3", "com,a,* 4"]),
        ("com,a)/c 3", Compaction(rollup=("com,a)/c/*",)), ["com,a)/c/* 3"]),
        ("com,a)/c/d 3, com,a,b)/ 2", Compaction(rollup=("com,a)/*", "com,b,*")), ["com,a)/* 3", "com,a,b)/ 2"]),
        ("com,a)/b/c/d 1, com,a)/b/c/e 2", Compaction(1, 0, path_depth=2), ["com,a)/* 3"]),
        ("com,a)/b/c/d 1, com,a)/b/c/e 2", Compaction(1, 0, path_depth=1), ["com,a)/b/c/d 1", "com,a)/b/c/e 2"]),
        ("com,a,b,c)/ 1, com,a,b,d)/ 2", Compaction(0, 1, host_depth=2), ["com,a,b,c)/ 1", "com,a,b,d)/ 2"]),
        ("com,a,b,c)/ 1, com,a,b,d)/ 2", Compaction(0, 1, host_depth=3), ["com,a,* 3"]),
    ],
)
def test_model_compaction_by_example(lines: str, how: Compaction, expected: list[str]) -> None:
    """Only held children count, the shallowest node wins, totals remain, hosts precede paths."""
    assert model.write(model.compact(parse_map(lines), how)) == expected


def test_model_merges_segments_beyond_depth_limit() -> None:
    """Nine host labels count as eight, ten path segments as nine."""
    hosts = {(f"com,b,c,d,e,f,g,{n},x,y)/", ""): parse_frequency("1") for n in range(20)}
    paths = {(f"com,a)/1/2/3/4/5/6/7/8/{n}", ""): parse_frequency("1") for n in range(20)}
    assert model.write(model.compact(hosts, Compaction())) == ["com,b,c,d,e,f,g,* 20"]
    assert model.write(model.compact(paths, Compaction())) == ["com,a)/1/2/3/4/5/6/7/* 20"]
    assert model.write(model.compact(hosts, Compaction(host_depth=7))) == ["com,b,c,d,e,f,* 20"]
    assert model.write(model.compact(paths, Compaction(path_depth=10))) == ["com,a)/1/2/3/4/5/6/7/8/* 20"]


def test_model_rolls_up_each_year() -> None:
    """Children of all years count together; each year has its own sum, except years of exclusions."""
    lines = model.read([f"com,a)/{n} {2010 + n % 2} 2" for n in range(30)] + ["com,a)/x 2012 0"], width=2)
    assert model.write(model.compact(lines, Compaction())) == ["com,a)/* 2010 30", "com,a)/* 2011 30"]


ALL_MAPS = st.one_of(strategies.MAPS, strategies.YEARLY_MAPS)
ANY_COMPACTION = st.one_of(strategies.COMPACTIONS, strategies.CUSTOM_COMPACTIONS)


@given(ALL_MAPS, st.lists(ANY_COMPACTION, min_size=1, max_size=3))
def test_model_compactions_have_no_false_negatives(lines: Lines, chain: list[Compaction]) -> None:
    """Held pages remain held after any chain of compactions, and counts are preserved."""
    held = {place: parse_frequency for place, parse_frequency in lines.items() if parse_frequency.is_held}
    keys = {key for key, _ in held if "*" not in key}
    compacted = held
    for how in chain:
        compacted = model.compact(compacted, how)
    keyed = model.by_key(compacted)
    assert all(model.lookup(keyed, key).held for key in keys)
    assert all(model.holds(keyed, key) for key, _ in held)
    assert model.sums(compacted) == model.sums(held)


@given(strategies.MAPS, ANY_COMPACTION)
def test_model_compaction_preserves_held_results(lines: Lines, how: Compaction) -> None:
    """Pages held only by a wildcard remain held, also with exclusions."""
    before, after = model.by_key(lines), model.by_key(model.compact(lines, how))
    keys = {key.removesuffix("*").rstrip("/,") for key, _ in lines}
    queried = {key if ")/" in key else key + "/" if ")" in key else key + ")/" for key in keys}
    queried |= {key.rstrip("/") + "/below" for key in queried}
    assert {key for key in queried if model.lookup(before, key).held and not model.lookup(after, key).held} == set()


@given(ALL_MAPS, strategies.COMPACTIONS, strategies.COMPACTIONS)
def test_model_compaction_in_steps_equals_compaction_at_once(lines: Lines, one: Compaction, other: Compaction) -> None:
    """Greater weights are applied first, then smaller ones."""
    weak = Compaction(max(one.host_weight, other.host_weight), max(one.path_weight, other.path_weight))
    strong = Compaction(min(one.host_weight, other.host_weight), min(one.path_weight, other.path_weight))
    assert model.compact(model.compact(lines, weak), strong) == model.compact(lines, strong)
    assert model.compact(model.compact(lines, strong), strong) == model.compact(lines, strong)


# Merge.


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("com,a)/ 3/2", "com,a)/ 4/1", ["* 7/3-", "com,a)/ 7/3-"]),
        ("* 9, com,a)/ 3", "com,a)/ 4", ["* 13", "com,a)/ 7"]),
        ("com,a)/b/* 0", "com,a)/b/c 3", ["* 3", "com,a)/b/* 0", "com,a)/b/c 3"]),
        ("com,a)/b/* 0", "com,a)/* 3", ["* 3", "com,a)/* 3"]),
        ("com,a)/b 0", "com,a)/b/* 3", ["* 3", "com,a)/b/* 3"]),
        ("com,a)/b 0", "com,a)/b/* 0, com,* 3", ["* 3", "com,* 3", "com,a)/b/* 0"]),
        ("com,a)/b/* 0", "com,a)/* 0, com,* 3", ["* 3", "com,* 3", "com,a)/* 0", "com,a)/b/* 0"]),
        ("com,a,* 0", "com,* 3", ["* 3", "com,* 3"]),
        ("com,a,* 0", "com,a)/* 3", ["* 3", "com,a)/* 3", "com,a,* 0"]),
        ("com,a)/b 0/20", "com,a)/b 3/2", ["* 3/22-", "com,a)/b 3/22-"]),
        ("com,a)/b 0", "com,a)/b 0", ["* 0", "com,a)/b 0"]),
    ],
)
def test_model_merge_by_example(one: str, other: str, expected: list[str]) -> None:
    """Holdings override exclusions, and counts and totals are added in any order."""
    assert model.write(model.merge([parse_map(one), parse_map(other)])) == expected
    assert model.write(model.merge([parse_map(other), parse_map(one)])) == expected


@given(st.lists(strategies.MAPS, min_size=1, max_size=3), strategies.COMPACTIONS)
@example([parse_map("com,a)/b 0"), parse_map("com,a)/b/* 3"), parse_map("com,a,* 0")], Compaction(0, 0))
def test_model_merges_have_no_false_negatives(maps: list[Lines], how: Compaction) -> None:
    """Pages held by any map are held by the merged and compacted map."""
    merged = model.merge(maps)
    pages = {key for lines in maps for key, _ in lines if "*" not in key}
    for lines in (merged, model.compact(merged, how), model.merge([merged, *maps])):
        keyed = model.by_key(lines)
        for one in map(model.by_key, maps):
            assert {key for key in pages if model.lookup(one, key).held and not model.lookup(keyed, key).held} == set()


# Profiles and depth tables.


def test_model_profile_counts_captures_and_profiles() -> None:
    """A profile counts captures per key; a merged profile also counts profiles per key."""
    rows = [("uk,co,bbc,news)/a/b?c", "2014"), ("uk,co,bbc)/a", "2014"), ("uk,co,bbc)/a", "2015")]
    one, other = model.profile(rows, "H3P1"), model.profile(rows[:1], "H3P1")
    assert one == {"uk,co,bbc)/": (1, 1), "uk,co,bbc)/a": (2, 1)}
    assert model.merge_profiles([one, other]) == {"uk,co,bbc)/": (2, 2), "uk,co,bbc)/a": (2, 1)}


@given(st.lists(strategies.KEYS, max_size=30), st.sampled_from(["H1P0", "H2P1", "H3P3", "HxP0", "HxPx"]))
def test_model_profile_preserves_captures(keys: list[str], policy: str) -> None:
    """All captures are counted, however the index is split."""
    rows = [(key, "2014") for key in keys]
    whole = model.profile(rows, policy)
    parts = model.merge_profiles([model.profile(rows[::2], policy), model.profile(rows[1::2], policy)])
    assert sum(tally.frequency for tally in whole.values()) == len(rows)
    assert {key: tally.frequency for key, tally in parts.items()} == {k: tally.frequency for k, tally in whole.items()}


@pytest.mark.parametrize(
    ("count", "keys", "redq"),
    [
        (2_068_333, 1_138_916_690, 0.99818),
        (2_158_880, 630_309_184, 0.55153),
        (1_329_137, 201_308_887, 0.17559),
        (245_881, 39_396_636, 0.03438),
        (145_687_459, 1_134_466_338, 0.86817),
        (290_761_965, 1_021_443_935, 0.64156),
        (392_635_328, 795_954_162, 0.35412),
    ],
)
def test_model_reductions_match_paper(count: int, keys: int, redq: float) -> None:
    """Table 8 of the second paper, H2 to H5 and P1 to P3."""
    assert model.redq(keys, count, 1_138_923_169) == pytest.approx(redq, abs=5.1e-6)


@pytest.mark.parametrize(("children", "parents", "mean"), [(2_158_880, 253_091, 8.53), (145_687_459, 5_828_059, 25.00)])
def test_mean_children_match_paper(children: int, parents: int, mean: float) -> None:
    """Table 8 of the second paper contains both numbers for H3 and P1."""
    assert round(children / parents, 2) == mean


def test_model_depth_table_by_example() -> None:
    """Prefixes, keys below them, and children per parent, by the children's depth."""
    keys = ["com,a)/", "com,a)/x", "com,a)/x/1", "com,a)/x/2?q", "com,a)/x/2", "com,b,c)/", "4,3,2,1)/x"]
    table = model.depth_table(keys)
    assert list(table) == ["H1", "H2", "H3", "P0", "P1", "P2"]
    assert table["H1"] == model.Depth(2, 6, 4 / 6, 1, 2.0)
    assert table["H2"] == model.Depth(2, 5, 3 / 6, 1, 2.0)
    assert table["H3"] == model.Depth(1, 1, 0.0, 1, 1.0)
    assert table["P0"] == model.Depth(3, 6, 3 / 6, 1, 3.0)
    assert table["P1"] == model.Depth(2, 4, 2 / 6, 2, 1.0)
    assert table["P2"] == model.Depth(2, 2, 0.0, 1, 2.0)
