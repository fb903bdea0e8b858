"""Staged updates: whatever archives have crawled so far, one complete version can be recovered."""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.vault.fixtures import pack_site, server_files, snapshot_folder, static_site
from unlost.errors import UsageError
from unlost.vault import (
    BlockCollector,
    DecryptionKeys,
    block_indices,
    collect_blocks,
    finish_update,
    inject_blocks,
    is_complete,
    iter_html_files,
    recover_files,
    segment_holdings,
)


def refresh(archive: Path, site: Path, share: float, rng: random.Random) -> None:
    """Let an archive that stores only the latest capture visit a share of the pages."""
    for page in iter_html_files(site):
        if rng.random() < share:
            target = archive / page.relative_to(site)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(page, target)


def folder_content(place: Path) -> BlockCollector:
    """Return what a folder holds."""
    found = BlockCollector()
    collect_blocks(place, found)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limit", [214 << 10, 6 << 10])
def test_staged_update_always_leaves_one_version_recoverable(tmp_path: Path, seed: int, limit: int) -> None:
    """An archive that overwrites captures and refreshes a fifth of the pages at a time always has one version."""
    rng = random.Random(seed)  # noqa: S311  not for secrets
    server, site, archive = server_files(tmp_path), static_site(tmp_path, 80), tmp_path / "archive"
    vault = tmp_path / "v"
    inject_blocks(pack_site(vault, server, site, limit=limit, options={"loss_tolerance": 0.6}).vault, site)
    refresh(archive, site, 0.9, rng)
    first = snapshot_folder(server)
    shutil.rmtree(server)
    server = server_files(tmp_path, seed=99)
    made = pack_site(vault, server, site, limit=limit, options={"loss_tolerance": 0.6}, at="20260201000000")
    assert len(made.vault.generations) == 2
    second = snapshot_folder(server)
    inject_blocks(made.vault, site)
    is_safe = False
    for step in range(40):
        refresh(archive, site, 0.2, rng)
        found = folder_content(archive)
        shutil.rmtree(tmp_path / "back", ignore_errors=True)
        recover_files(found, tmp_path / "back", DecryptionKeys())
        back = {name: value[2] for name, value in snapshot_folder(tmp_path / "back" / "srv").items()}
        assert back in ({n: v[2] for n, v in first.items()}, {n: v[2] for n, v in second.items()}), step
        if not is_safe and all(
            each.is_recoverable for each in segment_holdings(made.vault.newest, block_indices(found))
        ):
            is_safe = True
            inject_blocks(finish_update(made.vault, "20260301000000"), site)
    assert is_safe
    assert is_complete(recover_files(folder_content(archive), tmp_path / "end", DecryptionKeys()))
    assert snapshot_folder(tmp_path / "end" / "srv") == second


def test_unstaged_update_loses_both_versions_temporarily(tmp_path: Path) -> None:
    """Without staging, neither version is complete while half of the pages are refreshed."""
    server, site = server_files(tmp_path), static_site(tmp_path, 40)
    settings: dict[str, Any] = {"options": {"loss_tolerance": 0.2}}
    inject_blocks(pack_site(tmp_path / "v", server, site, **settings).vault, site)
    shutil.copytree(site, tmp_path / "archive")
    shutil.rmtree(server)
    made = pack_site(
        tmp_path / "v", server_files(tmp_path, seed=99), site, options={"loss_tolerance": 0.2, "skips_staging": True}
    )
    inject_blocks(made.vault, site)
    for page in list(iter_html_files(site))[::2]:
        shutil.copy(page, tmp_path / "archive" / page.relative_to(site))
    assert recover_files(folder_content(tmp_path / "archive"), tmp_path / "no", DecryptionKeys()).complete == {}


def test_only_changed_segments_get_new_pages(tmp_path: Path) -> None:
    """A change in one folder changes only the pages of its segment and of the manifest."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    inject_blocks(pack_site(tmp_path / "v", server, site, segments="directory").vault, site)
    before = {page: page.read_bytes() for page in iter_html_files(site)}
    (server / "lib" / "deep" / "run.sh").write_text("#!/bin/sh\necho other\n")
    made = pack_site(tmp_path / "v", server, site, segments="directory", at="20260202000000")
    assert made.changed == ("srv/lib",)
    inject_blocks(made.vault, site)
    changed = {"/" + page.relative_to(site).as_posix() for page, body in before.items() if page.read_bytes() != body}
    new = made.vault.newest
    moved = {each.id for each in new.segments if each.name in {"srv/lib", "manifest"}}
    old = {each.id for each in made.vault.generations[0].segments}
    assert old == {each.id for each in new.segments}
    assert changed == {key for key, places in new.placement.items() if any(name in moved for name, _ in places)}
    assert len(changed) < len(before)


def test_pages_without_room_for_both_versions_carry_one_or_fail(tmp_path: Path) -> None:
    """If too few pages have room, packing fails with a message."""
    server, site = server_files(tmp_path), static_site(tmp_path, 40)
    settings: dict[str, Any] = {"limit": 3 << 10, "options": {"loss_tolerance": 0.1, "block_size": 1600}}
    pack_site(tmp_path / "v", server, site, **settings)
    shutil.rmtree(server)
    state = (tmp_path / "v" / "vault.json").read_bytes()
    with pytest.raises(UsageError, match="--at-once"):
        pack_site(tmp_path / "v", server_files(tmp_path, seed=99), site, **settings)
    assert (tmp_path / "v" / "vault.json").read_bytes() == state


def test_removed_pages_do_not_move_other_blocks(tmp_path: Path) -> None:
    """A site that lost pages gets fewer blocks of the same version; earlier captures stay usable."""
    server, site = server_files(tmp_path), static_site(tmp_path, 40)
    before = pack_site(tmp_path / "v", server, site).vault.newest
    for page in list(iter_html_files(site))[:12]:
        page.unlink()
    made = pack_site(tmp_path / "v", server, site, at="20260202000000").vault
    assert made.newest.files[0].shape.count < before.files[0].shape.count
    assert inject_blocks(made, site).changed == 29
    assert is_complete(recover_files(folder_content(site), tmp_path / "back", DecryptionKeys()))
