"""Opens a site of any kind; reads the site of a recovery."""

import base64
from collections import Counter
from collections.abc import Callable
from os import PathLike
from pathlib import Path

from unlost.comparison import site
from unlost.comparison.file_site import read_folder, read_package
from unlost.comparison.site import WARC_FOLDER, ResourceTable, Site, SiteKind
from unlost.comparison.warc_site import WarcSite, WarcSiteReader, read_parts, read_warcs, skip_reason
from unlost.errors import InputError, UriError, UsageError
from unlost.recovery.state.reader import ChosenCapture, StateReader
from unlost.uri import names as uri_names

_WARC_PATTERN = "*.warc.gz*"


def read_recovery(
    folder: Path, *, ignore_case: bool = False, on_read: Callable[[int], object] | None = None
) -> WarcSite:
    """Read the site of a recovery, as far as it is stored; the recovery may be running. Raises InputError, OSError."""
    with StateReader(folder) as state:
        # The state is read before the files, so that every capture in it has been written.
        chosen = list(state.chosen_captures())
        listed = list(state.unrecovered_listed())
        requests = state.total_requests()
        had_case = not state.ignore_case
    files = sorted(
        file for file in (folder / WARC_FOLDER).glob(_WARC_PATTERN) if file.is_file() and not file.is_symlink()
    )
    if chosen and not files:
        raise InputError(f"{folder / WARC_FOLDER}: the archive files of the recovery are gone: put them back")
    reader, parts = read_parts(files, ignore_case=ignore_case, on_read=on_read)
    namer = _ResourceNamer(had_case=had_case, ignore_case=ignore_case)
    part_indexes = {part.path.name.removesuffix(".open"): part_index for part_index, part in enumerate(parts)}
    table, skipped = _select_captures(chosen, reader, part_indexes, namer)
    names = (namer.name(name, uri) for name, uri in listed)
    held = frozenset(name for name in names if name is not None and name not in table)
    return WarcSite(table, parts, dict(skipped), reader.problems, held, requests)


class _ResourceNamer:
    """Names the resources of a recovery, whose rule for letter case may differ from that of the comparison."""

    def __init__(self, *, had_case: bool, ignore_case: bool) -> None:
        self._had_case = had_case
        self._ignore_case = ignore_case

    def name(self, name: str, uri: str) -> str | None:
        """Return the name of a resource; None if its URL is invalid."""
        if self._ignore_case:
            return uri_names.fold_case(name)
        if self._had_case:
            return name
        try:
            return uri_names.page_name(uri)
        except UriError:
            return None


def _select_captures(
    chosen: list[ChosenCapture], reader: WarcSiteReader, part_indexes: dict[str, int], namer: _ResourceNamer
) -> tuple[ResourceTable, Counter[str]]:
    """Return a table of the chosen captures, and the number of those that are not resources, by reason."""
    captures = reader.table
    rows_by_location = {captures.locate(row)[:2]: row for row in captures.rows}
    rows_by_digest = {captures.digest(row): row for row in captures.rows}
    table, skipped = ResourceTable(), Counter[str]()
    for each in chosen:
        name = namer.name(each.name, each.uri)
        reason = "no-address" if name is None else skip_reason(200 if each.status is None else each.status)
        if name is None or reason is not None:
            skipped[reason or ""] += 1
            continue
        row = rows_by_location.get((part_indexes.get(each.file.removesuffix(".open"), -1), each.offset))
        if row is None or each.is_revisit:
            # The body of another record with the same digest is used.
            row = rows_by_digest.get(_decode_sha1(each.digest))
        if row is None:
            skipped["revisit-without-body" if each.is_revisit else "cut"] += 1
            continue
        table.add(
            name,
            each.uri,
            int(each.datetime),
            captures.modified(row),
            each.mime,
            captures.digest(row),
            captures.size(row),
            each.migrated,
            captures.locate(row),
        )
    return table, skipped


def _decode_sha1(digest: str | None) -> bytes:
    """Decode a stored SHA-1; empty if it is invalid."""
    try:
        return base64.b32decode((digest or "").removeprefix("sha1:"))
    except ValueError:
        return b""


def open_site(
    path: str | PathLike[str],
    *,
    base: str | None = None,
    ignore_case: bool = False,
    on_read: Callable[[int], object] | None = None,
) -> Site:
    """Read the site that is stored at a path, in one pass with bounded memory. May run in several threads.

    Args:
        path: The directory of a recovery; a WARC, ARC or WACZ file; a directory of such files only, which form one
            site; any other directory, with a subdirectory for each host or with `base`; or what `unlost export` has
            written: a directory, a ZIP or a tar file.
        base: URL of the directory.
        ignore_case: Whether resource names are case-insensitive.
        on_read: Called repeatedly with the number of bytes read so far, out of `readable_bytes`.

    Raises:
        UsageError: `base` is invalid, missing, or not allowed.
        InputError: There is no site at the path.
        OSError: A file cannot be read.
    """
    site_path = Path(path)
    kind, files = site.detect_site_kind(site_path)
    if base is not None and kind not in (SiteKind.FOLDER, SiteKind.PACKAGE):
        raise UsageError(f"{site_path}: {kind.value}: these know their addresses: leave out --base")
    if kind is SiteKind.RECOVERY:
        return read_recovery(site_path, ignore_case=ignore_case, on_read=on_read)
    if kind is SiteKind.ARCHIVES:
        return read_warcs(files, ignore_case=ignore_case, on_read=on_read)
    if kind is SiteKind.PACKAGE:
        return read_package(site_path, base=base, ignore_case=ignore_case, on_read=on_read)
    return read_folder(site_path, base=base, ignore_case=ignore_case, on_read=on_read)


def readable_bytes(path: str | PathLike[str]) -> int:
    """Return the maximum number of bytes that `open_site` reads. Raises OSError."""
    return site.site_bytes(Path(path))
