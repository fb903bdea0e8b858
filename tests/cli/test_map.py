"""`unlost map`, except look-ups."""

import gzip
import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.maps import PAGES, build, rows
from tests.cli.run import UNLOST, unlost
from tests.real_data import DATA
from unlost.mementomap import build_map, compact_map, merge_maps


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--status", "404"], ["* 1", "org,example)/gone 1"]),
        (["--mime", "image/png", "--mime", "text/plain"], ["* 2", "com,example)/a/b 1", "com,example)/robots.txt 1"]),
        (["--urir", "--host-weight", "0", "--path-weight", "0"], ["* 10/9", "com,example,* 9/8", "org,example)/* 1/1"]),
        (
            ["--by", "year", "--exclude", "robots,sitemaps", "--path-weight", "0"],
            ["* 2010 4", "* 2011 4", "* 2012 1", "com,example)/* 2010 4", "com,example)/* 2011 2",
             "com,example)/* 2012 1", "com,example,blog)/* 2011 1", "org,example)/* 2011 1"],
        ),
    ],
)  # fmt: skip
def test_build_options_select_rows_keys_and_counts(tmp_path: Path, arguments: list[str], expected: list[str]) -> None:
    """Options of `map build`."""
    assert rows(build(tmp_path, *arguments)) == expected


def test_header_has_options_dates_and_inputs(tmp_path: Path) -> None:
    """Not paths or the number of threads."""
    options = ("--name", "Archive", "--id", "http://a.org/", "--status", "200", "--path-weight", "2")
    made = build(tmp_path, *options, "--date", "2024-02-03T04:05:06Z")
    digest = hashlib.sha256(PAGES.read_bytes()).hexdigest()
    assert [line for line in made.read_text().splitlines() if line.startswith("!")] == [
        '!context ["https://git.io/mementomap"]',
        '!fields {"keys": ["surt"], "values": ["frequency"]}',
        '!id {"uri": "http://a.org/"}',
        (
            '!meta {"type": "MementoMap", "version": 2, "rules": "wayback", "name": "Archive", "status": ["200"], '
            '"weights": {"host": null, "path": 2.0}, "updated_at": "2024-02-03T04:05:06Z", '
            '"captures": {"first": "2010-01-01T00:00:00Z", "last": "2012-06-01T00:00:00Z"}, '
            f'"inputs": [{{"bytes": {PAGES.stat().st_size}, "sha256": "{digest}"}}], '
            '"row_bytes":                  131}'
        ),
    ]


def test_all_input_formats_build_the_same_map(tmp_path: Path) -> None:
    """CDX, ZipNum, URL list, table, log, gzip, map."""
    web = [line.split(" ", 2) for line in PAGES.read_text().splitlines() if '"dns:' not in line]
    urls = [json.loads(fields)["url"] for _, _, fields in web]
    expected = rows(build(tmp_path))
    cdx, idx = tmp_path / "a.cdx", tmp_path / "a.idx"
    for output in (cdx, idx):
        assert unlost("index", "convert", str(PAGES), "-o", str(output)).returncode == 0
    packed = tmp_path / "a.gz"
    packed.write_bytes(b"".join(gzip.compress(line) for line in PAGES.read_bytes().splitlines(keepends=True)))
    urllist, table, log = tmp_path / "urls.txt", tmp_path / "urls.tsv", tmp_path / "access.log"
    urllist.write_text("# a list\n" + "\n".join(reversed(urls)))
    table.write_text("".join(f"1\tx\t{url}\n" for url in urls))
    hit = '192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET {} HTTP/1.0" 200 5\n'
    log.write_text("".join(hit.format(url) for url in urls))
    older = build(tmp_path, name="older.ukvs")
    for inputs in ([cdx], [idx], [packed], [urllist], [table, "--column", "3"], [log], [older]):
        output = tmp_path / "b.ukvs"
        done = unlost("map", "build", *map(str, inputs), "-o", str(output))
        assert (done.returncode, rows(output)) == (0, expected), (inputs, done.stderr)
    halves = tmp_path / "1.cdxj", tmp_path / "2.cdxj"
    lines = PAGES.read_bytes().splitlines(keepends=True)
    halves[0].write_bytes(b"".join(lines[1::2]))
    halves[1].write_bytes(b"".join(reversed(lines[::2])))
    assert unlost("map", "build", *map(str, halves), "-o", str(tmp_path / "c.ukvs")).returncode == 0
    assert rows(tmp_path / "c.ukvs") == expected


@pytest.mark.real_data
def test_warc_and_its_index_build_the_same_map(tmp_path: Path) -> None:
    """From its captures."""
    warc = DATA / "warc" / "iana-2020.warc.gz"
    index = tmp_path / "a.cdxj"
    assert unlost("index", "build", str(warc), "-o", str(index)).returncode == 0
    maps = [tmp_path / "1.ukvs", tmp_path / "2.ukvs"]
    for source, output in zip((warc, index), maps, strict=True):
        assert unlost("map", "build", str(source), "-o", str(output)).returncode == 0
    assert rows(maps[0]) == rows(maps[1]) != []


def test_compact_reports_roll_ups(tmp_path: Path) -> None:
    """By depth, as a curve, as JSON; and fitted parameters."""
    source, output, trace = build(tmp_path), tmp_path / "b.ukvs", tmp_path / "trace.csv"
    arguments = ["map", "compact", str(source), "-o", str(output), "--path-weight", "0"]
    done = unlost(*arguments, "--json", "--trace", str(trace))
    result = json.loads(done.stdout)
    assert (result["lines_in"], result["lines_out"], result["rollups"]) == (7, 3, {"P0": 3})
    assert trace.read_text().splitlines()[0] == "lines_in,lines_out"
    assert trace.read_text().splitlines()[-1] == "7,3"
    done = unlost(*arguments, "--host-weight", "0")
    assert done.stderr == b"unlost: 7 lines became 2; rolled up by depth: H2 1, P0 1\n"
    assert rows(output) == ["* 10", "com,example,* 9", "org,example)/* 1"]
    done = unlost("map", "compact", str(source), "-o", str(output), "--fit", str(PAGES))
    assert b"too few depths" in done.stderr
    assert done.returncode == 3


def test_merge_diff_and_check(tmp_path: Path) -> None:
    """On two maps."""
    a, b, c = tmp_path / "a.ukvs", tmp_path / "b.ukvs", tmp_path / "c.ukvs"
    a.write_text("com,a)/* 5/2\ncom,a)/b 0\ncom,c)/ 1\n")
    b.write_text("com,a)/b/* 7\ncom,a)/x/y 0\ncom,c)/ 2/1\n")
    done = unlost("map", "merge", str(a), str(b), "-o", str(c), "--json")
    assert json.loads(done.stdout) == {"lines": 3, "exclusions_dropped": 2}
    assert rows(c) == ["* 15/3~", "com,a)/* 5/2", "com,a)/b/* 7", "com,c)/ 3/1+"]
    done = unlost("map", "diff", str(a), str(c))
    assert done.stdout.decode().splitlines() == [
        "+\t*\t15/3~", "-\tcom,a)/b\t0", "+\tcom,a)/b/*\t7", "~\tcom,c)/\t1\t3/1+"
    ]  # fmt: skip
    assert done.returncode == 1
    assert unlost("map", "diff", str(a), str(a)).returncode == 0
    first = json.loads(unlost("map", "diff", "--json", str(a), str(b)).stdout.splitlines()[0])
    assert first == {"key": "com,a)/*", "before": "5/2", "after": None}
    assert unlost("map", "check", str(c)).returncode == 0
    result = json.loads(unlost("map", "check", "--json", str(c)).stdout)
    assert (result["lines"], result["wildcards"], result["sum"], result["total"]) == (3, 2, "15/3", "15/3~")


def test_exclusions_are_kept_only_from_a_single_input(tmp_path: Path) -> None:
    """Another input may hold the page. A map that is rolled up completely stays so."""
    a, b, c = tmp_path / "a.ukvs", tmp_path / "b.ukvs", tmp_path / "c.ukvs"
    a.write_text("com,a)/b 0\ncom,b)/ 1\n")
    b.write_text("com,a)/* 5\n")
    assert unlost("map", "build", str(a), "-o", str(c)).returncode == 0
    assert rows(c) == ["* 1", "com,a)/b 0", "com,b)/ 1"]
    assert unlost("map", "build", str(a), str(b), "-o", str(c)).returncode == 0
    assert rows(c) == ["* 6", "com,a)/* 5", "com,b)/ 1"]
    for _ in range(2):
        assert unlost("map", "compact", str(c), "--rollup", "*", "-o", str(c), "--force").returncode == 0
        assert rows(c) == ["* 6"]
    assert unlost("map", "lookup", str(c), "http://a.com/b").stdout == b"http://a.com/b\tyes\t*\t6\n"


def test_standard_output_is_appended_to(tmp_path: Path) -> None:
    """Also if it is a file."""
    output = tmp_path / "out.txt"
    with output.open("wb") as file:
        file.write(b"before\n")
        file.flush()
        subprocess.run([UNLOST, "map", "build", str(PAGES), "-o", "-"], stdout=file, check=True)
    assert output.read_text().startswith("before\n!context")
    assert output.read_text().endswith("org,example)/gone 1\n")


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        (["--by", "year"], [], b"has the key fields surt, datetime, not surt:"),
        ([], ["--by", "year"], b"has the key fields surt, not surt, datetime:"),
        (["--rules", "papers"], [], b"made by other rules (papers) than are asked for (wayback)"),
    ],
)
def test_build_rejects_maps_with_other_keys(
    tmp_path: Path, options: list[str], arguments: list[str], message: bytes
) -> None:
    """A year must not become a frequency, and keys of other rules would never match."""
    older, output = build(tmp_path, *options), tmp_path / "out.ukvs"
    done = unlost("map", "build", str(older), "-o", str(output), *arguments)
    assert (done.returncode, output.exists(), message in done.stderr) == (3, False, True), done.stderr
    again = unlost("map", "build", str(older), "-o", str(output), *options)
    assert (again.returncode, rows(output)) == (0, rows(older)), again.stderr


def test_unusual_white_space_loses_no_rows(tmp_path: Path) -> None:
    """A tab, two spaces and a byte order mark are accepted by look-ups and by builds."""
    text = '\ufeff!fields {"keys": ["surt"], "values": ["frequency"]}\n com,a)/ 5\ncom,b)/  6\ncom,c)/\t7\n'
    file, output = tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    file.write_text(text)
    assert unlost("map", "lookup", str(file), "http://a.com/", "http://b.com/").stdout.count(b"\tyes\t") == 2
    packed = tmp_path / "a.ukvs.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    for command in (["build", file], ["compact", file], ["merge", file], ["merge", packed, file], ["build", packed]):
        done = unlost("map", *map(str, command), "-o", str(output))
        assert done.returncode == 0, done.stderr
        found = [line.split() for line in rows(output) if not line.startswith("*")]
        times = 2 if packed in command and file in command else 1
        assert found == [["com,a)/", str(5 * times)], ["com,b)/", str(6 * times)], ["com,c)/", str(7 * times)]]


def test_progress_counts_bytes_and_lines_of_all_maps(tmp_path: Path) -> None:
    """For the progress bar."""
    made, output = build(tmp_path), tmp_path / "out.ukvs"
    size, lines = made.stat().st_size, len(made.read_text().splitlines())
    seen: list[tuple[int, int]] = []

    def watch(read_bytes: int, read_lines: int) -> None:
        seen.append((read_bytes, read_lines))

    compact_map(made, output, on_progress=watch)
    assert seen[-1] == (size, lines)
    merge_maps([made, made], output, watch)
    assert seen[-1] == (2 * size, 2 * lines)
    build_map([made], output, on_progress=watch)
    assert seen[-1] == (size, lines)
