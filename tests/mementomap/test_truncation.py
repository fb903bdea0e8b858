"""Truncated maps are rejected by all readers; maps of other tools and of version 1 are not."""

import gzip
import json
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from tests.cli.run import unlost
from unlost.errors import InputError
from unlost.mementomap import (
    Compaction,
    ExclusionOptions,
    FilterOptions,
    Map,
    MapBudget,
    MapOptions,
    build_filter,
    build_map,
    check_map,
    compact_map,
    compact_to_budget,
    diff_maps,
    exclude_map,
    merge_maps,
)
from unlost.problems import Problems

PAGES = Path(__file__).parents[2] / "docs" / "examples" / "pages.cdxj"

READERS: dict[str, Callable[[Path, Path], object]] = {
    "open": lambda source, _: Map.open(source),
    "load": lambda source, _: Map.load(source),
    "build": lambda source, out: build_map([source], out),
    "compact": compact_map,
    "budget": lambda source, out: compact_to_budget(source, out, MapBudget.parse("1KB")),
    "merge": lambda source, out: merge_maps([source], out),
    "exclude": lambda source, out: exclude_map(source, out, ExclusionOptions(today=date(2024, 1, 1))),
    "filter": lambda source, out: build_filter([source], out, FilterOptions(key="hxpx")),
    "diff": lambda source, _: list(diff_maps(source, source, Problems())),
}


@pytest.fixture
def map_path(tmp_path: Path) -> Path:
    """Build a map."""
    build_map([PAGES], tmp_path / "a.ukvs", MapOptions(built_at="20240201000000"))
    return tmp_path / "a.ukvs"


def row_bytes(path: Path) -> tuple[int, int]:
    """Return the declared and the actual size of the rows."""
    header, rows = re.fullmatch(rb"((?:!.*\n)*)((?s:.*))", path.read_bytes()).groups()  # type: ignore[union-attr]
    meta = re.search(rb"!meta (.*)", header)
    assert meta is not None
    return json.loads(meta[1])["row_bytes"], len(rows)


def test_map_writers_declare_row_size(map_path: Path, tmp_path: Path) -> None:
    """With streamed and unstreamed output, and for empty maps."""
    reversed_rows, out = tmp_path / "reversed.cdxj", tmp_path / "out.ukvs"
    reversed_rows.write_bytes(b"".join(reversed(PAGES.read_bytes().splitlines(keepends=True))))
    writers: list[Callable[[], object]] = [
        lambda: build_map([PAGES], out),
        lambda: build_map([reversed_rows], out),
        lambda: build_map([PAGES], out, MapOptions(urir=True)),
        lambda: build_map([PAGES], out, MapOptions(host_weight=0, path_weight=0)),
        lambda: build_map([PAGES], out, MapOptions(status=frozenset({"299"}), allow_empty=True)),
        lambda: compact_map(map_path, out, Compaction(path_weight=0)),
        lambda: merge_maps([map_path, map_path], out),
        lambda: compact_to_budget(map_path, out, MapBudget.parse("1KB")),
        lambda: exclude_map(map_path, out, ExclusionOptions(today=date(2024, 1, 1))),
    ]
    for write in writers:
        write()
        declared, actual = row_bytes(out)
        assert declared == actual
        Map.open(out)
    build_map([PAGES], out)
    again = out.read_bytes()
    build_map([reversed_rows], out)
    assert out.read_bytes() == again


@pytest.mark.parametrize("reader", READERS)
def test_truncated_map_is_rejected(map_path: Path, tmp_path: Path, reader: str) -> None:
    """A map truncated at any byte is rejected, and no output is written."""
    text = map_path.read_bytes()
    cut, out = tmp_path / "cut.ukvs", tmp_path / "out"
    READERS[reader](map_path, out)
    out.unlink(missing_ok=True)
    for size in (*range(0, len(text), 17), *range(len(text) - 60, len(text))):
        cut.write_bytes(text[:size])
        with pytest.raises(InputError, match=re.escape(str(cut))):
            READERS[reader](cut, out)
        assert not out.exists()


def test_map_check_reports_truncation(map_path: Path, tmp_path: Path) -> None:
    """Truncated rows are one problem."""
    text = map_path.read_bytes()
    cut = tmp_path / "cut.ukvs"
    assert not check_map(map_path).problems.counts
    for size in range(text.index(b"\n* ") + 1, len(text)):
        cut.write_bytes(text[:size])
        assert check_map(cut).problems.counts["truncated"] == 1


@pytest.mark.parametrize("reader", [reader for reader in READERS if reader != "open"])
def test_truncated_compressed_map_is_rejected(map_path: Path, tmp_path: Path, reader: str) -> None:
    """Truncation inside and between gzip members is detected."""
    text = map_path.read_bytes()
    cut, out = tmp_path / "cut.ukvs.gz", tmp_path / "out"
    middle = text.index(b"com,example)/a ")
    first, second = gzip.compress(text[:middle]), gzip.compress(text[middle:])
    cut.write_bytes(first + second)
    READERS[reader](cut, out)
    out.unlink(missing_ok=True)
    for data in (first, first + second[:-1], first + second[:-9], gzip.compress(text)[:-1], gzip.compress(text)[:-9]):
        cut.write_bytes(data)
        if reader == "diff":
            problems = Problems()
            list(diff_maps(cut, map_path, problems))
            assert "truncated" in problems.counts
        else:
            with pytest.raises(InputError):
                READERS[reader](cut, out)
        assert check_map(cut).problems.counts["truncated"] == 1
        assert not out.exists()


def test_map_with_appended_rows_is_rejected(map_path: Path) -> None:
    """The header does not cover the new rows."""
    map_path.write_bytes(map_path.read_bytes() + b"org,z)/ 1\n")
    with pytest.raises(InputError, match=r"changed after it was written: .* remove `row_bytes` from the header"):
        Map.open(map_path)


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("com,a)/ 1\ncom,b)/ 1", True),
        ('!meta {"name": "Another tool", "version": "3.1"}\ncom,a)/ 1', True),
        ('!meta {"type": "Other", "version": 7}\ncom,a)/ 1\n', True),
        ('!meta {"type": "MementoMap", "version": 1}\ncom,a)/ 1', True),
        ('!meta {"type": "MementoMap", "version": 1}\n', True),
        ('!meta {"type": "MementoMap", "version": 2}\ncom,a)/ 1\n', True),
        ('!meta {"type": "MementoMap", "version": 2}\ncom,a)/ 1', False),
        ('!meta {"type": "MementoMap", "version": 2, "row_bytes": "10"}\ncom,a)/ 1\n', False),
        ('!fields {"keys": ["surt"], "values": ["frequency"]}\n', False),
        ('!meta {"type": "MementoMap", "version": 3}\ncom,a)/ 1\n', False),
    ],
)
def test_map_without_declared_size_is_read_by_version(tmp_path: Path, text: str, is_read: bool) -> None:
    """Other maps are read; a map of this version must have a line end."""
    file = tmp_path / "a.ukvs"
    file.write_text(text)
    for read in (Map.open, Map.load, lambda path: compact_map(path, tmp_path / "out")):
        if is_read:
            read(file)
        else:
            with pytest.raises(InputError, match=r"a\.ukvs: "):
                read(file)


def test_map_of_later_version_is_rejected(tmp_path: Path) -> None:
    """Every command suggests an update."""
    file = tmp_path / "a.ukvs"
    file.write_text('!meta {"type": "MementoMap", "version": 3}\ncom,a)/ 1\n')
    for command in (["lookup", str(file), "http://a.com/"], ["check", str(file)], ["compact", str(file), "-o", "-"]):
        result = unlost("map", *command)
        assert (result.returncode, result.stdout) == (3, b"")
        assert b"version 3 of the map format, but this unlost reads up to 2: update unlost" in result.stderr


def test_map_commands_reject_truncated_map(map_path: Path, tmp_path: Path) -> None:
    """The exit code is 3, or 1 for `map check`, with a suggestion."""
    map_path.write_bytes(map_path.read_bytes().removesuffix(b"org,example)/gone 1\n"))
    name, out = str(map_path), str(tmp_path / "out")
    for command in (
        ["lookup", name, "http://example.org/gone"],
        ["compact", name, "-o", out],
        ["merge", name, name, "-o", out],
        ["build", name, "-o", out],
    ):
        result = unlost("map", *command)
        assert (result.returncode, result.stdout) == (3, b""), command
        assert b"a.ukvs: truncated: the header declares" in result.stderr
        assert b"copy or build the map again" in result.stderr
    assert unlost("map", "check", name).returncode == 1
    assert not (tmp_path / "out").exists()
