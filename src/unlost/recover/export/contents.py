"""What a recovery has to export: files, redirects and other names of both."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin

from unlost.errors import InputError
from unlost.formats.problems import Problems
from unlost.formats.warc_writing.folder import WarcFolder
from unlost.recover.export.entry import Entry, EntrySpool
from unlost.recover.export.placing.endings import ending_of
from unlost.recover.export.placing.segments import parts_of
from unlost.recover.export.placing.true_type import LOOK, true_type
from unlost.recover.kept_copies import first_bytes
from unlost.recover.plan import Plan
from unlost.recover.record import Record
from unlost.recover.state.reading import StateReading

WARCS = "warc"
"""The folder of a recovery with its archive files."""


@dataclass(slots=True)
class Contents:
    """A recovery as it was when it was read.

    files: resources that have a body. redirects: the whole address that a resource leads to, by its name.
    redirect_uris: the address of each redirect. aliases: names of resources by other names that links have.
    ignore_case: whether letter case does not count in names.
    plan: what is recovered; None if that was not kept.
    doubts: the kind of the quality verdict against a capture that was kept in spite of it, by the resource's name.
    substitutes: URLs that no archive has, and those with another query that are used in their place.
    """

    warcs: WarcFolder
    files: EntrySpool
    ignore_case: bool
    plan: Plan | None
    redirects: dict[str, str] = field(default_factory=dict)
    redirect_uris: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)
    substitutes: list[tuple[str, str]] = field(default_factory=list)


def nothing_recovered(recovery: Path) -> InputError:
    """Return what to raise for a recovery of which there is nothing to export."""
    return InputError(f"{recovery}: nothing was recovered so far: there is nothing to export")


def nothing_readable(problems: Problems) -> InputError:
    """Return what to raise for a recovery of which no copy can be read. problems: why not, at least one."""
    return InputError(f"nothing can be exported, first: {next(iter(problems.first.values()))}")


@contextmanager
def read_contents(folder: Path, on_copy: Callable[[], object] = lambda: None) -> Iterator[Contents]:
    """Give what a recovery has so far; it may be going on meanwhile.

    on_copy: is called for each copy whose beginning was looked at.

    Raises InputError for a folder that is no recovery, or has nothing yet; OSError.
    """
    with EntrySpool() as spool:
        with EntrySpool() as chosen:
            # First all of the state, which may change when it is closed; then the files: what it knows is in them.
            with StateReading(folder) as state:
                contents = Contents(WarcFolder(folder / WARCS), spool, state.ignore_case, state.plan())
                contents.aliases.update(state.aliases())
                contents.doubts.update((each.name, each.kind) for each in state.doubtful())
                contents.substitutes.extend(state.substitutes())
                for name, record in state.records():
                    if not _is_redirect(record):
                        chosen.add(Entry(name, record, None))
                    else:
                        _add_redirect(contents, name, record)
            if not len(chosen):
                raise nothing_recovered(folder)
            for entry in chosen:
                spool.add(Entry(entry.name, entry.record, _type(contents, entry.record)))
                on_copy()
        yield contents


def _is_redirect(record: Record) -> bool:
    return record.capture.status is not None and 300 <= record.capture.status < 400


def _add_redirect(contents: Contents, name: str, record: Record) -> None:
    capture = record.capture
    try:
        target = urljoin(capture.uri, (capture.redirect or "").strip())
    except ValueError:
        target = ""
    if capture.redirect and target:
        contents.redirects[name] = target
        contents.redirect_uris[name] = capture.uri


def _type(contents: Contents, record: Record) -> str | None:
    ending = ending_of(parts_of(record.capture.uri)[0][-1])
    try:
        head = first_bytes(contents.warcs, record, LOOK)
    except InputError:
        head = b""  # whoever opens it will tell
    return true_type(record.capture.mime, head, ending)
