"""Damaged input never replaces a good output: nothing is written unless `--allow-partial` is given."""

import gzip
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.maps import PAGES, build, rows
from tests.cli.run import UNLOST, unlost
from unlost.errors import InputError
from unlost.mementomap import build_filter, build_map

LINES = b"".join(
    b'com,a)/%06d 20140102030405 {"url": "http://a.com/%06d", "mime": "text/html"}\n' % (n, n) for n in range(9000)
)
GOOD = b"what was there before\n"
BUILDERS = {
    "map build": ["map", "build"],
    "filter build": ["filter", "build"],
    "profile build": ["profile", "build", "--policy", "H3P1"],
    "profile build --by": ["profile", "build", "--policy", "H3P1", "--by", "year"],
    "index convert": ["index", "convert", "--format", "cdxj"],
}


def truncated(data: bytes) -> bytes:
    """Return the first half of a gzip file."""
    whole = gzip.compress(data)
    return whole[: len(whole) // 2]


def corrupt(data: bytes) -> bytes:
    """Return a gzip file of several members, one of which is damaged."""
    middle = len(data) // 2
    damaged = bytearray(gzip.compress(data[middle:]))
    damaged[len(damaged) // 2] ^= 0xFF
    return gzip.compress(data[:middle]) + bytes(damaged)


def without_magic(data: bytes) -> bytes:
    """Return a gzip file with a member without magic bytes: everything after it is lost."""
    middle = len(data) // 2
    return gzip.compress(data[:middle]) + b"xx" + gzip.compress(data[middle:])[2:]


@pytest.mark.parametrize("command", BUILDERS)
@pytest.mark.parametrize("damage", [truncated, corrupt, without_magic])
def test_damaged_input_needs_allow_partial(command: str, damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """The exit code is 3 without it, and 5 with it."""
    file, output = tmp_path / "file.gz", tmp_path / "output"
    file.write_bytes(damage(LINES))
    output.write_bytes(GOOD)
    refused = unlost(*BUILDERS[command], str(file), "-o", str(output))
    assert refused.returncode == 3, refused.stderr
    assert b"--allow-partial" in refused.stderr
    assert output.read_bytes() == GOOD
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file.gz", "output"]
    allowed = unlost(*BUILDERS[command], str(file), "-o", str(output), "--allow-partial")
    assert allowed.returncode == 5, allowed.stderr
    assert output.read_bytes() != GOOD


CDX = b"".join(b"com,a)/%06d 20140102030405 http://a.com/ text/html 200 A - 7 a.warc\n" % n for n in range(99))


@pytest.mark.parametrize("command", BUILDERS)
@pytest.mark.parametrize("text", [LINES, CDX, b" CDX N b a m s k r V g\n" + CDX], ids=["cdxj", "cdx", "header"])
def test_truncated_last_row_is_damage(command: str, text: bytes, tmp_path: Path) -> None:
    """More rows may be missing. A readable last line without line end is sound."""
    file, output = tmp_path / "file", tmp_path / "output"
    output.write_bytes(GOOD)
    file.write_bytes(text[:-20])
    refused = unlost(*BUILDERS[command], str(file), "-o", str(output))
    assert refused.returncode == 3, refused.stderr
    assert b"file: the file ends in the middle of a row" in refused.stderr
    assert output.read_bytes() == GOOD
    assert unlost(*BUILDERS[command], str(file), "-o", str(output), "--allow-partial").returncode == 5
    file.write_bytes(text[:-1])
    assert unlost(*BUILDERS[command], str(file), "-o", str(output)).returncode == 0


@pytest.mark.parametrize("command", BUILDERS)
def test_file_without_valid_rows_is_rejected(command: str, tmp_path: Path) -> None:
    """Also with `--allow-partial`."""
    bad, output = tmp_path / "bad.cdxj", tmp_path / "output"
    bad.write_bytes(b'com,a)/ 2014 {"url\n' * 9)
    output.write_bytes(GOOD)
    done = unlost(*BUILDERS[command], str(bad), "-o", str(output), "--allow-partial")
    assert done.returncode == 3, done.stderr
    assert output.read_bytes() == GOOD


@pytest.mark.parametrize("command", ["map build", "filter build", "profile build"])
@pytest.mark.parametrize("text", [b"", b" CDX N b a\n"])
def test_empty_input_is_rejected(command: str, text: bytes, tmp_path: Path) -> None:
    """A map or filter of nothing denies every page. One empty file among others is accepted."""
    file, output = tmp_path / "empty.cdx", tmp_path / "output"
    file.write_bytes(text)
    done = unlost(*BUILDERS[command], str(file), "-o", str(output))
    assert (done.returncode, output.exists()) == (3, False)
    assert b"empty.cdx: nothing in it" in done.stderr
    # One empty file among others is not: what is sharded has some.
    assert unlost(*BUILDERS[command], str(file), str(PAGES), "-o", str(output)).returncode == 0


@pytest.mark.parametrize("command", BUILDERS)
def test_max_bad_limits_the_share_of_bad_lines(command: str, tmp_path: Path) -> None:
    """Above it nothing is written; without it bad lines are counted, and the exit code is 5."""
    file, output = tmp_path / "file.cdxj", tmp_path / "output"
    file.write_bytes(LINES + b"bad line\n" * 1000)
    arguments = [*BUILDERS[command], str(file), "-o", str(output)]
    refused = unlost(*arguments, "--max-bad", "0.09")
    assert (refused.returncode, output.exists()) == (3, False), refused.stderr
    assert b"1000 of 10000 lines are bad" in refused.stderr
    assert unlost(*arguments, "--max-bad", "0.1").returncode == 5
    assert unlost(*arguments).returncode == 5
    for share in ("1.5", "nan"):
        assert unlost(*arguments, "--max-bad", share).returncode == 2


def test_missing_input_needs_allow_partial(tmp_path: Path) -> None:
    """A map without one of its inputs would pass for a complete one."""
    output = tmp_path / "output"
    arguments = ["map", "build", str(PAGES), str(tmp_path / "missing"), "-o", str(output)]
    assert unlost(*arguments).returncode == 3
    assert not output.exists()
    done = unlost(*arguments, "--allow-partial", "--json")
    assert done.returncode == 5
    assert json.loads(done.stdout)["problems"] == {"unreadable": 1}
    assert rows(output) == rows(build(tmp_path))


@pytest.mark.parametrize("build", [build_map, build_filter])
def test_empty_list_of_inputs_is_rejected(build: Callable[..., object], tmp_path: Path) -> None:
    """Commands require one; a list that a program passes may be empty."""
    with pytest.raises(InputError, match="no inputs: nothing was written"):
        build([], tmp_path / "output")
    assert not list(tmp_path.iterdir())


def test_url_list_with_an_index_is_rejected(tmp_path: Path) -> None:
    """Most likely one of them is a mistake; `--input mixed` allows it."""
    urls, output = tmp_path / "urls.txt", tmp_path / "output"
    urls.write_text("http://a.com/\nhttp://b.com/\n")
    done = unlost("map", "build", str(PAGES), str(urls), "-o", str(output))
    assert (done.returncode, output.exists()) == (3, False)
    assert b"a list of URLs" in done.stderr
    assert unlost("map", "build", str(urls), "-o", str(output)).returncode == 0
    assert unlost("map", "build", str(PAGES), str(urls), "--input", "mixed", "-o", str(output)).returncode == 0


def test_index_rows_are_never_read_as_urls(tmp_path: Path) -> None:
    """Also with `--input urls`: the keys would be garbage, and archived pages would be denied."""
    file, output = tmp_path / "file", tmp_path / "output"
    cdx = b"com,a)/ 20140102030405 http://a.com/ text/html 200 AAAA - - 10 20 a.warc.gz\n"
    file.write_bytes(b"http://b.com/\n" + LINES[:200] + cdx)
    done = unlost("map", "build", str(file), "-o", str(output), "--input", "urls")
    assert done.returncode == 5
    assert rows(output) == ["* 1", "com,b)/ 1"]


def test_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    """The first page must not be denied."""
    file, output = tmp_path / "urls.txt", tmp_path / "output"
    file.write_bytes(b"\xef\xbb\xbfhttp://a.com/x\nhttp://b.com/\n")
    assert unlost("map", "build", str(file), "-o", str(output)).returncode == 0
    assert rows(output) == ["* 2", "com,a)/x 1", "com,b)/ 1"]


def test_table_needs_a_column(tmp_path: Path) -> None:
    """Without it, whole rows would become keys."""
    file, output = tmp_path / "table.tsv", tmp_path / "output"
    file.write_text("1356998400\tpics\thttp://a.com/\n")
    done = unlost("map", "build", str(file), "-o", str(output))
    assert (done.returncode, b"--column" in done.stderr, output.exists()) == (3, True, False)
    assert unlost("map", "build", str(file), "-o", str(output), "--column", "3").returncode == 0
    assert rows(output) == ["* 1", "com,a)/ 1"]


def test_output_replaces_an_input_only_with_force(tmp_path: Path) -> None:
    """Also under another name."""
    map_file, link, index = build(tmp_path), tmp_path / "link", tmp_path / "index.cdxj"
    before = map_file.read_bytes()
    link.symlink_to(map_file)
    index.write_bytes(PAGES.read_bytes())
    policy, blocks = tmp_path / "profiles" / "H1P0.cdxj", tmp_path / "blocks.cdx.gz"
    policy.parent.mkdir()
    policy.write_bytes(PAGES.read_bytes())
    blocks.write_bytes(gzip.compress(PAGES.read_bytes()))
    name = str(map_file)
    assert unlost("filter", "build", str(index), "-o", str(tmp_path / "filter")).returncode == 0
    commands = [
        ["map", "compact", name, "-o", name, "--host-weight", "0.1"],
        ["map", "compact", name, "-o", str(link)],
        ["map", "compact", name, "-o", name, "--budget", "3"],
        ["map", "merge", name, name, "-o", name],
        ["map", "exclude", name, "-o", name],
        ["map", "build", name, "-o", name],
        ["filter", "compact", str(tmp_path / "filter"), "--index", str(index), "-o", str(tmp_path / "filter")],
        ["index", "convert", str(index), "-o", str(index), "--sort"],
        ["profile", "build", "--policy", "H1P0", str(index), "-o", str(index)],
        ["profile", "build", "--policy", "H1P0,H3P1", str(policy), "-o", str(policy.parent)],
        ["index", "convert", str(blocks), "-o", str(tmp_path / "blocks.idx")],
        ["map", "compact", name, "-o", str(tmp_path / "other"), "--budget", "900B", "--with-filter", name],
        ["map", "compact", name, "-o", str(tmp_path / "other"), "--trace", str(link)],
    ]
    for command in commands:
        done = unlost(*command)
        assert done.returncode == 2, (command, done.stderr)
        assert b"--force" in done.stderr
    assert map_file.read_bytes() == before
    for command in commands:
        map_file.write_bytes(before)
        assert unlost(*command, "--force").returncode == 0, command


RECORD = (
    b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.com/\r\n"
    b"WARC-Date: 2014-01-02T03:04:05Z\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n"
)


def test_failed_index_build_leaves_no_files(tmp_path: Path) -> None:
    """For a damaged WARC, and for a ZipNum of which one file cannot be written."""
    warc = tmp_path / "a.warc.gz"
    warc.write_bytes(gzip.compress(RECORD) + gzip.compress(RECORD)[:-20])
    for name in ("a.cdxj", "a.idx"):
        output = tmp_path / name
        done = unlost("index", "build", str(warc), "-o", str(output))
        assert done.returncode == 3, done.stderr
        assert [each.name for each in tmp_path.iterdir()] == ["a.warc.gz"]
        assert unlost("index", "build", str(warc), "-o", str(output), "--allow-partial").returncode == 5
        for made in tmp_path.glob("a.[!w]*"):
            made.unlink()
    (tmp_path / "b.loc").mkdir()
    warc.write_bytes(gzip.compress(RECORD))
    assert unlost("index", "build", str(warc), "-o", str(tmp_path / "b.idx")).returncode == 3
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.warc.gz", "b.loc"]


def test_index_build_skips_unreadable_files_with_allow_partial(tmp_path: Path) -> None:
    """If no file is readable, nothing is written."""
    warc, missing, output = tmp_path / "a.warc", tmp_path / "missing.warc", tmp_path / "a.cdxj"
    warc.write_bytes(RECORD)
    arguments = ["index", "build", str(missing), "-o", str(output), "--allow-partial"]
    assert unlost(*arguments).returncode == 3
    assert not output.exists()
    done = unlost(*arguments, str(warc))
    assert (done.returncode, len(output.read_bytes().splitlines())) == (5, 1), done.stderr
    assert done.stderr.count(b"missing.warc") == 1


COMMANDS = {
    "map build": ["map", "build", "-", "-o", "output"],
    "filter build": ["filter", "build", "-", "-o", "output"],
    "profile build": ["profile", "build", "-", "--policy", "H1P0", "-o", "output"],
    "stats": ["stats", "-"],
    "index check": ["index", "check", "-"],
    "index show": ["index", "show", "-"],
    "index convert": ["index", "convert", "-", "-o", "output.cdx"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_dash_reads_standard_input(command: str, compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """A pipe and a file, detected as any other."""
    data = compress(PAGES.read_bytes())
    (tmp_path / "file").write_bytes(data)
    environment = os.environ | {"PYTHONUTF8": "1", "TMPDIR": str(tmp_path), "SOURCE_DATE_EPOCH": "0"}
    results = []
    with (tmp_path / "file").open("rb") as file:
        for stream in ({"input": data}, {"stdin": file}):
            done = subprocess.run(
                [UNLOST, *COMMANDS[command]],
                capture_output=True,
                check=False,
                cwd=tmp_path,
                env=environment,
                timeout=60,
                **stream,
            )
            made = [each for each in tmp_path.iterdir() if each.name.startswith("output")]
            results.append((done.returncode, done.stdout, [each.read_bytes() for each in made]))
    assert results[0] == results[1]
    assert results[0][0] == 0, results
    assert not list(tmp_path.glob("unlost-*"))


def test_standard_input_is_detected_and_read_once(tmp_path: Path) -> None:
    """Without `--input`; `-` twice is rejected; messages do not have the temporary file."""
    output = tmp_path / "output"
    refused = unlost("map", "build", "-", "-o", str(output), stdin=truncated(LINES))
    assert refused.stderr.startswith(b"unlost: standard input:"), refused.stderr
    assert unlost("map", "build", "-", "-o", str(output), stdin=b"http://a.com/\n").returncode == 0
    assert rows(output) == ["* 1", "com,a)/ 1"]
    assert unlost("map", "build", "-", "-", "-o", str(output), stdin=LINES).returncode == 2
    map_text = output.read_bytes()
    assert unlost("map", "check", "-", stdin=map_text).returncode == 0
    assert b"yes" in unlost("map", "lookup", "-", "http://a.com/", stdin=map_text).stdout


def test_map_check_rejects_what_lookup_rejects(tmp_path: Path) -> None:
    """An index is not a sound map."""
    header = b" CDX N b a m s k r M S V g\n"
    cdx = b"com,a)/ 20140102030405 http://a.com/ text/html 200 AAAA - - 10 20 a.warc.gz\n"
    files = {"cdx": cdx, "with-header": header + cdx, "cdxj": LINES, "gz": gzip.compress(LINES), "empty": b""}
    for name, text in files.items():
        (tmp_path / name).write_bytes(text)
    (tmp_path / "sorted.cdxj").write_bytes(LINES)
    assert unlost("index", "convert", str(tmp_path / "sorted.cdxj"), "-o", str(tmp_path / "a.idx")).returncode == 0
    for name in (*files, "a.idx"):
        checked = unlost("map", "check", str(tmp_path / name))
        looked_up = unlost("map", "lookup", str(tmp_path / name), "http://a.com/")
        assert (checked.returncode, looked_up.returncode) == (3, 3), name
        assert checked.stderr == looked_up.stderr, name
