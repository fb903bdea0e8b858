"""Blocks into the pages of a static site, and out of them again."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unlost import dates
from unlost.formats.output import whole_path
from unlost.vault import coding, extra_pages
from unlost.vault.page_text import FOLDER, LINK, notice_of, with_blocks, without_blocks
from unlost.vault.site_pages import html_files, is_added
from unlost.vault.state import BLOCKS, Vault
from unlost.vault.unpacking import new_folder

_ASIDE = re.compile(r"\.(?:.*\.x?html?|.{50}|[0-9a-f]{16}\..*)\.[0-9a-f]{16}\.part", re.DOTALL)
"""What `whole_path` calls files that are not whole: of pages, and of what is served as it is."""


@dataclass(slots=True)
class Injected:
    """What came of it. changed, unchanged: pages. missing: pages of the vault that are not in the site."""

    changed: int = 0
    unchanged: int = 0
    missing: int = 0
    added: int = 0


def inject(vault: Vault, site: Path, target: Path | None = None) -> Injected:
    """Put into each page what it is to carry, and take out what it carried; in place, or into a copy of the site.

    Pages whose blocks do not change are not written. Raises UsageError if there is something at the target.
    """
    if target is None:
        return _inject(vault, site)
    with new_folder(target, "--to") as aside:
        shutil.copytree(site, aside, symlinks=True, dirs_exist_ok=True)
        return _inject(vault, aside)


def _inject(vault: Vault, site: Path) -> Injected:
    """Change the pages of a site one by one, each whole or not at all: whatever ends it, doing it again ends it."""
    _sweep(site)
    done = Injected()
    there = set()
    leads = bool(vault.settings.extra_pages or vault.settings.raw)
    for file in html_files(site):
        key = _key(file, site)
        if is_added(key):
            continue
        there.add(key)
        _write(file, _page(vault, key, file.read_bytes(), leads=leads), done)
    for name, body in _added(vault):
        file = site / name.lstrip("/")
        file.parent.mkdir(exist_ok=True)
        done.added += not file.exists()
        _write(file, body, done)
    _remove_stale(vault, site)
    done.missing = sum(not is_added(key) and key not in there for key in vault.live)
    return done


def remove(site: Path) -> int:
    """Take all blocks and notices out of the pages of a site, and pages that were made for them; return how many."""
    count = 0
    _sweep(site)
    for file in html_files(site):
        if is_added(_key(file, site)):
            continue
        body = file.read_bytes()
        bare = without_blocks(body)
        if bare != body:
            with whole_path(file) as aside:
                aside.write_bytes(bare)
            count += 1
    folder = site / "unlost-vault"
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
        count += 1
    return count


def _key(file: Path, site: Path) -> str:
    return "/" + file.relative_to(site).as_posix()


def _sweep(site: Path) -> None:
    """Take away what was written aside by a process that was killed before it got its name."""
    for file in site.rglob(".*.part"):
        if _ASIDE.fullmatch(file.name) and file.is_file() and not file.is_symlink():
            file.unlink()


def carried_by(vault: Vault, key: str, *, leads: bool) -> bytes:
    """Return all that a page is given: blocks, and if they are wanted a notice and a link."""
    text = vault.text(key)
    if not text:
        return b""
    notice = notice_of(dates.to_iso(vault.since[key])) if vault.settings.notice else b""
    return notice + (LINK if leads else b"") + text


def _page(vault: Vault, key: str, body: bytes, *, leads: bool) -> bytes:
    bare = without_blocks(body)
    carried = carried_by(vault, key, leads=leads)
    return with_blocks(bare, carried) if carried else bare


def added_pages(vault: Vault) -> list[str]:
    """Return the keys of the pages that are made only to carry blocks."""
    return [page.key for page in vault.pages if is_added(page.key)]


def raw_contents(vault: Vault) -> Iterator[tuple[str, bytes]]:
    """Yield each segment as it was packed, if that is wanted, with the path that it is served at."""
    if vault.settings.raw:
        for segment in vault.newest.files:
            with (vault.folder / BLOCKS / segment.blocks_name).open("rb") as blocks:
                yield extra_pages.raw_name(segment), coding.read_content(blocks, segment.shape)


def _added(vault: Vault) -> Iterator[tuple[str, bytes]]:
    keys = []
    for key in added_pages(vault):
        carried = vault.text(key)
        keys.append(key)
        yield key, with_blocks(extra_pages.extra_page(key), carried)
    for name, content in raw_contents(vault):
        keys.append(name)
        yield name, content
    if keys:
        yield extra_pages.INDEX, extra_pages.index_page(keys)


def _remove_stale(vault: Vault, site: Path) -> None:
    """Take away what was served as it is, and is of no version any more."""
    named = {extra_pages.raw_name(segment).rpartition("/")[2] for segment in vault.newest.files}
    folder = site / FOLDER.strip("/")
    for file in folder.glob("*.tar.gz*") if folder.is_dir() else ():
        if file.name not in named:
            file.unlink()


def _write(file: Path, body: bytes, done: Injected) -> None:
    if file.is_file() and file.read_bytes() == body:
        done.unchanged += 1
        return
    with whole_path(file) as aside:
        aside.write_bytes(body)
    done.changed += 1
