"""Bringing a lost site back, for Python programs with and without `async`."""

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from unlost import dates, home
from unlost._core import VERSION
from unlost.api.choosing import ArchiveSelection, select_archives
from unlost.api.loop_thread import LoopThread
from unlost.api.messages import log_info, log_warning
from unlost.api.moments import DateLike, parse_date
from unlost.api.recovered import Recovery, RunResult
from unlost.archives.archive import Archive
from unlost.archives.asking.courier import ArchiveHttpClient
from unlost.archives.local.local_archives import ALL_PROFILES, local_source_archives
from unlost.archives.manners.limit_store import FileLimitStore
from unlost.archives.spelling import normalize_input_url
from unlost.clock import SystemClock
from unlost.errors import UsageError
from unlost.formats.folders import ensure_directory
from unlost.recover.live_site import LIVE_ARCHIVE
from unlost.recover.plan import SELECTABLE_POLICIES, RecoverOptions, RecoverPolicy
from unlost.recover.recovery import RecoverySession
from unlost.recover.result import RecoveryRunResult
from unlost.recover.scope import RecoveryScope
from unlost.recover.sources import store_source_paths, open_sources
from unlost.recover.state.file import explain_sqlite_errors
from unlost.recover.state.state import RequestsSent, RecoveryState
from unlost.recover.warcs import WarcStore
from unlost.state_file import STATE_FILE_NAME

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
        FileLimitStore(home.state_folder() / "limits", warn=log_warning), SystemClock(), contact, max_wait=_MAX_WAIT_SECONDS,
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
        normalize_input_url(url), urls=urls, page=page, subdomains=subdomains, depth=depth, limit=limit, include=include,
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
