"""The contents of an export: files, redirects and aliases of a recovery."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urljoin

from unlost.capture import Capture
from unlost.errors import InputError
from unlost.export.media_types import SNIFFED_BYTES, extension_of, sniff_type
from unlost.export.paths import split_url_path
from unlost.problems import Problems
from unlost.recovery.options import RecoverOptions
from unlost.recovery.state.reader import StateReader
from unlost.recovery.warc_records import RecoveryRecord, read_first_bytes
from unlost.warc.writer import WarcFolder


@dataclass(frozen=True, slots=True)
class ContentEntry:
    """A resource to export.

    Attributes:
        name: Its page name.
        record: The record of the chosen capture.
        mime: The sniffed media type; None if unknown.
    """

    name: str
    record: RecoveryRecord
    mime: str | None


class ContentSpool:
    """Stores entries in a temporary file instead of memory, in order. Use it as a context manager.

    Raises:
        OSError: The disk of temporary files is full.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogatepass", newline="\n")  # noqa: SIM115
        self._count = 0

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Delete the file."""
        self._file.close()

    def __len__(self) -> int:
        """Return the number of entries."""
        return self._count

    def add(self, entry: ContentEntry) -> None:
        """Append an entry."""
        record, capture = entry.record, entry.record.capture
        capture_fields = (
            capture.uri, None, capture.datetime, capture.status, capture.mime, capture.digest, capture.length,
            capture.redirect, capture.archive, capture.urim, capture.migrated, capture.revisit, capture.revisit_of,
        )  # fmt: skip
        record_fields = (
            record.listed_digest, record.source, record.truncated, record.recovered, record.file, record.offset,
            record.size,
        )  # fmt: skip
        self._file.write(json.dumps((entry.name, capture_fields, record_fields, entry.mime)) + "\n")
        self._count += 1

    def __iter__(self) -> Iterator[ContentEntry]:
        """Yield all entries. Do not add any during iteration."""
        self._file.seek(0)
        for line in self._file:
            name, capture_fields, record_fields, mime = json.loads(line)
            capture_fields[-1] = None if capture_fields[-1] is None else tuple(capture_fields[-1])
            capture = Capture(*capture_fields)
            yield ContentEntry(name, RecoveryRecord(capture, *record_fields), mime)


WARC_FOLDER = "warc"
"""Folder of a recovery that contains its WARC files."""


@dataclass(slots=True)
class ExportContents:
    """The contents of a recovery at the time of reading.

    Attributes:
        warcs: The folder of WARC files.
        files: Resources that have a body.
        ignore_case: Whether letter case is ignored in page names.
        options: The options of the recovery; None if they were not stored.
        redirects: Absolute targets of redirects, by page name.
        redirect_uris: URLs of redirects, by page name.
        aliases: Page names of resources, by alias.
        doubtful_kinds: Kinds of the classifier's verdicts against chosen captures, by page name.
        substitutes: URLs that no archive has, with the URLs with another query whose captures replace them.
    """

    warcs: WarcFolder
    files: ContentSpool
    ignore_case: bool
    options: RecoverOptions | None
    redirects: dict[str, str] = field(default_factory=dict)
    redirect_uris: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    doubtful_kinds: dict[str, str] = field(default_factory=dict)
    substitutes: list[tuple[str, str]] = field(default_factory=list)


def nothing_recovered_error(recovery: Path) -> InputError:
    """Return the error for a recovery without any recovered resource."""
    return InputError(f"{recovery}: nothing was recovered so far: there is nothing to export")


def nothing_readable_error(problems: Problems) -> InputError:
    """Return the error for a recovery without any readable capture. There must be at least one problem."""
    return InputError(f"nothing can be exported, first: {next(iter(problems.first.values()))}")


@contextmanager
def read_contents(folder: Path, on_capture: Callable[[], object] = lambda: None) -> Iterator[ExportContents]:
    """Yield the contents of a recovery, which may be in progress.

    Args:
        folder: The folder of the recovery.
        on_capture: Called for each capture whose first bytes were read.

    Raises:
        InputError: The folder has no recovery, or nothing was recovered yet.
        OSError: A file cannot be read.
    """
    with ContentSpool() as spool:
        with ContentSpool() as chosen:
            # The database is read completely before the WARC files, which contain everything that it refers to.
            with StateReader(folder) as state:
                contents = ExportContents(WarcFolder(folder / WARC_FOLDER), spool, state.ignore_case, state.options())
                contents.aliases.update(state.aliases())
                contents.doubtful_kinds.update((each.name, each.kind) for each in state.doubtful())
                contents.substitutes.extend(state.substitutes())
                for name, record in state.records():
                    if not _is_redirect(record):
                        chosen.add(ContentEntry(name, record, None))
                    else:
                        _add_redirect(contents, name, record)
            if not len(chosen):
                raise nothing_recovered_error(folder)
            for entry in chosen:
                spool.add(ContentEntry(entry.name, entry.record, _sniff_record_type(contents, entry.record)))
                on_capture()
        yield contents


def _is_redirect(record: RecoveryRecord) -> bool:
    return record.capture.status is not None and 300 <= record.capture.status < 400


def _add_redirect(contents: ExportContents, name: str, record: RecoveryRecord) -> None:
    capture = record.capture
    try:
        target = urljoin(capture.uri, (capture.redirect or "").strip())
    except ValueError:
        target = ""
    if capture.redirect and target:
        contents.redirects[name] = target
        contents.redirect_uris[name] = capture.uri


def _sniff_record_type(contents: ExportContents, record: RecoveryRecord) -> str | None:
    extension = extension_of(split_url_path(record.capture.uri)[0][-1])
    try:
        head = read_first_bytes(contents.warcs, record, SNIFFED_BYTES)
    except InputError:
        head = b""  # the error is reported when the body is opened
    return sniff_type(record.capture.mime, head, extension)
