"""Single records of archive files: WARC and ARC by offset, WACZ by member and offset, also where those are deflated."""

import shutil
import tempfile
import threading
import weakref
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

from unlost.errors import ArchiveFileError
from unlost.formats import wacz, warc
from unlost.formats.warc import StoredRecord

MAX_EXTRACTED_BYTES = 4 << 30
"""The largest WARC that is taken out of a WACZ that has it deflated."""

_MAX_EXTRACTED_WARCS = 2  # WARCs taken out, at a time: their disk space is nobody's else
_COPY_BYTES = 1 << 16
_DAMAGE_ERRORS = (zipfile.BadZipFile, EOFError, zlib.error)


class RecordOpener:
    """Opens records, and keeps the WARCs that it had to take out of a WACZ until it goes itself. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._extracted: dict[tuple[Path, str, int, int], Path] = {}
        self._extracted_count = 0

    def open(self, path: Path, member: str | None, offset: int, skip: int) -> StoredRecord:
        """Return a record. Raises ArchiveFileError, OSError."""
        if member is None:
            return warc.open_warc_record(path, offset, skip)
        wacz.check_wacz_directory(path)
        with zipfile.ZipFile(path) as archive:
            try:
                info = archive.getinfo(f"archive/{member}")
            except KeyError:
                raise ArchiveFileError(f"{path}: expected a member {ascii(member)[:100]}, found none") from None
            if info.compress_type != zipfile.ZIP_DEFLATED:
                return wacz.open_wacz_record(path, member, offset, skip)
            with self._lock:
                file = self._extract(archive, info, path)
                return warc.open_warc_record(file, offset, skip)

    def _extract(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Path:
        """Return the WARC as a file. The record that is opened in it keeps it open, when its name is long gone."""
        known = path.stat()
        name = (path, info.filename, known.st_size, known.st_mtime_ns)
        if name in self._extracted:
            return self._extracted[name]
        while len(self._extracted) >= _MAX_EXTRACTED_WARCS:
            self._extracted.pop(next(iter(self._extracted))).unlink(missing_ok=True)
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="unlost-wacz-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._extracted_count += 1
        file = self._folder / str(self._extracted_count)
        left = MAX_EXTRACTED_BYTES
        try:
            # What came before a damage is written, and the record may be in it.
            with archive.open(info) as source, file.open("wb") as target, suppress(*_DAMAGE_ERRORS):
                while left >= 0 and (piece := source.read(_COPY_BYTES)):
                    left -= len(piece)
                    target.write(piece)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            file.unlink(missing_ok=True)
            raise ArchiveFileError(f"{path}/{info.filename}: {error}") from None
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        if left < 0:
            file.unlink()
            message = f"{path}/{info.filename}: expected at most {MAX_EXTRACTED_BYTES} bytes in a deflated WARC"
            raise ArchiveFileError(message)
        self._extracted[name] = file
        return file
