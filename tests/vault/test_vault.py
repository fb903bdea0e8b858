"""From server files into pages and back: byte for byte, with modes and times, whatever is lost."""

import math
import random
import shutil
from pathlib import Path

import pyrage
import pytest

from tests.vault.made import LIMIT, listing, packed, server_files, static_site
from unlost.errors import InputError, UsageError
from unlost.vault.carriers import Carrier
from unlost.vault.gathering import Gathering, gather
from unlost.vault.injecting import inject, remove
from unlost.vault.planning import plan
from unlost.vault.recovering import Recovered, is_complete, recover
from unlost.vault.sealing import Keys, Seal
from unlost.vault.site_pages import html_files, pages_of_folder

PHRASE = "käfer 7"
KEY = pyrage.x25519.Identity.generate()


def brought_back(pages: Path, target: Path, keys: Keys | None = None) -> Recovered:
    """Recover what a folder of pages holds."""
    gathering = Gathering()
    gather(pages, gathering)
    return recover(gathering, target, keys or Keys())


@pytest.mark.parametrize("segments", ["one", "directory", "size:10KB", "changed"])
@pytest.mark.parametrize("carrier", list(Carrier))
def test_files_come_back_as_they_were(tmp_path: Path, segments: str, carrier: Carrier) -> None:
    """Bytes, modes, times, links and empty folders are the same, however files are divided and hidden."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    made = packed(tmp_path / "v", server, site, segments=segments, carrier=carrier)
    inject(made.vault, site, tmp_path / "live")
    done = brought_back(tmp_path / "live", tmp_path / "back")
    assert is_complete(done)
    assert listing(tmp_path / "back" / "srv") == listing(server)


@pytest.mark.parametrize("way", ["recipient", "passphrase"])
def test_sealed_files_come_back_with_the_key_alone(tmp_path: Path, way: str) -> None:
    """What is sealed is opened by its key, and by nothing else; names are in no page."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    seal = Seal((str(KEY.to_public()),)) if way == "recipient" else Seal(passphrase=PHRASE)
    made = packed(tmp_path / "v", server, site, seal=seal, sealed=way)
    inject(made.vault, site)
    assert all(b"settings.ini" not in file.read_bytes() for file in html_files(site))
    with pytest.raises(InputError, match="sealed"):
        brought_back(site, tmp_path / "no")
    assert not (tmp_path / "no").exists()
    (tmp_path / "key").write_text(f"# made by a test\n{KEY}\n")
    keys = Keys((tmp_path / "key",)) if way == "recipient" else Keys(passphrase=PHRASE)
    assert is_complete(brought_back(site, tmp_path / "back", keys))
    assert listing(tmp_path / "back" / "srv") == listing(server)
    wrong = Keys(passphrase=PHRASE[::-1]) if way == "passphrase" else Keys()
    with pytest.raises(InputError):
        brought_back(site, tmp_path / "no", wrong)


@pytest.mark.parametrize("seed", range(5))
def test_as_many_pages_may_be_lost_as_was_said(tmp_path: Path, seed: int) -> None:
    """Any pages at all may be lost, as many as the plan says; one more, and it says how many more are needed."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    made = packed(tmp_path / "v", server, site)
    shape = made.vault.newest.files[0].shape
    inject(made.vault, site)
    pages = list(html_files(site))
    gone = random.Random(seed).sample([page for page in pages if page.name != "index.html"], shape.count - shape.needed)  # noqa: S311
    for page in gone:
        page.unlink()
    assert is_complete(brought_back(site, tmp_path / "back"))
    next(page for page in html_files(site) if page.name != "index.html").unlink()
    done = brought_back(site, tmp_path / "no")
    assert not is_complete(done)
    (short,) = done.short
    assert (short.missing, short.found, short.name) == (1, shape.needed - 1, "all")
    assert len(short.pages) == len(gone) + 1
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("share", [None, 0.1, 0.2])
@pytest.mark.parametrize("segments", ["directory", "size:10KB"])
def test_any_pages_may_be_lost_with_several_segments(tmp_path: Path, segments: str, share: float | None) -> None:
    """As many as the plan says may be lost, even if all of them carry blocks of one segment."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    vault = packed(tmp_path / "v", server, site, segments=segments, wish={"may_be_lost": share}).vault
    shapes = {each.id: each.shape for each in vault.newest.files}
    assert len(shapes) > 1
    sizes = {name: shape.size for name, shape in shapes.items()}
    planned = plan(sizes, pages_of_folder(site), limit=LIMIT, may_be_lost=share)
    assert planned.spare == min(shape.count - shape.needed for shape in shapes.values())
    assert planned.spare >= math.floor((share or 0) * len(planned.pages))
    assert planned.sufficient + planned.spare == len(planned.pages)
    for number, name in enumerate(shapes):
        lossy = tmp_path / f"live-{number}"
        inject(vault, site, lossy)
        carrying = [page for page, places in vault.newest.placement.items() if places[0][0] == name]
        for page in carrying[: planned.spare]:
            (lossy / (page.lstrip("/") or "index.html")).unlink()
        assert is_complete(brought_back(lossy, tmp_path / f"back-{number}"))


def test_a_share_that_segments_cannot_bear_is_refused(tmp_path: Path) -> None:
    """A page carries a block of one segment, so that two segments never bear the loss of any half of the pages."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    with pytest.raises(UsageError, match=r"segments, any \d+ of 41 pages may be lost .* not 50%: give --segments one"):
        packed(tmp_path / "v", server, site, segments="directory", wish={"may_be_lost": 0.5})
    assert (
        packed(tmp_path / "w", server, site, wish={"may_be_lost": 0.5}).vault.newest.files[0].shape.may_be_lost >= 0.5
    )


def test_a_site_without_blocks_is_what_it_was(tmp_path: Path) -> None:
    """Injecting twice is injecting once, and removing gives every byte back, in any charset."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    (site / "wide.html").write_bytes("<html><body>käfer</body></html>".encode("utf-16"))
    (site / "jp.html").write_bytes("<meta charset=iso-2022-jp><p>日本".encode("iso-2022-jp"))
    (site / "broken.html").write_bytes(b"\xff\x00</body>\x80</BODY ></html>")
    (site / "sub" / "unlost-vault").mkdir()
    (site / "sub" / "unlost-vault" / "own.html").write_text("<p>A page about vaults")
    shutil.copytree(site, tmp_path / "before")
    made = packed(tmp_path / "v", server, site, notice=True, extra_pages=3, raw=True)
    first = inject(made.vault, site)
    assert (first.changed, first.missing) == (45 + 3 + 2, 0)
    again = inject(made.vault, site)
    assert (again.changed, again.unchanged) == (0, 45 + 3 + 2)
    assert "käfer" in (site / "wide.html").read_bytes().decode("utf-16")
    assert b"This page was modified on 2026-01-01" in (site / "index.html").read_bytes()
    gathering = Gathering()
    gathering.add_page((site / "wide.html").read_bytes(), "wide")
    assert gathering.carrying == 1
    remove(site)
    assert listing(site).keys() == listing(tmp_path / "before").keys()
    assert all(
        (site / file.relative_to(tmp_path / "before")).read_bytes() == file.read_bytes()
        for file in (tmp_path / "before").rglob("*")
        if file.is_file()
    )


def test_raw_files_alone_suffice(tmp_path: Path) -> None:
    """What is served as it is brings everything back although no page was kept."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    inject(packed(tmp_path / "v", server, site, raw=True, segments="directory").vault, site)
    (tmp_path / "kept" / "unlost-vault").mkdir(parents=True)
    for file in (site / "unlost-vault").glob("*.tar.gz"):
        shutil.copy(file, tmp_path / "kept" / "unlost-vault")
    done = brought_back(tmp_path / "kept", tmp_path / "back")
    assert not done.short
    assert listing(tmp_path / "back" / "srv") == listing(server)


def test_packing_again_changes_nothing(tmp_path: Path) -> None:
    """The same files are the same version, also if they are sealed, which makes other bytes each time."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    seal = Seal((str(KEY.to_public()),))
    first = packed(tmp_path / "v", server, site, seal=seal, sealed="recipients", recipients=seal.recipients)
    state = (tmp_path / "v" / "vault.json").read_bytes()
    second = packed(
        tmp_path / "v", server, site, seal=seal, sealed="recipients", recipients=seal.recipients, at="20270101000000"
    )
    assert second.changed == ()
    assert second.vault.newest == first.vault.newest
    assert (tmp_path / "v" / "vault.json").read_bytes() == state


def test_pages_of_the_vault_itself_are_no_pages_of_the_site(tmp_path: Path) -> None:
    """A site that has extra pages in its folder is packed again as if they were not there: nothing changes."""
    server, site = server_files(tmp_path), static_site(tmp_path, pages=2)
    made = packed(tmp_path / "v", server, site, limit=8 << 10, extra_pages=30)
    inject(made.vault, site)
    again = packed(tmp_path / "v", server, site, limit=8 << 10, extra_pages=30, at="20270101000000")
    assert again.changed == ()
    assert again.vault.newest == made.vault.newest


def test_extra_pages_carry_what_others_cannot(tmp_path: Path) -> None:
    """A site with too few pages is told how many it lacks, and with these it works."""
    server, site = server_files(tmp_path), static_site(tmp_path, pages=2)
    with pytest.raises(UsageError, match=r"--extra-pages [0-9]+"):
        packed(tmp_path / "v", server, site, limit=8 << 10, wish={"block": 4096})
    made = packed(tmp_path / "w", server, site, limit=8 << 10, extra_pages=30)
    inject(made.vault, site)
    assert is_complete(brought_back(site, tmp_path / "back"))
    assert listing(tmp_path / "back" / "srv") == listing(server)
    assert all(file.stat().st_size <= 8 << 10 for file in html_files(site))
