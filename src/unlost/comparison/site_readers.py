"""Opens a site of any kind; reads the site that a recovery brought back."""

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
from unlost.recover.state.reader import ChosenCapture, StateReader
from unlost.uri import names as uri_names

_WARC_PATTERN = "*.warc.gz*"


def read_recovery(
    folder: Path, *, ignore_case: bool = False, on_read: Callable[[int], object] | None = None
) -> WarcSite:
    """Return what a recovery has so far; it may be going on meanwhile. Raises InputError, OSError."""
    with StateReader(folder) as state:
        # First the state, then the files: what it knows is in them.
        chosen = list(state.chosen_captures())
        listed = list(state.unrecovered_listed())
        requests = state.total_requests()
        had_case = not state.ignore_case
    files = sorted(
        file for file in (folder / WARC_FOLDER).glob(_WARC_PATTERN) if file.is_file() and not file.is_symlink()
    )
    if chosen and not files:
        raise InputError(f"{folder / WARC_FOLDER}: the archive files of the recovery are gone: put them back")
    reading, parts = read_parts(files, ignore_case=ignore_case, on_read=on_read)
    namer = _ResourceNamer(had_case=had_case, ignore_case=ignore_case)
    numbers = {part.path.name.removesuffix(".open"): number for number, part in enumerate(parts)}
    table, left_out = _select_captures(chosen, reading, numbers, namer)
    names = (namer.name(name, uri) for name, uri in listed)
    held = frozenset(name for name in names if name is not None and name not in table)
    return WarcSite(table, parts, dict(left_out), reading.problems, held, requests)


class _ResourceNamer:
    """Names resources of a state, which may have been named by another rule than is wanted now."""

    def __init__(self, *, had_case: bool, ignore_case: bool) -> None:
        self._had_case = had_case
        self._ignore_case = ignore_case

    def name(self, name: str, uri: str) -> str | None:
        """Return the name of a resource; None if it has none."""
        if self._ignore_case:
            return uri_names.fold_case(name)
        if self._had_case:
            return name
        try:
            return uri_names.page_name(uri)
        except UriError:
            return None


def _select_captures(
    chosen: list[ChosenCapture], reading: WarcSiteReader, numbers: dict[str, int], namer: _ResourceNamer
) -> tuple[ResourceTable, Counter[str]]:
    """Return a table of the chosen copies only, and how many are no resources, by reason."""
    found = reading.table
    at = {found.locate(row)[:2]: row for row in found.rows}
    same = {found.digest(row): row for row in found.rows}
    table, left_out = ResourceTable(), Counter[str]()
    for each in chosen:
        name = namer.name(each.name, each.uri)
        reason = "no-address" if name is None else skip_reason(200 if each.status is None else each.status)
        if name is None or reason is not None:
            left_out[reason or ""] += 1
            continue
        row = at.get((numbers.get(each.file.removesuffix(".open"), -1), each.offset))
        if row is None or each.is_revisit:
            # Its body is that of another record: equal digests are equal bodies.
            row = same.get(_decode_sha1(each.digest))
        if row is None:
            left_out["revisit-without-body" if each.is_revisit else "cut"] += 1
            continue
        table.add(
            name,
            each.uri,
            int(each.datetime),
            found.modified(row),
            each.mime,
            found.digest(row),
            found.size(row),
            each.migrated,
            found.locate(row),
        )
    return table, left_out


def _decode_sha1(digest: str | None) -> bytes:
    """Return the bytes of a SHA-1 as it is kept; none if it is not one."""
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
    """Return the site that is kept at a place: it is read from its beginning to its end, in bounded memory.

    path: the folder of a recovery; a WARC, ARC or WACZ; a folder of nothing else than these, which are one site
        together; or any other folder, with a folder for each host in it, or `base`, the address that it had; or what
        `unlost export` wrote: a folder, a zip or a tar file.
    ignore_case: whether letter case does not count in names.
    on_read: is told now and then how many bytes have been read, of as many as `size_of` says.

    Two sites may be read at once, in two threads. Raises UsageError for a `base` that is wrong or missing, InputError
    for what is no site, OSError for what cannot be read.
    """
    place = Path(path)
    kind, files = site.detect_site_kind(place)
    if base is not None and kind not in (SiteKind.FOLDER, SiteKind.PACKAGE):
        raise UsageError(f"{place}: {kind.value}: these know their addresses: leave out --base")
    if kind is SiteKind.RECOVERY:
        return read_recovery(place, ignore_case=ignore_case, on_read=on_read)
    if kind is SiteKind.ARCHIVES:
        return read_warcs(files, ignore_case=ignore_case, on_read=on_read)
    if kind is SiteKind.PACKAGE:
        return read_package(place, base=base, ignore_case=ignore_case, on_read=on_read)
    return read_folder(place, base=base, ignore_case=ignore_case, on_read=on_read)


def readable_bytes(path: str | PathLike[str]) -> int:
    """Return how many bytes `open_site` reads of a site, at most. Raises OSError."""
    return site.site_bytes(Path(path))
