"""The pages that private links open: confirm, follow, estimate, report, download and delete a job; unsubscribe."""

import math
from collections.abc import Mapping, Sequence
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

from unlost.errors import BusyError, InputError, JobError
from unlost.jobs import states
from unlost.jobs.folders import CHECKPOINT_FILE, LOW_SPACE, QUOTA_REACHED
from unlost.jobs.limits import normalize_host
from unlost.jobs.models import UNFINISHED_STATES, Job, JobState
from unlost.jobs.packages import PACKAGE_FORMATS
from unlost.jobs.service import JobService
from unlost.recover.state.reader import StateReader
from unlost.report.recovery.stats import RESOURCE_KINDS, collect_stats
from unlost.report.recovery.writer import ReportPageOptions, render_report
from unlost.webui.render import PAGE_HEADERS, CsrfForms, PageRenderer, read_body
from unlost.webui.templating import strings_for_request

_MIN_SAMPLES = 5  # jobs that ended: of fewer, nobody knows whether they are like the others
_MIN_SHARE = 0.05  # of a job: before that, more is found faster than it is done
_MIN_SECONDS = 10.0


def estimate_start(place: int, running: int, workers: int, durations: Sequence[float]) -> tuple[float, float] | None:
    """Return between how many seconds a job that waits will probably begin; None if that cannot be told.

    place: in the queue, from 1 on. running: jobs that are worked on. workers: that live; each has one job, or more if
    more are running. durations: seconds that the last jobs took.

    The first is what it comes to if jobs take as long as the quick quarter of those did at most, and one ends as soon
    as can be hoped; the second if they take as long as the slow quarter did at least, or as all did in the mean, which
    is more where few very large ones are among them. One of those is what is most likely met at work: so what is left
    of a running job may be more than a whole one mostly takes.

    >>> estimate_start(3, 1, 1, [60, 60, 120, 240, 240, 240])
    (120.0, 720.0)
    >>> estimate_start(1, 0, 2, [60] * 9)
    (0.0, 0.0)
    """
    if workers < 1 or len(durations) < _MIN_SAMPLES:
        return None
    at_once = max(workers, running)
    ends = max(0, place + running - at_once)  # that must come before it begins
    ordered = sorted(durations)
    quick, slow = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
    slow = max(slow, sum(ordered) / len(ordered))
    if not ends:
        return 0.0, 0.0
    left = sum(each * each for each in ordered) / (2 * sum(ordered) or 1)  # in the mean, of a job that is met at work
    return (ends - 1) / at_once * quick, float((math.ceil(ends / at_once) - 1) * slow + max(slow, left))


def estimate_remaining(seconds: float, share: float) -> float | None:
    """Return in how many seconds a job will probably be done that has come so far in so many; None if nobody knows.

    >>> estimate_remaining(60, 0.25)
    180.0
    """
    if share < _MIN_SHARE or seconds < _MIN_SECONDS:
        return None
    return seconds * (1 - share) / share


_MAX_CACHED = 200  # recoveries that are remembered


@dataclass(frozen=True, slots=True)
class FoundSummary:
    """Numbers of files that came back: by kind, and by archive. first, last: dates of copies, 14 digits."""

    kinds: Mapping[str, int] = field(default_factory=dict)
    archives: Mapping[str, int] = field(default_factory=dict)
    first: str | None = None
    last: str | None = None


class CheckpointReader:
    """Reads checkpoints, each once: many may watch the same recovery."""

    def __init__(self) -> None:
        self._cache: dict[Path, tuple[int, FoundSummary]] = {}
        self._lock = Lock()

    def read(self, folder: Path) -> FoundSummary | None:
        """Return what the last checkpoint in a folder knows; None if there is none, or if it cannot be read."""
        file = folder / CHECKPOINT_FILE
        try:
            changed = file.stat().st_mtime_ns
            with self._lock:
                seen = self._cache.get(file)
            if seen is not None and seen[0] == changed:
                return seen[1]
            with StateReader(folder, CHECKPOINT_FILE) as state:
                figures = collect_stats(state)
        except (InputError, OSError):  # it was replaced meanwhile, or removed
            return None
        kinds = {kind: figures.kinds[kind] for kind in RESOURCE_KINDS if figures.kinds[kind]}
        found = FoundSummary(kinds, dict(figures.archives.most_common()), figures.first, figures.last)
        with self._lock:
            while len(self._cache) >= _MAX_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[file] = changed, found
        return found


_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Of the report, which has its style in itself, and no script."""
_PIECE = 1 << 16
_MAX_REPORTS = 50  # at once: each is a file until its client has received it, 170 MB with a million files
_REPORT_RETRY_SECONDS = 10.0
_WORKER_TIMEOUT_SECONDS = 120.0  # since a worker was last heard of; they say three times a minute that they are there
_SHORTAGE_TEXTS = {LOW_SPACE: "low_space", QUOTA_REACHED: "full"}  # the names of texts
_STEPS = (JobState.PENDING, JobState.QUEUED, JobState.PROCESSING, JobState.COMPLETE)


class JobPages:
    """The pages below `/jobs`. Whoever has a link has the job: there is nobody to log in."""

    def __init__(self, service: JobService, renderer: PageRenderer, forms: CsrfForms) -> None:
        self._service = service
        self._renderer = renderer
        self._forms = forms
        self._checkpoints = CheckpointReader()
        self._reports: WeakSet[IO[bytes]] = WeakSet()  # that are being rendered or sent
        one = "/jobs/{key}"
        self.routes = [
            Route("/jobs/confirm/{code}", self._confirm, methods=["GET", "POST"]),
            Route(one, self._status, methods=["GET"]),
            Route(f"{one}/cancel", self._cancel, methods=["POST"]),
            Route(f"{one}/retry", self._retry, methods=["POST"]),
            Route(f"{one}/delete", self._delete, methods=["GET", "POST"]),
            Route(f"{one}/report", self._report, methods=["GET"]),
            Route(f"{one}/preview", self._preview, methods=["GET"]),
        ]

    async def _confirm(self, request: Request) -> Response:
        """Show a button: to look at it confirms nothing, since programs that check mail follow links, too."""
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
        """Return what the page of a job shows."""
        desk = self._service
        place = await desk.queue_place(job)
        found: FoundSummary | None = None
        begin = done = None
        if job.state is JobState.QUEUED and place is not None:
            counts, workers = await desk.run_query(desk.store.count_by_state), await desk.run_query(desk.store.workers)
            durations, now = await desk.run_query(desk.store.recent_durations), await desk.run_query(desk.store.now)
            # Those that were killed never said that they end.
            living = sum(now - each.seen <= _WORKER_TIMEOUT_SECONDS for each in workers)
            begin = estimate_start(place, counts[JobState.PROCESSING], living, durations)
        if job.is_offered:
            found = found_in_figures(job.figures)
        elif job.state is JobState.PROCESSING:
            now = await desk.run_query(desk.store.now)
            done = estimate_remaining(now - job.changed, job.progress.share)
            folder = desk.folders.generation_folder(job.number, job.generation)
            found = await desk.run_query(self._checkpoints.read, folder)
        elif job.figures:
            found = found_in_figures(job.figures)
        wanted = [each for form in (job.order.form, *PACKAGE_FORMATS) for each in job.packages if each.form == form]
        key = desk.signer.owner_key(job.number)
        return {
            "job": job,
            "host": normalize_host(job.order.url),
            "place": place,
            "begin": begin,
            "done": done,
            "found": found,
            "link": f"/jobs/{key}",
            "api": f"/api/jobs/{key}",
            "packages": list(dict.fromkeys(wanted)),
            "until": desk.store.retention.removal_time(
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

    async def _change(self, request: Request, what: str) -> Response:
        job = await self._service.find_owned(request.path_params["key"])
        if job is None:
            return self._renderer.render_problem(request, "job", 404)
        await self._forms.read(request)
        if what == "retry":
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
        job = await self._complete(request)
        if job is None:
            return self._renderer.render_problem(request, "job", 404)
        folder = self._service.offered_folder(job)
        language = strings_for_request(request).language

        back = f"{self._renderer.base}/jobs/{request.path_params['key']}"
        options = ReportPageOptions(
            language=language, names=self._renderer.archive_names, back_url=back, lists_all=True
        )

        def write(file: IO[bytes]) -> None:
            with StateReader(folder) as state:
                file.writelines(piece.encode() for piece in render_report(state, collect_stats(state), options))
            file.seek(0)

        if sum(not each.closed for each in self._reports) >= _MAX_REPORTS:
            raise BusyError("too many reports are being sent", _REPORT_RETRY_SECONDS)
        # A page of many files is written to disk: it takes no memory, and a slow client holds nothing else open.
        file = TemporaryFile()  # noqa: SIM115  closed after the response
        self._reports.add(file)
        try:
            await self._service.report_pool.run(write, file)
        except BaseException:
            file.close()
            raise
        pieces = iter(partial(file.read, _PIECE), b"")
        headers = {
            **PAGE_HEADERS,
            "content-security-policy": _REPORT_POLICY,
            "content-type": "text/html; charset=utf-8",
        }
        answer = StreamingResponse(
            iterate_in_threadpool(pieces),
            headers={**headers, "content-language": language},
            background=BackgroundTask(file.close),
        )
        self._renderer.remember_language(request, answer)
        return answer

    async def _preview(self, request: Request) -> Response:
        job = await self._complete(request)
        if job is None or not job.packages:
            return self._renderer.render_problem(request, "job", 404)
        policy = PAGE_HEADERS["content-security-policy"] + "; frame-src 'self'"
        return self._renderer.render(
            request, "order/preview.html", headers={"content-security-policy": policy},
            host=normalize_host(job.order.url), link=f"/jobs/{request.path_params['key']}",
            frame=f"/preview/{self._service.signer.preview_key(job.number)}/",
        )  # fmt: skip

    async def _complete(self, request: Request) -> Job | None:
        job = await self._service.find_owned(request.path_params["key"])
        return job if job is not None and (job.state is JobState.COMPLETE or job.is_offered) else None


def found_in_figures(figures: Mapping[str, object]) -> FoundSummary:
    """Return what the figures of a job say, as far as pages show it."""
    found: Any = figures
    archives = {name: each.get("recovered", 0) for name, each in found.get("archives", {}).items()}
    copies = found.get("copies", {})
    return FoundSummary(
        found.get("kinds", {}), {name: n for name, n in archives.items() if n}, copies.get("first"), copies.get("last")
    )


def unlisted_archives(figures: Mapping[str, object]) -> dict[str, str]:
    """Return the archives that may have more than is known, with the outcome of their listing, from a job's figures.

    An archive that was queried for single URLs alone is among them if it answered no query.
    """
    found: Any = figures
    unlisted: dict[str, str] = {}
    for name, each in found.get("archives", {}).items():
        outcomes = [outcome for outcome in each.get("lists", {}) if outcome != "done"]
        if outcomes:
            unlisted[name] = outcomes[0]
        elif not each.get("lists") and "done" not in each.get("queries", {}):
            unlisted[name] = "failed"
    return unlisted


class UnsubscribePages:
    """The pages below `/mail`. Only emails to the mail address have the code in the URL."""

    def __init__(self, service: JobService, renderer: PageRenderer, forms: CsrfForms) -> None:
        self._service = service
        self._renderer = renderer
        self._forms = forms
        self.routes = [
            Route("/mail/stop/{code}", self._stop, methods=["GET", "POST"]),
            Route("/mail/stop/{code}/undo", self._undo, methods=["POST"]),
        ]

    async def _stop(self, request: Request) -> Response:
        """Show a button on GET, as programs that check email follow links; POST is the one click of RFC 8058."""
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
