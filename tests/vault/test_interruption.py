"""Packing, injection, removal and recovery, killed or interrupted at every step, lose nothing and can be repeated."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.vault.fixtures import pack_site, server_files, snapshot_folder, static_site
from tests.vault.interruption import DONE, INTERRUPTED, KILLED, count_steps, run_interrupted
from unlost.errors import InputError
from unlost.vault import (
    BLOCKS_FOLDER,
    STATE_NAME,
    BlockCollector,
    DecryptionKeys,
    collect_blocks,
    inject_blocks,
    lock_vault,
    open_vault,
    recover_files,
    remove_blocks,
)

POINTS = {KILLED: 50, INTERRUPTED: 15}
ENDS = pytest.mark.parametrize("how", [KILLED, INTERRUPTED])


def points(work: Callable[[], object], how: int) -> Iterator[int]:
    """Yield steps at which to end, in no order, which is printed so that a failure can be repeated."""
    steps = count_steps(work)
    chosen = random.Random(f"{how}").sample(range(1, steps + 1), min(POINTS[how], steps))  # noqa: S311  not for secrets
    print(f"{steps} steps, ended at {chosen}")
    yield from chosen


def contents(root: Path) -> dict[str, bytes]:
    """Return the bytes of all files below a folder."""
    return {str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()}


def fresh(source: Path, target: Path) -> Path:
    """Copy a folder and return the copy."""
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(source, target, symlinks=True))


@ENDS
def test_interrupted_injection_can_be_completed_or_removed(tmp_path: Path, how: int) -> None:
    """Each page is either old or new; repeating completes the injection, removing reverts it."""
    server, site = server_files(tmp_path), static_site(tmp_path, 12)
    vault = pack_site(tmp_path / "v", server, site, extra_pages=2, raw=True).vault
    bare, work = contents(site), tmp_path / "work"
    inject_blocks(vault, site, tmp_path / "whole")
    whole = contents(tmp_path / "whole")
    fresh(site, work)
    for step in points(lambda: inject_blocks(vault, work), how):
        fresh(site, work)
        assert run_interrupted(lambda: inject_blocks(vault, work), step, how=how) in {how, DONE}
        now = contents(work)
        assert all(now[name] in (body, whole[name]) for name, body in bare.items())
        undone = fresh(work, tmp_path / "undone")
        remove_blocks(undone)
        assert contents(undone) == bare
        inject_blocks(vault, work)
        assert contents(work) == whole


@ENDS
def test_interrupted_removal_can_be_completed(tmp_path: Path, how: int) -> None:
    """Repeating the removal restores the original site."""
    server, site = server_files(tmp_path), static_site(tmp_path, 12)
    bare, work = contents(site), tmp_path / "work"
    inject_blocks(pack_site(tmp_path / "v", server, site, extra_pages=2).vault, site)
    fresh(site, work)
    for step in points(lambda: remove_blocks(work), how):
        fresh(site, work)
        assert run_interrupted(lambda: remove_blocks(work), step, how=how) in {how, DONE}
        remove_blocks(work)
        assert contents(work) == bare


@ENDS
def test_copied_site_is_complete_or_absent(tmp_path: Path, how: int) -> None:
    """`inject -o` creates no incomplete folder."""
    server, site, target = server_files(tmp_path), static_site(tmp_path, 6), tmp_path / "to"
    vault = pack_site(tmp_path / "v", server, site).vault
    inject_blocks(vault, site, tmp_path / "whole")
    before = {path.name for path in tmp_path.iterdir()}
    for step in points(lambda: inject_blocks(vault, site, target), how):
        shutil.rmtree(target, ignore_errors=True)
        code = run_interrupted(lambda: inject_blocks(vault, site, target), step, how=how)
        if target.exists():
            assert contents(target) == contents(tmp_path / "whole")
        elif how == INTERRUPTED:
            assert code == INTERRUPTED
            assert {path.name for path in tmp_path.iterdir()} == before, "nothing is left over"


@ENDS
def test_interrupted_packing_leaves_the_old_or_the_new_vault(tmp_path: Path, how: int) -> None:
    """All pages can be rendered from one version; packing again completes the update."""
    server, site, work = server_files(tmp_path), static_site(tmp_path, 12), tmp_path / "work"
    pack_site(tmp_path / "old", server, site, segments="directory", signed=True)
    (server / "app.py").write_text("print('other')\n")

    def again() -> None:
        pack_site(work, server, site, segments="directory", signed=True, at="20260202000000")

    fresh(tmp_path / "old", work)
    again()
    whole, old = contents(work), contents(tmp_path / "old")
    fresh(tmp_path / "old", work)
    for step in points(again, how):
        fresh(tmp_path / "old", work)
        assert run_interrupted(again, step, how=how) in {how, DONE}
        state = open_vault(work)
        assert (work / STATE_NAME).read_bytes() in {old[STATE_NAME], whole[STATE_NAME]}
        assert all(state.page_blocks_text(key) for key in state.live)
        again()
        assert contents(work) == whole, "nothing is left over"


@ENDS
def test_interrupted_recovery_leaves_all_files_or_none(tmp_path: Path, how: int) -> None:
    """The target is absent, or complete with modes; a second run creates it."""
    server, site, target = server_files(tmp_path), static_site(tmp_path, 12), tmp_path / "back"
    inject_blocks(pack_site(tmp_path / "v", server, site).vault, site)

    def bring_back() -> None:
        gathering = BlockCollector()
        collect_blocks(site, gathering)
        recover_files(gathering, target, DecryptionKeys())

    before = {path.name for path in tmp_path.iterdir()}
    for step in points(bring_back, how):
        shutil.rmtree(target, ignore_errors=True)
        code = run_interrupted(bring_back, step, how=how)
        if target.exists():
            assert snapshot_folder(target / "srv") == snapshot_folder(server)
        else:
            assert code == how
        if how == INTERRUPTED:
            assert {path.name for path in tmp_path.iterdir()} - {"back"} == before
        shutil.rmtree(target, ignore_errors=True)
        bring_back()
        assert snapshot_folder(target / "srv") == snapshot_folder(server)


def test_concurrent_packing_is_rejected(tmp_path: Path) -> None:
    """The second process fails without changing anything."""
    server, site = server_files(tmp_path), static_site(tmp_path, 12)
    pack_site(tmp_path / "v", server, site)
    before = contents(tmp_path / "v" / BLOCKS_FOLDER)
    (server / "app.py").write_text("print('other')\n")
    with lock_vault(tmp_path / "v"), pytest.raises(InputError, match="another process"):
        pack_site(tmp_path / "v", server, site)
    assert contents(tmp_path / "v" / BLOCKS_FOLDER) == before
