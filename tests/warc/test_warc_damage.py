"""Damaged archive files: records before and after the damage are read, and the damage is counted."""

import hashlib
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.warc.warcs import PAGE, captures, member, pages, record, scan

RECORDS = [record(number=number, block=PAGE + bytes([65 + number]) * 500) for number in range(6)]
MEMBERS = [member(text) for text in RECORDS]
BEFORE = len(b"".join(MEMBERS[:3]))


@pytest.mark.parametrize("cut", range(1, len(MEMBERS[3])))
def test_truncated_gzip_member_yields_records_before_it(cut: int, tmp_path: Path) -> None:
    """For a cut at any byte, earlier records are complete and the damage has its offset."""
    actual, kinds = captures(tmp_path / "a.warc.gz", b"".join(MEMBERS[:3]) + MEMBERS[3][:cut])
    assert pages(actual)[:3] == [0, 1, 2]
    assert kinds["truncated-gzip"] == 1
    assert scan(tmp_path / "a.warc.gz")[1][-1][1] == BEFORE
    assert all(capture.length for capture in actual)


@pytest.mark.parametrize("place", range(len(MEMBERS[3])))
def test_changed_gzip_byte_loses_at_most_one_record(place: int, tmp_path: Path) -> None:
    """With any byte inverted, at most the member's own record is lost, and the damage is counted."""
    bad = bytearray(MEMBERS[3])
    bad[place] ^= 0xFF
    actual, kinds = captures(tmp_path / "a.warc.gz", b"".join([*MEMBERS[:3], bytes(bad), *MEMBERS[4:]]))
    others = [f"http://example.com/{number}" for number in (0, 1, 2, 4, 5)]
    assert [capture.uri for capture in actual if capture.uri in others] == others
    # Date, compression level and system in a gzip header are not checked.
    assert kinds or place in range(4, 10)


def test_garbage_between_gzip_members_loses_no_record(tmp_path: Path) -> None:
    """Garbage that looks like a gzip member is skipped, too."""
    garbage = hashlib.shake_128(b"a").digest(5000) + b"\x1f\x8b\x08" * 50 + member(b"no record")[:-9]
    actual, kinds = captures(tmp_path / "a.warc.gz", b"".join([*MEMBERS[:3], garbage, *MEMBERS[3:]]))
    assert pages(actual) == [0, 1, 2, 3, 4, 5]
    assert kinds == {"garbage": 1}
    assert scan(tmp_path / "a.warc.gz")[1] == [("garbage", BEFORE)]


@pytest.mark.parametrize("compress", [member, bytes], ids=["gzip", "plain"])
def test_trailing_nuls_are_counted_once(compress: type, tmp_path: Path) -> None:
    """NULs left by crashed writers lose no record."""
    actual, kinds = captures(tmp_path / "a.warc", b"".join(compress(text) for text in RECORDS) + b"\0" * 100_000)
    assert pages(actual) == [0, 1, 2, 3, 4, 5]
    assert kinds == {"garbage": 1}


def test_warc_in_single_gzip_member_is_read_and_counted(tmp_path: Path) -> None:
    """The records have no length of their own, and the member is counted."""
    actual, kinds = captures(tmp_path / "a.warc.gz", member(b"".join(RECORDS)))
    assert pages(actual) == [0, 1, 2, 3, 4, 5]
    assert {(capture.offset, capture.length) for capture in actual} == {(0, None)}
    assert kinds == {"shared-member": 1}


def test_two_records_in_gzip_member_have_no_length(tmp_path: Path) -> None:
    """Both records are read, and the member is counted once."""
    actual, kinds = captures(tmp_path / "a.warc.gz", member(RECORDS[0] + RECORDS[1]) + MEMBERS[2])
    assert pages(actual) == [0, 1, 2]
    assert [capture.length is None for capture in actual] == [True, True, False]
    assert kinds == {"shared-member": 1}


def test_gzip_member_starting_inside_record_is_counted(tmp_path: Path) -> None:
    """A record that follows the end of another in its member cannot be read by offset."""
    path = tmp_path / "a.warc.gz"
    actual, kinds = captures(path, member(RECORDS[0][:100]) + member(RECORDS[0][100:] + RECORDS[1]) + MEMBERS[2])
    assert pages(actual) == [0, 1, 2]
    assert [capture.length is None for capture in actual] == [True, True, False]
    assert kinds == {"shared-member": 1}
    assert scan(path)[1] == [("shared-member", len(member(RECORDS[0][:100])))]


def test_block_longer_than_content_length_is_counted(tmp_path: Path) -> None:
    """Bytes beyond Content-Length are garbage, and the next record is read."""
    for compress in (member, bytes):
        data = compress(record(number=0, length=50)) + compress(RECORDS[1])
        actual, kinds = captures(tmp_path / "a.warc", data)
        assert pages(actual) == [0, 1]
        assert kinds["garbage"] == 1
        assert actual[0].length == (
            len(member(record(number=0, length=50))) if compress is member else actual[0].length
        )


def test_block_shorter_than_content_length_in_gzip_is_counted(tmp_path: Path) -> None:
    """A member that begins with a record ends the previous record."""
    data = member(record(number=0, length=10_000)) + MEMBERS[1]
    actual, kinds = captures(tmp_path / "a.warc.gz", data)
    assert pages(actual) == [0, 1]
    assert actual[0].length == len(member(record(number=0, length=10_000)))
    assert kinds == {"short-block": 1}


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n\r\n", member(b"")], ids=["nothing", "LF", "CRLF", "empty member"])
def test_empty_file_has_no_captures(data: bytes, tmp_path: Path) -> None:
    """An empty file has no captures and no problems."""
    assert captures(tmp_path / "a.warc", data) == ([], {})


@pytest.mark.parametrize("seed", range(5))
def test_binary_garbage_is_counted(seed: int, tmp_path: Path) -> None:
    """Garbage is one problem in plain files and at least one with a gzip header."""
    garbage = hashlib.shake_128(bytes([seed])).digest(300_000)
    assert captures(tmp_path / "a.warc", b"\xff" + garbage) == ([], {"garbage": 1})
    actual, kinds = captures(tmp_path / "a.warc", b"\x1f\x8b\x08\0\0\0\0\0\0\3" + garbage)
    assert actual == []
    assert sum(kinds.values()) >= 1


def test_text_file_is_not_read_as_arc(tmp_path: Path) -> None:
    """Header lines and logs are not read as ARC lines."""
    text = b"Date: Wed, 04 Oct 2017 18:17:03 GMT\nLast-Modified: Mon, 11 Aug 2014 1 2 3\n"
    assert captures(tmp_path / "a.warc", text) == ([], {"garbage": 1})


def test_malformed_warc_header_lines_are_tolerated(tmp_path: Path) -> None:
    """Lines without a colon, NULs, invalid UTF-8, folded and repeated fields do not end a record."""
    extra = b"no colon here\r\nX-Nul: a\0b\r\nX-Latin: \xfc\r\nX-Folded: a\r\n  b\r\nWARC-Type: request\r\n"
    actual, kinds = captures(tmp_path / "a.warc", record(number=1, extra=extra) + RECORDS[2])
    assert pages(actual) == [1, 2]
    assert kinds == {"bad-header": 1}


def test_target_uri_is_escaped_for_index(tmp_path: Path) -> None:
    """Spaces, control characters and invalid UTF-8 are escaped, and angle brackets are removed."""
    data = record(uri="<http://example.com/a b\0c/ü>").replace("ü".encode(), b"\xfc")
    actual, kinds = captures(tmp_path / "a.warc", data)
    assert [(capture.uri, capture.key) for capture in actual] == [
        ("http://example.com/a%20b%00c/%FC", "com,example)/a%20b%00c/%fc")
    ]
    assert kinds == {}


@pytest.mark.parametrize(
    ("change", "kind", "count"),
    [
        ((b"Content-Length: ", b"Content-Length: -"), "no-length", 1),
        ((b"Content-Length", b"Content-Lenght"), "no-length", 1),
        ((b"WARC-Target-URI", b"X"), "no-uri", 1),
        ((b"2014-02-10T", b"2014-02-30T"), "bad-date", 1),
        ((b"WARC-Date", b"X"), "bad-date", 1),
        ((b"WARC-Type", b"X"), "no-type", 1),
        ((b"http://example.com", b"http://exa mple.com"), "bad-uri", 2),
        ((b"HTTP/1.1", b"SPDY/1.1"), "bad-http", 2),
        ((b"200 OK", b"OK"), "bad-http", 2),
    ],
    ids=lambda value: str(value)[:40],
)
def test_invalid_warc_field_is_counted_by_kind(
    change: tuple[bytes, bytes], kind: str, count: int, tmp_path: Path
) -> None:
    """An invalid record affects at most itself."""
    bad = record(number=0).replace(*change)
    bad = bad.replace(b"Content-Length: 71", b"Content-Length: %d" % (len(bad.split(b"\r\n\r\n", 1)[1]) - 4))
    actual, kinds = captures(tmp_path / "a.warc", bad + RECORDS[1])
    assert len(actual) == count
    assert kinds == {kind: 1}


def test_record_spanning_gzip_members_is_read(tmp_path: Path) -> None:
    """Members need not begin where records do."""
    text = b"".join(RECORDS)
    data = b"".join(member(text[start : start + 700]) for start in range(0, len(text), 700))
    assert pages(captures(tmp_path / "a.warc.gz", data)[0]) == [0, 1, 2, 3, 4, 5]


def raw_frame(text: bytes) -> bytes:
    """Return a short text as an uncompressed zstd frame."""
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(text)]) + (len(text) << 3 | 1).to_bytes(3, "little") + text


@pytest.mark.parametrize("mark", [0x184D2A50, 0x184D2A5D], ids=["skippable", "dictionary"])
@pytest.mark.parametrize("size", [1000, 2**32 - 1])
def test_file_ending_in_skippable_frame_is_truncated(mark: int, size: int, tmp_path: Path) -> None:
    """A file that ends inside a skippable frame is counted as truncated."""
    actual, kinds = captures(tmp_path / "a.warc.zst", struct.pack("<II", mark, size) + b"x" * 999)
    assert (actual, kinds) == ([], {"truncated-zstd": 1})


def test_invalid_zstd_dictionary_is_ignored_if_unused(tmp_path: Path) -> None:
    """Frames that do not need the dictionary are read."""
    dictionary = (0xEC30A437).to_bytes(4, "little") + b"\xff" * 96
    data = struct.pack("<II", 0x184D2A5D, len(dictionary)) + dictionary + raw_frame(record(number=7))
    actual, kinds = captures(tmp_path / "a.warc.zst", data)
    assert (pages(actual), kinds) == ([7], {})


LARGE_RECORD_SCRIPT = """
import gzip, resource, sys
from pathlib import Path
from unlost.problems import Problems
from unlost.warc.reader import read_warc_captures
path, kind = Path(sys.argv[1]), sys.argv[2]
valid = Path(sys.argv[3]).read_bytes()
with (gzip.open if kind == "gzip" else open)(path, "wb") as file:
    file.write(valid + b"WARC/1.0\\r\\nX: ")
    for _ in range(100):
        file.write(b"x" * 1_000_000)
    file.write(b"\\r\\nContent-Length: 100000000\\r\\n\\r\\n" + b"\\0" * 100_000_000 + b"\\r\\n\\r\\n" + valid)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
problems = Problems()
found = list(read_warc_captures(path, problems))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(len(found), problems.counts.get("header-too-long"), grown)
"""


@pytest.mark.parametrize("kind", ["gzip", "plain"])
def test_huge_header_and_block_are_read_in_bounded_memory(kind: str, tmp_path: Path) -> None:
    """A header and a block of 100 MB need at most 32 MiB, and the next record is read."""
    (tmp_path / "valid").write_bytes(RECORDS[0])
    command = [sys.executable, "-c", LARGE_RECORD_SCRIPT, str(tmp_path / "a.warc"), kind, str(tmp_path / "valid")]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    count, too_long, kibibytes = result.stdout.split()
    assert (count, too_long) == ("2", "1")
    assert int(kibibytes) < 32 << 10


LONG_HEADERS_SCRIPT = """
import resource, sys
from unlost.problems import Problems
from unlost.index.reader import read_index_rows
from unlost.warc.reader import read_warc_captures
read = {"warc": read_warc_captures, "index": read_index_rows}[sys.argv[2]]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
problems = Problems()
found = sum(1 for _ in read(sys.argv[1], problems))
print(found, sum(problems.counts.values()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("kind", ["warc", "index"])
def test_many_long_headers_are_read_in_bounded_memory(kind: str, tmp_path: Path) -> None:
    """Forty records or lines near the size limit need no more memory than a few."""
    contents = {"warc": record(uri="http://example.com/" + "\x01" * 3_000_000), "index": b"x y " * (2 << 20) + b"\n"}
    path = tmp_path / "a.gz"
    path.write_bytes(member(contents[kind]) * 40)
    result = subprocess.run(
        [sys.executable, "-c", LONG_HEADERS_SCRIPT, path, kind], capture_output=True, text=True, check=True
    )
    actual, problems, kibibytes = (int(word) for word in result.stdout.split())
    assert (actual, problems) == ((40, 40) if kind == "warc" else (0, 40))
    assert kibibytes < 96 << 10


INTERRUPT_SCRIPT = """
import signal, sys
from unlost.problems import Problems
from unlost.warc.reader import read_warc_captures
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    list(read_warc_captures(sys.argv[1], Problems()))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_scan_of_huge_record_can_be_interrupted(tmp_path: Path) -> None:
    """Ctrl-C takes effect before the end of a record."""
    path = tmp_path / "a.warc"
    path.write_bytes(record(length=1 << 40))
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    result = subprocess.run([sys.executable, "-c", INTERRUPT_SCRIPT, path], capture_output=True, check=True, timeout=60)
    assert result.stdout == b"interrupted\n"
