"""Indexes with unusual keys, and profiles of them."""

import json
import random
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st

from tests.mementomap.strategies import url
from unlost import uri
from unlost.mementomap import ProfileHeader, build_profiles
from unlost.problems import Problems

SUFFIXES = {"com", "uk", "co.uk", "io", "github.io"}
RULES = "\n".join(["// ===BEGIN ICANN DOMAINS===", *sorted(SUFFIXES), "// ===END ICANN DOMAINS===", ""])
PSL = uri.SuffixList(RULES.encode())
PAPER_PROFILE = Path(__file__).parents[2] / "docs" / "examples" / "ukwa.cdxj"

# Few of each, so that they collide: around `/` in byte order, and ports and IP addresses in addition to names.
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
EXAMPLES = settings().max_examples  # each example writes many files, so tests use a fraction of this
LISTS = st.lists(KEYS, min_size=1, max_size=60)


def write_index(path: Path, keys: list[str]) -> Path:
    """Write an index with these keys."""
    path.write_text("".join(f'{key} 20140210000001 {{"url": {json.dumps(url(key))}}}\n' for key in keys))
    return path


def build_test_profiles(
    folder: Path,
    keys: list[str],
    policies: tuple[str, ...] = uri.POLICIES,
    *,
    threads: int | None = None,
    memory: int | None = None,
) -> dict[str, Path]:
    """Build profiles of captures with these keys and return their paths."""
    index = write_index(folder / "index.cdxj", keys)
    outputs = {policy: folder / f"{policy}.cdxj" for policy in policies}
    problems = Problems()
    count = build_profiles(
        [index], outputs, ProfileHeader("HxPx"), problems, suffixes=PSL, threads=threads, memory=memory
    )
    assert (count, problems.total) == (len(keys), 0)
    return outputs


def read_profile(path: Path) -> dict[str, tuple[int, int]]:
    """Return keys with frequency and spread, in file order."""
    rows = [line.split(" ", 1) for line in path.read_text().splitlines() if not line.startswith("@")]
    values = {key: json.loads(text) for key, text in rows}
    assert len(values) == len(rows), "each key once"
    return {key: (value["frequency"], value["spread"]) for key, value in values.items()}


def many_keys(count: int) -> list[str]:
    """Return the keys of many captures in reproducible random order, with one large host."""
    rng = random.Random(4)  # noqa: S311  not used for cryptography
    hosts = [f"com,h{rng.randrange(300)}{rng.choice(['', ',a', ',b,c', ':81', '-x'])}" for _ in range(200)]
    hosts += ["uk,co,large"] * 60
    paths = ["", "a", "a-b", "a.html", "a/b", "a/b/c", "x/y/z"]
    return [
        f"{rng.choice(hosts)})/{rng.choice(paths)}".removesuffix("/")
        + (f"/{rng.randrange(400)}" if rng.random() < 0.8 else "/p")
        + rng.choice(["", "", "?q", "?q&r"])
        for _ in range(count)
    ]
