"""Made-up questions: the shares are exact, the same bytes come again, and what is asked for is what was meant."""

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
    """Write a made-up index of 500 captures."""
    path = tmp_path / "a.cdxj"
    write_synthetic_index(SynthIndexOptions(500, seed=2), path, Problems())
    return path


def keys(index: Path) -> set[str]:
    """Return the whole keys of an index, read plainly."""
    return {line.split(" ")[0] for line in index.read_text().splitlines()}


def test_shares_are_exact(tmp_path: Path, index: Path) -> None:
    """So many are whole addresses of the index; of the others no page is; near-misses share hosts, strangers do not."""
    out = tmp_path / "asked.txt"
    made = write_synthetic_queries([index], SynthQueryOptions(count=1000, held=0.3, near=0.5, seed=4), out, Problems())
    assert made == SynthQueryCounts(300, 500, 200)
    asked = [uri.key(line) for line in out.read_text().splitlines()]
    assert len(asked) == 1000
    pages = {key.partition("?")[0] for key in keys(index)}
    assert sum(key in keys(index) for key in asked) == 300
    others = [key for key in asked if key not in keys(index)]
    assert not any(key.partition("?")[0] in pages for key in others)
    hosts = {key.partition(")")[0] for key in keys(index)}
    assert sum(key.partition(")")[0] in hosts for key in others) == 500


def test_the_same_plan_makes_the_same_bytes(tmp_path: Path, index: Path) -> None:
    """Another seed makes others; more held ones than there are pages come again."""
    texts = []
    for number, seed in enumerate((1, 1, 2)):
        out = tmp_path / f"{number}.txt"
        write_synthetic_queries([index], SynthQueryOptions(count=900, held=1.0, near=0.0, seed=seed), out, Problems())
        texts.append(out.read_text())
    assert texts[0] == texts[1] != texts[2]
    lines = texts[0].splitlines()
    assert len(lines) == 900
    assert set(map(uri.key, lines)) == keys(index)


def test_lists_of_hidden_pages_and_strangers(tmp_path: Path, index: Path) -> None:
    """They are taken from the lists, each once, but for what is held; too few are refused."""
    held = uri.unsurt(min(keys(index)))
    hidden, strangers = tmp_path / "hidden.txt", tmp_path / "strangers.txt"
    hidden.write_text(f"{held}\n" + "".join(f"http://hidden.example/{n}\n" for n in range(5)) + "http:// bad/\n")
    strangers.write_text("".join(f"http://stranger.example/{n}\n" for n in range(5)))
    out = tmp_path / "asked.txt"
    plan = SynthQueryOptions(count=10, held=0.0, near=0.5, near_urls=hidden, unrelated_urls=strangers)
    write_synthetic_queries([index], plan, out, Problems())
    wanted = [f"http://{kind}.example/{n}" for kind in ("hidden", "stranger") for n in range(5)]
    assert sorted(out.read_text().splitlines()) == wanted
    with pytest.raises(InputError, match="has 5 addresses that the index does not hold: expected 10"):
        write_synthetic_queries(
            [index], SynthQueryOptions(count=20, held=0.0, near=0.5, near_urls=hidden), out, Problems()
        )


def test_what_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """Shares beyond one, no question, an empty index."""
    with pytest.raises(UsageError, match="at most 1 together"):
        SynthQueryOptions(count=1, held=0.6, near=0.6)
    with pytest.raises(UsageError, match="count"):
        SynthQueryOptions(count=0)
    empty = tmp_path / "empty.txt"
    empty.touch()
    with pytest.raises(InputError, match="nothing in it"):
        write_synthetic_queries([empty], SynthQueryOptions(count=1), tmp_path / "out", Problems())
    assert not (tmp_path / "out").exists()


def test_the_command(index: Path) -> None:
    """Questions on standard output, what they are on the other."""
    done = unlost(
        "synth", "queries", "--index", str(index), "--count", "8", "--held", "0.5", "--near", "0.25", "-o", "-"
    )
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 8
    assert done.stderr == b"unlost: 4 held, 2 beside those, 2 of strangers\n"
