"""A recovery as a WACZ: a WARC, its index and its pages in one file that replay tools open, also on the web."""

import tempfile
from pathlib import Path
from urllib.parse import urlsplit
from zipfile import ZIP64_LIMIT

from unlost import dates
from unlost.formats import cdxj, warc, warcindex
from unlost.recover.export.archive_files.chosen_copies import ChosenRecords
from unlost.recover.export.archive_files.wacz_package import WaczWriter
from unlost.recover.export.archive_files.wacz_pages import WaczPageList
from unlost.recover.export.archive_files.warc_target import (
    SOFTWARE,
    ArchiveFileResult,
    RecordProgress,
    check_output_path,
    copy_records,
)
from unlost.recover.export.targets.new_place import AtomicPath

WACZ_EXTENSION = ".wacz"
_WARC = "data.warc.gz"
_HEADROOM_BYTES = 1 << 20  # bytes: more than a warcinfo and the header of a member take


def write_wacz(
    recovery: Path, to: Path, *, title: str | None = None, on_progress: RecordProgress | None = None
) -> ArchiveFileResult:
    """Write the chosen copies of a recovery as one WACZ in version 1.1.1, and return what is in it.

    `archive/data.warc.gz` is what `write_warc` writes; the index is that of `unlost index build`, in blocks; pages are
    the chosen copies of HTML, with their titles. The same recovery makes the same file.

    to: must end in `.wacz`; gets its name once all is written.
    title: of the collection; without one, the host of its first page.

    Raises as `write_warc`.
    """
    check_output_path(recovery, to, WACZ_EXTENSION)
    done = ArchiveFileResult()
    with AtomicPath(to) as place:
        copies = ChosenRecords(recovery, done.problems)
        with place.writing() as file, tempfile.TemporaryFile() as spool, WaczWriter(file) as package:
            pages = WaczPageList(spool)
            with package.member(f"archive/{_WARC}", is_large=copies.bytes + _HEADROOM_BYTES > ZIP64_LIMIT) as member:
                copy_records(copies, member.write, _WARC, done, on_progress, pages.add)
            file.flush()
            # Read from where it was written: so the index is that of the bytes that are there.
            captures = warc.read_warc_captures(
                place.temporary_path, done.problems, filename=_WARC, byte_range=(member.offset, member.size)
            )
            package.add_index(cdxj.write_cdxj(map(warcindex.row_from_capture, captures)))
            package.add("pages/pages.jsonl", pages.lines())
            package.finish(_collection_metadata(pages, title))
            done.pages, done.bytes = pages.count, file.tell()
        place.publish_file()
    return done


def _host(uri: str) -> str | None:
    try:
        return urlsplit(uri).hostname
    except ValueError:  # a bracket in the name of a user, which others take
        return None


def _collection_metadata(pages: WaczPageList, title: str | None) -> dict[str, object]:
    main = pages.main
    return {
        "title": title or (main and _host(main.uri)),
        # No clock is in it: the same recovery makes the same file.
        "created": dates.to_iso(pages.newest),
        "software": SOFTWARE,
        "mainPageUrl": main and main.uri,
        "mainPageDate": main and dates.to_iso(main.datetime),
    }
