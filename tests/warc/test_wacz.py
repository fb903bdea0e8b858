"""WARCs inside WACZ files are read; malformed WACZ files are rejected."""

import struct
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.real_data import DATA
from tests.warc.wacz_files import wacz
from tests.warc.warcs import member, pages, record
from unlost.capture import Capture
from unlost.errors import ArchiveFileError
from unlost.problems import Problems
from unlost.warc import open_wacz_record, read_wacz_captures
from unlost.warc import open_warc_record as open_warc
from unlost.warc import read_warc_captures as read_warc

WARC = b"".join(member(record(number=number)) for number in range(3))


def read_wacz(path: Path) -> tuple[list[Capture], dict[str, int]]:
    """Return the captures of a WACZ and the problem counts."""
    problems = Problems()
    return list(read_wacz_captures(path, problems)), problems.counts


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_all_warcs_of_wacz_are_read(compression: int, tmp_path: Path) -> None:
    """Offsets are relative to each WARC, file names lack `archive/`, and other members are ignored."""
    members = {"archive/a.warc.gz": WARC, "archive/sub/b.warc": record(number=7), "pages/pages.jsonl": b"{}"}
    actual, kinds = read_wacz(wacz(tmp_path / "a.wacz", members, compression))
    assert pages(actual) == [0, 1, 2, 7]
    assert [capture.filename for capture in actual] == ["a.warc.gz"] * 3 + ["sub/b.warc"]
    assert [capture.offset for capture in actual] == [0, len(WARC) // 3, 2 * len(WARC) // 3, 0]
    assert kinds == {}


def test_wacz_records_are_opened_by_name_and_offset(tmp_path: Path) -> None:
    """Each capture's file name and offset open its record."""
    members = {"archive/a.warc.gz": WARC, "archive/sub/b.warc": record(number=7), "archive/c.warc": record(length=999)}
    path = wacz(tmp_path / "a.wacz", members)
    actual, kinds = read_wacz(path)
    assert (len(actual), kinds) == (5, {"short-block": 1})
    for capture in actual:
        opened = open_wacz_record(path, capture.filename or "", capture.offset or 0)
        assert opened.header("WARC-Target-URI") == capture.uri
        assert opened.body.read().startswith(b"<p>hello</p>")
        problem_files = [(problem.kind, problem.file) for problem in opened.problems()]
        assert problem_files == [("short-block", f"{path}/archive/c.warc")] * (capture.filename == "c.warc")


@pytest.mark.parametrize(
    ("name", "offset", "compression", "message"),
    [
        ("b.warc", 0, zipfile.ZIP_STORED, "expected a member 'archive/b.warc', found none"),
        ("a.warc", 7, zipfile.ZIP_STORED, "archive/a.warc: expected a record at byte 7, found none"),
        ("a.warc", 10**6, zipfile.ZIP_STORED, "expected a record at byte 1000000, found none"),
        ("a.warc", 0, zipfile.ZIP_DEFLATED, "archive/a.warc: expected a member stored as it is, found a deflated one"),
        ("a.warc", 0, zipfile.ZIP_BZIP2, "found compression 12"),
    ],
)
def test_unreadable_wacz_record_raises_error(
    name: str, offset: int, compression: int, message: str, tmp_path: Path
) -> None:
    """The message names the file, the member and the cause."""
    path = wacz(tmp_path / "a.wacz", {"archive/a.warc": record(), "archive/z.warc": record()}, compression)
    with pytest.raises(ArchiveFileError, match=message):
        open_wacz_record(path, name, offset)


@pytest.mark.real_data
def test_real_warc_in_wacz_yields_same_captures(tmp_path: Path) -> None:
    """The 58 captures of iana-2021 are the same from a WACZ as from the WARC."""
    path = DATA / "warc" / "iana-2021.warc.gz"
    actual, kinds = read_wacz(wacz(tmp_path / "a.wacz", {f"archive/{path.name}": path.read_bytes()}))
    assert actual == list(read_warc(path, Problems()))
    assert (len(actual), kinds) == (58, {})
    for capture in actual:
        offset = capture.offset or 0
        stored, in_wacz = open_warc(path, offset), open_wacz_record(tmp_path / "a.wacz", path.name, offset)
        assert (in_wacz.headers, in_wacz.http_headers) == (stored.headers, stored.http_headers)
        assert in_wacz.body.read() == stored.body.read()


@pytest.mark.parametrize(
    "name", ["archive/../../etc/a.warc", "/archive/a.warc", "x/archive/a.warc", "archive/..\\a.warc"]
)
def test_wacz_member_outside_archive_folder_is_rejected(name: str, tmp_path: Path) -> None:
    """A member whose path leaves `archive/` is counted and not read."""
    actual, kinds = read_wacz(wacz(tmp_path / "a.wacz", {name: WARC, "archive/b.warc.gz": WARC}))
    assert len(actual) == 3
    assert kinds == {"bad-member": 1}


def test_wacz_member_with_unknown_compression_is_rejected(tmp_path: Path) -> None:
    """A member with an unsupported compression is counted."""
    actual, kinds = read_wacz(wacz(tmp_path / "a.wacz", {"archive/a.warc": WARC}, zipfile.ZIP_BZIP2))
    assert (actual, kinds) == ([], {"bad-member": 1})


def test_wacz_with_overlapping_members_is_rejected(tmp_path: Path) -> None:
    """Overlapping members are typical of ZIP bombs."""
    path = wacz(tmp_path / "a.wacz", {"archive/a.warc.gz": WARC, "archive/b.warc.gz": WARC})
    data = bytearray(path.read_bytes())
    first, second = (data.find(b"PK\x01\x02", at) for at in (0, data.rfind(b"PK\x01\x02")))
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    path.write_bytes(data)
    with pytest.raises(ArchiveFileError, match="overlapping"):
        read_wacz(path)


def test_corrupt_wacz_member_yields_records_before_damage(tmp_path: Path) -> None:
    """Records before the damage are read, and the damage is counted."""
    warc = b"".join(
        record(number=number, block=b"HTTP/1.1 200 OK\r\n\r\n" + bytes(range(256)) * 99) for number in range(9)
    )
    path = wacz(tmp_path / "a.wacz", {"archive/a.warc": warc}, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40] = b"\xff" * 40
    path.write_bytes(data)
    actual, kinds = read_wacz(path)
    assert pages(actual)[:2] == [0, 1]
    assert kinds["corrupt-member"] == 1


@given(st.integers(0, 2_000), st.binary(min_size=1, max_size=4), st.integers(0, 2_000), st.booleans())
def test_modified_wacz_raises_only_archive_file_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, new: bytes, end: int, deflated: bool
) -> None:
    """A truncated or modified WACZ is read as far as possible or rejected."""
    path = tmp_path_factory.getbasetemp() / "changed.wacz"
    data = bytearray(
        wacz(path, {"archive/a.warc.gz": WARC}, zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED).read_bytes()
    )
    data[place : place + len(new)] = new
    path.write_bytes(data[: len(data) - end] if end < len(data) // 2 else data)
    problems = Problems()
    with suppress(ArchiveFileError):
        actual = list(read_wacz_captures(path, problems))
        assert len(actual) <= 3
        for capture in actual:
            assert capture.offset is not None
            with suppress(ArchiveFileError):
                open_wacz_record(path, capture.filename or "", capture.offset).body.read(99)


@pytest.mark.parametrize("data", [b"", b"no zip", WARC], ids=["nothing", "text", "a WARC"])
def test_non_zip_file_as_wacz_is_rejected(data: bytes, tmp_path: Path) -> None:
    """The error names the expected format."""
    path = tmp_path / "a.wacz"
    path.write_bytes(data)
    with pytest.raises(ArchiveFileError, match="ZIP"):
        read_wacz(path)


def test_wacz_member_without_deflate_end_yields_records(tmp_path: Path) -> None:
    """Records before the missing end and all other members are read."""
    warc = b"".join(record(number=number) for number in range(9))
    path = wacz(tmp_path / "a.wacz", {"archive/a.warc": warc, "archive/b.warc": warc}, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    entry = data.find(b"archive/a.warc", data.find(b"PK\x01\x02")) - 46
    (length,) = struct.unpack_from("<I", data, entry + 20)
    struct.pack_into("<I", data, entry + 20, length - 20)
    path.write_bytes(data)
    actual, kinds = read_wacz(path)
    assert pages(actual)[-9:] == list(range(9))
    assert len(actual) > 9
    assert kinds["corrupt-member"] == 1


def test_wacz_member_with_offset_beyond_file_is_rejected(tmp_path: Path) -> None:
    """The member is counted as `bad-member`."""
    path = wacz(tmp_path / "a.wacz", {"archive/a.warc": WARC})
    data = bytearray(path.read_bytes())
    end, entry = data.rfind(b"PK\5\6"), data.rfind(b"PK\1\2")
    extra = struct.pack("<HHQ", 1, 8, 2**64 - 1)
    struct.pack_into("<I", data, entry + 42, 2**32 - 1)
    struct.pack_into("<H", data, entry + 30, len(extra))
    (length,) = struct.unpack_from("<I", data, end + 12)
    struct.pack_into("<I", data, end + 12, length + len(extra))
    data[end:end] = extra
    path.write_bytes(data)
    assert read_wacz(path) == ([], {"bad-member": 1})


@pytest.mark.parametrize("is_large", [False, True], ids=["zip", "zip64"])
def test_wacz_with_oversized_directory_is_rejected(tmp_path: Path, is_large: bool) -> None:
    """The directory is rejected before it is read, since entries in memory are ten times as large."""
    path = tmp_path / "a.wacz"
    size = 17 << 20
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 65535, 65535, 2**32 - 1 if is_large else size, 0, 0)
    if is_large:
        large = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, 0)
        end = large + struct.pack("<4sIQI", b"PK\6\7", 0, size, 1) + end
    path.write_bytes(b"\0" * size + end)
    with pytest.raises(ArchiveFileError, match="directory of at most"):
        read_wacz(path)
