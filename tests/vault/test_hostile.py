"""Hostile pages and blocks: no writes outside the target, no false content."""

import gzip
import hashlib
import io
import json
import tarfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vault.fixtures import pack_site, server_files, snapshot_folder, static_site
from tests.vault.test_erasure_code import encode_content
from unlost._core import signing_public_key
from unlost.errors import InputError
from unlost.vault import (
    BEGIN_MARKER,
    END_MARKER,
    KIND_FILES,
    BlockCollector,
    BlockHeader,
    Carrier,
    DecryptionKeys,
    VaultBlock,
    collect_blocks,
    find_blocks,
    inject_blocks,
    is_complete,
    iter_html_files,
    parse_manifest,
    recover_files,
    serialize_block,
    slow_decoder,
    smallest_shape,
    strip_blocks,
    wrap_in_carrier,
)


def blocks_of(content: bytes, needed: int = 1, count: int = 2, wrap: str = "tar.gz") -> list[VaultBlock]:
    """Return all blocks of a content."""
    shape = smallest_shape(len(content), needed, count)
    version = hashlib.sha256(content).hexdigest()
    return [
        VaultBlock(
            BlockHeader(KIND_FILES, "ab" * 8, version, shape, wrap, index, hashlib.sha256(data).hexdigest()), data
        )
        for index, data in enumerate(encode_content(content, shape))
    ]


def tar_of(*members: tarfile.TarInfo) -> bytes:
    """Return a packed tar with these members, files with two bytes each."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for member in members:
            member.size = 2 if member.isreg() else 0
            tar.addfile(member, io.BytesIO(b"hi") if member.isreg() else None)
    return gzip.compress(made.getvalue(), 0, mtime=0)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """Return a member of a tar."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, 0o4777
    return info


def collect_pages(*pages: bytes, keys: frozenset[str] = frozenset()) -> BlockCollector:
    """Return what is in pages."""
    found = BlockCollector(keys)
    for number, page in enumerate(pages):
        found.add_page(page, f"/{number}")
    return found


def test_nothing_is_written_outside_the_target(tmp_path: Path) -> None:
    """Names that lead elsewhere, links that do, devices and files through links are refused; the rest is written."""
    evil = [
        member("../out"),
        member("/etc/out"),
        member("a/../../out"),
        member("away", tarfile.SYMTYPE, "../.."),
        member("far", tarfile.SYMTYPE, "/etc"),
        member("device", tarfile.CHRTYPE),
        member("hard", tarfile.LNKTYPE, "/etc/passwd"),
        member("near", tarfile.SYMTYPE, "dir"),
        member("near/through"),
        member("dir/good"),
        member("dir/good"),
    ]
    content = tar_of(*(each for each in evil if each.name != "near/through"))
    done = recover_files(
        collect_pages(serialize_block(blocks_of(content)[1])), tmp_path / "t" / "back", DecryptionKeys()
    )
    assert sorted(done.unpacked.names) == ["dir/good", "near"]
    assert len(done.unpacked.refused) == 8
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["back"]
    assert (tmp_path / "t" / "back" / "dir" / "good").stat().st_mode & 0o7777 == 0o777, "no rights of its owner's"
    through = recover_files(
        collect_pages(serialize_block(blocks_of(tar_of(*evil))[1])), tmp_path / "u", DecryptionKeys()
    )
    assert "near/through" in through.unpacked.names
    assert (tmp_path / "u" / "near").is_dir()
    assert not (tmp_path / "u" / "near").is_symlink(), "a link never takes the place of a folder that was written to"


def test_invalid_tar_leaves_no_files(tmp_path: Path) -> None:
    """A complete version that is not a tar archive raises an error and leaves no folder."""
    for content in (b"no gzip at all", gzip.compress(b"no tar" * 200), tar_of(member("a"))[:600]):
        with pytest.raises(InputError):
            recover_files(collect_pages(serialize_block(blocks_of(content)[0])), tmp_path / "back", DecryptionKeys())
    assert list(tmp_path.iterdir()) == []


def test_forged_blocks_are_ignored_if_enough_valid_ones_exist(tmp_path: Path) -> None:
    """A forged block with a valid hash does no harm while there are spare blocks."""
    content = tar_of(member("good"))
    blocks = blocks_of(content, needed=3, count=6)
    other = bytes(len(blocks[0].data))
    forged = VaultBlock(replace(blocks[0].header, sha256=hashlib.sha256(other).hexdigest()), other)
    pages = [serialize_block(block) for block in (forged, *blocks[1:4])]
    assert recover_files(collect_pages(*pages), tmp_path / "back", DecryptionKeys()).unpacked.names == ["good"]
    both = [serialize_block(block) for block in (forged, *blocks[:3])]
    assert recover_files(collect_pages(*both), tmp_path / "again", DecryptionKeys()).unpacked.names == ["good"]
    few = recover_files(collect_pages(*pages[:3]), tmp_path / "no", DecryptionKeys())
    assert (few.forged, few.complete) == (1, {})
    assert [short.missing for short in few.incomplete] == [1], "one of them is forged"
    assert not (tmp_path / "no").exists()


def test_only_signed_blocks_are_accepted_with_trusted_keys() -> None:
    """Blocks with another or no signature are ignored; an invalid signature counts as forged."""
    block = blocks_of(tar_of(member("a")))[0]
    ours, reference = bytes(range(32)), bytes(range(1, 33))
    key = frozenset({signing_public_key(ours).hex()})
    assert collect_pages(serialize_block(block, ours), keys=key).pages_with_blocks == 1
    found = collect_pages(serialize_block(block, reference), serialize_block(block), keys=key)
    assert (found.pages_with_blocks, found.problems["not-signed"]) == (0, 2)
    words = serialize_block(block, ours).replace(b"index=0", b"index=1")
    assert collect_pages(words, keys=key).problems["forged"] == 1


def test_versions_are_never_mixed(tmp_path: Path) -> None:
    """Blocks of two versions, neither of them whole, bring nothing back although together they would be enough."""
    one = blocks_of(tar_of(member("a")), needed=4, count=8)
    two = blocks_of(tar_of(member("b")), needed=4, count=8)
    done = recover_files(collect_pages(*map(serialize_block, (*one[:3], *two[3:6]))), tmp_path / "no", DecryptionKeys())
    assert done.complete == {}
    assert sorted(short.missing for short in done.incomplete) == [1, 1]


def test_blocks_survive_changes_of_the_page(tmp_path: Path) -> None:
    """Collapsed white space, UTF-16, truncation, changed characters: intact blocks are used, others counted."""
    block = blocks_of(tar_of(member("a")))[0]
    page = b"<p>x</p>" + wrap_in_carrier(serialize_block(block), Carrier.COMMENT)
    assert collect_pages(b" ".join(page.split())).pages_with_blocks == 1
    assert collect_pages(page.replace(b"\n", b"\r\n")).pages_with_blocks == 1
    assert collect_pages(page.decode().encode("utf-16")).pages_with_blocks == 1
    assert collect_pages(page.decode().encode("utf-16-be")).pages_with_blocks == 1
    assert collect_pages(page[:-60]).problems == Counter(cut=1)
    at = page.index(b"\ndata\n") + 20
    assert collect_pages(page[:at] + b"!" + page[at + 1 :]).problems == Counter(damaged=1)
    assert collect_pages(page.replace(b"rs16", b"rs99")).problems == Counter(unreadable=1)
    assert collect_pages(page[:-60] + page).pages_with_blocks == 1
    with pytest.raises(InputError, match="no blocks"):
        recover_files(collect_pages(b"<p>nothing</p>"), tmp_path / "no", DecryptionKeys())


@given(st.binary(max_size=300), st.integers(0, 400), st.integers(0, 400))
def test_arbitrary_bytes_do_not_break_the_block_parser(noise: bytes, start: int, length: int) -> None:
    """Noise inside a block gives a block, a counted problem, or nothing."""
    text = serialize_block(blocks_of(b"abc")[0])
    problems: Counter[str] = Counter()
    for block in find_blocks(text[:start] + noise + text[start + length :], problems):
        assert hashlib.sha256(block.data).hexdigest() == block.header.sha256


def test_slow_decoder_works_without_unlost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The stand-alone decoder restores the packed files without importing unlost."""
    assert "unlost" not in Path(slow_decoder.__file__).read_text().split('"""', 2)[2].replace("unlost-vault-1", "")
    server, site = server_files(tmp_path), static_site(tmp_path)
    made = pack_site(tmp_path / "v", server, site)
    inject_blocks(made.vault, site)
    for page in list(iter_html_files(site))[:18]:
        page.unlink()
    slow_decoder.main([str(site), "-o", str(tmp_path / "slow")])
    (file,) = (tmp_path / "slow").glob("*.tar.gz")
    assert hashlib.sha256(file.read_bytes()).hexdigest() == made.vault.newest.files[0].version
    with tarfile.open(file) as tar:
        tar.extractall(tmp_path / "by-tar", filter="tar")
    assert {name: content for name, (_, _, content) in snapshot_folder(tmp_path / "by-tar" / "srv").items()} == {
        name: content for name, (_, _, content) in snapshot_folder(server).items()
    }
    assert "tar.gz" in capsys.readouterr().out


def test_forged_manifest_is_ignored(tmp_path: Path) -> None:
    """An invalid manifest is ignored; files are recovered without it."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    inject_blocks(pack_site(tmp_path / "v", server, site).vault, site)
    found = BlockCollector()
    collect_blocks(site, found)
    lie = blocks_of(gzip.compress(b'{"format":"unlost-vault-manifest-1","segments":[{"id":"../x"}]}'), wrap="json.gz")
    label = replace(lie[0].header, kind="manifest")
    found.add_page(serialize_block(VaultBlock(label, lie[0].data)), "/lie", "20990101000000")
    done = recover_files(found, tmp_path / "back", DecryptionKeys())
    assert is_complete(done)
    assert found.problems["manifest-not-opened"] == 1
    assert snapshot_folder(tmp_path / "back" / "srv") == snapshot_folder(server)


def manifest_page(value: object, date: str = "20990101000000") -> BlockCollector:
    """Return a gathering with one forged manifest."""
    lie = blocks_of(gzip.compress(json.dumps(value).encode()), wrap="json.gz")[0]
    found = BlockCollector()
    found.add_page(serialize_block(VaultBlock(replace(lie.header, kind="manifest"), lie.data)), "/lie", date)
    return found


def test_false_manifest_does_not_prevent_recovery(tmp_path: Path) -> None:
    """A later manifest without files, or with unavailable ones, is not used."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    inject_blocks(pack_site(tmp_path / "v", server, site).vault, site)
    segment = {
        "name": "../../etc", "id": "../../x", "kind": "files", "source": "", "version": "00", "size": 1, "block": 64,
        "needed": 10**30, "count": 10**30, "wrap": "tar.gz", "files": [["/etc/passwd", "file", 1, 0, 0]],
        "pages": ["/a"],
    }  # fmt: skip
    for number, segments in enumerate(([], [segment])):
        found = manifest_page({"format": "unlost-vault-manifest-1", "number": 99, "segments": segments})
        collect_blocks(site, found)
        done = recover_files(found, tmp_path / f"back-{number}", DecryptionKeys())
        assert snapshot_folder(tmp_path / f"back-{number}" / "srv") == snapshot_folder(server)
        assert is_complete(done)
    assert {path.name for path in tmp_path.iterdir()} == {"back-0", "back-1", "srv", "v", "www"}


def test_decompression_bombs_are_rejected(tmp_path: Path) -> None:
    """Endless zeros, a huge header, a sparse file of a terabyte."""
    zeros = gzip.compress(bytes(40 << 20), 9)
    with pytest.raises(InputError, match="a manifest"):
        parse_manifest(zeros)
    file = tarfile.TarInfo("zeros")
    file.size = 40 << 20
    packed_zeros = gzip.compress(file.tobuf() + bytes(file.size) + bytes(1024), 9)
    for content, most in ((packed_zeros, 30 << 20), (packed_zeros, None)):
        page = serialize_block(blocks_of(content)[0])
        if most is None:
            assert recover_files(collect_pages(page), tmp_path / "back", DecryptionKeys()).unpacked.bytes == 40 << 20
            continue
        with pytest.raises(InputError, match="--most-bytes"):
            recover_files(collect_pages(page), tmp_path / "no", DecryptionKeys(), most)
    header = tarfile.TarInfo("long")
    header.type, header.size = tarfile.XHDTYPE, 30 << 20
    sparse = tarfile.TarInfo("sparse")
    sparse.type, sparse.size = tarfile.GNUTYPE_SPARSE, 1 << 40
    for info, more in ((header, bytes(30 << 20)), (sparse, b"")):
        content = gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + more + bytes(1024), 9)
        with pytest.raises(InputError, match="never packed"):
            recover_files(collect_pages(serialize_block(blocks_of(content)[0])), tmp_path / "no", DecryptionKeys())
    assert not (tmp_path / "no").exists()


def test_links_escaping_through_other_links_are_removed(tmp_path: Path) -> None:
    """Each link alone points inside the folder, but together they point outside."""
    content = tar_of(
        member("d/e", tarfile.SYMTYPE, ".."), member("x", tarfile.SYMTYPE, "d/e/../.."), member("d/good"),
        member("y", tarfile.SYMTYPE, "d/e/.."), member("self", tarfile.SYMTYPE, "self"),
    )  # fmt: skip
    done = recover_files(
        collect_pages(serialize_block(blocks_of(content)[0])), tmp_path / "t" / "back", DecryptionKeys()
    )
    assert done.unpacked.names == ["d/good", "d/e", "self"]
    assert not (tmp_path / "t" / "back" / "y").is_symlink()


def test_pages_full_of_begin_markers_are_parsed_in_linear_time() -> None:
    """A hundred thousand unterminated blocks take no longer than other pages of that size."""
    problems: Counter[str] = Counter()
    body = BEGIN_MARKER * 200_000
    assert list(find_blocks(body, problems)) == []
    assert problems == Counter(cut=200_000)
    problems.clear()
    assert list(find_blocks(body + b"x" * (1 << 20) + END_MARKER, problems)) == []
    assert problems == Counter(cut=200_000)


def test_block_numbers_out_of_range_are_rejected() -> None:
    """Too many blocks, more needed than exist, too large blocks, inconsistent sizes."""
    text = serialize_block(blocks_of(tar_of(member("a")), needed=2, count=4)[0])
    for old, new in (
        (b"count=4", b"count=30001"),
        (b"needed=2", b"needed=5"),
        (b"needed=2", b"needed=0"),
        (b"index=0", b"index=4"),
        (b"block=", b"block=9"),
        (b"size=", b"size=99999999999"),
        (b"count=4", b"count=" + b"9" * 5000),
        (b"wrap=tar.gz", b"wrap=../x"),
        (b"segment=ab", b"segment=.."),
    ):
        assert old in text
        problems: Counter[str] = Counter()
        assert list(find_blocks(text.replace(old, new, 1), problems)) == []
        assert problems.total() == 1
        assert slow_decoder.find_blocks(text.replace(old, new, 1)) == []
    assert len(slow_decoder.find_blocks(text)) == 1


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be", "utf-16", "shift_jis", "iso-2022-jp", "gb18030"])
def test_pages_of_any_charset_carry_blocks(tmp_path: Path, charset: str) -> None:
    """The visible text does not change, the block is found, and removal restores the page."""
    server, site = server_files(tmp_path), static_site(tmp_path, 6)
    before = f"<html><head></head><body><p>日本 {charset}</p></body></html>".encode(charset)
    (site / "other.html").write_bytes(before)
    inject_blocks(pack_site(tmp_path / "v", server, site).vault, site)
    body = (site / "other.html").read_bytes()
    assert collect_pages(body).pages_with_blocks == 1
    text = body.decode(charset)
    assert f"日本 {charset}" in text
    assert text.rstrip().endswith("END_FILE_RECOVERY\n-->\n</body></html>")
    assert strip_blocks(body) == before


def test_format_documentation_prints_the_shipped_decoder() -> None:
    """docs/vault-format.md contains the decoder of the package."""
    page = Path(__file__).parents[2] / "docs" / "vault-format.md"
    assert page.read_text().endswith(f"```python\n{Path(slow_decoder.__file__).read_text()}```\n")
