"""Provenance in map headers: dates and inputs."""

import gzip
import hashlib
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import unlost
from tests.external import mementomap
from unlost.index import UkvsReader
from unlost.mementomap import (
    Compaction,
    Filter,
    FilterOptions,
    Map,
    MapOptions,
    build_filter,
    build_map,
    compact_map,
    map_file,
    merge_maps,
)
from unlost.problems import Problems

ROW = 'com,a)/{n} {date} {{"url": "http://a.com/{n}", "mime": "text/html", "status": "{status}"}}\n'
DAY = "20240203040506"


def write_index(path: Path, dates: list[str], status: str = "200") -> Path:
    """Write an index with one row per date."""
    path.write_text("".join(ROW.format(n=n, date=date, status=status) for n, date in enumerate(dates)))
    return path


def read_meta(path: Path) -> dict[str, Any]:
    """Return the `!meta` header of a map."""
    return dict(UkvsReader(path, Problems()).header.meta)


def read_rows(path: Path) -> list[str]:
    """Return the rows of a map."""
    return [line for line in path.read_text().splitlines() if not line.startswith("!")]


@pytest.mark.parametrize("weight", [None, 1.0], ids=["whole", "compacted"])
@pytest.mark.parametrize("by_year", [False, True])
def test_map_header_has_dates_and_input_digests(tmp_path: Path, weight: float | None, by_year: bool) -> None:
    """The header has the given date, the range of counted captures, and the digest of the input."""
    index = write_index(tmp_path / "a", ["20130102030405", "20110102030405", "20120102030405"])
    with index.open("a") as file:
        file.write(ROW.format(n=9, date="20200101000000", status="404"))
    options = MapOptions(built_at=DAY, status=frozenset({"200"}), path_weight=weight, by_year=by_year)
    build_map([index], tmp_path / "map", options)
    actual = read_meta(tmp_path / "map")
    assert (actual["version"], actual["updated_at"]) == (2, "2024-02-03T04:05:06Z")
    assert actual["captures"] == {"first": "2011-01-02T03:04:05Z", "last": "2013-01-02T03:04:05Z"}
    digest = hashlib.sha256(index.read_bytes()).hexdigest()
    assert actual["inputs"] == [{"bytes": index.stat().st_size, "sha256": digest}]


def test_map_header_omits_unknown_provenance(tmp_path: Path) -> None:
    """URL lists have no dates; without a given date, a map depends only on its rows."""
    urls = tmp_path / "urls"
    urls.write_text("http://a.com/\nhttp://b.com/\n")
    build_map([urls], tmp_path / "map", MapOptions())
    assert not {"updated_at", "captures", "inputs"} & set(read_meta(tmp_path / "map"))
    assert read_rows(tmp_path / "map") == ["* 2", "com,a)/ 1", "com,b)/ 1"]


def test_map_rows_are_intact_after_header_rewrite(tmp_path: Path) -> None:
    """The header is written before the rows are counted and rewritten afterwards."""
    dates = [f"20{n % 30:02}0102030405" for n in range(20_000)]
    index, urls = write_index(tmp_path / "a", dates), tmp_path / "urls"
    urls.write_text("".join(f"http://a.com/{n}\n" for n in range(20_000)))
    for number, source in enumerate((index, urls)):
        for block in (None, 4096):
            build_map([source], tmp_path / f"{number}", MapOptions(built_at=DAY, block=block))
            assert read_meta(tmp_path / f"{number}")["updated_at"] == "2024-02-03T04:05:06Z"
    assert read_rows(tmp_path / "0") == read_rows(tmp_path / "1")
    assert "captures" not in read_meta(tmp_path / "1")


def test_input_digest_of_large_file_covers_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are digested completely; the order of files does not matter; many files have one digest."""
    monkeypatch.setattr(map_file, "DIGEST_END_BYTES", 8)
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"x" * 16)
    large.write_bytes(b"begins- and this is not read -ends-at")
    small_digest = {"bytes": 16, "sha256": hashlib.sha256(b"x" * 16).hexdigest()}
    large_digest = {"bytes": 37, "sha256_of_ends": hashlib.sha256(b"begins- " + b"-ends-at").hexdigest()}
    actual = map_file.input_digests([small, large, "/dev/null", tmp_path / "none"])
    assert isinstance(actual, list)
    assert sorted(map(json.dumps, actual)) == sorted(map(json.dumps, [small_digest, large_digest]))
    assert map_file.input_digests([large, small]) == actual
    monkeypatch.setattr(map_file, "MAX_INPUT_DIGESTS", 1)
    many = map_file.input_digests([small, large])
    assert isinstance(many, dict)
    assert (many["files"], many["bytes"], len(str(many["sha256_of_digests"]))) == (2, 53, 64)
    assert map_file.input_digests([large, small]) == many


def test_merged_map_has_oldest_date_and_full_capture_range(tmp_path: Path) -> None:
    """Both are omitted if any of the maps lacks them."""
    for name, outputs, date in (("a", DAY, "20130101000000"), ("b", "20200101000000", "20110101000000")):
        build_map([write_index(tmp_path / "index", [date])], tmp_path / name, MapOptions(built_at=outputs, name=name))
    merge_maps([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    actual = read_meta(tmp_path / "c")
    assert (actual["updated_at"], actual["merged"]) == ("2020-01-01T00:00:00Z", ["a", "b"])
    assert actual["captures"] == {"first": "2011-01-01T00:00:00Z", "last": "2013-01-01T00:00:00Z"}
    (tmp_path / "old").write_text('!meta {"version": 1}\ncom,b)/ 1\n')
    merge_maps([tmp_path / "a", tmp_path / "old"], tmp_path / "c")
    assert not {"updated_at", "captures"} & set(read_meta(tmp_path / "c"))


def test_compaction_and_exclusion_preserve_provenance(tmp_path: Path) -> None:
    """A derived map has the date of its source."""
    index = write_index(tmp_path / "index", [f"2013{n:02}01000000" for n in range(1, 13)])
    build_map([index], tmp_path / "a", MapOptions(built_at=DAY))
    whole = read_meta(tmp_path / "a")
    compact_map(tmp_path / "a", tmp_path / "b", Compaction(path_weight=0.0))
    result = unlost("map", "compact", str(tmp_path / "a"), "-o", str(tmp_path / "c"), "--budget", "1")
    assert result.returncode == 0, result.stderr
    (tmp_path / "misses").write_text("http://b.com/x\n")
    for name in ("b", "c"):
        actual = read_meta(tmp_path / name)
        assert {key: actual[key] for key in ("version", "updated_at", "captures", "inputs")} == {
            key: whole[key] for key in ("version", "updated_at", "captures", "inputs")
        }


def test_map_or_filter_built_from_map_is_not_newer(tmp_path: Path) -> None:
    """The older of both dates is used."""
    build_map([write_index(tmp_path / "index", ["20130101000000"])], tmp_path / "a", MapOptions(built_at=DAY))
    build_map([tmp_path / "a", tmp_path / "index"], tmp_path / "b", MapOptions(built_at="20250101000000", kind=None))
    assert read_meta(tmp_path / "b")["updated_at"] == "2024-02-03T04:05:06Z"
    assert read_meta(tmp_path / "b")["captures"]["first"] == "2013-01-01T00:00:00Z"
    build_filter([tmp_path / "a"], tmp_path / "f", FilterOptions(built_at="20250101000000"))
    assert Filter.open(tmp_path / "f").built_at == DAY
    build_filter([tmp_path / "a"], tmp_path / "f", FilterOptions(built_at="20230101000000"))
    assert Filter.open(tmp_path / "f").built_at == "20230101000000"


def test_map_build_is_reproducible_with_source_date_epoch(tmp_path: Path) -> None:
    """Without SOURCE_DATE_EPOCH the header has the current time."""
    index = write_index(tmp_path / "a.cdxj", ["20130101000000"])
    output = tmp_path / "map"
    arguments = ("map", "build", str(index), "-o", str(output))
    outputs = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        moved = shutil.copy(index, tmp_path / folder / "renamed.cdxj")
        result = unlost("map", "build", str(moved), "-o", str(output), env={"SOURCE_DATE_EPOCH": "1392076801"})
        assert result.returncode == 0, result.stderr
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1]
    assert read_meta(output)["updated_at"] == "2014-02-11T00:00:01Z"
    before = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert unlost(*arguments, env={"SOURCE_DATE_EPOCH": ""}).returncode == 0
    assert before <= read_meta(output)["updated_at"] <= datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert unlost(*arguments, "--date", "2024-01", env={"SOURCE_DATE_EPOCH": "1"}).returncode == 0
    assert read_meta(output)["updated_at"] == "2024-01-01T00:00:00Z"


def test_map_rows_are_independent_of_input_digests(tmp_path: Path) -> None:
    """Compressed input has another digest and the same rows."""
    index = write_index(tmp_path / "a", ["20130101000000", "20140101000000"])
    compressed = tmp_path / "a.gz"
    compressed.write_bytes(gzip.compress(index.read_bytes()))
    for source, output in ((index, "1"), (compressed, "2")):
        build_map([source], tmp_path / output, MapOptions(built_at=DAY))
    assert read_meta(tmp_path / "1")["inputs"] != read_meta(tmp_path / "2")["inputs"]
    assert read_rows(tmp_path / "1") == read_rows(tmp_path / "2")


def test_map_versions_are_compatible(tmp_path: Path) -> None:
    """The reference implementation reads our maps, and maps of version 1 are read."""
    names = [f"{letter}{n}" for letter in "abc" for n in range(9)]
    urls = tmp_path / "urls"
    urls.write_text("".join(f"http://{name}.com/p\n" for name in names))
    build_map([urls], tmp_path / "map", MapOptions(built_at=DAY, kind="urls"))
    surts = tmp_path / "surts"
    queries = [f"com,{name})/p" for name in names[1:-1]]
    surts.write_text("".join(f"{surt}\n" for surt in queries))
    actual, _ = mementomap.batch_lookup(tmp_path / "map", surts)
    assert actual == [f"{surt} {surt}" for surt in queries]
    old = tmp_path / "old"
    old.write_text('!meta {"type": "MementoMap", "version": 1, "rules": "wayback"}\ncom,a)/* 3\n')
    assert Map.open(old).lookup("http://a.com/b").held
    compact_map(old, tmp_path / "compacted")
    assert read_meta(tmp_path / "compacted") == {
        "type": "MementoMap",
        "version": 2,
        "rules": "wayback",
        "row_bytes": 11,
    } | {"weights": {"host": 1.0, "path": 1.0}}
