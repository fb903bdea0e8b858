"""Recoveries made of given captures, without archives, and an in-memory export target."""

import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self

from tests.virtual_clock import VirtualClock
from unlost.archives import FetchedCapture
from unlost.capture import Capture
from unlost.errors import UriError
from unlost.export import MANIFEST_NAME, ExportOptions, ExportResult, export_site
from unlost.html import LinkKind
from unlost.recovery import CaptureQuality, RecoverOptions, WarcStore
from unlost.recovery.state import NewResource, RecoveryState, ResourceStatus
from unlost.uri import page_name

if TYPE_CHECKING:
    from unlost.recovery import RecoveryRecord

ROOT = "http://lost.example/"
DATE = "20140210000001"


@dataclass(frozen=True, slots=True)
class SampleCapture:
    """A capture of a recovery.

    Attributes:
        uri: Its URL.
        location: Target of a redirect.
        header: Content-Type header; `mime` if empty.
        rejected: Whether it is rejected.
        same_as: URL of an earlier capture with the same body.
    """

    uri: str
    body: bytes = b""
    mime: str | None = "text/html"
    status: int = 200
    location: str | None = None
    header: str = ""
    migrated: bool = False
    urim: str | None = None
    date: str = DATE
    rejected: bool = False
    same_as: str | None = None


@dataclass
class MemoryTarget:
    """An export target in memory: bodies and dates by path."""

    files: dict[str, bytes] = field(default_factory=dict)
    dates: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        """Return the target."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Do nothing."""

    def add(self, path: str, body: BinaryIO, modified: str) -> None:
        """Store a file."""
        assert path not in self.files, f"{path} is a duplicate"
        self.files[path] = body.read()
        self.dates[path] = modified


def make_recovery(
    folder: Path,
    captures: Iterable[SampleCapture],
    plan: RecoverOptions | None = None,
    missing: Iterable[str] = (),
    aliases: Iterable[tuple[str, str]] = (),
) -> Path:
    """Make a recovery of these captures in a folder and return the folder."""
    folder.mkdir(parents=True)
    plan = plan or RecoverOptions(ROOT)
    warcs = WarcStore(folder / "warc", VirtualClock(), "unlost/0")
    try:
        list(warcs.replay_unknown_records({}))
        with RecoveryState(folder) as state:
            state.store_options(plan)
            stored: dict[str, RecoveryRecord] = {}
            for sample in captures:
                name = page_name(sample.uri, ignore_case=plan.ignore_case)
                new = NewResource(name, sample.uri, LinkKind.PAGE, 0)
                state.resources.add([new])  # listed, so that it is not merged with another spelling
                (number,) = state.resources.enqueue([new])
                capture = Capture(
                    sample.uri, None, sample.date, sample.status, sample.mime, redirect=sample.location, archive="a",
                    urim=sample.urim, migrated=sample.migrated or None,
                )  # fmt: skip
                if sample.same_as is not None:
                    record = warcs.store_revisit(capture, stored[sample.same_as])
                else:
                    type_ = sample.header or sample.mime
                    headers = (("Content-Type", type_),) if type_ else ()
                    record = warcs.store(
                        FetchedCapture(capture, headers, io.BytesIO(sample.body), None, sample.urim), None
                    )
                stored[sample.uri] = record
                quality = CaptureQuality.REDIRECT if 300 <= sample.status < 400 else CaptureQuality.GOOD
                record_id = state.records.add(number, quality, record)
                state.resources.set_best_record(number, record_id)
                if sample.rejected:
                    state.rejections.add(record_id, quality, "soft-404", "test")
                    state.records.set_quality(record_id, CaptureQuality.REJECTED)
                    state.resources.finish(number, ResourceStatus.MISSING, DATE, "rejected")
                else:
                    state.resources.finish(number, ResourceStatus.RECOVERED, DATE)
            for uri in missing:
                (number,) = state.resources.enqueue([NewResource(page_name(uri), uri, LinkKind.PAGE, 0)])
                state.resources.finish(number, ResourceStatus.MISSING, DATE, "not-held")
            for alias, uri in aliases:
                (number,) = state.resources.find_ids([page_name(uri)]).values()
                state._file.begin()
                state._file.connection.execute("INSERT INTO alias VALUES (?, ?)", (page_name(alias), number))
    finally:
        warcs.close()
    return folder


def export_to_memory(folder: Path, options: ExportOptions | None = None) -> tuple[dict[str, bytes], ExportResult]:
    """Export a recovery into memory; return its files without the manifest, and the result."""
    with MemoryTarget() as target:
        done = export_site(folder, target, options or ExportOptions())
    del target.files[MANIFEST_NAME]
    return target.files, done


def has_name(uri: str) -> bool:
    """Return whether a URL is one of a page."""
    try:
        page_name(uri)
    except UriError:
        return False
    return True
