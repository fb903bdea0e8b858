"""`unlost filter`."""

import gzip
import json
import os
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.run import UNLOST, unlost
from tests.real_data import DATA
from unlost.mementomap import Filter, FilterOptions, build_filter

FILES = Path(__file__).parents[2] / "docs" / "examples"
PAGES = FILES / "pages.cdxj"
GOLDEN = FILES / "pages.filter"
BODY = 171  # bytes of the golden filter after its header
DAY = "20240101000000"


@pytest.fixture(autouse=True)
def _fixed_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build every filter with the same date."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1704067200")


def golden(tmp_path: Path) -> bytes:
    """Return the golden filter with that date."""
    output = tmp_path / "golden.filter"
    build_filter([PAGES], output, FilterOptions(built_at=DAY))
    assert output.read_bytes()[-BODY:] == GOLDEN.read_bytes()[-BODY:]
    return output.read_bytes()


def build(tmp_path: Path, *arguments: str, name: str = "a.filter") -> Path:
    """Build a filter of the sample successfully."""
    output = tmp_path / name
    done = unlost("filter", "build", str(PAGES), "-o", str(output), *arguments)
    assert done.returncode == 0, done.stderr
    return output


def test_build_reports_counts(tmp_path: Path) -> None:
    """In one line, or as a JSON object."""
    output = tmp_path / "a.filter"
    done = unlost("filter", "build", str(PAGES), "-o", str(output))
    assert done.stderr == b"unlost: 10 captures read, 1 not web pages, 0 left out; 7 keys, 364 bytes\n"
    assert (done.stdout, output.read_bytes()) == (b"", golden(tmp_path))
    done = unlost("filter", "build", str(PAGES), "-o", str(output), "--key", "urir", "--bits", "16", "--json")
    assert json.loads(done.stdout) == {
        "lines": 11, "counted": 10, "not_web_pages": 1, "left_out": 0, "repaired_keys": 0, "keys": 9,
        "bytes": output.stat().st_size,
        "problems": {},
    }  # fmt: skip
    assert Filter.open(output).bits == 16


def test_build_options_select_rows(tmp_path: Path) -> None:
    """Status, media type, exclusions; they are stored in the header."""
    output = build(tmp_path, "--status", "200", "--mime", "text/html", "--exclude", "robots,sitemaps")
    (layer,) = Filter.open(output).layers
    assert (layer.status, layer.mime, layer.exclude) == (
        frozenset({"200"}),
        frozenset({"text/html"}),
        frozenset({"robots", "sitemaps"}),
    )
    found = unlost("filter", "lookup", str(output), "http://example.com/a", "http://example.org/gone")
    assert found.stdout == b"http://example.com/a\tyes\nhttp://example.org/gone\tno\n"


def test_all_input_formats_build_the_same_filter(tmp_path: Path) -> None:
    """CDX, ZipNum, URL list, table, log, gzip, map."""
    web = [line.split(" ", 2) for line in PAGES.read_text().splitlines() if '"dns:' not in line]
    urls = [json.loads(fields)["url"] for _, _, fields in web]
    cdx, idx, held = tmp_path / "a.cdx", tmp_path / "a.idx", tmp_path / "a.ukvs"
    for output in (cdx, idx):
        assert unlost("index", "convert", str(PAGES), "-o", str(output)).returncode == 0
    assert unlost("map", "build", str(PAGES), "-o", str(held)).returncode == 0
    packed, urllist, table, log = (tmp_path / name for name in ("a.gz", "urls.txt", "urls.tsv", "access.log"))
    packed.write_bytes(b"".join(gzip.compress(line) for line in PAGES.read_bytes().splitlines(keepends=True)))
    urllist.write_text("# a list\n" + "\n".join(reversed(urls)))
    table.write_text("".join(f"1\tx\t{url}\n" for url in urls))
    hit = '192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET {} HTTP/1.0" 200 5\n'
    log.write_text("".join(hit.format(url) for url in urls))
    output = tmp_path / "b.filter"
    for inputs in ([cdx], [idx], [packed], [urllist], [table, "--column", "3"], [log], [held], [held, cdx, log]):
        done = unlost("filter", "build", *map(str, inputs), "-o", str(output))
        assert done.returncode == 0, (inputs, done.stderr)
        assert output.read_bytes()[-BODY:] == GOLDEN.read_bytes()[-BODY:], inputs
    assert unlost("filter", "build", "/dev/stdin", "-o", str(output), stdin=PAGES.read_bytes()).returncode == 0
    assert output.read_bytes() == golden(tmp_path)


@pytest.mark.real_data
def test_warc_and_its_index_build_the_same_filter(tmp_path: Path) -> None:
    """From its captures."""
    warc = DATA / "warc" / "iana-2020.warc.gz"
    index, filters = tmp_path / "a.cdxj", [tmp_path / "1.filter", tmp_path / "2.filter"]
    assert unlost("index", "build", str(warc), "-o", str(index)).returncode == 0
    for source, output in zip((warc, index), filters, strict=True):
        assert unlost("filter", "build", str(source), "-o", str(output)).returncode == 0
    assert filters[0].read_bytes() == filters[1].read_bytes()
    assert Filter.open(filters[0]).keys > 10


def test_lookup_prints_one_line_per_url(tmp_path: Path) -> None:
    """TSV or JSON; lists as for `map lookup`; invalid URLs are reported."""
    queries = ["http://www.example.com/a?b", "com,example)/a-b", "http://example.net/"]
    done = unlost("filter", "lookup", str(GOLDEN), *queries)
    expected = b"http://www.example.com/a?b\tyes\ncom,example)/a-b\tyes\nhttp://example.net/\tno\n"
    assert (done.stdout, done.stderr, done.returncode) == (expected, b"", 0)
    batch, packed = tmp_path / "urls", tmp_path / "urls.gz"
    batch.write_text("# these\n" + "\n\n".join(queries))
    packed.write_bytes(gzip.compress(batch.read_bytes()))
    for name, stdin in ((str(batch), b""), (str(packed), b""), ("-", batch.read_bytes())):
        assert unlost("filter", "lookup", str(GOLDEN), "--batch", name, stdin=stdin).stdout == expected
    done = unlost("filter", "lookup", "--json", str(GOLDEN), *queries[::2], "http://a b/")
    held, unknown, bad = map(json.loads, done.stdout.splitlines())
    assert held == {"uri": queries[0], "key": "com,example)/a", "held": True}
    assert unknown == {"uri": queries[2], "key": "net,example)/", "held": False}
    assert (bad["error"]["kind"], done.returncode) == ("bad-host", 2)
    assert unlost("filter", "lookup", str(GOLDEN)).returncode == 2


def test_add_appends_layers_and_compact_joins_them(tmp_path: Path) -> None:
    """New pages are found; compacted with the whole index, one layer is left."""
    file, urls, whole = build(tmp_path), tmp_path / "urls", tmp_path / "b.filter"
    urls.write_text("http://example.com/a\nhttp://new.example.com/\n")
    done = unlost("filter", "add", str(file), str(urls), "--bits", "12")
    assert b"2 captures read, 0 not web pages, 0 left out; 1 keys, " in done.stderr
    assert unlost("filter", "lookup", str(file), "http://new.example.com/").stdout.endswith(b"\tyes\n")
    other = tmp_path / "c.filter"
    done = unlost("filter", "add", str(file), str(urls), "-o", str(other), "--json")
    assert (json.loads(done.stdout)["keys"], len(Filter.open(other).layers), len(Filter.open(file).layers)) == (0, 3, 2)
    indexes = ["--index", str(PAGES), "--index", str(urls)]
    assert unlost("filter", "compact", str(other), *indexes, "-o", str(whole)).returncode == 3
    done = unlost("filter", "compact", str(other), *indexes, "-o", str(whole), "--input", "mixed")
    assert (done.returncode, [layer.keys for layer in Filter.open(whole).layers]) == (0, [8])
    done = unlost("filter", "compact", str(other), "--index", str(PAGES), "-o", str(other), "--force")
    assert b"8 keys were in the filter, and 7 are in the index: pages that were held are missing" in done.stderr
    assert other.read_bytes() == golden(tmp_path)


def test_check_reports_layers_and_damage(tmp_path: Path) -> None:
    """Exit code 1, or 3 if nothing is readable."""
    file = build(tmp_path)
    assert unlost("filter", "add", str(file), str(PAGES), "--date", "2024-02-01T10:00:00Z").returncode == 0
    done = unlost("filter", "check", str(file))
    assert done.stdout.decode().splitlines() == [
        f"7 keys, hxpx by the rules wayback, {file.stat().st_size} bytes",
        f"layer 1: 7 keys, 8 bits, 20100101000000 to 20120601000000, made {DAY}",
        "layer 2: 0 keys, 8 bits, 20100101000000 to 20120601000000, made 20240201100000",
    ]
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    done = unlost("filter", "check", "--json", str(file))
    result = json.loads(done.stdout)
    assert (done.returncode, len(result["damage"]), result["layers"][1]["made"]) == (1, 1, "20240201100000")
    done = unlost("filter", "lookup", str(file), "http://example.net/")
    assert (done.returncode, b"partition 0 of layer 2" in done.stderr) == (3, True)
    data[5] ^= 1
    file.write_bytes(data)
    done = unlost("filter", "check", str(file))
    assert (done.returncode, b"a.filter: not a filter" in done.stderr) == (3, True)


def test_header_has_the_build_date(tmp_path: Path) -> None:
    """From `--date` or SOURCE_DATE_EPOCH, so that builds are reproducible; otherwise now."""
    output = tmp_path / "a.filter"
    arguments = ["filter", "build", str(PAGES), "-o", str(output)]
    before = datetime.now(UTC).strftime("%Y%m%d%H%M%S")
    assert unlost(*arguments, env={"SOURCE_DATE_EPOCH": ""}).returncode == 0
    assert before <= str(Filter.open(output).built_at) <= datetime.now(UTC).strftime("%Y%m%d%H%M%S")
    for more, epoch, expected in [
        ([], "1392076801", "20140211000001"),
        (["--date", "20240102"], "1392076801", "20240102000000"),
    ]:
        done = unlost(*arguments, *more, env={"SOURCE_DATE_EPOCH": epoch})
        assert (done.returncode, Filter.open(output).built_at) == (0, expected), done.stderr
    assert unlost(*arguments, "--date", "today").returncode == 2
    done = unlost(*arguments, env={"SOURCE_DATE_EPOCH": "now"})
    assert (done.returncode, b"SOURCE_DATE_EPOCH: expected seconds" in done.stderr) == (2, True)


def test_invalid_input_is_rejected(tmp_path: Path) -> None:
    """With one line, and no file is left."""
    rolled, output = tmp_path / "a.ukvs", tmp_path / "out.filter"
    rolled.write_text('!fields {"keys": ["surt"], "values": ["frequency"]}\ncom,* 5\n')
    for arguments, code, message in [
        (["build", str(tmp_path / "none")], 3, b"none: cannot be read: No such file"),
        (["build", str(rolled)], 3, b"a.ukvs: neither a profile nor a filter can be made of the wildcard com,*"),
        (["build", str(PAGES), "--exclude", "pdf"], 2, b"pdf: cannot be left out: expected robots or sitemaps"),
        (["add", str(rolled), str(PAGES)], 3, b"a.ukvs: not a filter: expected"),
        (["compact", str(rolled), "--index", str(PAGES)], 3, b"a.ukvs: not a filter: expected"),
        (["build", str(PAGES), "--json", "-o", "-"], 2, b"--json and -o -"),
    ]:
        more = [] if "-o" in arguments else ["-o", str(output)]
        done = unlost("filter", *arguments, *more)
        assert (done.returncode, message in done.stderr, done.stderr.count(b"\n")) == (code, True, 1), done.stderr
        assert list(tmp_path.iterdir()) == [rolled]
    assert unlost("filter", "build", str(PAGES), "-o", str(output), "--bits", "17").returncode == 2
    done = unlost("filter", "build", str(PAGES), "-o", str(tmp_path / "no" / "a.filter"))
    assert b"cannot be written: no such folder" in done.stderr


def test_bad_lines_are_counted_by_kind(tmp_path: Path) -> None:
    """With the first of each; exit code 5, and the filter is written."""
    file, output = tmp_path / "a.cdxj", tmp_path / "a.filter"
    file.write_bytes(PAGES.read_bytes() + b"rubbish\n\0\n")
    done = unlost("filter", "build", str(file), "-o", str(output))
    assert (done.returncode, b"once a line that is none of such a file, first: " in done.stderr) == (5, True)
    assert b"once a line that is no text, first: " in done.stderr
    assert output.read_bytes() == golden(tmp_path)


def test_full_disk_is_reported() -> None:
    """In one line with the file."""
    done = unlost("filter", "build", str(PAGES), "-o", "/dev/full")
    assert (done.returncode, b"/dev/full: No space left" in done.stderr) == (3, True), done.stderr


def test_interruption_leaves_no_files(tmp_path: Path) -> None:
    """Ctrl-C ends it with 130."""
    pipe, folder = tmp_path / "pipe", tmp_path / "out"
    os.mkfifo(pipe)
    folder.mkdir()
    process = subprocess.Popen(
        [UNLOST, "filter", "build", str(pipe), "--input", "index", "-o", str(folder / "a.filter")],
        stderr=subprocess.PIPE,
    )
    with pipe.open("wb", buffering=0) as writer:
        # More than a pipe holds: when all of it is written, the work is under way.
        writer.write(PAGES.read_bytes() * 2000)
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, list(folder.iterdir())) == (130, []), errors


def test_standard_output_equals_the_file(tmp_path: Path) -> None:
    """Byte for byte."""
    assert unlost("filter", "build", str(PAGES), "-o", "-").stdout == golden(tmp_path)
    file = build(tmp_path)
    added = unlost("filter", "add", str(file), str(PAGES), "-o", "-").stdout
    assert added.startswith(golden(tmp_path))


def test_empty_filter_is_reported(tmp_path: Path) -> None:
    """It denies every page. Adding nothing is rejected: the new date would deny later captures."""
    empty, output = tmp_path / "empty.cdxj", tmp_path / "a.filter"
    empty.touch()
    done = unlost("filter", "build", str(PAGES), "--status", "999", "-o", str(output))
    assert unlost("filter", "lookup", str(output), "http://a.com/").stdout == b"http://a.com/\tno\n"
    assert (done.returncode, b"this filter denies every page" in done.stderr) == (0, True)
    before = output.read_bytes()
    done = unlost("filter", "add", str(output), str(empty))
    assert (done.returncode, b"nothing in it" in done.stderr) == (3, True)
    assert output.read_bytes() == before


def test_map_lookup_rejects_a_filter(tmp_path: Path) -> None:
    """The message has the right command."""
    listed, output = tmp_path / "urls", tmp_path / "a.filter"
    listed.write_text("http://a.com/\n")
    assert unlost("filter", "build", str(listed), "-o", str(output)).returncode == 0
    done = unlost("map", "lookup", str(output), "http://a.com/")
    assert (done.returncode, b"a filter, not a map: `unlost filter lookup` reads it" in done.stderr) == (3, True)
