"""Writes blocks into the pages of a static site, and removes them."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unlost import dates
from unlost.atomic import atomic_path
from unlost.vault import erasure_code, pages
from unlost.vault.pages import (
    INDEX_LINK,
    VAULT_PATH,
    insert_blocks,
    is_vault_page,
    iter_html_files,
    render_notice,
    strip_blocks,
)
from unlost.vault.state import BLOCKS_FOLDER, Vault
from unlost.vault.tar_archive import atomic_new_folder

_PART_FILE = re.compile(r"\.(?:.*\.x?html?|.{50}|[0-9a-f]{16}\..*)\.[0-9a-f]{16}\.part", re.DOTALL)
"""Matches the names of temporary files of `atomic_path`, for pages and for plain segments."""


@dataclass(slots=True)
class InjectionResult:
    """Result of an injection.

    Attributes:
        changed: Files written.
        unchanged: Files that were already up to date.
        missing: Pages of the vault that the site does not have.
        added: Files of the vault that the site did not have, such as extra pages.
    """

    changed: int = 0
    unchanged: int = 0
    missing: int = 0
    added: int = 0


def inject_blocks(vault: Vault, site: Path, target: Path | None = None) -> InjectionResult:
    """Insert each page's blocks, replacing earlier ones, in place or into a copy of the site.

    Pages whose blocks do not change are not written.

    Args:
        vault: The vault.
        site: Folder of the static site.
        target: Folder for the copy; None to change the site in place.

    Raises:
        UsageError: The target is not empty.
    """
    if target is None:
        return _inject_in_place(vault, site)
    with atomic_new_folder(target) as temporary:
        shutil.copytree(site, temporary, symlinks=True, dirs_exist_ok=True)
        return _inject_in_place(vault, temporary)


def _inject_in_place(vault: Vault, site: Path) -> InjectionResult:
    """Change the pages of a site one by one, each atomically. After an interruption, running it again completes it."""
    _remove_leftovers(site)
    result = InjectionResult()
    site_keys = set()
    has_index = bool(vault.settings.extra_pages or vault.settings.raw)
    for file in iter_html_files(site):
        key = _file_page_key(file, site)
        if is_vault_page(key):
            continue
        site_keys.add(key)
        _write(file, _render_page(vault, key, file.read_bytes(), with_link=has_index), result)
    for name, body in _vault_files(vault):
        file = site / name.lstrip("/")
        file.parent.mkdir(exist_ok=True)
        result.added += not file.exists()
        _write(file, body, result)
    _remove_stale(vault, site)
    result.missing = sum(not is_vault_page(key) and key not in site_keys for key in vault.live)
    return result


def remove_blocks(site: Path) -> int:
    """Remove all blocks, notices and generated pages from a site; return the number of changed or removed items."""
    count = 0
    _remove_leftovers(site)
    for file in iter_html_files(site):
        if is_vault_page(_file_page_key(file, site)):
            continue
        body = file.read_bytes()
        bare = strip_blocks(body)
        if bare != body:
            with atomic_path(file) as temporary:
                temporary.write_bytes(bare)
            count += 1
    folder = site / "unlost-vault"
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
        count += 1
    return count


def _file_page_key(file: Path, site: Path) -> str:
    return "/" + file.relative_to(site).as_posix()


def _remove_leftovers(site: Path) -> None:
    """Remove temporary files of a process that was killed."""
    for file in site.rglob(".*.part"):
        if _PART_FILE.fullmatch(file.name) and file.is_file() and not file.is_symlink():
            file.unlink()


def render_page_blocks(vault: Vault, key: str, *, with_link: bool) -> bytes:
    """Return all that is inserted into a page: notice and link, if enabled, and blocks."""
    blocks = vault.page_blocks_text(key)
    if not blocks:
        return b""
    notice = render_notice(dates.to_iso(vault.since[key])) if vault.settings.notice else b""
    return notice + (INDEX_LINK if with_link else b"") + blocks


def _render_page(vault: Vault, key: str, body: bytes, *, with_link: bool) -> bytes:
    stripped = strip_blocks(body)
    blocks = render_page_blocks(vault, key, with_link=with_link)
    return insert_blocks(stripped, blocks) if blocks else stripped


def extra_page_keys(vault: Vault) -> list[str]:
    """Return the keys of the pages that exist only to carry blocks."""
    return [page.key for page in vault.pages if is_vault_page(page.key)]


def iter_raw_segments(vault: Vault) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each segment that is served as a plain file, if that is enabled."""
    if vault.settings.raw:
        for segment in vault.newest.files:
            with (vault.folder / BLOCKS_FOLDER / segment.blocks_name).open("rb") as blocks:
                yield pages.raw_segment_path(segment), erasure_code.read_content(blocks, segment.shape)


def _vault_files(vault: Vault) -> Iterator[tuple[str, bytes]]:
    keys = []
    for key in extra_page_keys(vault):
        blocks = vault.page_blocks_text(key)
        keys.append(key)
        yield key, insert_blocks(pages.render_extra_page(key), blocks)
    for name, content in iter_raw_segments(vault):
        keys.append(name)
        yield name, content
    if keys:
        yield pages.INDEX_PATH, pages.render_index(keys)


def _remove_stale(vault: Vault, site: Path) -> None:
    """Remove plain segment files of earlier versions."""
    current_names = {pages.raw_segment_path(segment).rpartition("/")[2] for segment in vault.newest.files}
    folder = site / VAULT_PATH.strip("/")
    for file in folder.glob("*.tar.gz*") if folder.is_dir() else ():
        if file.name not in current_names:
            file.unlink()


def _write(file: Path, body: bytes, result: InjectionResult) -> None:
    if file.is_file() and file.read_bytes() == body:
        result.unchanged += 1
        return
    with atomic_path(file) as temporary:
        temporary.write_bytes(body)
    result.changed += 1
