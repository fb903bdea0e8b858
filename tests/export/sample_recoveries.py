"""Recoveries as a test wants them, without any archive; and a target in memory."""

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
from unlost.recover import CaptureQuality, RecoverOptions, WarcStore
from unlost.recover.state import NewResource as Asked
from unlost.recover.state import RecoveryState, ResourceStatus
from unlost.uri import page_name

if TYPE_CHECKING:
    from unlost.recover import RecoveryRecord

ROOT = "http://lost.example/"
DATE = "20140210000001"


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy to be recovered.

    uri: as it was captured. header: what the server said of its type and charset; the type alone if it is empty.
    location: of a redirect. rejected: whether it came and was no good. same_as: the address of a copy with that body.
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
    """A target that keeps all files: their bodies and dates by path."""

    files: dict[str, bytes] = field(default_factory=dict)
    dates: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Do nothing."""

    def add(self, path: str, body: BinaryIO, modified: str) -> None:
        """Keep a file."""
        assert path not in self.files, f"{path} is written twice"
        self.files[path] = body.read()
        self.dates[path] = modified


def recovered(
    folder: Path,
    copies: Iterable[Copy],
    plan: RecoverOptions | None = None,
    missing: Iterable[str] = (),
    aliases: Iterable[tuple[str, str]] = (),
) -> Path:
    """Make a recovery of these copies in a folder, which is returned."""
    folder.mkdir(parents=True)
    plan = plan or RecoverOptions(ROOT)
    warcs = WarcStore(folder / "warc", VirtualClock(), "unlost/0")
    try:
        list(warcs.replay_unknown_records({}))
        with RecoveryState(folder) as state:
            state.store_options(plan)
            stored: dict[str, RecoveryRecord] = {}
            for copy in copies:
                name = page_name(copy.uri, ignore_case=plan.ignore_case)
                asked = Asked(name, copy.uri, LinkKind.PAGE, 0)
                state.resources.add([asked])  # listed, so that it is never taken for another spelling
                (number,) = state.resources.enqueue([asked])
                capture = Capture(
                    copy.uri, None, copy.date, copy.status, copy.mime, redirect=copy.location, archive="a",
                    urim=copy.urim, migrated=copy.migrated or None,
                )  # fmt: skip
                if copy.same_as is not None:
                    record = warcs.store_revisit(capture, stored[copy.same_as])
                else:
                    type_ = copy.header or copy.mime
                    headers = (("Content-Type", type_),) if type_ else ()
                    record = warcs.store(FetchedCapture(capture, headers, io.BytesIO(copy.body), None, copy.urim), None)
                stored[copy.uri] = record
                worth = CaptureQuality.REDIRECT if 300 <= copy.status < 400 else CaptureQuality.GOOD
                kept = state.records.add(number, worth, record)
                state.resources.set_best_record(number, kept)
                if copy.rejected:
                    state.rejections.add(kept, worth, "soft-404", "it says so")
                    state.records.set_quality(kept, CaptureQuality.REJECTED)
                    state.resources.finish(number, ResourceStatus.MISSING, DATE, "rejected")
                else:
                    state.resources.finish(number, ResourceStatus.RECOVERED, DATE)
            for uri in missing:
                (number,) = state.resources.enqueue([Asked(page_name(uri), uri, LinkKind.PAGE, 0)])
                state.resources.finish(number, ResourceStatus.MISSING, DATE, "not-held")
            for alias, uri in aliases:
                (number,) = state.resources.find_ids([page_name(uri)]).values()
                state._file.begin()
                state._file.connection.execute("INSERT INTO alias VALUES (?, ?)", (page_name(alias), number))
    finally:
        warcs.close()
    return folder


def exported(folder: Path, wanted: ExportOptions | None = None) -> tuple[dict[str, bytes], ExportResult]:
    """Export a recovery into memory; return its files without the manifest, and what was said of them."""
    with MemoryTarget() as target:
        done = export_site(folder, target, wanted or ExportOptions())
    del target.files[MANIFEST_NAME]
    return target.files, done


def has_name(uri: str) -> bool:
    """Return whether an address is one of a page."""
    try:
        page_name(uri)
    except UriError:
        return False
    return True
