"""From server files into pages and back, byte for byte, with modes and times, despite losses."""

import math
import random
import shutil
from pathlib import Path

import pyrage
import pytest

from tests.vault.fixtures import LIMIT, pack_site, server_files, snapshot_folder, static_site
from unlost.errors import InputError, UsageError
from unlost.vault import (
    BlockCollector,
    Carrier,
    DecryptionKeys,
    EncryptionOptions,
    VaultRecovery,
    collect_blocks,
    inject_blocks,
    is_complete,
    iter_html_files,
    plan_blocks,
    read_site_folder,
    recover_files,
    remove_blocks,
)

PHRASE = "käfer 7"
KEY = pyrage.x25519.Identity.generate()


def brought_back(pages: Path, target: Path, keys: DecryptionKeys | None = None) -> VaultRecovery:
    """Recover what a folder of pages holds."""
    gathering = BlockCollector()
    collect_blocks(pages, gathering)
    return recover_files(gathering, target, keys or DecryptionKeys())


@pytest.mark.parametrize("segments", ["one", "directory", "size:10KB", "changed"])
@pytest.mark.parametrize("carrier", list(Carrier))
def test_recovered_files_equal_the_originals(tmp_path: Path, segments: str, carrier: Carrier) -> None:
    """Content, modes, times, links and empty folders, for every division and carrier."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    made = pack_site(tmp_path / "v", server, site, segments=segments, carrier=carrier)
    inject_blocks(made.vault, site, tmp_path / "live")
    done = brought_back(tmp_path / "live", tmp_path / "back")
    assert is_complete(done)
    assert snapshot_folder(tmp_path / "back" / "srv") == snapshot_folder(server)


@pytest.mark.parametrize("way", ["recipient", "passphrase"])
def test_encrypted_files_need_the_key(tmp_path: Path, way: str) -> None:
    """Only the right key decrypts the files; no page contains their names."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    seal = EncryptionOptions((str(KEY.to_public()),)) if way == "recipient" else EncryptionOptions(passphrase=PHRASE)
    made = pack_site(tmp_path / "v", server, site, seal=seal, sealed=way)
    inject_blocks(made.vault, site)
    assert all(b"settings.ini" not in file.read_bytes() for file in iter_html_files(site))
    with pytest.raises(InputError, match="sealed"):
        brought_back(site, tmp_path / "no")
    assert not (tmp_path / "no").exists()
    (tmp_path / "key").write_text(f"# made by a test\n{KEY}\n")
    keys = DecryptionKeys((tmp_path / "key",)) if way == "recipient" else DecryptionKeys(passphrase=PHRASE)
    assert is_complete(brought_back(site, tmp_path / "back", keys))
    assert snapshot_folder(tmp_path / "back" / "srv") == snapshot_folder(server)
    wrong = DecryptionKeys(passphrase=PHRASE[::-1]) if way == "passphrase" else DecryptionKeys()
    with pytest.raises(InputError):
        brought_back(site, tmp_path / "no", wrong)


@pytest.mark.parametrize("seed", range(5))
def test_recovery_tolerates_the_promised_loss_of_pages(tmp_path: Path, seed: int) -> None:
    """Any pages may be lost up to the plan's number; beyond, the missing number of blocks is reported."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    made = pack_site(tmp_path / "v", server, site)
    shape = made.vault.newest.files[0].shape
    inject_blocks(made.vault, site)
    pages = list(iter_html_files(site))
    gone = random.Random(seed).sample([page for page in pages if page.name != "index.html"], shape.count - shape.needed)  # noqa: S311
    for page in gone:
        page.unlink()
    assert is_complete(brought_back(site, tmp_path / "back"))
    next(page for page in iter_html_files(site) if page.name != "index.html").unlink()
    done = brought_back(site, tmp_path / "no")
    assert not is_complete(done)
    (short,) = done.incomplete
    assert (short.missing, short.found, short.name) == (1, shape.needed - 1, "all")
    assert len(short.pages) == len(gone) + 1
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("share", [None, 0.1, 0.2])
@pytest.mark.parametrize("segments", ["directory", "size:10KB"])
def test_several_segments_tolerate_the_loss_of_any_pages(tmp_path: Path, segments: str, share: float | None) -> None:
    """The plan's number may be lost even if all lost pages carry the same segment."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    vault = pack_site(tmp_path / "v", server, site, segments=segments, options={"loss_tolerance": share}).vault
    shapes = {each.id: each.shape for each in vault.newest.files}
    assert len(shapes) > 1
    sizes = {name: shape.size for name, shape in shapes.items()}
    planned = plan_blocks(sizes, read_site_folder(site), limit=LIMIT, loss_tolerance=share)
    assert planned.expendable_pages == min(shape.count - shape.needed for shape in shapes.values())
    assert planned.expendable_pages >= math.floor((share or 0) * len(planned.pages))
    assert planned.sufficient_pages + planned.expendable_pages == len(planned.pages)
    for number, name in enumerate(shapes):
        lossy = tmp_path / f"live-{number}"
        inject_blocks(vault, site, lossy)
        carrying = [page for page, places in vault.newest.placement.items() if places[0][0] == name]
        for page in carrying[: planned.expendable_pages]:
            (lossy / (page.lstrip("/") or "index.html")).unlink()
        assert is_complete(brought_back(lossy, tmp_path / f"back-{number}"))


def test_unreachable_loss_tolerance_is_rejected(tmp_path: Path) -> None:
    """A page carries one segment's block, so two segments cannot tolerate the loss of any half of the pages."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    with pytest.raises(UsageError, match=r"segments, any \d+ of 41 pages may be lost .* not 50%: give --segments one"):
        pack_site(tmp_path / "v", server, site, segments="directory", options={"loss_tolerance": 0.5})
    assert (
        pack_site(tmp_path / "w", server, site, options={"loss_tolerance": 0.5})
        .vault.newest.files[0]
        .shape.loss_tolerance
        >= 0.5
    )


def test_removing_blocks_restores_the_site(tmp_path: Path) -> None:
    """Injection is idempotent, and removal restores every byte, in any charset."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    (site / "wide.html").write_bytes("<html><body>käfer</body></html>".encode("utf-16"))
    (site / "jp.html").write_bytes("<meta charset=iso-2022-jp><p>日本".encode("iso-2022-jp"))
    (site / "broken.html").write_bytes(b"\xff\x00</body>\x80</BODY ></html>")
    (site / "sub" / "unlost-vault").mkdir()
    (site / "sub" / "unlost-vault" / "own.html").write_text("<p>A page about vaults")
    shutil.copytree(site, tmp_path / "before")
    made = pack_site(tmp_path / "v", server, site, notice=True, extra_pages=3, raw=True)
    first = inject_blocks(made.vault, site)
    assert (first.changed, first.missing) == (45 + 3 + 2, 0)
    again = inject_blocks(made.vault, site)
    assert (again.changed, again.unchanged) == (0, 45 + 3 + 2)
    assert "käfer" in (site / "wide.html").read_bytes().decode("utf-16")
    assert b"This page was modified on 2026-01-01" in (site / "index.html").read_bytes()
    gathering = BlockCollector()
    gathering.add_page((site / "wide.html").read_bytes(), "wide")
    assert gathering.pages_with_blocks == 1
    remove_blocks(site)
    assert snapshot_folder(site).keys() == snapshot_folder(tmp_path / "before").keys()
    assert all(
        (site / file.relative_to(tmp_path / "before")).read_bytes() == file.read_bytes()
        for file in (tmp_path / "before").rglob("*")
        if file.is_file()
    )


def test_plain_segment_files_suffice_for_recovery(tmp_path: Path) -> None:
    """Segments served as plain files suffice without any page."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    inject_blocks(pack_site(tmp_path / "v", server, site, raw=True, segments="directory").vault, site)
    (tmp_path / "stored" / "unlost-vault").mkdir(parents=True)
    for file in (site / "unlost-vault").glob("*.tar.gz"):
        shutil.copy(file, tmp_path / "stored" / "unlost-vault")
    done = brought_back(tmp_path / "stored", tmp_path / "back")
    assert not done.incomplete
    assert snapshot_folder(tmp_path / "back" / "srv") == snapshot_folder(server)


def test_packing_unchanged_files_changes_nothing(tmp_path: Path) -> None:
    """The version stays the same, even with encryption, which is not deterministic."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    seal = EncryptionOptions((str(KEY.to_public()),))
    first = pack_site(tmp_path / "v", server, site, seal=seal, sealed="recipients", recipients=seal.recipients)
    state = (tmp_path / "v" / "vault.json").read_bytes()
    second = pack_site(
        tmp_path / "v", server, site, seal=seal, sealed="recipients", recipients=seal.recipients, at="20270101000000"
    )
    assert second.changed == ()
    assert second.vault.newest == first.vault.newest
    assert (tmp_path / "v" / "vault.json").read_bytes() == state


def test_generated_pages_are_not_pages_of_the_site(tmp_path: Path) -> None:
    """Packing a site folder with extra pages again changes nothing."""
    server, site = server_files(tmp_path), static_site(tmp_path, pages=2)
    made = pack_site(tmp_path / "v", server, site, limit=8 << 10, extra_pages=30)
    inject_blocks(made.vault, site)
    again = pack_site(tmp_path / "v", server, site, limit=8 << 10, extra_pages=30, at="20270101000000")
    assert again.changed == ()
    assert again.vault.newest == made.vault.newest


def test_extra_pages_carry_blocks_that_do_not_fit(tmp_path: Path) -> None:
    """A site with too few pages gets a message with the missing number, and works with extra pages."""
    server, site = server_files(tmp_path), static_site(tmp_path, pages=2)
    with pytest.raises(UsageError, match=r"--extra-pages [0-9]+"):
        pack_site(tmp_path / "v", server, site, limit=8 << 10, options={"block_size": 4096})
    made = pack_site(tmp_path / "w", server, site, limit=8 << 10, extra_pages=30)
    inject_blocks(made.vault, site)
    assert is_complete(brought_back(site, tmp_path / "back"))
    assert snapshot_folder(tmp_path / "back" / "srv") == snapshot_folder(server)
    assert all(file.stat().st_size <= 8 << 10 for file in iter_html_files(site))
