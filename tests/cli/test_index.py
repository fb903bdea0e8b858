"""`unlost index`."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.run import unlost, unlost_process
from tests.warc.test_warc_forms import ARC_1, arc_record
from tests.warc.wacz_files import wacz
from tests.warc.warcs import member, record

ROWS = (
    b'com,a)/ 20140210000001 {"url": "http://a.com/", "mime": "text/html", "status": "200", "digest": "X"}\n'
    b'com,a)/b 20140210000002 {"url": "http://a.com/b", "mime": "image/png", "status": "404"}\n'
    b'com,b)/ 20140210000003 {"url": "http://b.com/", "mime": "text/html", "status": "200"}\n'
)


@pytest.fixture
def index(tmp_path: Path) -> str:
    """Return a small sound index."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(ROWS)
    return str(file)


def test_show_prints_captures(index: str) -> None:
    """JSON Lines without absent fields."""
    done = unlost("index", "show", index)
    first = json.loads(done.stdout.splitlines()[0])
    assert first == {
        "uri": "http://a.com/", "key": "com,a)/", "datetime": "20140210000001", "status": 200, "mime": "text/html",
        "digest": "X",
    }  # fmt: skip
    assert (len(done.stdout.splitlines()), done.returncode, done.stderr) == (3, 0, b"")


def test_show_filters_captures(index: str) -> None:
    """All filters must match; an empty value selects rows without the field; any spelling of a URL is found."""
    for arguments, count in [
        (["--filter", "status=200"], 2),
        (["--filter", "status=200", "--filter", "key=com,b)/"], 1),
        (["--filter", "digest="], 2),
        (["--limit", "1"], 1),
        (["--url", "http://www.A.com/B/"], 1),
        (["--url", "http://nowhere.com/"], 0),
    ]:
        done = unlost("index", "show", index, *arguments)
        assert (len(done.stdout.splitlines()), done.returncode) == (count, 0), arguments


def test_show_filters_by_printed_values(tmp_path: Path) -> None:
    """Offset 0 is a value."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b'com,a)/ 2014 {"url": "http://a.com/", "mime": "warc/revisit", "offset": "0", "length": "0"}\n')
    displayed = json.loads(unlost("index", "show", str(file)).stdout)
    assert (displayed["offset"], displayed["length"], displayed["revisit"]) == (0, 0, True)
    for matching in ("offset=0", "length=0", "revisit=true", "status="):
        assert unlost("index", "show", str(file), "--filter", matching).stdout, matching
    for not_matching in ("offset=", "revisit=false", "status=0"):
        assert not unlost("index", "show", str(file), "--filter", not_matching).stdout, not_matching


@pytest.mark.parametrize("arguments", [["--filter", "nope=1"], ["--filter", "status"], ["--limit", "0"]])
def test_show_rejects_invalid_filters(index: str, arguments: list[str]) -> None:
    """An unknown field is an error, not an empty result."""
    assert unlost("index", "show", index, *arguments).returncode == 2


def test_show_reports_an_invalid_url(index: str) -> None:
    """The message has the URL, escaped for terminals."""
    done = unlost("index", "show", index, "--url", "http://:x/\x1b[31m")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"unlost: http://:x/\\x1b[31m: no host")


WARC = b"".join(
    member(record(number=number, kind=kind)) for number, kind in enumerate(["warcinfo", "response", "revisit"])
)


@pytest.fixture(params=["WARC", "ARC", "WACZ", "zstd", "damaged"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return an archive file with two captures, and a name without or with a misleading extension."""
    file = tmp_path / "a.bin"
    if request.param == "WARC":
        file.write_bytes(WARC)
    elif request.param == "ARC":
        file.write_bytes(ARC_1 + arc_record(0, b"") + arc_record(1, b""))
    elif request.param == "WACZ":
        wacz(file, {"archive/a.warc.gz": WARC})
    elif request.param == "zstd":
        packed = [
            subprocess.run(["zstd", "-c"], input=record(number=number), capture_output=True, check=True)
            for number in (0, 1)
        ]
        file.write_bytes(b"".join(done.stdout for done in packed))
    else:
        file = tmp_path / "a.warc.gz"
        file.write_bytes(b"rubbish\n" + record(number=0) + record(number=1))
    return str(file)


def test_archive_files_are_shown_checked_and_converted(archive: str, tmp_path: Path) -> None:
    """They are detected by content; `show` prints what `build` writes."""
    code = 5 if archive.endswith(".warc.gz") else 0
    done = unlost("index", "show", archive)
    assert done.returncode == code
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["uri"].rpartition("/")[0] for row in rows] == ["http://example.com"] * 2
    one = unlost("index", "show", archive, "--url", rows[1]["uri"])
    assert [json.loads(line) for line in one.stdout.splitlines()] == rows[1:]
    checked = unlost("index", "check", archive)
    assert checked.returncode == bool(code)
    assert b" records: " in checked.stdout
    assert b"2 captures, 0 of them not web pages\n" in checked.stdout
    assert b"sorted" not in checked.stdout
    assert (b"once a place where a record should begin and none does, first: " in checked.stdout) == bool(code)
    for command in (["build"], ["convert", "--sort"]):
        output = str(tmp_path / f"{command[0]}.cdxj")
        assert unlost("index", *command, archive, "-o", output).returncode == (3 if code else 0)
        assert unlost("index", *command, archive, "-o", output, "--allow-partial").returncode == code
    assert (tmp_path / "build.cdxj").read_bytes() == (tmp_path / "convert.cdxj").read_bytes()
    again = [json.loads(line) for line in unlost("index", "show", str(tmp_path / "build.cdxj")).stdout.splitlines()]
    # An index has `warc/revisit` in the place of a revisit's type.
    assert again == [{name: row[name] for name in row if name != "mime" or "revisit" not in row} for row in rows]


def test_build_checks_all_files_first(tmp_path: Path) -> None:
    """Unreadable ones are reported, and no partial index is written."""
    good, no_zip, output = tmp_path / "a.warc.gz", tmp_path / "a.wacz", tmp_path / "a.cdxj"
    good.write_bytes(WARC)
    no_zip.write_bytes(WARC[:9])
    done = unlost("index", "build", *map(str, (good, tmp_path / "none", no_zip, tmp_path)), "-o", str(output))
    assert (done.returncode, output.exists()) == (3, False)
    lines = done.stderr.decode().splitlines()
    assert [line.split(": ")[1] for line in lines] == [str(tmp_path / "none"), str(no_zip), str(tmp_path)]
    assert unlost("index", "build", str(good), "-o", str(output)).returncode == 0


def test_build_rejects_a_pipe() -> None:
    """Archive files are read with seeks."""
    done = unlost(
        "index", "build", "/dev/stdin", "-o", "-", stdin=Path("docs/examples/lost/first/first.warc").read_bytes()
    )
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"write it to a file first" in done.stderr


def test_check_counts_records_by_type(tmp_path: Path) -> None:
    """Also those that are not captures, and problems by kind."""
    file = tmp_path / "a.warc.gz"
    file.write_bytes(WARC + member(record(number=9))[:-20])
    result = json.loads(unlost("index", "check", "--json", str(file)).stdout)
    assert result["records"] == {"response": 2, "warcinfo": 1, "revisit": 1}
    assert (result["captures"], result["not_web_pages"]) == (3, 0)
    assert {kind: problem["count"] for kind, problem in result["problems"].items()} == {
        "truncated-gzip": 1,
        "short-block": 1,
    }


def test_index_is_detected_without_its_name(tmp_path: Path) -> None:
    """In a pipe and in a file without extension."""
    done = unlost("index", "show", "/dev/stdin", stdin=ROWS)
    assert (len(done.stdout.splitlines()), done.returncode) == (3, 0)
    file = tmp_path / "a"
    file.write_bytes(ROWS)
    assert unlost("index", "check", str(file)).returncode == 0


def test_check_accepts_a_sound_index(index: str) -> None:
    """Exit code 0."""
    done = unlost("index", "check", index)
    assert done.stdout == b"3 captures, 0 of them not web pages\nsorted\n"
    assert done.returncode == 0


def test_check_reports_problems(tmp_path: Path) -> None:
    """Unsorted rows and bad lines by kind, with the first of each; exit code 1."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b"rubbish here\n" + ROWS + ROWS + b"more rubbish\n" + b'com,c)/ 99999 {"url": "http://c.com/"}\n')
    done = unlost("index", "check", str(file))
    assert done.returncode == 1
    assert b"not sorted: line 5 belongs before the one above it" in done.stdout
    assert (
        f"2 times a line with more or fewer fields than it should have, first: {file}:1 (byte 0)".encode()
        in done.stdout
    )
    result = json.loads(unlost("index", "check", "--json", str(file)).stdout)
    assert (result["captures"], result["sorted"], result["first_unsorted_line"]) == (6, False, 5)
    assert {kind: problem["count"] for kind, problem in result["problems"].items()} == {
        "bad-field-count": 2,
        "bad-date": 1,
    }


def test_zstd_index_is_read(tmp_path: Path) -> None:
    """By every command; a truncated one as far as possible."""
    file = tmp_path / "a.cdxj.zst"
    packed = subprocess.run(["zstd", "-c"], input=ROWS, capture_output=True, check=True).stdout
    file.write_bytes(packed)
    assert len(unlost("index", "show", str(file)).stdout.splitlines()) == 3
    assert unlost("index", "check", str(file)).returncode == 0
    assert unlost("index", "convert", str(file), "-o", str(tmp_path / "b.cdxj")).returncode == 0
    assert (tmp_path / "b.cdxj").read_bytes() == ROWS
    file.write_bytes(packed + packed[:-3])
    done = unlost("index", "show", str(file))
    assert (len(done.stdout.splitlines()), done.returncode) == (6, 5)
    assert b"once a file that breaks off, first: " in done.stderr


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.cdxj", b""),
        ("a.cdxj", b"\n \n"),
        ("a.cdxj", b"!meta {}\n"),
        ("a.cdx", b" CDX N b a m s k r M S V g\n"),
        ("a.cdxj.gz", gzip.compress(b"")),
        ("a.warc", b""),
    ],
)
def test_check_reports_a_file_without_rows(tmp_path: Path, name: str, data: bytes) -> None:
    """It is legal, but no map is built of it: most likely something is missing."""
    (tmp_path / name).write_bytes(data)
    done = unlost("index", "check", str(tmp_path / name))
    assert (done.returncode, b"no-rows" in done.stdout) == (1, True)
    done = unlost("index", "check", "--json", str(tmp_path / name))
    assert (done.returncode, list(json.loads(done.stdout)["problems"])) == (1, ["no-rows"])


def test_check_sorts_files_without_keys_by_url(tmp_path: Path) -> None:
    """Not by date."""
    file = tmp_path / "a.cdx"
    for rows, code in (
        (b"http://a.com/ 2015\nhttp://b.com/ 2014\n", 0),
        (b"http://b.com/ 2014\nhttp://a.com/ 2015\n", 1),
    ):
        file.write_bytes(b" CDX a b\n" + rows)
        assert unlost("index", "check", str(file)).returncode == code


def test_check_escapes_control_characters(tmp_path: Path) -> None:
    """From the file and from its name, in any terminal encoding."""
    file = tmp_path / "a\udcff.cdxj"
    file.write_bytes(b'com,a)/ 2014\xff\x1b[31m {"url": "http://a.com/"}\n')
    done = unlost("index", "check", str(file), env={"PYTHONIOENCODING": "utf-8:strict"})
    assert (done.returncode, b"\x1b" in done.stdout, b"\\x1b[31m" in done.stdout) == (1, False, True)


def test_conversions_round_trip(index: str, tmp_path: Path) -> None:
    """CDXJ to ZipNum to CDX to CDXJ."""
    for source, target in [(index, "b.idx"), ("b.idx", "c.cdx"), ("c.cdx", "d.cdxj")]:
        done = unlost("index", "convert", str(tmp_path / source), "-o", str(tmp_path / target))
        assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "d.cdxj").read_bytes() == ROWS
    assert (tmp_path / "c.cdx").read_bytes().startswith(b" CDX N b a m s k r M S V g\ncom,a)/ 20140210000001 ")


def test_convert_writes_to_a_pipe(index: str) -> None:
    """`-o /dev/stdout` is standard output, and stays a device."""
    done = unlost_process("index", "convert", index, "--format", "cdxj", "-o", "/dev/stdout")
    assert (done.returncode, done.stdout, done.stderr) == (0, ROWS, b"")


def test_dash_writes_to_standard_output(index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As CDXJ by default; no file `-` is made."""
    monkeypatch.chdir(tmp_path)
    archive = tmp_path / "a.warc.gz"
    archive.write_bytes(WARC)
    assert unlost("index", "build", str(archive), "-o", "b.cdxj").returncode == 0
    for arguments, printed in [
        (["convert", index], ROWS),
        (["convert", index, "--format", "cdxj"], ROWS),
        (["build", str(archive)], Path("b.cdxj").read_bytes()),
    ]:
        done = unlost("index", *arguments, "-o", "-")
        assert (done.returncode, done.stdout, done.stderr) == (0, printed, b"")
    assert not Path("-").exists()


def test_convert_sorts_with_sort_option(tmp_path: Path) -> None:
    """Only sorted rows become a ZipNum, and the message says so."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b"".join(reversed(ROWS.splitlines(keepends=True))) + ROWS)
    done = unlost("index", "convert", str(file), "-o", str(tmp_path / "b.idx"))
    assert (done.returncode, b"sort them first" in done.stderr) == (3, True)
    assert not (tmp_path / "b.idx").exists()
    assert unlost("index", "convert", "--sort", str(file), "-o", str(tmp_path / "b.cdxj")).returncode == 0
    assert (tmp_path / "b.cdxj").read_bytes() == ROWS


def test_convert_reports_bad_lines(tmp_path: Path) -> None:
    """The rest is written, and the exit code is 5."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b"rubbish here\n" + ROWS)
    done = unlost("index", "convert", str(file), "-o", str(tmp_path / "b.cdxj"))
    assert (done.returncode, (tmp_path / "b.cdxj").read_bytes()) == (5, ROWS)
    assert done.stderr.decode().startswith(
        f"unlost: once a line with more or fewer fields than it should have, first: {file}:1"
    )


def test_convert_needs_a_format(index: str, tmp_path: Path) -> None:
    """An unknown extension is a usage error; a missing folder is an unwritable output."""
    assert unlost("index", "convert", index, "-o", str(tmp_path / "b.txt")).returncode == 2
    for form, name in [("zipnum", "b.cdxj"), ("cdxj", "b.idx"), ("cdxj", "b.cdxj.gz"), ("cdx9", "b.zst")]:
        done = unlost("index", "convert", index, "--format", form, "-o", str(tmp_path / name))
        assert (done.returncode, len(list(tmp_path.iterdir()))) == (2, 1), name
    assert unlost("index", "convert", index, "-o", str(tmp_path / "none" / "b.cdx")).returncode == 3


def test_missing_index_is_reported(tmp_path: Path) -> None:
    """In one line."""
    for name in ("none", "none.idx"):
        done = unlost("index", "check", str(tmp_path / name))
        assert done.returncode == 3
        assert done.stderr.decode().startswith(f"unlost: {tmp_path / name}: cannot be read")
