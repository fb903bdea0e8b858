"""Pages and blocks that lie: nothing is written outside the target, nothing wrong is given out."""

import gzip
import hashlib
import io
import tarfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vault.made import listing, packed, server_files, static_site
from tests.vault.test_coding import coded
from unlost._core import signing_public_key
from unlost.errors import InputError
from unlost.vault import slow_decoder
from unlost.vault.block import FILES, Block, Label, text_of
from unlost.vault.carriers import Carrier, carried
from unlost.vault.finding import find_blocks
from unlost.vault.gathering import Gathering, gather
from unlost.vault.injecting import inject
from unlost.vault.recovering import is_complete, recover
from unlost.vault.sealing import Keys
from unlost.vault.shape import shape_of
from unlost.vault.site_pages import html_files


def blocks_of(content: bytes, needed: int = 1, count: int = 2, wrap: str = "tar.gz") -> list[Block]:
    """Return all blocks of a content."""
    shape = shape_of(len(content), needed, count)
    version = hashlib.sha256(content).hexdigest()
    return [
        Block(Label(FILES, "ab" * 8, version, shape, wrap, index, hashlib.sha256(data).hexdigest()), data)
        for index, data in enumerate(coded(content, shape))
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


def gathered(*pages: bytes, keys: frozenset[str] = frozenset()) -> Gathering:
    """Return what is in pages."""
    found = Gathering(keys)
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
    done = recover(gathered(text_of(blocks_of(content)[1])), tmp_path / "t" / "back", Keys())
    assert sorted(done.unpacked.names) == ["dir/good", "near"]
    assert len(done.unpacked.refused) == 8
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["back"]
    assert (tmp_path / "t" / "back" / "dir" / "good").stat().st_mode & 0o7777 == 0o777, "no rights of its owner's"
    through = recover(gathered(text_of(blocks_of(tar_of(*evil))[1])), tmp_path / "u", Keys())
    assert "near/through" in through.unpacked.names
    assert (tmp_path / "u" / "near").is_dir()
    assert not (tmp_path / "u" / "near").is_symlink(), "a link never takes the place of a folder that was written to"


def test_what_is_no_tar_leaves_nothing(tmp_path: Path) -> None:
    """A version that is whole and no packed tar is an error, and no folder is left behind."""
    for content in (b"no gzip at all", gzip.compress(b"no tar" * 200), tar_of(member("a"))[:600]):
        with pytest.raises(InputError):
            recover(gathered(text_of(blocks_of(content)[0])), tmp_path / "back", Keys())
    assert list(tmp_path.iterdir()) == []


def test_forged_blocks_are_left_out_as_far_as_others_suffice(tmp_path: Path) -> None:
    """A block with other bytes and a hash that fits them spoils nothing while there are enough true ones."""
    content = tar_of(member("good"))
    blocks = blocks_of(content, needed=3, count=6)
    other = bytes(len(blocks[0].data))
    forged = Block(replace(blocks[0].label, sha256=hashlib.sha256(other).hexdigest()), other)
    pages = [text_of(block) for block in (forged, *blocks[1:4])]
    assert recover(gathered(*pages), tmp_path / "back", Keys()).unpacked.names == ["good"]
    both = [text_of(block) for block in (forged, *blocks[:3])]
    assert recover(gathered(*both), tmp_path / "again", Keys()).unpacked.names == ["good"]
    few = recover(gathered(*pages[:3]), tmp_path / "no", Keys())
    assert (few.forged, few.whole) == (1, {})
    assert not (tmp_path / "no").exists()


def test_signed_blocks_alone_are_taken_if_that_is_wanted() -> None:
    """What somebody else signed, or nobody, is passed over; a signature that does not fit is a forgery."""
    block = blocks_of(tar_of(member("a")))[0]
    ours, theirs = bytes(range(32)), bytes(range(1, 33))
    key = frozenset({signing_public_key(ours).hex()})
    assert gathered(text_of(block, ours), keys=key).carrying == 1
    found = gathered(text_of(block, theirs), text_of(block), keys=key)
    assert (found.carrying, found.problems["not-signed"]) == (0, 2)
    words = text_of(block, ours).replace(b"index=0", b"index=1")
    assert gathered(words, keys=key).problems["forged"] == 1


def test_versions_are_never_mixed(tmp_path: Path) -> None:
    """Blocks of two versions, neither of them whole, bring nothing back although together they would be enough."""
    one = blocks_of(tar_of(member("a")), needed=4, count=8)
    two = blocks_of(tar_of(member("b")), needed=4, count=8)
    done = recover(gathered(*map(text_of, (*one[:3], *two[3:6]))), tmp_path / "no", Keys())
    assert done.whole == {}
    assert sorted(short.missing for short in done.short) == [1, 1]


def test_pages_that_were_changed_on_their_way(tmp_path: Path) -> None:
    """Line ends collapsed, pages in UTF-16 or cut, letters changed: what is whole is used, the rest counted."""
    block = blocks_of(tar_of(member("a")))[0]
    page = b"<p>x</p>" + carried(text_of(block), Carrier.COMMENT)
    assert gathered(b" ".join(page.split())).carrying == 1
    assert gathered(page.replace(b"\n", b"\r\n")).carrying == 1
    assert gathered(page.decode().encode("utf-16")).carrying == 1
    assert gathered(page.decode().encode("utf-16-be")).carrying == 1
    assert gathered(page[:-60]).problems == Counter(cut=1)
    at = page.index(b"\ndata\n") + 20
    assert gathered(page[:at] + b"!" + page[at + 1 :]).problems == Counter(damaged=1)
    assert gathered(page.replace(b"rs16", b"rs99")).problems == Counter(unreadable=1)
    assert gathered(page[:-60] + page).carrying == 1
    with pytest.raises(InputError, match="no blocks"):
        recover(gathered(b"<p>nothing</p>"), tmp_path / "no", Keys())


@given(st.binary(max_size=300), st.integers(0, 400), st.integers(0, 400))
def test_any_bytes_are_read_without_harm(noise: bytes, start: int, length: int) -> None:
    """Whatever is put into the text of a block, it is a block, or counted, or nothing."""
    text = text_of(blocks_of(b"abc")[0])
    problems: Counter[str] = Counter()
    for block in find_blocks(text[:start] + noise + text[start + length :], problems):
        assert hashlib.sha256(block.data).hexdigest() == block.label.sha256


def test_the_slow_decoder_reads_pages_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Alone, with nothing of unlost imported, it gives the packed files that were coded."""
    assert "unlost" not in Path(slow_decoder.__file__).read_text().split('"""', 2)[2].replace("unlost-vault-1", "")
    server, site = server_files(tmp_path), static_site(tmp_path)
    made = packed(tmp_path / "v", server, site)
    inject(made.vault, site)
    for page in list(html_files(site))[:18]:
        page.unlink()
    slow_decoder.main([str(site), "-o", str(tmp_path / "slow")])
    (file,) = (tmp_path / "slow").glob("*.tar.gz")
    assert hashlib.sha256(file.read_bytes()).hexdigest() == made.vault.newest.files[0].version
    with tarfile.open(file) as tar:
        tar.extractall(tmp_path / "by-tar", filter="tar")
    assert {name: content for name, (_, _, content) in listing(tmp_path / "by-tar" / "srv").items()} == {
        name: content for name, (_, _, content) in listing(server).items()
    }
    assert "tar.gz" in capsys.readouterr().out


def test_a_forged_manifest_does_not_matter(tmp_path: Path) -> None:
    """A manifest that is none is passed over: the files need none."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    inject(packed(tmp_path / "v", server, site).vault, site)
    found = Gathering()
    gather(site, found)
    lie = blocks_of(gzip.compress(b'{"format":"unlost-vault-manifest-1","segments":[{"id":"../x"}]}'), wrap="json.gz")
    label = replace(lie[0].label, kind="manifest")
    found.add_page(text_of(Block(label, lie[0].data)), "/lie", "20990101000000")
    done = recover(found, tmp_path / "back", Keys())
    assert is_complete(done)
    assert found.problems["manifest-not-opened"] == 1
    assert listing(tmp_path / "back" / "srv") == listing(server)


def test_the_format_page_shows_the_decoder_that_is_shipped() -> None:
    """The program in docs/vault-format.md is the one in the package."""
    page = Path(__file__).parents[2] / "docs" / "vault-format.md"
    assert page.read_text().endswith(f"```python\n{Path(slow_decoder.__file__).read_text()}```\n")
