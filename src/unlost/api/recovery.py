"""Recovers lost sites and reads, exports and reports recoveries, for Python programs with and without `async`."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from unlost import dates, paths
from unlost._core import VERSION
from unlost.api.arguments import ArchiveSelection, DateLike, log_info, log_warning, parse_date, select_archives
from unlost.api.loop_thread import LoopThread
from unlost.archives.local_sources import ALL_PROFILES, local_source_archives
from unlost.atomic import ensure_directory
from unlost.clock import SystemClock
from unlost.errors import InputError, UsageError
from unlost.export.links import ExternalLinks
from unlost.export.site import ExportOptions, ExportResult, export_site
from unlost.export.targets import open_target
from unlost.export.wacz import write_wacz
from unlost.export.warc import ArchiveFileResult, write_warc
from unlost.http.client import ArchiveHttpClient
from unlost.http.limit_store import FileLimitStore
from unlost.recover.options import SELECTABLE_POLICIES, RecoverOptions, RecoverPolicy
from unlost.recover.scope import RecoveryScope
from unlost.recover.session import RecoveryRunResult, RecoverySession
from unlost.recover.sources import LIVE_ARCHIVE, open_sources, store_source_paths
from unlost.recover.state.reader import StateReader
from unlost.recover.state.resources import ResourceStatus
from unlost.recover.state.schema import explain_sqlite_errors
from unlost.recover.state.store import RecoveryState, RequestsSent
from unlost.recover.warc_records import open_capture
from unlost.recover.warc_store import WarcStore
from unlost.registry.models import Archive
from unlost.report.recovery.writer import ReportFiles, write_report
from unlost.sqlite import STATE_FILE_NAME
from unlost.uri import names
from unlost.uri.normalize import normalize_input_url


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
        from unlost.warc.writer import WarcFolder  # noqa: PLC0415

        with StateReader(self.folder) as state:
            name = names.page_name(url)
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


Paths: TypeAlias = str | PathLike[str] | Collection[str | PathLike[str]]
"""A path, or several."""
OnProgress = Callable[[str, Mapping[str, object]], None]
"""Gets a word for what happened, and what there is to say about it; docs/recover.md lists them."""
_MAX_WAIT_SECONDS = (
    900.0  # for which a question is kept waiting; what rates, quotas and blocks want beyond it ends it at once
)


async def recover_async(
    url: str,
    to: str | PathLike[str],
    *,
    archives: ArchiveSelection = None,
    only: Collection[str] = (),
    contact: str | None = None,
    policy: str | None = None,
    at: DateLike | None = None,
    first: DateLike | None = None,
    last: DateLike | None = None,
    page: bool = False,
    subdomains: bool = False,
    depth: int | None = None,
    limit: int | None = None,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    urls: Collection[str] = (),
    page_requisites: bool = True,
    drop_rejected: bool = False,
    all_versions: bool = False,
    until_done: bool = False,
    connections: int = 6,
    warc: Paths = (),
    har: Paths = (),
    browser_cache: bool | Paths = False,
    live: bool = False,
    delay: float = 1.0,
    on_progress: OnProgress | None = None,
) -> Recovery:
    """Bring a lost site back, as `recover` does, in the event loop that runs. Cancelled, it loses nothing."""
    plan = _recover_options(
        url, policy, at, first, last, page=page, subdomains=subdomains, depth=depth, limit=limit,
        include=_text_tuple("include", include), exclude=_text_tuple("exclude", exclude),
        urls=tuple(normalize_input_url(each) for each in _text_tuple("urls", urls)), page_requisites=page_requisites,
        drop_rejected=drop_rejected, all_versions=all_versions,
    )  # fmt: skip
    wanted = _select_sources(archives, only, warc, har, browser_cache, live=live)
    if live and plan.last is not None and plan.last < dates.from_epoch(str(int(SystemClock().now()))):
        raise UsageError("`live` and `last` exclude each other: what the live site responds now is later than `last`")
    for name, number in (("connections", connections), ("limit", limit), ("depth", depth)):
        if number is not None and number < (name != "depth"):
            raise UsageError(f"{name}: expected a number from {int(name != 'depth')} on, found {number}")
    if delay < 0:
        raise UsageError(f"delay: expected a number of seconds from 0 on, found {delay}")
    courier = ArchiveHttpClient(
        FileLimitStore(paths.state_folder() / "limits", warn=log_warning), SystemClock(), contact,
        max_wait=_MAX_WAIT_SECONDS,
        connections_per_host=connections, warn=log_info,
    )  # fmt: skip
    folder = Path(to)
    with ensure_directory(folder), explain_sqlite_errors(folder / STATE_FILE_NAME), RecoveryState(folder) as state:
        result, sent = await _run_session(
            plan, folder, state, wanted, courier, on_progress or _ignore_event, connections, until_done=until_done,
            contact=contact, delay=delay,
        )  # fmt: skip
    return Recovery(folder, _run_result(result, sent))


def recover(
    url: str,
    to: str | PathLike[str],
    *,
    archives: ArchiveSelection = None,
    only: Collection[str] = (),
    contact: str | None = None,
    policy: str | None = None,
    at: DateLike | None = None,
    first: DateLike | None = None,
    last: DateLike | None = None,
    page: bool = False,
    subdomains: bool = False,
    depth: int | None = None,
    limit: int | None = None,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    urls: Collection[str] = (),
    page_requisites: bool = True,
    drop_rejected: bool = False,
    all_versions: bool = False,
    until_done: bool = False,
    connections: int = 6,
    warc: Paths = (),
    har: Paths = (),
    browser_cache: bool | Paths = False,
    live: bool = False,
    delay: float = 1.0,
    on_progress: OnProgress | None = None,
) -> Recovery:
    """Bring a lost site back from all archives together, into a folder.

    url: where to begin; its folder on its host is the site.
    to: the folder of the recovery. If one is there, it goes on: asks for what failed, and what archives have gained.
    archives: which there are: None for the registry that is shipped, the path of a registry, or archives themselves;
        an empty list to recover from `warc`, `har`, `browser_cache` and `live` alone.
    only: the ids of the only ones to ask, also if they are off.
    contact: your mail address or page, which archives are told; without one they are asked half as often.
    policy: None to fetch everything that archives list, except crawl traps and duplicates. `knowledgeable`: only what
        links lead to. `naive`: the same without listings. `exhaustive`: everything listed.
    at: the site as of a moment. first, last: captures from and up to one.
    page: only this page, with what is needed to show it. subdomains: the hosts below the host, too.
    depth: at most so many links away from `url`. limit: at most so many resources, over all runs.
    include, exclude: regular expressions for addresses. urls: further addresses to begin from.
    page_requisites: fetch what pages need from other hosts, at most 5,000 files and 1 GB.
    drop_rejected: count a page as missing if all its captures look like error pages.
    all_versions: every version of every page.
    until_done: sleep until archives can be asked again, however long.
    connections: to one archive at once, as far as its limits allow.
    warc: WARC, ARC or WACZ files, or folders of them, to recover from, too: a path or several. har: HAR files.
    browser_cache: profiles of browsers whose caches to recover from; True for all that are found.
    live: whether to request from the live site what no archive lists a good capture of.
    delay: seconds between two requests to one host of the live site.
    on_progress: gets what happens, while it does, in the thread that recovers: a word such as `recovered`, and what
        there is to say about it. What it raises ends the recovery, and is raised.

    It runs in a thread of its own, so it works in notebooks, too. Ctrl-C loses nothing: the same call goes on.
    An archive that fails raises nothing: `Recovered.run` says what is left to do.

    Raises UriError for what is no address, DateError for what is no date, UsageError for what cannot be meant and
    archives that are not there, InputError for a folder of something else or one that another process works on, and
    OSError for a full disk, by which nothing is lost.

    >>> import tempfile
    >>> from unlost.testing import FakeArchive
    >>> with FakeArchive({"http://lost.example/": [("2014", "<p>hello")]}) as archive:
    ...     with tempfile.TemporaryDirectory() as folder:
    ...         recover("lost.example", folder, archives=[archive.registry_entry()]).counts()
    {'listed': 0, 'queued': 0, 'recovered': 1, 'substituted': 0, 'missing': 0}
    """
    with LoopThread("unlost.recover") as loop:
        return loop.run(
            recover_async(
                url, to, archives=archives, only=only, contact=contact, policy=policy, at=at, first=first, last=last,
                page=page, subdomains=subdomains, depth=depth, limit=limit, include=include, exclude=exclude, urls=urls,
                page_requisites=page_requisites, drop_rejected=drop_rejected, all_versions=all_versions,
                until_done=until_done, connections=connections, warc=warc, har=har, browser_cache=browser_cache,
                live=live, delay=delay, on_progress=on_progress,
            )
        )  # fmt: skip


def _recover_options(
    url: str,
    policy: str | None,
    at: DateLike | None,
    first: DateLike | None,
    last: DateLike | None,
    *,
    page: bool,
    subdomains: bool,
    depth: int | None,
    limit: int | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    urls: tuple[str, ...],
    page_requisites: bool,
    drop_rejected: bool,
    all_versions: bool,
) -> RecoverOptions:
    if policy is not None and policy not in SELECTABLE_POLICIES:
        raise UsageError(f"policy: expected {', '.join(SELECTABLE_POLICIES)}, found `{policy[:40]}`")
    plan = RecoverOptions(
        normalize_input_url(url), urls=urls, page=page, subdomains=subdomains, depth=depth, limit=limit,
        include=include,
        exclude=exclude, page_requisites=page_requisites, policy=RecoverPolicy(policy or RecoverPolicy.COMPLETE),
        drop_rejected=drop_rejected, all_versions=all_versions,
        at=None if at is None else parse_date(at),
        first=None if first is None else dates.pad(parse_date(first)),
        last=None if last is None else dates.pad(parse_date(last), round_up=True),
    )  # fmt: skip
    if plan.first and plan.last and plan.first > plan.last:
        raise UsageError("`first` is later than `last`: nothing lies between")
    RecoveryScope.of(plan)  # raises for expressions that are none
    return plan


def _text_tuple(name: str, values: Collection[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise UsageError(f"{name}: expected a list of texts, found one text")
    return tuple(values)


def _select_sources(
    archives: ArchiveSelection,
    only: Collection[str],
    warc: Paths,
    har: Paths,
    browser_cache: bool | Paths,
    *,
    live: bool,
) -> dict[str, Archive]:
    """Return what to recover from, by id. Raises UsageError if there is nothing, InputError."""
    profiles: list[Path | str] = []
    if browser_cache is True:
        profiles.append(ALL_PROFILES)
    elif browser_cache is not False:
        profiles += _path_list(browser_cache)
    found = local_source_archives(_path_list(warc), _path_list(har), profiles, log_info)
    if archives is not None and not isinstance(archives, str | PathLike):
        archives = list(archives)
    if archives != [] or not (found or live):
        found |= select_archives(archives, only)
    return found | ({LIVE_ARCHIVE.id: LIVE_ARCHIVE} if live else {})


def _path_list(given: Paths) -> list[Path]:
    return [Path(given)] if isinstance(given, str | PathLike) else [Path(each) for each in given]


async def _run_session(
    options: RecoverOptions,
    folder: Path,
    state: RecoveryState,
    archives: Mapping[str, Archive],
    http_client: ArchiveHttpClient,
    on_event: OnProgress,
    connections: int,
    *,
    until_done: bool,
    contact: str | None,
    delay: float,
) -> tuple[RecoveryRunResult, RequestsSent]:
    clock = SystemClock()
    store_source_paths(state, archives)
    with closing(WarcStore(folder / "warc", clock, f"unlost/{VERSION}")) as warcs:
        opening = open_sources(archives, http_client, options, clock, contact=contact, delay=delay)
        async with http_client, opening as repositories:
            recovery = RecoverySession(
                options, state, warcs, repositories, clock, on_event, connections=connections, until_done=until_done,
                requests_sent=http_client.request_counts,
            )  # fmt: skip
            return await recovery.run(), http_client.request_counts


def _run_result(result: RecoveryRunResult, sent: RequestsSent) -> RunResult:
    waiting = {
        name: datetime.fromtimestamp(each.until, UTC) if math.isfinite(each.until) else None
        for name, each in result.suspended.items()
    }
    requests: dict[str, int] = {}
    for (archive, _), count in sent.items():
        requests[archive] = requests.get(archive, 0) + count
    return RunResult(result.is_done and not result.is_stopped, waiting, dict(result.unlisted), result.failed, requests)


def _ignore_event(_event: str, _fields: Mapping[str, object]) -> None:
    """Say nothing."""
