"""Recovers lost sites and reads, exports and reports recoveries, for Python programs with and without `async`."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from unlost import dates, paths
from unlost.api.arguments import ArchiveSelection, DateLike, log_info, log_warning, parse_date, select_archives
from unlost.api.loop_thread import in_own_thread
from unlost.archives.local_sources import ALL_PROFILES, local_source_archives
from unlost.clock import SystemClock
from unlost.comparison.compare import SIMILARITY_THRESHOLD, Comparison, TextComparer, compare_sites
from unlost.comparison.site_readers import open_site
from unlost.errors import InputError, UsageError
from unlost.export.formats import ExportOptions, ExportSummary, ExternalLinks, export_recovery
from unlost.http.client import ArchiveHttpClient
from unlost.http.limit_store import FileLimitStore
from unlost.http.policy import MAX_WAITS
from unlost.recovery.events import EventListener, ignore_event
from unlost.recovery.options import (
    MAX_REQUISITE_BYTES,
    MAX_REQUISITE_FILES,
    SELECTABLE_POLICIES,
    RecoverOptions,
    RecoverPolicy,
    RunOptions,
)
from unlost.recovery.scheduler import RecoveryRunResult
from unlost.recovery.scope import RecoveryScope
from unlost.recovery.session import RecoverySession
from unlost.recovery.sources import LIVE_ARCHIVE
from unlost.recovery.state.reader import StateReader
from unlost.recovery.state.resources import ResourceStatus
from unlost.recovery.warc_records import open_capture
from unlost.registry.models import Archive
from unlost.report.recovery.writer import ReportFiles, write_report
from unlost.uri import names
from unlost.uri.normalize import normalize_input_url


class Resource(NamedTuple):
    """A recovered resource. Each attribute but the first two is None if unknown.

    Attributes:
        url: Its URL.
        datetime: When it was captured, in UTC.
        archive: ID of the archive that it came from.
        memento: Its URL in the archive (URI-M).
        mime: Its media type.
        status: Its HTTP status.
    """

    url: str
    datetime: datetime
    archive: str | None
    memento: str | None
    mime: str | None
    status: int | None


class MissingResource(NamedTuple):
    """A missing resource.

    Attributes:
        url: Its URL.
        reason: Why it is missing, as an error code; docs/recover.md lists them.
        links: Number of resources that link to it.
    """

    url: str
    reason: str
    links: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of one run of a recovery.

    Attributes:
        is_done: Whether nothing is left to do. Otherwise the same call resumes the recovery.
        waiting: Archives that may not be queried now, with the time in UTC when they may; None if unknown.
        unlisted: Archives that gave no complete listing, with the reason.
        failed: Number of resources that are missing because an archive failed.
        requests: Number of requests sent, by archive.
    """

    is_done: bool
    waiting: Mapping[str, datetime | None]
    unlisted: Mapping[str, str]
    failed: int
    requests: Mapping[str, int]


class Recovery:
    """A recovery in its folder, as returned by `unlost.recover`. `Recovery(folder)` opens an existing one.

    All data is read from the folder on access, also while the recovery is in progress.

    Args:
        folder: Folder of the recovery; docs/recovery-files.md describes its files.
        run: Result of the run that returned it; None if it was opened by its folder.

    Raises:
        InputError: The folder has no recovery.

    >>> import tempfile, unlost
    >>> from unlost.testing import FakeArchive
    >>> home = "<a href=b>one</a> <a href=c>other</a>"
    >>> site = {"http://lost.example/": [("2014", home)], "http://lost.example/b": [("2014", "b")]}
    >>> with FakeArchive(site) as archive, tempfile.TemporaryDirectory() as folder:
    ...     recovery = unlost.recover("lost.example", f"{folder}/it", archives=[archive.registry_entry()])
    ...     recovered, missing = list(recovery.resources()), list(recovery.missing())
    ...     print(recovery.run.is_done, [each.url for each in recovered], [each.url for each in missing])
    ...     print(recovery.read("http://lost.example/b"), recovery.export(f"{folder}/site.zip").files)
    True ['http://lost.example/', 'http://lost.example/b'] ['http://lost.example/c']
    b'b' 2
    """

    def __init__(self, folder: str | PathLike[str], run: RunResult | None = None) -> None:
        self.folder = Path(folder)
        self.run = run
        StateReader(self.folder)  # raises InputError if the folder has no recovery

    def __repr__(self) -> str:
        """Return the folder."""
        return f"<Recovery in {self.folder}>"

    @property
    def options(self) -> RecoverOptions | None:
        """What to recover, as stored by the last run; None before the first."""
        with StateReader(self.folder) as state:
            return state.options()

    def counts(self) -> dict[str, int]:
        """Return the number of resources by status; `listed` are those that archives list and no link points to."""
        with StateReader(self.folder) as state:
            counts = state.counts()
        return {each.value: counts.get(each.value, 0) for each in ResourceStatus}

    def resources(self) -> Iterator[Resource]:
        """Yield the recovered resources in order of discovery."""
        with StateReader(self.folder) as state:
            for each in state.chosen_captures():
                captured_at = dates.to_datetime(each.datetime)
                yield Resource(each.uri, captured_at, each.archive, each.urim, each.mime, each.status)

    def missing(self) -> Iterator[MissingResource]:
        """Yield the missing resources in order of discovery."""
        with StateReader(self.folder) as state:
            for each in state.missing_resources():
                yield MissingResource(each.uri, each.reason, each.links)

    def read(self, url: str) -> bytes:
        """Return the captured body of a recovered resource, without content codings.

        Raises:
            UriError: The URL is invalid.
            InputError: The resource was not recovered, or can no longer be read.
        """
        from unlost.warc.writer import WarcFolder  # noqa: PLC0415

        with StateReader(self.folder) as state:
            page = names.page_name(url)
            record = next((record for name, record in state.records() if name == page), None)
        if record is None:
            raise InputError(f"{url[:200]}: did not come back, or leads elsewhere")
        with open_capture(WarcFolder(self.folder / "warc"), record).body as body:
            return body.read()

    def export(
        self,
        output: str | PathLike[str],
        *,
        hosting: bool = False,
        rewrite: bool = True,
        external: Literal["keep", "archive", "none"] = "keep",
        windows_names: bool = False,
    ) -> ExportSummary:
        """Export the recovery as a working site or as one archive file, and return statistics.

        docs/export.md explains the formats. Archive files contain unmodified captures, and none of the options applies.

        Args:
            output: The target, which must not exist: a file that ends in `.zip`, `.tar.gz`, `.wacz` or `.warc.gz`, or
                else a folder.
            hosting: Whether to write redirects for web servers.
            rewrite: Whether to rewrite links to the exported files.
            external: What to do with links to other sites, as `--external` of `unlost export`.
            windows_names: Whether file names must be valid on Windows.

        Raises:
            UsageError: The options conflict.
            InputError: Nothing was recovered yet.
            OSError: The target cannot be written.
        """
        options = ExportOptions(
            rewrite=rewrite, windows=windows_names, external=ExternalLinks(external), hosting=hosting
        )
        return export_recovery(self.folder, Path(output), options)

    def report(self, output: str | PathLike[str] | None = None, *, language: Literal["en", "de"] = "en") -> Path:
        """Write a report as HTML page, TSV and JSON, and return the path of the page.

        Args:
            output: The folder; by default `report` in the folder of the recovery.
            language: Language of the page.

        Raises:
            InputError: The recovery cannot be read.
            OSError: A file cannot be written.
        """
        files = ReportFiles.in_folder(None if output is None else Path(output), self.folder)
        with StateReader(self.folder) as state:
            write_report(state, files, language=language)
        if files.html is None:
            raise UsageError("a report has a page")
        return files.html


Paths: TypeAlias = str | PathLike[str] | Collection[str | PathLike[str]]
"""One or several paths."""


async def recover_async(
    url: str,
    output: str | PathLike[str],
    *,
    archives: ArchiveSelection = None,
    only: Collection[str] = (),
    contact: str | None = None,
    policy: str | None = None,
    at: DateLike | None = None,
    first: DateLike | None = None,
    last: DateLike | None = None,
    most_recent: bool = False,
    all_versions: bool = False,
    drop_rejected: bool = False,
    include_left_out: bool = False,
    page: bool = False,
    subdomains: bool = False,
    depth: int | None = None,
    limit: int | None = None,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    urls: Collection[str] = (),
    ignore_case: bool = False,
    page_requisites: bool = True,
    requisite_files: int = MAX_REQUISITE_FILES,
    requisite_bytes: int = MAX_REQUISITE_BYTES,
    requisite_lookups: int = 1,
    warc: Paths = (),
    har: Paths = (),
    browser_cache: bool | Paths = False,
    live: bool = False,
    delay: float = 1.0,
    connections: int = 6,
    wait: float = 0.0,
    until_done: bool = False,
    proxies: bool = False,
    on_event: EventListener | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Recovery:
    """Recover a lost site from all archives into a folder.

    `recover` runs in a thread of its own, so it also works in notebooks; `recover_async` runs in the current event
    loop. Ctrl-C or cancelling loses nothing: the same call resumes the recovery. An archive that fails raises no
    error: `Recovery.run` reports what is left to do.

    Args:
        url: The start URL. Its folder on its host is the site.
        output: Folder of the recovery. An existing recovery is resumed: failed requests are repeated, and archives are
            queried for new captures.
        archives: None for the built-in registry, the path of a registry file, or archives; an empty list to recover
            only from `warc`, `har`, `browser_cache` and `live`.
        only: IDs of the archives to use, including disabled ones; empty for all enabled archives.
        contact: Your email address or web page, sent to archives. Without one, request rates are halved.
        policy: None to fetch everything that archives list, except crawl traps and duplicates. `knowledgeable`: only
            what links point to. `naive`: the same without listings. `exhaustive`: everything listed.
        at: Recover the site as of this date.
        first: Use only captures from this date on.
        last: Use only captures up to this date.
        most_recent: Prefer the latest capture even if the archive migrated it to another format.
        all_versions: Recover every version of every page.
        drop_rejected: Count a page as missing if all its captures look like error pages.
        include_left_out: Also fetch listed URLs that look like crawl traps or duplicates.
        page: Only this page and its page requisites.
        subdomains: Include the subdomains of the host.
        depth: Maximum number of links between `url` and a page.
        limit: Maximum number of resources, over all runs.
        include: Regular expressions, one of which must match a URL.
        exclude: Regular expressions, none of which may match a URL.
        urls: Further start URLs.
        ignore_case: Treat URLs that differ only in letter case as one resource.
        page_requisites: Fetch page requisites from other hosts.
        requisite_files: Maximum number of page requisites from other hosts.
        requisite_bytes: Maximum total size of page requisites from other hosts.
        requisite_lookups: Maximum number of archives queried for a page requisite on another host.
        warc: WARC, ARC or WACZ files, or folders of them, as additional sources: one or several paths.
        har: HAR files as additional sources.
        browser_cache: Browser profiles whose caches are additional sources; True for all that are found.
        live: Whether to request from the live site what no archive lists a good capture of.
        delay: Seconds between two requests to one host of the live site.
        connections: Maximum number of concurrent requests to one archive, within its rate limits.
        wait: Seconds between two requests to one archive. Unless it is 0, requests are sent one at a time.
        until_done: Wait until all archives may be queried again, however long.
        proxies: Use the proxies that `HTTP_PROXY` and similar variables name.
        on_event: Receives events (`unlost.recovery.events`) in the thread of the recovery. An exception that it raises
            ends the recovery.
        should_stop: Called often; the recovery stops when it returns True.

    Raises:
        UriError: A URL is invalid.
        DateError: A date is invalid.
        UsageError: Arguments conflict, or an archive is unknown.
        InputError: The folder has other contents, or another process uses it.
        OSError: A file cannot be written (disk full). Nothing stored so far is lost.

    >>> import tempfile, unlost
    >>> from unlost.testing import FakeArchive
    >>> with FakeArchive({"http://lost.example/": [("2014", "<p>hello")]}) as archive:
    ...     with tempfile.TemporaryDirectory() as folder:
    ...         unlost.recover("lost.example", folder, archives=[archive.registry_entry()]).counts()
    {'listed': 0, 'queued': 0, 'recovered': 1, 'substituted': 0, 'missing': 0}
    """
    if policy is not None and policy not in SELECTABLE_POLICIES:
        raise UsageError(f"policy: expected {', '.join(SELECTABLE_POLICIES)}, found `{policy[:40]}`")
    options = RecoverOptions(
        normalize_input_url(url), urls=tuple(normalize_input_url(each) for each in _text_tuple("urls", urls)),
        page=page, subdomains=subdomains, depth=depth, limit=limit,
        include=_text_tuple("include", include), exclude=_text_tuple("exclude", exclude), ignore_case=ignore_case,
        page_requisites=page_requisites, requisite_files=requisite_files, requisite_bytes=requisite_bytes,
        requisite_lookups=requisite_lookups, include_left_out=include_left_out,
        policy=RecoverPolicy(policy or RecoverPolicy.COMPLETE),
        at=None if at is None else parse_date(at),
        first=None if first is None else dates.pad(parse_date(first)),
        last=None if last is None else dates.pad(parse_date(last), round_up=True),
        most_recent=most_recent, all_versions=all_versions, drop_rejected=drop_rejected,
    )  # fmt: skip
    RecoveryScope.of(options)  # raises UsageError for an invalid regular expression
    run_options = RunOptions(connections, wait, until_done, delay, contact, proxies)
    sources = _select_sources(archives, only, warc, har, browser_cache, live=live)
    if live and options.last is not None and options.last < dates.from_epoch(str(int(SystemClock().now()))):
        raise UsageError("`live` and `last` exclude each other: what the live site responds now is later than `last`")
    http_client = ArchiveHttpClient(
        FileLimitStore(paths.state_folder() / "limits", warn=log_warning), SystemClock(), contact,
        max_wait=MAX_WAITS["recoveries"], connections_per_host=connections, use_proxies=proxies, warn=log_info,
    )  # fmt: skip
    session = RecoverySession(
        Path(output), options, sources, http_client, SystemClock(), run_options, on_event or ignore_event,
        should_stop or (lambda: False),
    )  # fmt: skip
    result = await session.run()
    return Recovery(output, _run_result(result))


recover = in_own_thread(recover_async)


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
    """Return the sources by archive ID. Raises UsageError if there are none, and InputError."""
    profiles: list[Path | str] = []
    if browser_cache is True:
        profiles.append(ALL_PROFILES)
    elif browser_cache is not False:
        profiles += _path_list(browser_cache)
    sources = local_source_archives(_path_list(warc), _path_list(har), profiles, log_info)
    if archives is not None and not isinstance(archives, str | PathLike):
        archives = list(archives)
    if archives != [] or not (sources or live):
        sources |= select_archives(archives, only)
    return sources | ({LIVE_ARCHIVE.id: LIVE_ARCHIVE} if live else {})


def _path_list(path_or_paths: Paths) -> list[Path]:
    return (
        [Path(path_or_paths)] if isinstance(path_or_paths, str | PathLike) else [Path(each) for each in path_or_paths]
    )


def _run_result(result: RecoveryRunResult) -> RunResult:
    waiting = {
        name: datetime.fromtimestamp(each.until, UTC) if math.isfinite(each.until) else None
        for name, each in result.suspended.items()
    }
    requests: dict[str, int] = {}
    for (archive, _), count in result.requests.items():
        requests[archive] = requests.get(archive, 0) + count
    return RunResult(result.is_done and not result.is_stopped, waiting, dict(result.unlisted), result.failed, requests)


def compare(
    original: str | PathLike[str],
    recovered: str | PathLike[str],
    *,
    original_base: str | None = None,
    recovered_base: str | None = None,
    similar_at: float = SIMILARITY_THRESHOLD,
) -> Comparison:
    """Return what is identical, changed, missing and added in a recovered site, compared with the original.

    docs/compare.md explains the numbers.

    Args:
        original: A WARC, a WACZ, a folder of files, or the folder of a recovery.
        recovered: Like `original`.
        original_base: URL of the top folder, for a folder of files whose subfolders are not named after hosts.
        recovered_base: Like `original_base`.
        similar_at: Share of common 10-word shingles from which two texts count as almost identical.

    Raises:
        UsageError: A base is wrong or missing.
        InputError: An input is not a site.
        OSError: An input cannot be read.

    >>> import tempfile, unlost
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, texts in {"old": ("a", "b"), "new": ("a",)}.items():
    ...         Path(folder, name, "a.example").mkdir(parents=True)
    ...         for text in texts:
    ...             _ = Path(folder, name, "a.example", f"{text}.txt").write_text(text)
    ...     result = unlost.compare(f"{folder}/old", f"{folder}/new")
    ...     print(result.counts.identical, result.counts.missing, [each.uri for each in result.different])
    1 1 ['http://a.example/b.txt']
    """
    sites = open_site(original, base=original_base), open_site(recovered, base=recovered_base)
    with TextComparer(*sites) as texts:
        return compare_sites(*sites, texts.similarity, similar_at=similar_at)
