"""Damaged archive files: everything before the damage is kept, what follows it is found, and it is told."""

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
def test_gzip_cut_anywhere(cut: int, tmp_path: Path) -> None:
    """Cut at any byte of a member, the records before it are whole, and the place is told."""
    found, kinds = captures(tmp_path / "a.warc.gz", b"".join(MEMBERS[:3]) + MEMBERS[3][:cut])
    assert pages(found)[:3] == [0, 1, 2]
    assert kinds["truncated-gzip"] == 1
    assert scan(tmp_path / "a.warc.gz")[1][-1][1] == BEFORE
    assert all(capture.length for capture in found)


@pytest.mark.parametrize("place", range(len(MEMBERS[3])))
def test_gzip_changed_anywhere(place: int, tmp_path: Path) -> None:
    """With any byte of a member inverted, at most its own record is lost, and that is told."""
    bad = bytearray(MEMBERS[3])
    bad[place] ^= 0xFF
    found, kinds = captures(tmp_path / "a.warc.gz", b"".join([*MEMBERS[:3], bytes(bad), *MEMBERS[4:]]))
    others = [f"http://example.com/{number}" for number in (0, 1, 2, 4, 5)]
    assert [capture.uri for capture in found if capture.uri in others] == others
    # Date, compression level and system of a gzip header are not checked by anybody.
    assert kinds or place in range(4, 10)


def test_garbage_between_members(tmp_path: Path) -> None:
    """Rubbish between members, even such as looks like one, costs no record."""
    rubbish = hashlib.shake_128(b"a").digest(5000) + b"\x1f\x8b\x08" * 50 + member(b"no record")[:-9]
    found, kinds = captures(tmp_path / "a.warc.gz", b"".join([*MEMBERS[:3], rubbish, *MEMBERS[3:]]))
    assert pages(found) == [0, 1, 2, 3, 4, 5]
    assert kinds == {"garbage": 1}
    assert scan(tmp_path / "a.warc.gz")[1] == [("garbage", BEFORE)]


@pytest.mark.parametrize("pack", [member, bytes], ids=["gzip", "plain"])
def test_trailing_nuls(pack: type, tmp_path: Path) -> None:
    """NULs at the end, as crashed writers leave them, are told once and cost nothing."""
    found, kinds = captures(tmp_path / "a.warc", b"".join(pack(text) for text in RECORDS) + b"\0" * 100_000)
    assert pages(found) == [0, 1, 2, 3, 4, 5]
    assert kinds == {"garbage": 1}


def test_single_member(tmp_path: Path) -> None:
    """A file gzipped as a whole is read; its records have no length of their own, and that is told."""
    found, kinds = captures(tmp_path / "a.warc.gz", member(b"".join(RECORDS)))
    assert pages(found) == [0, 1, 2, 3, 4, 5]
    assert {(capture.offset, capture.length) for capture in found} == {(0, None)}
    assert kinds == {"shared-member": 1}


def test_two_records_in_a_member(tmp_path: Path) -> None:
    """Two records in a member are both read without a length, and the member is told once."""
    found, kinds = captures(tmp_path / "a.warc.gz", member(RECORDS[0] + RECORDS[1]) + MEMBERS[2])
    assert pages(found) == [0, 1, 2]
    assert [capture.length is None for capture in found] == [True, True, False]
    assert kinds == {"shared-member": 1}


def test_a_member_that_begins_inside_a_record(tmp_path: Path) -> None:
    """A record behind the end of another is not alone in its member: nobody could fetch it by its offset."""
    path = tmp_path / "a.warc.gz"
    found, kinds = captures(path, member(RECORDS[0][:100]) + member(RECORDS[0][100:] + RECORDS[1]) + MEMBERS[2])
    assert pages(found) == [0, 1, 2]
    assert [capture.length is None for capture in found] == [True, True, False]
    assert kinds == {"shared-member": 1}
    assert scan(path)[1] == [("shared-member", len(member(RECORDS[0][:100])))]


def test_block_longer_than_said(tmp_path: Path) -> None:
    """What a block has beyond its Content-Length is garbage, and the next record is found."""
    for pack in (member, bytes):
        data = pack(record(number=0, length=50)) + pack(RECORDS[1])
        found, kinds = captures(tmp_path / "a.warc", data)
        assert pages(found) == [0, 1]
        assert kinds["garbage"] == 1
        assert found[0].length == (len(member(record(number=0, length=50))) if pack is member else found[0].length)


def test_block_shorter_than_said_in_gzip(tmp_path: Path) -> None:
    """A member that begins a record ends the one before it, whatever that said of its length."""
    data = member(record(number=0, length=10_000)) + MEMBERS[1]
    found, kinds = captures(tmp_path / "a.warc.gz", data)
    assert pages(found) == [0, 1]
    assert found[0].length == len(member(record(number=0, length=10_000)))
    assert kinds == {"short-block": 1}


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n\r\n", member(b"")], ids=["nothing", "LF", "CRLF", "empty member"])
def test_nothing(data: bytes, tmp_path: Path) -> None:
    """An empty file has no captures and no problems."""
    assert captures(tmp_path / "a.warc", data) == ([], {})


@pytest.mark.parametrize("seed", range(5))
def test_binary_rubbish(seed: int, tmp_path: Path) -> None:
    """Rubbish is one problem, whether it is plain or pretends to be gzip."""
    rubbish = hashlib.shake_128(bytes([seed])).digest(300_000)
    assert captures(tmp_path / "a.warc", b"\xff" + rubbish) == ([], {"garbage": 1})
    found, kinds = captures(tmp_path / "a.warc", b"\x1f\x8b\x08\0\0\0\0\0\0\3" + rubbish)
    assert found == []
    assert sum(kinds.values()) >= 1


def test_text_that_is_no_archive(tmp_path: Path) -> None:
    """Header lines and logs are not taken for the lines of an ARC."""
    text = b"Date: Wed, 04 Oct 2017 18:17:03 GMT\nLast-Modified: Mon, 11 Aug 2014 1 2 3\n"
    assert captures(tmp_path / "a.warc", text) == ([], {"garbage": 1})


def test_evil_headers(tmp_path: Path) -> None:
    """Lines without a colon, NULs, invalid UTF-8, folded lines and fields given twice do not stop a record."""
    extra = b"no colon here\r\nX-Nul: a\0b\r\nX-Latin: \xfc\r\nX-Folded: a\r\n  b\r\nWARC-Type: request\r\n"
    found, kinds = captures(tmp_path / "a.warc", record(number=1, extra=extra) + RECORDS[2])
    assert pages(found) == [1, 2]
    assert kinds == {"bad-header": 1}


def test_addresses_fit_into_an_index(tmp_path: Path) -> None:
    """Spaces, control characters and bytes that are no UTF-8 are escaped in addresses, and brackets go."""
    data = record(uri="<http://example.com/a b\0c/ü>").replace("ü".encode(), b"\xfc")
    found, kinds = captures(tmp_path / "a.warc", data)
    assert [(capture.uri, capture.key) for capture in found] == [
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
def test_bad_fields(change: tuple[bytes, bytes], kind: str, count: int, tmp_path: Path) -> None:
    """A record whose header lacks something costs at most itself, and the kind of problem says what."""
    bad = record(number=0).replace(*change)
    bad = bad.replace(b"Content-Length: 71", b"Content-Length: %d" % (len(bad.split(b"\r\n\r\n", 1)[1]) - 4))
    found, kinds = captures(tmp_path / "a.warc", bad + RECORDS[1])
    assert len(found) == count
    assert kinds == {kind: 1}


def test_a_record_may_go_on_in_the_next_member(tmp_path: Path) -> None:
    """Files gzipped in blocks of any size are read: members need not begin where records do."""
    text = b"".join(RECORDS)
    data = b"".join(member(text[start : start + 700]) for start in range(0, len(text), 700))
    assert pages(captures(tmp_path / "a.warc.gz", data)[0]) == [0, 1, 2, 3, 4, 5]


def raw_frame(text: bytes) -> bytes:
    """Return a short text as a zstd frame that stores it as it is."""
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(text)]) + (len(text) << 3 | 1).to_bytes(3, "little") + text


@pytest.mark.parametrize("mark", [0x184D2A50, 0x184D2A5D], ids=["skippable", "dictionary"])
@pytest.mark.parametrize("said", [1000, 2**32 - 1])
def test_a_file_that_ends_in_a_skippable_frame(mark: int, said: int, tmp_path: Path) -> None:
    """It is cut, and not empty."""
    found, kinds = captures(tmp_path / "a.warc.zst", struct.pack("<II", mark, said) + b"x" * 999)
    assert (found, kinds) == ([], {"truncated-zstd": 1})


def test_a_dictionary_that_is_none(tmp_path: Path) -> None:
    """Frames that do not need it are read."""
    dictionary = (0xEC30A437).to_bytes(4, "little") + b"\xff" * 96
    data = struct.pack("<II", 0x184D2A5D, len(dictionary)) + dictionary + raw_frame(record(number=7))
    found, kinds = captures(tmp_path / "a.warc.zst", data)
    assert (pages(found), kinds) == ([7], {})


BIG = """
import gzip, resource, sys
from pathlib import Path
from unlost.problems import Problems
from unlost.warc.reader import read_warc_captures
path, kind = Path(sys.argv[1]), sys.argv[2]
sound = Path(sys.argv[3]).read_bytes()
with (gzip.open if kind == "gzip" else open)(path, "wb") as file:
    file.write(sound + b"WARC/1.0\\r\\nX: ")
    for _ in range(100):
        file.write(b"x" * 1_000_000)
    file.write(b"\\r\\nContent-Length: 100000000\\r\\n\\r\\n" + b"\\0" * 100_000_000 + b"\\r\\n\\r\\n" + sound)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
problems = Problems()
found = list(read_warc_captures(path, problems))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(len(found), problems.counts.get("header-too-long"), grown)
"""


@pytest.mark.parametrize("kind", ["gzip", "plain"])
def test_memory_is_bounded(kind: str, tmp_path: Path) -> None:
    """A header of 100 MB before a block of 100 MB takes no more than 32 MiB, and what follows is found."""
    (tmp_path / "sound").write_bytes(RECORDS[0])
    command = [sys.executable, "-c", BIG, str(tmp_path / "a.warc"), kind, str(tmp_path / "sound")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, too_long, kibibytes = done.stdout.split()
    assert (count, too_long) == ("2", "1")
    assert int(kibibytes) < 32 << 10


MANY = """
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
def test_many_long_headers_or_lines_are_not_held_at_once(kind: str, tmp_path: Path) -> None:
    """Forty of almost the greatest length take no more memory than a few, also if that is little on disk."""
    pieces = {"warc": record(uri="http://example.com/" + "\x01" * 3_000_000), "index": b"x y " * (2 << 20) + b"\n"}
    path = tmp_path / "a.gz"
    path.write_bytes(member(pieces[kind]) * 40)
    done = subprocess.run([sys.executable, "-c", MANY, path, kind], capture_output=True, text=True, check=True)
    found, problems, kibibytes = (int(word) for word in done.stdout.split())
    assert (found, problems) == ((40, 40) if kind == "warc" else (0, 40))
    assert kibibytes < 96 << 10


INTERRUPTED = """
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


def test_a_record_without_end_can_be_interrupted(tmp_path: Path) -> None:
    """Ctrl-C does not wait for the end of a record, which may be hours away."""
    path = tmp_path / "a.warc"
    path.write_bytes(record(length=1 << 40))
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, path], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"interrupted\n"
