"""`map build` and `index check` read the same rows of damaged and unusual files."""

import gzip
import json
import random
from pathlib import Path

import pytest

from tests.cli.run import unlost
from unlost.index import read_index_rows
from unlost.mementomap import MapOptions, build_map
from unlost.problems import Problems

HEADER = " CDX N b a m s k r M S V g"
CDXJ = [f'com,a)/{n:02} 20140102030405 {{"url": "http://a.com/{n:02}", "mime": "text/html"}}' for n in range(20)]
CDX = [f"com,a)/{n:02} 20140102030405 http://a.com/{n:02} text/html 200 AAAA - - 10 20 a.warc.gz" for n in range(20)]
CDX9 = [f"com,a)/{n:02} 20140102030405 http://a.com/{n:02} text/html 200 AAAA - 20 a.warc.gz" for n in range(20)]
X = "com,a)/x 20140102030405"

FILES = {
    "CDXJ": CDXJ,
    "CDX": [HEADER, *CDX],
    "CDX without header": CDX,
    "CDX of 9 fields": CDX9,
    "a byte order mark before CDXJ": [f"\ufeff{CDXJ[0]}", *CDXJ[1:]],
    "a byte order mark before a header": [f"\ufeff{HEADER}", *CDX],
    "a stray word": ["garbage", *CDXJ],
    "a stray URL": ["http://a.com/", *CDXJ],
    "stray words": ["a b c d e f g h i", *CDXJ],
    "CDX before CDXJ": [*CDX, *CDXJ],
    "CDXJ before CDX": [*CDXJ, *CDX],
    "CDXJ below a header": [HEADER, *CDX, *CDXJ],
    "a header below CDXJ": [*CDXJ, HEADER, *CDX],
    "the header again": [HEADER, *CDX, HEADER, *CDX],
    "a bad header": [" CDX xx yy", *CDX],
    "a header without space": [HEADER[1:], *CDX],
    "a NUL": [*CDXJ, f'{X} {{"url": "http://a.com/x", "mime": "\0"}}'],
    "JSON that breaks off": [*CDXJ, f'{X} {{"url": "http://a.com/x", "mi'],
    "something after the object": [*CDXJ, f'{X} {{"url": "http://a.com/x"}} and more'],
    "an empty object": [*CDXJ, f"{X} {{}}"],
    "two spaces": [line.replace(" ", "  ", 1) for line in CDXJ],
    "a date with letters": [*CDXJ, 'com,a)/x 2014xxxxxxxxxx {"url": "http://a.com/x"}'],
    "no date": [*CDXJ, 'com,a)/x - {"url": "http://a.com/x"}'],
    "a date of ISO": [*CDXJ, 'com,a)/x 2014-01-02T03:04:05Z {"url": "http://a.com/x"}'],
    "a space in a key": [*CDXJ, 'com,a)/x y 20140102030405 {"url": "http://a.com/x"}'],
    "CDX with a field too few": [HEADER, *CDX, f"{X} http://a.com/x"],
    "CDX with a field too many": [HEADER, *CDX, f"{X} http://a.com/x y text/html 200 AAAA - - 10 20 a.warc.gz"],
    "spaces in a URL": [HEADER, *CDX, f"{X} http://a.com/x - y  z text/html 200 AAAA - - 10 20 a.warc.gz"],
    "spaces in a URL without header": [*CDX9, f"{X} http://a.com/x y z text/html - AAAA - 20 a.warc.gz"],
    "spaces in a media type": [HEADER, *CDX, f"{X} http://a.com/x text/html; a=b 200 AAAA - - 10 20 a.warc.gz"],
    "two rows in a line": [HEADER, *CDX, f"{CDX[0]}{CDX[1]}"],
    "half a row before another": [HEADER, *CDX, f"{X} http://a.com/x te{CDX[1]}"],
    "something that is not a page": ["dns:a.com 20140102030405 dns:a.com text/dns - A - - 1 2 a.warc.gz", *CDX],
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_build_and_check_read_the_same_rows(name: str, compress: type, tmp_path: Path) -> None:
    """A row counts in both or in neither, and both report unreadable lines."""
    file, output = tmp_path / "file", tmp_path / "map"
    file.write_bytes(compress("".join(f"{line}\n" for line in FILES[name]).encode()))
    built = unlost("map", "build", str(file), "-o", str(output), "--json")
    checked = unlost("index", "check", str(file), "--json")
    assert built.returncode in (0, 5), built.stderr
    rows, found = json.loads(built.stdout), json.loads(checked.stdout)
    assert rows["counted"] + rows["not_web_pages"] == found["captures"]
    assert sum(rows["problems"].values()) == sum(each["count"] for each in found["problems"].values())
    assert (built.returncode == 5) == bool(found["problems"])
    assert not any("{" in line or "http" in line for line in output.read_text().splitlines() if line[0] != "!")


def test_rows_with_spaces_in_urls_are_counted(tmp_path: Path) -> None:
    """Their key and date are valid, and no archived page may be denied."""
    file, output = tmp_path / "file.cdx", tmp_path / "map"
    file.write_text("\n".join(FILES["spaces in a URL"]) + "\n")
    assert unlost("map", "build", str(file), "-o", str(output), "--status", "200").returncode == 0
    assert b"\tyes\t" in unlost("map", "lookup", str(output), "com,a)/x").stdout
    row = unlost("index", "show", str(file), "--url", "http://a.com/x").stdout
    assert json.loads(row)["uri"] == "http://a.com/x - y  z"


@pytest.mark.parametrize("header", ["", " CDX N b a m s k r V g", " CDX N b a m s k r M V g", HEADER])
def test_build_and_check_split_urls_with_spaces_alike(header: str, tmp_path: Path) -> None:
    """For any words in them, and any following columns."""
    random_ = random.Random(7)  # noqa: S311
    words = ["a", "-", "200", "text/html", "b/c", "unk", "http://b.com/", "", "2014"]
    rows = []
    for n in range(2000):
        url = " ".join(random_.choices(words, k=random_.randrange(4)))
        tail = " ".join(random_.choices(["-", "7", "A", "text/html"], k=random_.randrange(3, 8)))
        rows.append(f"com,a)/{n:04} 20140102030405 http://a.com/{url} text/html 200 {tail}\n")
    for pieces in (rows[:1000], rows[1000:]):
        file = tmp_path / "file"
        file.write_text((header + "\n" if header else "") + "".join(pieces))
        build_map([file], tmp_path / "map", MapOptions(kind="index", status=frozenset({"200"})))
        read = [row.key for row in read_index_rows(file, Problems()) if row.fields.get("status") == "200"]
        lines = [line for line in (tmp_path / "map").read_text().splitlines() if line.startswith("com")]
        assert [line.split()[0] for line in lines] == read
        assert 50 < len(read) < 1000


REJECTED = {
    "bare CR": "\r".join([HEADER, *CDX, ""]).encode(),
    "a list of URLs with rows": b"http://a.com/\n" * 9 + CDXJ[0].encode() + b"\n",
    "Parquet": b"PAR1",
}


@pytest.mark.parametrize(
    "text", [b"".join(f"{line} z\n".encode() for line in CDX), b"a b c\nd e f\n", bytes(range(256))]
)
def test_other_lines_are_rejected_by_build_and_check(text: bytes, tmp_path: Path) -> None:
    """`map build` rejects the file, `index check` reports the lines."""
    file, output = tmp_path / "file", tmp_path / "map"
    file.write_bytes(text)
    assert (unlost("map", "build", str(file), "-o", str(output)).returncode, output.exists()) == (3, False)
    found = unlost("index", "check", str(file), "--json")
    assert (found.returncode, json.loads(found.stdout)["captures"]) == (1, 0)


@pytest.mark.parametrize("name", REJECTED)
def test_build_and_check_reject_the_same_files(name: str, tmp_path: Path) -> None:
    """With the same message, and no output."""
    file, output = tmp_path / "file", tmp_path / "map"
    file.write_bytes(REJECTED[name])
    built = unlost("map", "build", str(file), "-o", str(output))
    checked = unlost("index", "check", str(file))
    assert (built.returncode, checked.returncode) == (3, 3)
    assert built.stderr == checked.stderr
    assert not output.exists()


def test_second_header_with_other_columns_is_reported(tmp_path: Path) -> None:
    """No map is built of such a file, and `index check` says why."""
    file = tmp_path / "file"
    file.write_text("\n".join([HEADER, *CDX, " CDX N b a m s k r V g", *CDX9, ""]))
    built = unlost("map", "build", str(file), "-o", str(tmp_path / "map"))
    checked = unlost("index", "check", str(file), "--json")
    assert built.returncode == 3
    assert b"other columns in the middle" in built.stderr
    assert list(json.loads(checked.stdout)["problems"]) == ["late-header"]


def counts_of_both(index: Path, *options: str) -> tuple[int, int]:
    """Return the numbers of rows that both read of a ZipNum."""
    built = unlost("map", "build", str(index), "-o", str(index.with_suffix(".ukvs")), "--json", *options)
    checked = unlost("index", "check", str(index), "--json")
    assert built.stdout, built.stderr
    return json.loads(built.stdout)["counted"], json.loads(checked.stdout)["captures"]


def test_build_and_check_read_the_listed_blocks_of_a_zipnum(tmp_path: Path) -> None:
    """Neither unlisted blocks, nor fewer if they are in another order."""
    lines = "".join(f"{line}\n" for line in CDXJ).encode()
    blocks = [gzip.compress(lines[: len(lines) // 2]), gzip.compress(lines[len(lines) // 2 :])]
    index, part = tmp_path / "a.idx", tmp_path / "a.cdx.gz"
    heads = ["com,a)/00 20140102030405", "com,a)/10 20140102030405"]
    sizes = [len(block) for block in blocks]

    def write(stored: list[bytes], places: list[tuple[int, int]]) -> None:
        part.write_bytes(b"".join(stored))
        rows = [f"{heads[n]}\ta.cdx.gz\t{offset}\t{length}\n" for n, (offset, length) in enumerate(places)]
        index.write_text("".join(rows))

    write(blocks, [(0, sizes[0]), (sizes[0], sizes[1])])
    assert counts_of_both(index) == (20, 20)
    (tmp_path / "a.loc").write_text("a.cdx.gz\tnone.gz\ta.cdx.gz\n")
    assert counts_of_both(index) == (20, 20)
    write(blocks[::-1], [(sizes[1], sizes[0]), (0, sizes[1])])
    assert counts_of_both(index) == (20, 20)
    write(blocks, [(0, sizes[0])])
    assert counts_of_both(index) == (10, 10)
    write(blocks[:1], [(0, sizes[0]), (sizes[0], sizes[1])])
    assert unlost("map", "build", str(index), "-o", str(tmp_path / "b.ukvs")).returncode == 3
    assert counts_of_both(index, "--allow-partial") == (10, 10)
    index.write_text(index.read_text() + "rubbish\n")
    assert counts_of_both(index, "--allow-partial") == (10, 10)
