"""A site and its resources in any form of storage, and the detection of that form.

Resources are stored in columns, about 400 bytes each, because a site may have millions of them.
"""

import mimetypes
import os
import re
import stat
import zipfile
import zlib
from abc import abstractmethod
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol

from unlost.errors import InputError
from unlost.export.manifest import MANIFEST_NAME
from unlost.media_types import UNKNOWN_TYPE, format_of
from unlost.problems import Problems, unreadable_error
from unlost.sqlite import STATE_FILE_NAME as STATE


class SiteResource(NamedTuple):
    """A page or another resource of a site. Unknown values are None.

    A named tuple, which is created four times as fast as a frozen dataclass.

    Attributes:
        name: Name by which sites are matched, from `unlost.uri.names.page_name`.
        uri: The URL as spelled in the source.
        datetime: Date of the capture, 14 digits; None in a directory.
        modified: Date of the last modification according to the server or the file system, 14 digits.
        mime: Declared media type, in lower case without parameters.
        digest: SHA-1 of the body without any coding, 20 bytes.
        size: Length of that body in bytes.
        migrated: Whether an archive has converted it to another format; None if unknown.
        location: Location of the body; opaque outside the site that it belongs to.
    """

    name: str
    uri: str
    datetime: str | None
    modified: str | None
    mime: str | None
    digest: bytes
    size: int
    migrated: bool | None
    location: object


NO_DATE = -1
"""An unknown date in a column."""


class ResourceColumns(NamedTuple):
    """The properties of all resources of a site, in the same order in each column, without an object per resource.

    Dates are numbers of 14 digits, or `NO_DATE`. The other columns are as in `SiteResource`.
    """

    names: Sequence[str]
    uris: Sequence[str]
    mimes: Sequence[str | None]
    digests: Sequence[bytes]
    sizes: Sequence[int]
    datetimes: Sequence[int]
    modified: Sequence[int]


class SiteResources(Mapping[str, SiteResource]):
    """The resources of a site by name. Of several captures of one resource, the best counts; see `ResourceTable`."""

    @abstractmethod
    def columns(self) -> ResourceColumns:
        """Return all resources as columns."""


@dataclass(frozen=True, slots=True)
class ResourceBody:
    """The body of a resource without any coding.

    Attributes:
        content: The body, up to the requested length.
        charset: Declared charset; None if unknown.
        is_truncated: Whether the body is longer.
    """

    content: bytes
    charset: str | None
    is_truncated: bool


class Site(Protocol):
    """A site that was read.

    Attributes:
        resources: The resources.
        listed: Names of resources that archives are known to hold and that were not fetched; only in a recovery.
        requests: Number of requests for captures and listings that a recovery took; None if unknown.
        skipped: Number of records that are not resources, by reason: `redirect`, `error`, `no-body`, `foreign-scheme` …
        problems: Unreadable files and records.
    """

    resources: SiteResources
    listed: frozenset[str]
    requests: int | None
    skipped: Mapping[str, int]
    problems: Problems

    def read_body(self, resource: SiteResource, max_bytes: int) -> ResourceBody:
        """Return at most `max_bytes` of the body of a resource. Thread-safe.

        Raises:
            InputError: The body cannot be read any more.
            OSError: The file cannot be read.
        """
        ...


# Types that servers send for unknown files. For documents, the file extension of the URL is used instead.
_UNSPECIFIC_TYPES = frozenset({UNKNOWN_TYPE, "application/octet-stream", "binary/octet-stream", "application/download"})
_TYPES_BY_EXTENSION = {
    "htm": "text/html",
    "html": "text/html",
    "txt": "text/plain",
    "pdf": "application/pdf",
    "ps": "application/postscript",
    "eps": "application/postscript",
    "rtf": "application/rtf",
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
}


def declared_media_type(resource: SiteResource) -> str:
    """Return the declared media type; `unknown` if there is none."""
    return resource.mime or UNKNOWN_TYPE


def likely_type(resource: SiteResource) -> str:
    """Return the media type; if it is unspecific, that of the file extension, for text and documents.

    >>> mime = "application/octet-stream"
    >>> likely_type(SiteResource("a/b.pdf", "http://a/b.PDF?x", None, None, mime, b"", 0, None, 0))
    'application/pdf'
    """
    declared = declared_media_type(resource)
    if declared not in _UNSPECIFIC_TYPES:
        return declared
    path = resource.uri.partition("#")[0].partition("?")[0]
    return _TYPES_BY_EXTENSION.get(path.rpartition("/")[2].rpartition(".")[2].lower(), declared)


def is_other_format(original: SiteResource, recovered: SiteResource) -> bool | None:
    """Return whether a recovered resource has another format than the original, by media type; None if unknown.

    >>> pdf = SiteResource("a/b", "http://a/b", None, None, "application/pdf", b"", 0, None, 0)
    >>> html = SiteResource("a/b", "http://a/b", None, None, "text/html", b"", 0, None, 0)
    >>> is_other_format(pdf, html), is_other_format(pdf, pdf)
    (True, False)
    """
    first, second = likely_type(original), likely_type(recovered)
    if first in _UNSPECIFIC_TYPES or second in _UNSPECIFIC_TYPES:
        return None
    return format_of(first) != format_of(second)


_MIGRATED_CODES = {None: 0, False: 1, True: 2}
_MIGRATED_VALUES = (None, False, True)


class ResourceTable(SiteResources):
    """Resources by name. Other captures of a resource are stored, too, since revisits may refer to them.

    A `SiteResource` is created on access; its `location` is the index of its row. Takes about 400 bytes per row.
    """

    def __init__(self) -> None:
        """Create an empty table."""
        self._rows: dict[str, int] = {}
        self._uris: list[str] = []
        self._mimes: list[str | None] = []
        self._same_mimes: dict[str, str] = {}
        self._digests: list[bytes] = []
        self._migrated = bytearray()
        self._datetimes, self._modified, self._sizes = array("q"), array("q"), array("q")
        self._parts, self._offsets, self._skips = array("l"), array("q"), array("q")

    def __getitem__(self, name: str) -> SiteResource:
        """Return the capture that counts. Raises KeyError."""
        return self._resource(name, self._rows[name])

    def __contains__(self, name: object) -> bool:
        """Return whether the table has a resource of that name."""
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        """Yield the names in the order in which they were added."""
        return iter(self._rows)

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._rows)

    def columns(self) -> ResourceColumns:
        """Return the captures that count, in the order of iteration."""
        rows = self._rows.values()
        return ResourceColumns(
            list(self._rows),
            [self._uris[row] for row in rows],
            [self._mimes[row] for row in rows],
            [self._digests[row] for row in rows],
            [self._sizes[row] for row in rows],
            [self._datetimes[row] for row in rows],
            [self._modified[row] for row in rows],
        )

    @property
    def rows(self) -> range:
        """Indexes of all captures."""
        return range(len(self._uris))

    def row_of(self, name: str) -> int | None:
        """Return the row of the capture that counts; None without one."""
        return self._rows.get(name)

    def locate(self, row: object) -> tuple[int, int, int]:
        """Return the location of a body: part of the site, offset in the part, bytes to skip.

        Args:
            row: Index of the row, or the `location` of a resource of this table.

        Raises:
            TypeError: It is the location of a resource of another site.
        """
        if not isinstance(row, int):
            raise TypeError(f"expected a resource of this site, found a place {row!r}")
        return self._parts[row], self._offsets[row], self._skips[row]

    def digest(self, row: int) -> bytes:
        """Return the digest of a row."""
        return self._digests[row]

    def datetime(self, row: int) -> int:
        """Return the capture date of a row, 14 digits, or `NO_DATE`."""
        return self._datetimes[row]

    def modified(self, row: int) -> int:
        """Return the modification date of a row, 14 digits, or `NO_DATE`."""
        return self._modified[row]

    def size(self, row: int) -> int:
        """Return the length of a row's body."""
        return self._sizes[row]

    def add(
        self,
        name: str,
        uri: str,
        datetime: int,
        modified: int,
        mime: str | None,
        digest: bytes,
        size: int,
        migrated: bool | None,
        location: tuple[int, int, int],
    ) -> None:
        """Add a capture. It counts if it is better than the one that counts so far.

        A capture with a body is better than one without; then the later capture, then the later modification, then the
        one added later. Dates are numbers of 14 digits, or `NO_DATE`.
        """
        row = len(self._uris)
        self._uris.append(uri)
        self._mimes.append(None if mime is None else self._same_mimes.setdefault(mime, mime))
        self._digests.append(digest)
        self._migrated.append(_MIGRATED_CODES[migrated])
        self._datetimes.append(datetime)
        self._modified.append(modified)
        self._sizes.append(size)
        self._parts.append(location[0])
        self._offsets.append(location[1])
        self._skips.append(location[2])
        before = self._rows.get(name)
        if before is None or self._rank(before) <= (size > 0, datetime, modified):
            self._rows[name] = row

    def add_revisit(self, row: int, name: str, uri: str, datetime: int, mime: str | None) -> None:
        """Add a capture with the body of row `row`. Its media type is also used if `mime` is None."""
        self.add(
            name,
            uri,
            datetime,
            self._modified[row],
            mime or self._mimes[row],
            self.digest(row),
            self._sizes[row],
            _MIGRATED_VALUES[self._migrated[row]],
            self.locate(row),
        )

    def _rank(self, row: int) -> tuple[bool, int, int]:
        return self._sizes[row] > 0, self._datetimes[row], self._modified[row]

    def _resource(self, name: str, row: int) -> SiteResource:
        return SiteResource(
            name,
            self._uris[row],
            _format_date(self._datetimes[row]),
            _format_date(self._modified[row]),
            self._mimes[row],
            self._digests[row],
            self._sizes[row],
            _MIGRATED_VALUES[self._migrated[row]],
            row,
        )


def _format_date(number: int) -> str | None:
    return None if number == NO_DATE else f"{number:014d}"


WARC_FOLDER = "warc"
"""The subdirectory of a recovery that contains its archive files."""
_ARCHIVE_EXTENSIONS = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", ".arc.zst", ".wacz", ".warc.gz.open")
_HEAD_BYTES = 512  # first bytes that are read to detect the type of a file; a tar header has 512
_GZIP = b"\x1f\x8b\x08"
_ZSTD = (b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18")


class SiteKind(Enum):
    """The form in which a site is stored."""

    ARCHIVES = "archive files"
    RECOVERY = "a recovery"
    FOLDER = "a folder"
    EXPORT = "an export"
    PACKAGE = "a zip or tar file"


def detect_site_kind(path: Path) -> tuple[SiteKind, list[Path]]:
    """Return the kind of a site, and its archive files by name if it is `ARCHIVES`.

    Raises:
        InputError: The path cannot be read, is of no known kind, or is empty.
        OSError: A subdirectory cannot be read.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise unreadable_error(path, error) from error
    if stat.S_ISREG(status.st_mode):
        if not status.st_size:
            raise InputError(f"{path}: an empty file: expected a WARC, an ARC or a WACZ")
        if is_package(path):
            return SiteKind.PACKAGE, []
        if not is_archive(path):
            message = "neither a WARC, an ARC, a WACZ, a zip nor a tar file"
            raise InputError(f"{path}: {message}: give one of these, a folder, or the folder of a recovery")
        return SiteKind.ARCHIVES, [path]
    if not stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path}: neither a file nor a folder: write it to a file first")
    if (path / STATE).is_file() and (path / WARC_FOLDER).is_dir():
        return SiteKind.RECOVERY, []
    if (path / MANIFEST_NAME).is_file():
        return SiteKind.EXPORT, []
    files, has_others = _list_archives(path)
    if not files and not has_others:
        raise InputError(f"{path}: nothing in it")
    return (SiteKind.FOLDER, []) if has_others else (SiteKind.ARCHIVES, files)


def site_bytes(path: Path) -> int:
    """Return the maximum number of bytes that are read of a site, for progress; 0 if unknown."""
    if path.is_file():
        return path.stat().st_size
    folder = path / WARC_FOLDER if (path / STATE).is_file() else path
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118  many of them
            except OSError:
                continue  # deleted in the meantime
    return total


def is_archive(file: Path) -> bool:
    """Return whether a file is an archive file, by its extension or its signature. Raises OSError."""
    if is_archive_name(file.name):
        return True
    with file.open("rb") as opened:
        head = opened.read(_HEAD_BYTES)
    if head.startswith(b"PK\3\4"):
        return True
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(head, _HEAD_BYTES)
        except zlib.error:
            return False
    return head.startswith((b"WARC/", b"filedesc://", *_ZSTD[:1])) or head[1:4] == _ZSTD[1]


def is_package(file: Path) -> bool:
    """Return whether a file is a ZIP or tar file with the files of a site, and no WACZ. Raises OSError."""
    if is_archive_name(file.name):
        return False
    with file.open("rb") as opened:
        head = opened.read(_HEAD_BYTES)
    if head.startswith(b"PK\3\4"):
        try:
            with zipfile.ZipFile(file) as archive:
                names = archive.namelist()
        except zipfile.BadZipFile:
            return file.name.lower().endswith(".zip")
        # Otherwise it is a WACZ with another extension, or a ZIP of archive files.
        return MANIFEST_NAME in names or not any(name == "datapackage.json" or is_archive_name(name) for name in names)
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(head, _HEAD_BYTES)
        except zlib.error:
            return False
    return head[257:262] == b"ustar" or file.name.lower().endswith((".tar", ".tar.gz", ".tgz"))


def is_archive_name(name: str) -> bool:
    """Return whether a file name has an extension of archive files."""
    return name.lower().endswith(_ARCHIVE_EXTENSIONS)


def _list_archives(folder: Path) -> tuple[list[Path], bool]:
    """Return the archive files below a directory, and whether there are other files. Raises OSError."""
    archives: list[Path] = []
    errors: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=errors.append):
        folders.sort()
        for name in sorted(names):
            if name.startswith("."):
                continue
            file = Path(root) / name
            if not is_archive_name(name) or file.is_symlink() or not file.is_file():
                return [], True
            archives.append(file)
    if errors:
        raise errors[0]  # otherwise archive files in an unreadable subdirectory would be missing from the site
    return archives, False


SNIFF_BYTES = 512
"""First bytes of a file that `guess_media_type` needs."""
# Without the MIME tables of the system, so that results are the same everywhere.
_MEDIA_TYPES = mimetypes.MimeTypes()
_MAX_EXTENSION_LENGTH = 16
_SIGNATURES = (
    (b"%PDF-", "application/pdf"),
    (b"%!PS", "application/postscript"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
)
_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s|<!--[^>]*-->|<\?xml[^>]*>)*<(?:!doctype\s+html|html|head|body|title)\b", re.IGNORECASE
)


def guess_media_type(name: str, head: bytes) -> str | None:
    r"""Return the media type of a file by its signature, otherwise by the extension of its path; None if unknown.

    >>> guess_media_type("a/logo.gif", b"\x89PNG\r\n\x1a\n"), guess_media_type("a.php?x=1.css", b"<html>")
    ('image/png', 'text/html')
    """
    for signature, mime_type in _SIGNATURES:
        if head.startswith(signature):
            return mime_type
    file_name = name.partition("?")[0].rpartition("/")[2]
    extension = f".{file_name.rpartition('.')[2]}".lower() if "." in file_name else ""
    mime = _MEDIA_TYPES.types_map[True].get(extension) if len(extension) <= _MAX_EXTENSION_LENGTH else None
    if mime is None or (mime.startswith("image/") and mime != "image/svg+xml"):
        return "text/html" if _HTML.match(head) else mime
    return mime
