"""`unlost index`."""

import json
from pathlib import Path

import pytest

from tests.cli.run import unlost

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
    """One object a line, without what is not there."""
    done = unlost("index", "show", index)
    first = json.loads(done.stdout.splitlines()[0])
    assert first == {
        "uri": "http://a.com/", "key": "com,a)/", "datetime": "20140210000001", "status": 200, "mime": "text/html",
        "digest": "X",
    }  # fmt: skip
    assert (len(done.stdout.splitlines()), done.returncode, done.stderr) == (3, 0, b"")


def test_show_filters(index: str) -> None:
    """All filters must hold; an empty value asks for rows without the field; a page is found by any spelling."""
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


def test_show_and_filter_agree_on_values(tmp_path: Path) -> None:
    """Byte 0 is a place, and whatever is printed can be asked for as it is printed."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b'com,a)/ 2014 {"url": "http://a.com/", "mime": "warc/revisit", "offset": "0", "length": "0"}\n')
    shown = json.loads(unlost("index", "show", str(file)).stdout)
    assert (shown["offset"], shown["length"], shown["revisit"]) == (0, 0, True)
    for wanted in ("offset=0", "length=0", "revisit=true", "status="):
        assert unlost("index", "show", str(file), "--filter", wanted).stdout, wanted
    for unwanted in ("offset=", "revisit=false", "status=0"):
        assert not unlost("index", "show", str(file), "--filter", unwanted).stdout, unwanted


@pytest.mark.parametrize("arguments", [["--filter", "nope=1"], ["--filter", "status"], ["--limit", "0"]])
def test_show_refuses_bad_questions(index: str, arguments: list[str]) -> None:
    """A field that does not exist is a mistake, not an empty answer."""
    assert unlost("index", "show", index, *arguments).returncode == 2


def test_check_praises_a_sound_index(index: str) -> None:
    """Sorted, nothing wrong, exit code 0."""
    done = unlost("index", "check", index)
    assert done.stdout == b"3 captures, 0 of them not web pages\nsorted\n"
    assert done.returncode == 0


def test_check_tells_what_is_wrong(tmp_path: Path) -> None:
    """Unsorted rows and bad lines by kind, with the first of each; exit code 1."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b"rubbish here\n" + ROWS + ROWS + b"more rubbish\n" + b'com,c)/ 99999 {"url": "http://c.com/"}\n')
    done = unlost("index", "check", str(file))
    assert done.returncode == 1
    assert b"not sorted: line 5 belongs before the one above it" in done.stdout
    assert f"2 bad-field-count, first: {file}:1 (byte 0)".encode() in done.stdout
    result = json.loads(unlost("index", "check", "--json", str(file)).stdout)
    assert (result["captures"], result["sorted"], result["first_unsorted_line"]) == (6, False, 5)
    assert {kind: problem["count"] for kind, problem in result["problems"].items()} == {
        "bad-field-count": 2,
        "bad-date": 1,
    }


def test_check_of_a_file_without_keys(tmp_path: Path) -> None:
    """Its order is that of its addresses, not of its dates."""
    file = tmp_path / "a.cdx"
    for rows, code in (
        (b"http://a.com/ 2015\nhttp://b.com/ 2014\n", 0),
        (b"http://b.com/ 2014\nhttp://a.com/ 2015\n", 1),
    ):
        file.write_bytes(b" CDX a b\n" + rows)
        assert unlost("index", "check", str(file)).returncode == code


def test_check_prints_nothing_that_a_terminal_acts_on(tmp_path: Path) -> None:
    """Neither from the file nor from its name, and whatever the terminal can show."""
    file = tmp_path / "a\udcff.cdxj"
    file.write_bytes(b'com,a)/ 2014\xff\x1b[31m {"url": "http://a.com/"}\n')
    done = unlost("index", "check", str(file), env={"PYTHONIOENCODING": "utf-8:strict"})
    assert (done.returncode, b"\x1b" in done.stdout, b"\\x1b[31m" in done.stdout) == (1, False, True)


def test_convert_there_and_back(index: str, tmp_path: Path) -> None:
    """CDXJ to ZipNum to CDX to CDXJ ends where it began."""
    for source, target in [(index, "b.idx"), ("b.idx", "c.cdx"), ("c.cdx", "d.cdxj")]:
        done = unlost("index", "convert", str(tmp_path / source), "-o", str(tmp_path / target))
        assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "d.cdxj").read_bytes() == ROWS
    assert (tmp_path / "c.cdx").read_bytes().startswith(b" CDX N b a m s k r M S V g\ncom,a)/ 20140210000001 ")


def test_convert_writes_to_a_pipe(index: str) -> None:
    """`-o /dev/stdout` is standard output, and stays a device."""
    done = unlost("index", "convert", index, "--to", "cdxj", "-o", "/dev/stdout")
    assert (done.returncode, done.stdout, done.stderr) == (0, ROWS, b"")


def test_convert_sorts_when_asked(tmp_path: Path) -> None:
    """Only sorted rows can become a ZipNum, and the message says so."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b"".join(reversed(ROWS.splitlines(keepends=True))) + ROWS)
    done = unlost("index", "convert", str(file), "-o", str(tmp_path / "b.idx"))
    assert (done.returncode, b"sort them first" in done.stderr) == (3, True)
    assert not (tmp_path / "b.idx").exists()
    assert unlost("index", "convert", "--sort", str(file), "-o", str(tmp_path / "b.cdxj")).returncode == 0
    assert (tmp_path / "b.cdxj").read_bytes() == ROWS


def test_convert_says_what_it_could_not_read(tmp_path: Path) -> None:
    """The rest is written, the exit code is 3."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b"rubbish here\n" + ROWS)
    done = unlost("index", "convert", str(file), "-o", str(tmp_path / "b.cdxj"))
    assert (done.returncode, (tmp_path / "b.cdxj").read_bytes()) == (3, ROWS)
    assert done.stderr.decode().startswith(f"unlost: 1 bad-field-count, first: {file}:1")


def test_convert_needs_to_know_the_format(index: str, tmp_path: Path) -> None:
    """An ending that tells nothing is a usage error; a folder that is not there an unwritable output."""
    assert unlost("index", "convert", index, "-o", str(tmp_path / "b.txt")).returncode == 2
    for form, name in [("zipnum", "b.cdxj"), ("cdxj", "b.idx"), ("cdxj", "b.cdxj.gz"), ("cdx9", "b.zst")]:
        done = unlost("index", "convert", index, "--to", form, "-o", str(tmp_path / name))
        assert (done.returncode, len(list(tmp_path.iterdir()))) == (2, 1), name
    assert unlost("index", "convert", index, "-o", str(tmp_path / "none" / "b.cdx")).returncode == 3


def test_a_missing_index_is_one_line(tmp_path: Path) -> None:
    """With its name and what is wrong."""
    for name in ("none", "none.idx"):
        done = unlost("index", "check", str(tmp_path / name))
        assert done.returncode == 3
        assert done.stderr.decode().startswith(f"unlost: {tmp_path / name}: cannot be read")
