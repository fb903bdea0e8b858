"""The pages that private links open: an order is confirmed, followed, looked at, picked up and deleted there."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Any
from weakref import WeakSet

from starlette.background import BackgroundTask
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from unlost.errors import BusyError, JobError
from unlost.recover.report.figures import collect_stats
from unlost.recover.report.page import ReportPageOptions, render_report
from unlost.recover.state.reading import StateReader
from unlost.service.jobs import states
from unlost.service.jobs.disk_space import QUOTA_REACHED, LOW_SPACE
from unlost.service.jobs.job import UNFINISHED_STATES, Job, JobState
from unlost.service.jobs.packages import PACKAGE_FORMATS
from unlost.service.jobs.rules import normalize_host
from unlost.service.jobs_desk import JobService
from unlost.service.pages.catalogue import strings_for_request
from unlost.service.pages.estimate import estimate_start, estimate_remaining
from unlost.service.pages.forms import CsrfForms
from unlost.service.pages.found_so_far import CheckpointReader, FoundSummary
from unlost.service.pages.looks import PAGE_HEADERS, PageRenderer

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
