"""The pages that private links open: confirm, follow, preview, download and delete a job; unsubscribe.

The templates are in `templates/order`. The job page needs no scripts: its script only requests the page again when a
server-sent event arrives, and replaces the part that changed, so all texts are rendered in one place.
"""

import math
import mimetypes
import zipfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any
from weakref import WeakSet

from starlette.background import BackgroundTask
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from unlost.aggregate.request import parse_headers
from unlost.aggregate.urls import ServiceUrls
from unlost.errors import BusyError, InputError, JobError
from unlost.export.paths import relative_url
from unlost.jobs import states
from unlost.jobs.folders import CHECKPOINT_FILE, LOW_SPACE, QUOTA_REACHED
from unlost.jobs.limits import normalize_host
from unlost.jobs.models import PACKAGE_FORMATS, UNFINISHED_STATES, Job, JobState
from unlost.jobs.service import JobService
from unlost.recovery.state.reader import StateReader
from unlost.report.html_templates import sandbox_headers
from unlost.report.recovery.stats import RESOURCE_KINDS, collect_stats
from unlost.report.recovery.writer import ReportPageOptions, render_report
from unlost.webui.render import PAGE_HEADERS, CsrfForms, PageRenderer, read_body
from unlost.webui.templating import strings_for_request

_CHUNK_BYTES = 1 << 16
_MAX_INDEXES = 4  # packages whose directories are cached
_INDEX = "index.html"
_MIN_SAMPLES = 5  # finished jobs; with fewer, no estimate is made
_MIN_SHARE = 0.05  # of a job; earlier, resources are discovered faster than they are recovered
_MIN_SECONDS = 10.0  # elapsed time before which no remaining time is estimated
_MAX_CACHED = 200  # recoveries
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Policy of the report, which has inline styles and no script."""
_MAX_REPORTS = 50  # concurrent reports: each is a file until it is sent, of 170 MB for a million resources
_REPORT_RETRY_SECONDS = 10.0
_WORKER_TIMEOUT_SECONDS = 120.0  # since the last heartbeat of a worker, which sends three a minute
_SHORTAGE_TEXTS = {LOW_SPACE: "low_space", QUOTA_REACHED: "full"}  # keys of translations
_STEPS = (JobState.PENDING, JobState.QUEUED, JobState.PROCESSING, JobState.COMPLETE)


class ZipPackageReader:
    """Reads entries of zip packages. The directories of the most recently used packages are cached."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[Path, dict[str, zipfile.ZipInfo]] = OrderedDict()
        self._lock = Lock()

    def find_entry(self, file: Path, name: str) -> tuple[str, zipfile.ZipInfo] | None:
        """Return the name and entry for a path, or None.

        A path is a file or a folder with an index page.
        """
        names = self._names(file)
        for each in (name, f"{name.rstrip('/')}/{_INDEX}".lstrip("/")):
            if each in names and not each.endswith("/"):
                return each, names[each]
        return None

    def _names(self, file: Path) -> dict[str, zipfile.ZipInfo]:
        with self._lock:
            if file in self._indexes:
                self._indexes.move_to_end(file)
                return self._indexes[file]
        with zipfile.ZipFile(file) as package:
            names = {each.filename: each for each in package.infolist()}
        with self._lock:
            self._indexes[file] = names
            while len(self._indexes) > _MAX_INDEXES:
                self._indexes.popitem(last=False)
        return names


def read_entry(file: Path, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the content of an entry in chunks."""
    with zipfile.ZipFile(file) as package, package.open(entry) as body:
        while chunk := body.read(_CHUNK_BYTES):
            yield chunk


class PreviewPages:
    """The recovered pages below `/preview`, from the zip package.

    No script runs in them: a page knows its own URL, which contains the preview key, and a script could send it
    elsewhere. Therefore the key grants access to the preview only.
    """

    def __init__(self, service: JobService, renderer: PageRenderer, urls: ServiceUrls | None) -> None:
        self._service = service
        self._renderer = renderer
        self._urls = urls
        self._packages = ZipPackageReader()
        self.routes = [Route("/preview/{key}/{path:path}", self._serve, methods=["GET"])]

    async def _serve(self, request: Request) -> Response:
        key, path = request.path_params["key"], request.path_params["path"]
        job = await self._service.find_job(self._service.signer.verify_preview_key(key))
        package = None
        if job is not None and job.is_offered:
            package = next((each for each in job.packages if each.form == "zip"), None)
        if job is None or package is None:
            return self._not_found(request)
        # The key is valid, so it has only characters that are safe in a header.
        base = f"{parse_headers(request.scope, self._urls).urls.base}/preview/{key}/"
        if not path and package.start:
            return RedirectResponse(f"/preview/{key}/{relative_url(package.start)}", 307, self._headers(base))
        file = self._service.folders.folder_of(job.number) / package.file
        match = await self._service.run_query(self._packages.find_entry, file, path)
        if match is None:
            return self._not_found(request)
        name, entry = match
        if name != path and path and not path.endswith("/"):
            # Relative links in the index page need the URL of the folder.
            return RedirectResponse(f"/preview/{key}/{relative_url(name)}", 307, self._headers(base))
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        headers = {**self._headers(base), "content-type": media_type, "content-length": str(entry.file_size)}
        return StreamingResponse(iterate_in_threadpool(read_entry(file, entry)), headers=headers)

    def _headers(self, source: str) -> dict[str, str]:
        return {**sandbox_headers(source), "cache-control": "private, max-age=60", "x-robots-tag": "noindex"}

    def _not_found(self, request: Request) -> Response:
        text = strings_for_request(request)("preview.gone")
        headers = {**self._headers("'none'"), "cache-control": "no-store"}
        return Response(text, 404, {**headers, "content-type": "text/plain; charset=utf-8"})


def estimate_start(place: int, running: int, workers: int, durations: Sequence[float]) -> tuple[float, float] | None:
    """Estimate the earliest and latest start of a queued job in seconds from now.

    The earliest start assumes that jobs take no longer than the first quartile of recent durations, and that one ends
    immediately. The latest assumes the third quartile or the mean, whichever is longer, as a few jobs may be very
    large. Since a running job is likely a long one, its expected remaining time can exceed the typical duration of a
    job.

    Args:
        place: Position in the queue, from 1.
        running: Number of running jobs.
        workers: Number of live workers. Each runs one job, or more if `running` is larger.
        durations: Durations of recent jobs in seconds.

    Returns:
        The earliest and latest start, or None without enough data.

    >>> estimate_start(3, 1, 1, [60, 60, 120, 240, 240, 240])
    (120.0, 720.0)
    >>> estimate_start(1, 0, 2, [60] * 9)
    (0.0, 0.0)
    """
    if workers < 1 or len(durations) < _MIN_SAMPLES:
        return None
    concurrency = max(workers, running)
    ends = max(0, place + running - concurrency)  # jobs that must end before this one starts
    ordered = sorted(durations)
    quick, slow = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
    slow = max(slow, sum(ordered) / len(ordered))
    if not ends:
        return 0.0, 0.0
    # Mean remaining time of a running job: E[d²] / 2 E[d], the mean residual life of renewal theory.
    remaining = sum(each * each for each in ordered) / (2 * sum(ordered) or 1)
    return (ends - 1) / concurrency * quick, float((math.ceil(ends / concurrency) - 1) * slow + max(slow, remaining))


def estimate_remaining(seconds: float, share: float) -> float | None:
    """Estimate the remaining seconds of a job from its elapsed time and progress, or return None if it is too early.

    >>> estimate_remaining(60, 0.25)
    180.0
    """
    if share < _MIN_SHARE or seconds < _MIN_SECONDS:
        return None
    return seconds * (1 - share) / share


@dataclass(frozen=True, slots=True)
class FoundSummary:
    """Summary of the recovered files.

    Attributes:
        kinds: Number of files by kind.
        archives: Number of files by archive.
        first: Date of the earliest capture, 14 digits.
        last: Date of the latest capture, 14 digits.
    """

    kinds: Mapping[str, int] = field(default_factory=dict)
    archives: Mapping[str, int] = field(default_factory=dict)
    first: str | None = None
    last: str | None = None


class CheckpointReader:
    """Reads checkpoints, with a cache, since many clients may follow the same recovery."""

    def __init__(self) -> None:
        self._cache: dict[Path, tuple[int, FoundSummary]] = {}
        self._lock = Lock()

    def read(self, folder: Path) -> FoundSummary | None:
        """Return the summary of the last checkpoint in a folder, or None if it cannot be read."""
        file = folder / CHECKPOINT_FILE
        try:
            modified = file.stat().st_mtime_ns
            with self._lock:
                cached = self._cache.get(file)
            if cached is not None and cached[0] == modified:
                return cached[1]
            with StateReader(folder, CHECKPOINT_FILE) as state:
                figures = collect_stats(state)
        except (InputError, OSError):  # replaced or removed in the meantime
            return None
        kinds = {kind: figures.kinds[kind] for kind in RESOURCE_KINDS if figures.kinds[kind]}
        summary = FoundSummary(kinds, dict(figures.archives.most_common()), figures.first, figures.last)
        with self._lock:
            while len(self._cache) >= _MAX_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[file] = modified, summary
        return summary


class JobPages:
    """The pages below `/jobs`. The key in the URL grants access; there is no login."""

    def __init__(self, service: JobService, renderer: PageRenderer, forms: CsrfForms) -> None:
        self._service = service
        self._renderer = renderer
        self._forms = forms
        self._checkpoints = CheckpointReader()
        self._reports: WeakSet[IO[bytes]] = WeakSet()  # being rendered or sent
        job_path = "/jobs/{key}"
        self.routes = [
            Route("/jobs/confirm/{code}", self._confirm, methods=["GET", "POST"]),
            Route(job_path, self._status, methods=["GET"]),
            Route(f"{job_path}/cancel", self._cancel, methods=["POST"]),
            Route(f"{job_path}/retry", self._retry, methods=["POST"]),
            Route(f"{job_path}/delete", self._delete, methods=["GET", "POST"]),
            Route(f"{job_path}/report", self._report, methods=["GET"]),
            Route(f"{job_path}/preview", self._preview, methods=["GET"]),
        ]

    async def _confirm(self, request: Request) -> Response:
        """Show a confirmation button on GET, since mail scanners follow links; POST confirms."""
        code = request.path_params["code"]
        number = self._service.signer.verify_confirmation(code)
        job = await self._service.find_job(number)
        if job is None:
            return self._renderer.render_problem(request, "job", 404)
        if request.method == "POST":
            await self._forms.read(request)
            try:
                await self._service.run_query(self._service.store.confirm, job.number)
            except JobError:
                return self._renderer.render_problem(request, "confirm", 409)
        elif job.state is JobState.PENDING:
            return self._renderer.render(request, "order/confirm.html", job=job, code=code)
        elif job.state is JobState.REMOVED:
            return self._renderer.render_problem(request, "confirm", 404)
        return self._redirect_to(job)

    async def _status(self, request: Request) -> Response:
        job = await self._service.find_owned(request.path_params["key"])
        if job is None or job.state is JobState.REMOVED:
            return self._renderer.render_problem(request, "job", 404)
        return self._renderer.render(request, "order/status.html", **await self.status_context(job))

    async def status_context(self, job: Job) -> dict[str, Any]:
        """Return the template context of the status page."""
        service = self._service
        place = await service.queue_place(job)
        found: FoundSummary | None = None
        begin = done = None
        if job.state is JobState.QUEUED and place is not None:
            counts, workers = (
                await service.run_query(service.store.count_by_state),
                await service.run_query(service.store.workers),
            )
            durations, now = (
                await service.run_query(service.store.recent_durations),
                await service.run_query(service.store.now),
            )
            # Workers that were killed remain registered.
            live_workers = sum(now - each.seen <= _WORKER_TIMEOUT_SECONDS for each in workers)
            begin = estimate_start(place, counts[JobState.PROCESSING], live_workers, durations)
        if job.is_offered:
            found = summarize_figures(job.figures)
        elif job.state is JobState.PROCESSING:
            now = await service.run_query(service.store.now)
            done = estimate_remaining(now - job.changed, job.progress.share)
            folder = service.folders.generation_folder(job.number, job.generation)
            found = await service.run_query(self._checkpoints.read, folder)
        elif job.figures:
            found = summarize_figures(job.figures)
        ordered = [each for form in (job.order.form, *PACKAGE_FORMATS) for each in job.packages if each.form == form]
        key = service.signer.owner_key(job.number)
        return {
            "job": job,
            "host": normalize_host(job.order.url),
            "place": place,
            "begin": begin,
            "done": done,
            "found": found,
            "link": f"/jobs/{key}",
            "api": f"/api/jobs/{key}",
            "packages": list(dict.fromkeys(ordered)),
            "until": service.store.retention.removal_time(
                replace(job, state=JobState.COMPLETE) if job.is_offered else job
            ),
            "unlisted": unlisted_archives(job.figures),
            "shortage": _SHORTAGE_TEXTS.get(job.message),
            "is_live": job.state in UNFINISHED_STATES,
            "step": _STEPS.index(JobState.COMPLETE)
            if job.is_offered
            else _STEPS.index(job.state)
            if job.state in _STEPS
            else 1
            if job.state is JobState.PAUSED
            else None,
        }

    def _redirect_to(self, job: Job) -> Response:
        return RedirectResponse(f"/jobs/{self._service.signer.owner_key(job.number)}", 303, PAGE_HEADERS)

    async def _cancel(self, request: Request) -> Response:
        return await self._change(request, "cancel")

    async def _retry(self, request: Request) -> Response:
        return await self._change(request, "retry")

    async def _change(self, request: Request, action: str) -> Response:
        job = await self._service.find_owned(request.path_params["key"])
        if job is None:
            return self._renderer.render_problem(request, "job", 404)
        await self._forms.read(request)
        if action == "retry":
            await self._service.run_query(self._service.store.retry, job.number)
        else:
            await self._service.run_query(self._service.store.change, job.number, states.cancel)
        return self._redirect_to(job)

    async def _delete(self, request: Request) -> Response:
        job = await self._service.find_owned(request.path_params["key"])
        if job is None or (job.state is JobState.REMOVED and request.method != "POST"):
            return self._renderer.render_problem(request, "job", 404)
        if request.method != "POST":
            return self._renderer.render(
                request, "order/delete.html", job=job, link=f"/jobs/{request.path_params['key']}"
            )
        await self._forms.read(request)
        await self._service.remove(job.number)
        return self._renderer.render(request, "order/deleted.html")

    async def _report(self, request: Request) -> Response:
        job = await self._find_offered(request)
        if job is None:
            return self._renderer.render_problem(request, "job", 404)
        folder = self._service.offered_folder(job)
        language = strings_for_request(request).language

        back_url = f"{self._renderer.base}/jobs/{request.path_params['key']}"
        options = ReportPageOptions(
            language=language, names=self._renderer.archive_names, back_url=back_url, lists_all=True
        )

        def write_page(file: IO[bytes]) -> None:
            with StateReader(folder) as state:
                file.writelines(piece.encode() for piece in render_report(state, collect_stats(state), options))
            file.seek(0)

        if sum(not each.closed for each in self._reports) >= _MAX_REPORTS:
            raise BusyError("too many reports are being sent", _REPORT_RETRY_SECONDS)
        # A large report is written to disk, so that a slow client occupies neither memory nor an open state file.
        file = TemporaryFile()  # noqa: SIM115  closed after the response
        self._reports.add(file)
        try:
            await self._service.report_pool.run(write_page, file)
        except BaseException:
            file.close()
            raise
        chunks = iter(partial(file.read, _CHUNK_BYTES), b"")
        headers = {
            **PAGE_HEADERS,
            "content-security-policy": _REPORT_POLICY,
            "content-type": "text/html; charset=utf-8",
        }
        response = StreamingResponse(
            iterate_in_threadpool(chunks),
            headers={**headers, "content-language": language},
            background=BackgroundTask(file.close),
        )
        self._renderer.remember_language(request, response)
        return response

    async def _preview(self, request: Request) -> Response:
        job = await self._find_offered(request)
        if job is None or not job.packages:
            return self._renderer.render_problem(request, "job", 404)
        policy = PAGE_HEADERS["content-security-policy"] + "; frame-src 'self'"
        return self._renderer.render(
            request, "order/preview.html", headers={"content-security-policy": policy},
            host=normalize_host(job.order.url), link=f"/jobs/{request.path_params['key']}",
            frame=f"/preview/{self._service.signer.preview_key(job.number)}/",
        )  # fmt: skip

    async def _find_offered(self, request: Request) -> Job | None:
        job = await self._service.find_owned(request.path_params["key"])
        return job if job is not None and (job.state is JobState.COMPLETE or job.is_offered) else None


def summarize_figures(figures: Mapping[str, object]) -> FoundSummary:
    """Return the summary of recovered files in the figures of a job."""
    members: Any = figures
    archives = {name: each.get("recovered", 0) for name, each in members.get("archives", {}).items()}
    captures = members.get("copies", {})
    return FoundSummary(
        members.get("kinds", {}),
        {name: count for name, count in archives.items() if count},
        captures.get("first"),
        captures.get("last"),
    )


def unlisted_archives(figures: Mapping[str, object]) -> dict[str, str]:
    """Return the archives that may have further captures, with the outcome of their listing, from a job's figures.

    An archive that was only queried for single URLs is included if no query succeeded.
    """
    members: Any = figures
    unlisted: dict[str, str] = {}
    for name, each in members.get("archives", {}).items():
        outcomes = [outcome for outcome in each.get("lists", {}) if outcome != "done"]
        if outcomes:
            unlisted[name] = outcomes[0]
        elif not each.get("lists") and "done" not in each.get("queries", {}):
            unlisted[name] = "failed"
    return unlisted


class UnsubscribePages:
    """The pages below `/mail`. The code in the URL is only sent to the email address that it unsubscribes."""

    def __init__(self, service: JobService, renderer: PageRenderer, forms: CsrfForms) -> None:
        self._service = service
        self._renderer = renderer
        self._forms = forms
        self.routes = [
            Route("/mail/stop/{code}", self._stop, methods=["GET", "POST"]),
            Route("/mail/stop/{code}/undo", self._undo, methods=["POST"]),
        ]

    async def _stop(self, request: Request) -> Response:
        """Show a button on GET, since mail scanners follow links; POST unsubscribes (one-click, RFC 8058)."""
        code = request.path_params["code"]
        customer = self._service.signer.verify_unsubscribe_code(code)
        if customer is None:
            return self._renderer.render_problem(request, "stop", 404)
        if request.method == "POST":
            await read_body(request)
            await self._service.run_query(self._service.store.unsubscribe, customer)
            is_stopped = True
        else:
            is_stopped = await self._service.run_query(self._service.store.is_unsubscribed, customer)
        return self._renderer.render(request, "order/stop.html", is_stopped=is_stopped, link=f"/mail/stop/{code}")

    async def _undo(self, request: Request) -> Response:
        code = request.path_params["code"]
        customer = self._service.signer.verify_unsubscribe_code(code)
        if customer is None:
            return self._renderer.render_problem(request, "stop", 404)
        await self._forms.read(request)
        await self._service.run_query(self._service.store.resubscribe, customer)
        return RedirectResponse(f"/mail/stop/{code}", 303, PAGE_HEADERS)
