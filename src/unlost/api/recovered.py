"""What a recovery has brought back: read from its folder, exported, reported."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

from unlost import dates
from unlost.errors import InputError, UsageError
from unlost.recover.export.archive_files.wacz_target import write_wacz
from unlost.recover.export.archive_files.warc_target import ArchiveFileResult, write_warc
from unlost.recover.export.exported import ExportResult
from unlost.recover.export.exporting import ExportOptions, export_site
from unlost.recover.export.external import ExternalLinks
from unlost.recover.export.targets.opening import open_target
from unlost.recover.kept_copies import open_capture
from unlost.recover.report.files import ReportFiles, write_report
from unlost.recover.state.reading import StateReader
from unlost.recover.state.resources import ResourceStatus
from unlost.uri import naming


class Resource(NamedTuple):
    """One resource that came back.

    url: its address. datetime: when the copy was captured, in UTC. archive: that it is from; memento: its address there
        (URI-M). mime, status: of the copy. Each is None where it is not known.
    """

    url: str
    datetime: datetime
    archive: str | None
    memento: str | None
    mime: str | None
    status: int | None


class MissingResource(NamedTuple):
    """One resource that is missing. reason: a word; docs/recover.md lists them. links: how many lead to it."""

    url: str
    reason: str
    links: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run of a recovery ended.

    is_done: whether there is nothing left to do. If not, the same call goes on where this one ended.
    waiting: the archives that are not to be asked now, and when they may be, in UTC; None if nobody knows.
    unlisted: the archives that gave no whole list, and why. failed: how many resources are missing since an archive
        failed. requests: how many were sent to each archive.
    """

    is_done: bool
    waiting: Mapping[str, datetime | None]
    unlisted: Mapping[str, str]
    failed: int
    requests: Mapping[str, int]


class Recovery:
    """A recovery in its folder: what `unlost.recover` returns. `Recovered(folder)` opens one from before.

    folder: where it is; docs/recovery-files.md explains its files.
    run: how the run ended that returned it; None if it was opened by its folder.

    All of it is read from the folder when it is asked for, also while a recovery goes on. Raises InputError for a
    folder that is none of a recovery.

    >>> import tempfile, unlost
    >>> from unlost.testing import FakeArchive
    >>> home = "<a href=b>one</a> <a href=c>other</a>"
    >>> site = {"http://lost.example/": [("2014", home)], "http://lost.example/b": [("2014", "b")]}
    >>> with FakeArchive(site) as archive, tempfile.TemporaryDirectory() as folder:
    ...     found = unlost.recover("lost.example", f"{folder}/it", archives=[archive.registry_entry()])
    ...     print(found.run.is_done, [each.url for each in found.resources()], [each.url for each in found.missing()])
    ...     print(found.read("http://lost.example/b"), found.export(f"{folder}/site.zip").files)
    True ['http://lost.example/', 'http://lost.example/b'] ['http://lost.example/c']
    b'b' 2
    """

    def __init__(self, folder: str | PathLike[str], run: RunResult | None = None) -> None:
        self.folder = Path(folder)
        self.run = run
        StateReader(self.folder)  # raises for what is no recovery

    def __repr__(self) -> str:
        """Return where it is."""
        return f"<Recovered in {self.folder}>"

    def counts(self) -> dict[str, int]:
        """Return how many resources are `recovered`, `missing`, `queued` (to come), `listed` (nothing leads there)."""
        with StateReader(self.folder) as state:
            found = state.counts()
        return {each.value: found.get(each.value, 0) for each in ResourceStatus}

    def resources(self) -> Iterator[Resource]:
        """Yield what came back, in the order in which it was found."""
        with StateReader(self.folder) as state:
            for each in state.chosen_captures():
                when = dates.to_datetime(each.datetime)
                yield Resource(each.uri, when, each.archive, each.urim, each.mime, each.status)

    def missing(self) -> Iterator[MissingResource]:
        """Yield what is missing, in the order in which it was found."""
        with StateReader(self.folder) as state:
            for each in state.missing_resources():
                yield MissingResource(each.uri, each.reason, each.links)

    def read(self, url: str) -> bytes:
        """Return the body of a resource that came back, as it was captured, without codings.

        Raises InputError if it did not come back, or cannot be read any more, UriError for what is no address.
        """
        from unlost.formats.warc_writing.folder import WarcFolder  # noqa: PLC0415

        with StateReader(self.folder) as state:
            name = naming.page_name(url)
            record = next((record for each, record in state.records() if each == name), None)
        if record is None:
            raise InputError(f"{url[:200]}: did not come back, or leads elsewhere")
        with open_capture(WarcFolder(self.folder / "warc"), record).body as body:
            return body.read()

    def export(
        self,
        to: str | PathLike[str],
        *,
        hosting: bool = False,
        rewrite: bool = True,
        external: Literal["keep", "archive", "none"] = "keep",
        windows_names: bool = False,
    ) -> ExportResult | ArchiveFileResult:
        """Write it as a site that works again, or as one archive file; return numbers about that.

        to: what its name says: `.zip`, `.tar.gz`, `.wacz`, `.warc.gz`, else a folder. Nothing may be there yet.
        hosting: whether to write redirects for servers, too. rewrite: whether links lead to files.
        external: what becomes of links that lead away, as `--external` of `unlost export` has it.
        windows_names: whether names are such as Windows takes.
        An archive file holds captures as they were, and takes none of these. docs/export.md explains all of it.

        Raises UsageError for what does not go together, InputError if nothing came back yet, OSError where it cannot be
        written.
        """
        target = Path(to)
        name = target.name.lower()
        if name.endswith((".wacz", ".warc.gz")):
            if hosting or windows_names or external != "keep":
                raise UsageError("an archive file holds captures as they were: leave out what is for files")
            return (write_wacz if name.endswith(".wacz") else write_warc)(self.folder, target)
        wanted = ExportOptions(
            rewrite=rewrite, windows=windows_names, external=ExternalLinks(external), hosting=hosting
        )
        with open_target(target) as opened:
            return export_site(self.folder, opened, wanted)

    def report(self, to: str | PathLike[str] | None = None, *, language: Literal["en", "de"] = "en") -> Path:
        """Write a report into a folder: a page for people, a line for each resource, and the same as JSON.

        to: the folder; by default, `report` in that of the recovery. language: of the page; lines and JSON have
        none. Returns the path of the page.
        Raises InputError, OSError.
        """
        files = ReportFiles.in_folder(None if to is None else Path(to), self.folder)
        with StateReader(self.folder) as state:
            write_report(state, files, language=language)
        if files.html is None:
            raise UsageError("a report has a page")
        return files.html
