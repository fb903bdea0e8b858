"""Opens a site, whatever it is kept in."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from unlost.errors import UsageError
from unlost.measure.resource import Site
from unlost.measure.sites import kinds
from unlost.measure.sites.folder_site import read_folder
from unlost.measure.sites.kinds import SiteKind
from unlost.measure.sites.packed_site import read_package
from unlost.measure.sites.recovery_site import read_recovery
from unlost.measure.sites.warc_site import read_warcs


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
    kind, files = kinds.detect_site_kind(place)
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
    return kinds.site_bytes(Path(path))
