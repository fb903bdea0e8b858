"""Synthetic queries: exact shares, determinism, and lists of URLs."""

from pathlib import Path

import pytest

from tests.cli.run import unlost
from unlost import uri
from unlost.errors import InputError, UsageError
from unlost.problems import Problems
from unlost.research import (
    SynthIndexOptions,
    SynthQueryCounts,
    SynthQueryOptions,
    write_synthetic_index,
    write_synthetic_queries,
)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Write a synthetic index of 500 captures."""
    path = tmp_path / "a.cdxj"
    write_synthetic_index(SynthIndexOptions(500, seed=2), path, Problems())
    return path


def keys(index: Path) -> set[str]:
    """Return the complete keys of an index."""
    return {line.split(" ")[0] for line in index.read_text().splitlines()}


def test_shares_are_exact(tmp_path: Path, index: Path) -> None:
    """Of URLs in the index, near misses on its hosts, and unrelated URLs; no other query hits a page."""
    out = tmp_path / "asked.txt"
    made = write_synthetic_queries([index], SynthQueryOptions(count=1000, held=0.3, near=0.5, seed=4), out, Problems())
    assert made == SynthQueryCounts(300, 500, 200)
    queried = [uri.key(line) for line in out.read_text().splitlines()]
    assert len(queried) == 1000
    pages = {key.partition("?")[0] for key in keys(index)}
    assert sum(key in keys(index) for key in queried) == 300
    others = [key for key in queried if key not in keys(index)]
    assert not any(key.partition("?")[0] in pages for key in others)
    hosts = {key.partition(")")[0] for key in keys(index)}
    assert sum(key.partition(")")[0] in hosts for key in others) == 500


def test_equal_options_give_equal_bytes(tmp_path: Path, index: Path) -> None:
    """Another seed gives others; with more hits than pages, pages are repeated."""
    texts = []
    for number, seed in enumerate((1, 1, 2)):
        out = tmp_path / f"{number}.txt"
        write_synthetic_queries([index], SynthQueryOptions(count=900, held=1.0, near=0.0, seed=seed), out, Problems())
        texts.append(out.read_text())
    assert texts[0] == texts[1] != texts[2]
    lines = texts[0].splitlines()
    assert len(lines) == 900
    assert set(map(uri.key, lines)) == keys(index)


def test_near_and_unrelated_urls_come_from_lists(tmp_path: Path, index: Path) -> None:
    """Each once, except for archived ones; too few are rejected."""
    archived = uri.unsurt(min(keys(index)))
    near, unrelated = tmp_path / "hidden.txt", tmp_path / "strangers.txt"
    near.write_text(f"{archived}\n" + "".join(f"http://hidden.example/{n}\n" for n in range(5)) + "http:// bad/\n")
    unrelated.write_text("".join(f"http://stranger.example/{n}\n" for n in range(5)))
    out = tmp_path / "asked.txt"
    plan = SynthQueryOptions(count=10, held=0.0, near=0.5, near_urls=near, unrelated_urls=unrelated)
    write_synthetic_queries([index], plan, out, Problems())
    expected = [f"http://{kind}.example/{n}" for kind in ("hidden", "stranger") for n in range(5)]
    assert sorted(out.read_text().splitlines()) == expected
    with pytest.raises(InputError, match="has 5 addresses that the index does not hold: expected 10"):
        write_synthetic_queries(
            [index], SynthQueryOptions(count=20, held=0.0, near=0.5, near_urls=near), out, Problems()
        )


def test_invalid_input_is_rejected(tmp_path: Path) -> None:
    """Shares above 1, no query, an empty index."""
    with pytest.raises(UsageError, match="at most 1 together"):
        SynthQueryOptions(count=1, held=0.6, near=0.6)
    with pytest.raises(UsageError, match="count"):
        SynthQueryOptions(count=0)
    empty = tmp_path / "empty.txt"
    empty.touch()
    with pytest.raises(InputError, match="nothing in it"):
        write_synthetic_queries([empty], SynthQueryOptions(count=1), tmp_path / "out", Problems())
    assert not (tmp_path / "out").exists()


def test_command_prints_queries_and_counts(index: Path) -> None:
    """Queries on stdout, counts on stderr."""
    done = unlost(
        "synth", "queries", "--index", str(index), "--count", "8", "--held", "0.5", "--near", "0.25", "-o", "-"
    )
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 8
    assert done.stderr == b"unlost: 4 held, 2 beside those, 2 of strangers\n"
