"""What an export contains: the files, redirects and aliases of a recovery."""

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
from unlost.recover.options import RecoverOptions
from unlost.recover.state.reader import StateReader
from unlost.recover.warc_records import RecoveryRecord, read_first_bytes
from unlost.warc.writer import WarcFolder


@dataclass(frozen=True, slots=True)
class ContentEntry:
    """A resource.

    name: as `naming` has it. record: of the copy that was chosen. mime: its true type; None if nobody knows.
    """

    name: str
    record: RecoveryRecord
    mime: str | None


class ContentSpool:
    """Entries in a temporary file, which take no memory; in their order. Use it as a context manager.

    Raises OSError where the disk of temporary files is full.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogatepass", newline="\n")  # noqa: SIM115
        self._count = 0

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Forget all."""
        self._file.close()

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count

    def add(self, entry: ContentEntry) -> None:
        """Keep one more."""
        record, capture = entry.record, entry.record.capture
        of_capture = (
            capture.uri, None, capture.datetime, capture.status, capture.mime, capture.digest, capture.length,
            capture.redirect, capture.archive, capture.urim, capture.migrated, capture.revisit, capture.revisit_of,
        )  # fmt: skip
        of_record = (
            record.listed_digest, record.source, record.truncated, record.recovered, record.file, record.offset,
            record.size,
        )  # fmt: skip
        self._file.write(json.dumps((entry.name, of_capture, of_record, entry.mime)) + "\n")
        self._count += 1

    def __iter__(self) -> Iterator[ContentEntry]:
        """Yield all of them; nothing may be added meanwhile."""
        self._file.seek(0)
        for line in self._file:
            name, of_capture, of_record, mime = json.loads(line)
            of_capture[-1] = None if of_capture[-1] is None else tuple(of_capture[-1])
            capture = Capture(*of_capture)
            yield ContentEntry(name, RecoveryRecord(capture, *of_record), mime)


WARC_FOLDER = "warc"
"""The folder of a recovery with its archive files."""


@dataclass(slots=True)
class ExportContents:
    """A recovery as it was when it was read.

    files: resources that have a body. redirects: the whole address that a resource leads to, by its name.
    redirect_uris: the address of each redirect. aliases: names of resources by other names that links have.
    ignore_case: whether letter case does not count in names.
    plan: what is recovered; None if that was not kept.
    doubts: the kind of the quality verdict against a capture that was kept in spite of it, by the resource's name.
    substitutes: URLs that no archive has, and those with another query that are used in their place.
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
    """Return what to raise for a recovery of which there is nothing to export."""
    return InputError(f"{recovery}: nothing was recovered so far: there is nothing to export")


def nothing_readable_error(problems: Problems) -> InputError:
    """Return what to raise for a recovery of which no copy can be read. problems: why not, at least one."""
    return InputError(f"nothing can be exported, first: {next(iter(problems.first.values()))}")


@contextmanager
def read_contents(folder: Path, on_capture: Callable[[], object] = lambda: None) -> Iterator[ExportContents]:
    """Give what a recovery has so far; it may be going on meanwhile.

    on_copy: is called for each copy whose beginning was looked at.

    Raises InputError for a folder that is no recovery, or has nothing yet; OSError.
    """
    with ContentSpool() as spool:
        with ContentSpool() as chosen:
            # First all of the state, which may change when it is closed; then the files: what it knows is in them.
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
    ending = extension_of(split_url_path(record.capture.uri)[0][-1])
    try:
        head = read_first_bytes(contents.warcs, record, SNIFFED_BYTES)
    except InputError:
        head = b""  # whoever opens it will tell
    return sniff_type(record.capture.mime, head, ending)
