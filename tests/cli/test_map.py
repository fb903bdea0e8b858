"""`unlost map` but for look-ups, which have a file of their own."""

import gzip
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.run import UNLOST, unlost
from tests.real_data import DATA
from unlost.holdings.build import build_map
from unlost.holdings.compaction import compact_map
from unlost.holdings.merging import merge_maps

PAGES = Path(__file__).parents[1] / "holdings" / "files" / "pages.cdxj"


def rows(path: Path) -> list[str]:
    """Return a map's lines without headers."""
    return [line for line in path.read_text().splitlines() if not line.startswith("!")]


def build(tmp_path: Path, *arguments: str, name: str = "a.ukvs") -> Path:
    """Build a map of the sample, which must go well."""
    output = tmp_path / name
    done = unlost("map", "build", str(PAGES), "-o", str(output), *arguments)
    assert done.returncode == 0, done.stderr
    return output


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
def test_building(tmp_path: Path, arguments: list[str], expected: list[str]) -> None:
    """Options choose rows, keys and counts."""
    assert rows(build(tmp_path, *arguments)) == expected


def test_the_header_says_how_it_was_made(tmp_path: Path) -> None:
    """Name, address, filters, rules and weights; nothing of when, where or by how many threads."""
    made = build(tmp_path, "--name", "Archive", "--id", "http://a.org/", "--status", "200", "--path-weight", "2")
    assert [line for line in made.read_text().splitlines() if line.startswith("!")] == [
        '!context ["https://git.io/mementomap"]',
        '!fields {"keys": ["surt"], "values": ["frequency"]}',
        '!id {"uri": "http://a.org/"}',
        (
            '!meta {"type": "MementoMap", "version": 1, "rules": "wayback", "name": "Archive", "status": ["200"], '
            '"weights": {"host": null, "path": 2.0}}'
        ),
    ]


def test_inputs_of_every_kind_make_the_same_map(tmp_path: Path) -> None:
    """CDX, ZipNum, a list of addresses, a table, a log, gzip, a map: one and the same set of pages."""
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
def test_a_warc_is_counted(tmp_path: Path) -> None:
    """By its captures, as its index is."""
    warc = DATA / "warc" / "iana-2020.warc.gz"
    index = tmp_path / "a.cdxj"
    assert unlost("index", "build", str(warc), "-o", str(index)).returncode == 0
    maps = [tmp_path / "1.ukvs", tmp_path / "2.ukvs"]
    for source, output in zip((warc, index), maps, strict=True):
        assert unlost("map", "build", str(source), "-o", str(output)).returncode == 0
    assert rows(maps[0]) == rows(maps[1]) != []


def test_compacting_says_what_it_did(tmp_path: Path) -> None:
    """Roll-ups by depth, the curve, JSON; fitted parameters."""
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


def test_merging_comparing_checking(tmp_path: Path) -> None:
    """Three commands on two maps."""
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


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("com,b)/ 1\ncom,a)/ 1\n", {"unsorted"}),
        ("com,a)/ 1\ncom,a)/ 1\n", {"duplicate-key"}),
        ("com,a)/ x\n", {"bad-frequency"}),
        ("com,a)/A 1\ncom,a)/b/ 1\ncom,a)/c?d 1\ncom,a+b)/ 1\n", {"not-normal"}),
        ("com,*,a)/ 1\ncom,a)/b* 1\n", {"bad-wildcard"}),
        ("* 1\ncom,a)/ 2\n", {"bad-total"}),
        ("!meta {}\n", {"no-rows"}),
        ('!meta {"rules": "mine"}\ncom,a)/ 2\n', {"unknown-rules"}),
    ],
)
def test_checking_finds_faults(tmp_path: Path, text: str, kinds: set[str]) -> None:
    """Each kind, with exit code 1."""
    file = tmp_path / "a.ukvs"
    file.write_text(text)
    done = unlost("map", "check", "--json", str(file))
    assert (set(json.loads(done.stdout)["problems"]), done.returncode) == (kinds, 1)


def test_bad_input_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    """Missing, unsorted, overflowing, unreadable: one line that helps, exit code 3, no file."""
    unsorted, overflow, damaged = tmp_path / "u.cdxj", tmp_path / "o.ukvs", tmp_path / "d.gz"
    unsorted.write_bytes(b"".join(reversed(PAGES.read_bytes().splitlines(keepends=True))))
    overflow.write_text("com,a)/b 999999999999999999\ncom,a)/c 1\n")
    damaged.write_bytes(gzip.compress(b"com,a)/b 9\ncom,a)/c 1\n" * 1000)[:-20])
    output = tmp_path / "out.ukvs"
    for arguments, said in [
        (["build", str(tmp_path / "none")], b"none: cannot be read: No such file"),
        (["build", str(unsorted), "--sorted"], b"u.cdxj: line 2 belongs before the one above it"),
        (["compact", str(overflow), "--path-weight", "0"], b"o.ukvs: a frequency of more than 18 digits"),
        (["compact", str(damaged)], b"d.gz"),
        (["merge", str(overflow), str(tmp_path / "none")], b"none: cannot be read"),
        (["build", str(PAGES), "--exclude", "pdf"], b"pdf: cannot be left out: expected robots or sitemaps"),
        (["compact", str(overflow), "--rollup", "com"], b"expected a wildcard to roll up"),
    ]:
        done = unlost("map", *arguments, "-o", str(output))
        assert said in done.stderr, (arguments, done.stderr)
        assert done.stderr.count(b"\n") == 1
        assert done.returncode in (2, 3)
        assert sorted(file.name for file in tmp_path.iterdir()) == ["d.gz", "o.ukvs", "u.cdxj"]
    done = unlost("map", "build", str(PAGES), "-o", str(tmp_path / "no" / "out.ukvs"))
    assert b"cannot be written: no such folder" in done.stderr


def test_bad_lines_are_counted_and_the_rest_is_kept(tmp_path: Path) -> None:
    """By kind, with the first of each; exit code 3 and the map is there."""
    file, output = tmp_path / "a.cdxj", tmp_path / "a.ukvs"
    file.write_bytes(PAGES.read_bytes() + b"rubbish\n\0\n" + b')/ 2014 {"url": "x"}\n' + b"more rubbish\n")
    done = unlost("map", "build", str(file), "-o", str(output))
    assert b"3 bad-row, first: " in done.stderr
    assert b"a.cdxj:12 (byte " in done.stderr
    assert (done.returncode, rows(output)[0]) == (3, "* 10")


def test_what_one_input_excludes_another_may_hold(tmp_path: Path) -> None:
    """Exclusions count only where a map is the one input, and everything rolled up stays so."""
    a, b, c = tmp_path / "a.ukvs", tmp_path / "b.ukvs", tmp_path / "c.ukvs"
    a.write_text("com,a)/b 0\ncom,b)/ 1\n")
    b.write_text("com,a)/* 5\n")
    assert unlost("map", "build", str(a), "-o", str(c)).returncode == 0
    assert rows(c) == ["* 1", "com,a)/b 0", "com,b)/ 1"]
    assert unlost("map", "build", str(a), str(b), "-o", str(c)).returncode == 0
    assert rows(c) == ["* 6", "com,a)/* 5", "com,b)/ 1"]
    for _ in range(2):
        assert unlost("map", "compact", str(c), "--rollup", "*", "-o", str(c)).returncode == 0
        assert rows(c) == ["* 6"]
    assert unlost("map", "lookup", str(c), "http://a.com/b").stdout == b"http://a.com/b\tyes\t*\t6\n"


def test_a_map_through_a_pipe_is_not_taken_for_an_index(tmp_path: Path) -> None:
    """Its rows look like those of an index, and are not."""
    text = b'!fields {"keys": ["surt"], "values": ["frequency"]}\ncom,a)/ 5\n'
    done = unlost("map", "build", "/dev/stdin", "-o", str(tmp_path / "a.ukvs"), stdin=text)
    assert (done.returncode, b"a map, not an index" in done.stderr) == (3, True)


def test_a_line_that_damage_cut_is_no_page(tmp_path: Path) -> None:
    """What came before is counted, and the damage said."""
    file, output = tmp_path / "a.gz", tmp_path / "a.ukvs"
    # Stored, not deflated, so that the text ends exactly where the file does.
    file.write_bytes(gzip.compress(PAGES.read_bytes(), compresslevel=0)[:-40])
    done = unlost("map", "build", str(file), "-o", str(output))
    assert (done.returncode, b"1 truncated, first: " in done.stderr) == (3, True)
    assert rows(output)[-1] == "com,example,blog)/2011/post 1"


def test_a_full_disk_is_said() -> None:
    """In one line that names the file."""
    done = unlost("map", "build", str(PAGES), "-o", "/dev/full")
    assert (done.returncode, b"No space left" in done.stderr) == (3, True)


def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C ends the work, with code 130."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    folder = tmp_path / "out"
    folder.mkdir()
    process = subprocess.Popen(
        [UNLOST, "map", "build", str(pipe), "--input", "index", "-o", str(folder / "a.ukvs")], stderr=subprocess.PIPE
    )
    with pipe.open("wb", buffering=0) as writer:
        # More than a pipe holds: when all of it is written, the work is under way.
        writer.write(PAGES.read_bytes() * 2000)
        process.send_signal(signal.SIGINT)
        # Blocks that wait for more input see the end.
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, list(folder.iterdir())) == (130, []), errors


def test_standard_output_is_written_behind_what_is_there(tmp_path: Path) -> None:
    """Also when it is a file."""
    output = tmp_path / "out.txt"
    with output.open("wb") as file:
        file.write(b"before\n")
        file.flush()
        subprocess.run([UNLOST, "map", "build", str(PAGES), "-o", "-"], stdout=file, check=True)
    assert output.read_text().startswith("before\n!context")
    assert output.read_text().endswith("org,example)/gone 1\n")


def test_what_is_read_twice_cannot_be_a_pipe(tmp_path: Path) -> None:
    """Its header would be gone before the rows are read, and a map without any would be made."""
    made = build(tmp_path)
    output = tmp_path / "out.ukvs"
    for arguments in (["compact"], ["merge"], ["build", "--input", "map"]):
        done = unlost("map", *arguments, "/dev/stdin", "-o", str(output), stdin=made.read_bytes())
        assert (done.returncode, output.exists()) == (3, False), done.stdout
        assert b"/dev/stdin: not a regular file" in done.stderr


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        (["--by", "year"], [], b"has the key fields surt, datetime, not surt:"),
        ([], ["--by", "year"], b"has the key fields surt, not surt, datetime:"),
        (["--rules", "papers"], [], b"made by other rules (papers) than are asked for (wayback)"),
    ],
)
def test_maps_are_built_from_what_means_the_same(
    tmp_path: Path, options: list[str], arguments: list[str], message: bytes
) -> None:
    """A year must not become a frequency, nor keys of other rules ones that no look-up finds."""
    older, output = build(tmp_path, *options), tmp_path / "out.ukvs"
    done = unlost("map", "build", str(older), "-o", str(output), *arguments)
    assert (done.returncode, output.exists(), message in done.stderr) == (3, False, True), done.stderr
    again = unlost("map", "build", str(older), "-o", str(output), *options)
    assert (again.returncode, rows(output)) == (0, rows(older)), again.stderr


def test_what_was_rolled_up_whole_has_no_keys_to_build_from(tmp_path: Path) -> None:
    """It is refused: a map of nothing would deny everything."""
    rolled, output = tmp_path / "rolled.ukvs", tmp_path / "out.ukvs"
    assert unlost("map", "compact", str(build(tmp_path)), "--rollup", "*", "-o", str(rolled)).returncode == 0
    done = unlost("map", "build", str(rolled), "-o", str(output))
    assert (done.returncode, output.exists(), b"map merge" in done.stderr) == (3, False, True), done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("com,a)/ 20140101000000 {}\ncom,b)/ 20140101000000 {}\n", b"an index, not a map"),
        ("", b"empty: expected a map"),
        ('@about {"type": "urikey#H3P1"}\ncom,a)/ {"frequency": 1}\n', b"a profile, not a map"),
        (
            '!fields {"keys": ["surt"], "values": ["size", "frequency"]}\ncom,a)/ 0 5\n',
            b"expected the frequency right behind the keys, found `size, frequency`",
        ),
    ],
)
def test_what_is_no_map_is_not_compacted_or_merged(tmp_path: Path, text: str, message: bytes) -> None:
    """Dates would become frequencies."""
    file, output = tmp_path / "a", tmp_path / "out.ukvs"
    file.write_text(text)
    for command in ("compact", "merge"):
        done = unlost("map", command, str(file), "-o", str(output))
        assert (done.returncode, output.exists(), message in done.stderr) == (3, False, True), done.stderr


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["--rollup", "com,*", "--host-depth", "1"], b"--host-depth"),
        (["--rollup", "a,b,c,d,e,f,g,h,*"], b"--host-depth"),
        (["--rollup", "com,a)/1/2/3/4/5/6/7/8/*"], b"--path-depth"),
    ],
)
def test_nothing_is_rolled_up_below_the_levels(tmp_path: Path, arguments: list[str], option: bytes) -> None:
    """There a node is not told from what lies below it: the wildcard would stand in a wrong place, or cover nothing."""
    done = unlost("map", "compact", str(build(tmp_path)), *arguments, "-o", str(tmp_path / "out.ukvs"))
    assert (done.returncode, option in done.stderr) == (2, True), done.stderr


def test_a_folder_that_cannot_be_written_in_is_found_before_the_work(tmp_path: Path) -> None:
    """Not after hours of counting: the index is not even opened."""
    folder = tmp_path / "file"
    folder.write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        build_map([tmp_path / "no.cdxj"], folder / "a.ukvs")


def test_two_results_in_one_place_are_refused_at_once(tmp_path: Path) -> None:
    """`--json` and `-o -`: nothing is written, and nobody waits for it."""
    made = str(build(tmp_path))
    for command in (["build", str(PAGES)], ["compact", made], ["merge", made]):
        done = unlost("map", *command, "-o", "-", "--json")
        assert (done.returncode, done.stdout) == (2, b""), done.stderr


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    """Lines that cannot be read are no difference, but nobody may think that there is none."""
    good, bad = tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    good.write_text("com,a)/ 1\n")
    bad.write_text("com,a)/ 1\ncom,\x01)/ 1\n")
    done = unlost("map", "diff", str(good), str(bad))
    assert (done.returncode, done.stdout, b"1 bad-row, first:" in done.stderr) == (3, b"", True), done.stderr


@pytest.mark.parametrize(
    ("total", "row", "code", "shown"),
    [
        ("10", "10", 0, b"total 10\n"),
        ("9", "10", 1, b"total 9\n"),
        ("9-", "10+", 1, b"total 9-\n"),
        ("5+", "10", 0, b"total 5+\n"),
        ("5~", "10", 0, b"total 5~\n"),
        ("/", "10", 0, b"total /\n"),
        ("5", "10-", 0, b"total 5\n"),
        ("5/3", "5/3", 0, b"total 5/3\n"),
    ],
)
def test_totals_are_wrong_only_for_sure(tmp_path: Path, total: str, row: str, code: int, shown: bytes) -> None:
    """What is said to be more, less or about is compared as far as that goes, and shown as it stands."""
    file = tmp_path / "a.ukvs"
    file.write_text(f"* {total}\ncom,a)/ {row}\n")
    done = unlost("map", "check", str(file))
    assert (done.returncode, shown in done.stdout) == (code, True), done.stdout


def test_whoever_spaces_rows_otherwise_loses_none(tmp_path: Path) -> None:
    """Look-ups take a tab, two spaces and a byte-order mark; so does everything that makes a map of such a map."""
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


def test_merging_names_the_map_that_is_wrong(tmp_path: Path) -> None:
    """Among many, nobody could tell."""
    good, bad = tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    good.write_text("com,a)/ 1\n")
    bad.write_text("com,b)/ 1\ncom,a)/ 1\n")
    done = unlost("map", "merge", str(good), str(bad), "-o", str(tmp_path / "c.ukvs"))
    assert (done.returncode, f"{bad}: line 2: its key belongs before".encode() in done.stderr) == (3, True), done.stderr


def test_whoever_watches_sees_how_far_maps_are_read(tmp_path: Path) -> None:
    """Bytes and lines of all of them, for the bar."""
    made, output = build(tmp_path), tmp_path / "out.ukvs"
    size, lines = made.stat().st_size, len(made.read_text().splitlines())
    seen: list[tuple[int, int]] = []

    def watch(read_bytes: int, read_lines: int) -> None:
        seen.append((read_bytes, read_lines))

    compact_map(made, output, watch=watch)
    assert seen[-1] == (size, lines)
    merge_maps([made, made], output, watch)
    assert seen[-1] == (2 * size, 2 * lines)
    build_map([made], output, watch=watch)
    assert seen[-1] == (size, lines)
