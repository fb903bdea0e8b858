"""A site and its resources, wherever they are stored, and the recognition of what a path has.

Resources are kept in columns, some 400 bytes each, since sites have millions of them.
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
    """A page, or a part of one, as a site has it. What a source does not tell is None.

    A named tuple, since sites have very many: it is made four times as fast as a frozen dataclass.

    name: by which sites are matched, as `unlost.uri.names.name_of` makes it.
    uri: its address as it is spelled there.
    datetime: when this copy of it was made, 14 digits; None in a folder.
    modified: when it was last changed, by its server or the file system, 14 digits.
    mime: the media type as it was told, in lower case without parameters.
    digest: the SHA-1 of the body with all codings undone: 20 bytes.
    size: how many bytes such a body has.
    migrated: whether an archive changed its format (True), kept it (False), or nobody says (None).
    place: where the body is, for the site that it is of: nobody else looks into it.
    """

    name: str
    uri: str
    datetime: str | None
    modified: str | None
    mime: str | None
    digest: bytes
    size: int
    migrated: bool | None
    place: object


NO_DATE = -1
"""In columns, in the place of a date that nobody knows."""


class ResourceColumns(NamedTuple):
    """What is asked of all resources of a site, in the same order in each column: no objects are made for it.

    datetimes, modified: numbers of 14 digits, or `NONE`. The rest is as in a `Resource`.
    """

    names: Sequence[str]
    uris: Sequence[str]
    mimes: Sequence[str | None]
    digests: Sequence[bytes]
    sizes: Sequence[int]
    datetimes: Sequence[int]
    modified: Sequence[int]


class SiteResources(Mapping[str, SiteResource]):
    """The resources of a site by name; of several copies of one, the one that counts."""

    @abstractmethod
    def columns(self) -> ResourceColumns:
        """Return all of them as columns."""


@dataclass(frozen=True, slots=True)
class ResourceBody:
    """The bytes of a resource, all codings undone.

    content: as many of them as were asked for.
    charset: what it was said to be written in, by its server; None if nobody said.
    cut: whether there are more.
    """

    content: bytes
    charset: str | None
    is_truncated: bool


class Site(Protocol):
    """A site that was read: what it consists of, and what is known about it besides.

    resources: what it consists of.
    listed: the names of what archives are known to hold and nobody has fetched; empty but in a recovery.
    requests: how many requests for copies and lists a recovery took; None if this is none, or one that did not count.
    left_out: how many records are no resources, by the reason: `redirect`, `error`, `no-body`, `foreign-scheme` …
    problems: what could not be read.
    """

    resources: SiteResources
    listed: frozenset[str]
    requests: int | None
    skipped: Mapping[str, int]
    problems: Problems

    def read_body(self, resource: SiteResource, max_bytes: int) -> ResourceBody:
        """Return the body of one of its resources, at most so many bytes. May be called from several threads.

        Raises InputError if it cannot be read any more, OSError if the file cannot.
        """
        ...


# Servers say these of what they do not know; then the end of the address tells, for documents.
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


def declared_type(resource: SiteResource) -> str:
    """Return the media type as it was told; `unknown` if nobody did."""
    return resource.mime or UNKNOWN_TYPE


def likely_type(resource: SiteResource) -> str:
    """Return the media type; where it says nothing, what the end of the address makes likely, for text and documents.

    >>> likely_type(SiteResource("a/b.pdf", "http://a/b.PDF?x", None, None, "application/octet-stream", b"", 0, None, 0))
    'application/pdf'
    """
    told = declared_type(resource)
    if told not in _UNSPECIFIC_TYPES:
        return told
    path = resource.uri.partition("#")[0].partition("?")[0]
    return _TYPES_BY_EXTENSION.get(path.rpartition("/")[2].rpartition(".")[2].lower(), told)


def is_other_format(original: SiteResource, recovered: SiteResource) -> bool | None:
    """Return whether a copy is in another format than its original, by their types; None if one is not known.

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
    """Resources by name. Copies of one that do not count are kept, too: revisits may refer to them.

    A `Resource` is made when it is asked for; its `place` is the number of its row here. Some 400 bytes for each.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._rows: dict[str, int] = {}
        self._uris: list[str] = []
        self._mimes: list[str | None] = []
        self._same_mimes: dict[str, str] = {}
        self._digests: list[bytes] = []
        self._migrated = bytearray()
        self._datetimes, self._modified, self._sizes = array("q"), array("q"), array("q")
        self._parts, self._offsets, self._skips = array("l"), array("q"), array("q")

    def __getitem__(self, name: str) -> SiteResource:
        """Return the copy that counts. Raises KeyError."""
        return self._resource(name, self._rows[name])

    def __contains__(self, name: object) -> bool:
        """Return whether there is one of that name."""
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        """Yield the names, in the order in which they were found."""
        return iter(self._rows)

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self._rows)

    def columns(self) -> ResourceColumns:
        """Return the copies that count, in the order of their names here."""
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
        """The numbers of all copies."""
        return range(len(self._uris))

    def row_of(self, name: str) -> int | None:
        """Return the number of the copy that counts; None if there is none."""
        return self._rows.get(name)

    def locate(self, row: object) -> tuple[int, int, int]:
        """Return where the body of a copy is: which part of the site, its offset there, and what to skip.

        row: its number, or the `place` of a resource of this table. Raises TypeError for that of another site.
        """
        if not isinstance(row, int):
            raise TypeError(f"expected a resource of this site, found a place {row!r}")
        return self._parts[row], self._offsets[row], self._skips[row]

    def digest(self, row: int) -> bytes:
        """Return the digest of a copy."""
        return self._digests[row]

    def datetime(self, row: int) -> int:
        """Return when a copy was made, 14 digits, or `NONE`."""
        return self._datetimes[row]

    def modified(self, row: int) -> int:
        """Return when its original was last changed, 14 digits, or `NONE`."""
        return self._modified[row]

    def size(self, row: int) -> int:
        """Return how many bytes the body of a copy has."""
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
        place: tuple[int, int, int],
    ) -> None:
        """Keep a copy, and let it count if it is the better one. Dates are numbers of 14 digits, or `NONE`.

        One with a body goes before one without; then the later does, then the one that was changed later, then the one
        that was added later.
        """
        row = len(self._uris)
        self._uris.append(uri)
        self._mimes.append(None if mime is None else self._same_mimes.setdefault(mime, mime))
        self._digests.append(digest)
        self._migrated.append(_MIGRATED_CODES[migrated])
        self._datetimes.append(datetime)
        self._modified.append(modified)
        self._sizes.append(size)
        self._parts.append(place[0])
        self._offsets.append(place[1])
        self._skips.append(place[2])
        before = self._rows.get(name)
        if before is None or self._rank(before) <= (size > 0, datetime, modified):
            self._rows[name] = row

    def add_revisit(self, row: int, name: str, uri: str, datetime: int, mime: str | None) -> None:
        """Keep a copy with the body of another one, which is in that row. mime: None if it is that of the other."""
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


def _format_date(moment: int) -> str | None:
    return None if moment == NO_DATE else f"{moment:014d}"


WARC_FOLDER = "warc"
"""The folder of a recovery that has its archive files."""
_ARCHIVE_EXTENSIONS = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", ".arc.zst", ".wacz", ".warc.gz.open")
_HEAD_BYTES = 512  # bytes that tell what a file is
_GZIP = b"\x1f\x8b\x08"
_ZSTD = (b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18")


class SiteKind(Enum):
    """What a site is kept in."""

    ARCHIVES = "archive files"
    RECOVERY = "a recovery"
    FOLDER = "a folder"
    EXPORT = "an export"
    PACKAGE = "a zip or tar file"


def detect_site_kind(path: Path) -> tuple[SiteKind, list[Path]]:
    """Return what is kept at a place, and if it is that, its archive files in the order of their names.

    Raises InputError for what cannot be read, is none of them, or has nothing in it; OSError for a folder in it.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise unreadable_error(path, error) from error
    if stat.S_ISREG(found.st_mode):
        if not found.st_size:
            raise InputError(f"{path}: an empty file: expected a WARC, an ARC or a WACZ")
        if is_package(path):
            return SiteKind.PACKAGE, []
        if not is_archive(path):
            message = "neither a WARC, an ARC, a WACZ, a zip nor a tar file"
            raise InputError(f"{path}: {message}: give one of these, a folder, or the folder of a recovery")
        return SiteKind.ARCHIVES, [path]
    if not stat.S_ISDIR(found.st_mode):
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
    """Return how many bytes are read of a site, at most, for whoever shows how far that is. 0 if nobody knows."""
    if path.is_file():
        return path.stat().st_size
    folder = path / WARC_FOLDER if (path / STATE).is_file() else path
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118  many of them
            except OSError:
                continue  # it vanished
    return total


def is_archive(file: Path) -> bool:
    """Return whether a file is an archive, by its first bytes, or, if they are damaged, by its name. Raises OSError."""
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
    """Return whether a file is a zip or tar file with the files of a site, and not a WACZ. Raises OSError."""
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
        # A WACZ under another name, or a zip of archive files.
        return MANIFEST_NAME in names or not any(name == "datapackage.json" or is_archive_name(name) for name in names)
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(head, _HEAD_BYTES)
        except zlib.error:
            return False
    return head[257:262] == b"ustar" or file.name.lower().endswith((".tar", ".tar.gz", ".tgz"))


def is_archive_name(name: str) -> bool:
    """Return whether the name of a file is that of an archive."""
    return name.lower().endswith(_ARCHIVE_EXTENSIONS)


def _list_archives(folder: Path) -> tuple[list[Path], bool]:
    """Return the files with names of archives below a folder, and whether there are any others. Raises OSError."""
    found: list[Path] = []
    unlisted: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=unlisted.append):
        folders.sort()
        for name in sorted(names):
            if name.startswith("."):
                continue
            file = Path(root) / name
            if not is_archive_name(name) or file.is_symlink() or not file.is_file():
                return [], True
            found.append(file)
    if unlisted:
        raise unlisted[0]  # there may be more archives in it: a site without them would be another one
    return found, False


SNIFF_BYTES = 512
"""How many first bytes are looked at."""
# Without the files of this machine: the same everywhere.
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
    r"""Return the media type of a file, of whose name only the path counts, by its ending; first bytes know better.

    None if neither tells.

    >>> guess_media_type("a/logo.gif", b"\x89PNG\r\n\x1a\n"), guess_media_type("a.php?x=1.css", b"<html>"), guess_media_type("a", b"?")
    ('image/png', 'text/html', None)
    """
    for signature, told in _SIGNATURES:
        if head.startswith(signature):
            return told
    last = name.partition("?")[0].rpartition("/")[2]
    ending = f".{last.rpartition('.')[2]}".lower() if "." in last else ""
    mime = _MEDIA_TYPES.types_map[True].get(ending) if len(ending) <= _MAX_EXTENSION_LENGTH else None
    if mime is None or (mime.startswith("image/") and mime != "image/svg+xml"):
        return "text/html" if _HTML.match(head) else mime
    return mime
