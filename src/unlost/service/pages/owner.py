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
from unlost.recover.report.figures import figures_of
from unlost.recover.report.page import PageOptions, render_report
from unlost.recover.state.reading import StateReading
from unlost.service.jobs import states
from unlost.service.jobs.disk_space import FULL, LOW_SPACE
from unlost.service.jobs.job import UNFINISHED, Job, State
from unlost.service.jobs.packages import FORMS
from unlost.service.jobs.rules import host_of
from unlost.service.jobs_desk import Desk
from unlost.service.pages.catalogue import strings_for
from unlost.service.pages.estimate import until_begun, until_done
from unlost.service.pages.forms import Forms
from unlost.service.pages.found_so_far import Checkpoints, FoundSoFar
from unlost.service.pages.looks import HEADERS, Looks

_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Of the report, which has its style in itself, and no script."""
_PIECE = 1 << 16
_MAX_REPORTS = 50  # at once: each is a file until its client has received it, 170 MB with a million files
_BUSY_SECONDS = 10.0
_LIVING_SECONDS = 120.0  # since a worker was last heard of; they say three times a minute that they are there
_SHORTAGES = {LOW_SPACE: "low_space", FULL: "full"}  # the names of texts
_STEPS = (State.PENDING, State.QUEUED, State.PROCESSING, State.COMPLETE)


class Owner:
    """The pages below `/jobs`. Whoever has a link has the job: there is nobody to log in."""

    def __init__(self, desk: Desk, looks: Looks, forms: Forms) -> None:
        self._desk = desk
        self._looks = looks
        self._forms = forms
        self._checkpoints = Checkpoints()
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
        number = self._desk.keys.confirmed(code)
        job = await self._desk.found(number)
        if job is None:
            return self._looks.problem(request, "job", 404)
        if request.method == "POST":
            await self._forms.read(request)
            try:
                await self._desk.do(self._desk.jobs.confirm, job.number)
            except JobError:
                return self._looks.problem(request, "confirm", 409)
        elif job.state is State.PENDING:
            return self._looks.page(request, "order/confirm.html", job=job, code=code)
        elif job.state is State.REMOVED:
            return self._looks.problem(request, "confirm", 404)
        return self._to(job)

    async def _status(self, request: Request) -> Response:
        job = await self._desk.owned(request.path_params["key"])
        if job is None or job.state is State.REMOVED:
            return self._looks.problem(request, "job", 404)
        return self._looks.page(request, "order/status.html", **await self.told(job))

    async def told(self, job: Job) -> dict[str, Any]:
        """Return what the page of a job shows."""
        desk = self._desk
        place = await desk.place(job)
        found: FoundSoFar | None = None
        begin = done = None
        if job.state is State.QUEUED and place is not None:
            counts, workers = await desk.do(desk.jobs.counts), await desk.do(desk.jobs.workers)
            durations, now = await desk.do(desk.jobs.durations), await desk.do(desk.jobs.now)
            # Those that were killed never said that they end.
            living = sum(now - each.seen <= _LIVING_SECONDS for each in workers)
            begin = until_begun(place, counts[State.PROCESSING], living, durations)
        if job.is_offered:
            found = found_in(job.figures)
        elif job.state is State.PROCESSING:
            now = await desk.do(desk.jobs.now)
            done = until_done(now - job.changed, job.progress.share)
            folder = desk.folders.generation(job.number, job.generation)
            found = await desk.do(self._checkpoints.read, folder)
        elif job.figures:
            found = found_in(job.figures)
        wanted = [each for form in (job.order.form, *FORMS) for each in job.packages if each.form == form]
        key = desk.keys.owner(job.number)
        return {
            "job": job,
            "host": host_of(job.order.url),
            "place": place,
            "begin": begin,
            "done": done,
            "found": found,
            "link": f"/jobs/{key}",
            "api": f"/api/jobs/{key}",
            "packages": list(dict.fromkeys(wanted)),
            "until": desk.jobs.terms.until(replace(job, state=State.COMPLETE) if job.is_offered else job),
            "unlisted": unlisted_in(job.figures),
            "shortage": _SHORTAGES.get(job.message),
            "is_live": job.state in UNFINISHED,
            "step": _STEPS.index(State.COMPLETE)
            if job.is_offered
            else _STEPS.index(job.state)
            if job.state in _STEPS
            else 1
            if job.state is State.PAUSED
            else None,
        }

    def _to(self, job: Job) -> Response:
        return RedirectResponse(f"/jobs/{self._desk.keys.owner(job.number)}", 303, HEADERS)

    async def _cancel(self, request: Request) -> Response:
        return await self._changed(request, "cancel")

    async def _retry(self, request: Request) -> Response:
        return await self._changed(request, "retry")

    async def _changed(self, request: Request, what: str) -> Response:
        job = await self._desk.owned(request.path_params["key"])
        if job is None:
            return self._looks.problem(request, "job", 404)
        await self._forms.read(request)
        if what == "retry":
            await self._desk.do(self._desk.jobs.retry, job.number)
        else:
            await self._desk.do(self._desk.jobs.change, job.number, states.cancel)
        return self._to(job)

    async def _delete(self, request: Request) -> Response:
        job = await self._desk.owned(request.path_params["key"])
        if job is None or (job.state is State.REMOVED and request.method != "POST"):
            return self._looks.problem(request, "job", 404)
        if request.method != "POST":
            return self._looks.page(request, "order/delete.html", job=job, link=f"/jobs/{request.path_params['key']}")
        await self._forms.read(request)
        await self._desk.remove(job.number)
        return self._looks.page(request, "order/deleted.html")

    async def _report(self, request: Request) -> Response:
        job = await self._complete(request)
        if job is None:
            return self._looks.problem(request, "job", 404)
        folder = self._desk.offered_folder(job)
        language = strings_for(request).language

        back = f"{self._looks.base}/jobs/{request.path_params['key']}"
        options = PageOptions(language=language, names=self._looks.names, back=back, lists_all=True)

        def write(file: IO[bytes]) -> None:
            with StateReading(folder) as state:
                file.writelines(piece.encode() for piece in render_report(state, figures_of(state), options))
            file.seek(0)

        if sum(not each.closed for each in self._reports) >= _MAX_REPORTS:
            raise BusyError("too many reports are being sent", _BUSY_SECONDS)
        # A page of many files is written to disk: it takes no memory, and a slow client holds nothing else open.
        file = TemporaryFile()  # noqa: SIM115  closed after the response
        self._reports.add(file)
        try:
            await self._desk.reports.run(write, file)
        except BaseException:
            file.close()
            raise
        pieces = iter(partial(file.read, _PIECE), b"")
        headers = {**HEADERS, "content-security-policy": _REPORT_POLICY, "content-type": "text/html; charset=utf-8"}
        answer = StreamingResponse(
            iterate_in_threadpool(pieces),
            headers={**headers, "content-language": language},
            background=BackgroundTask(file.close),
        )
        self._looks.remember_language(request, answer)
        return answer

    async def _preview(self, request: Request) -> Response:
        job = await self._complete(request)
        if job is None or not job.packages:
            return self._looks.problem(request, "job", 404)
        policy = HEADERS["content-security-policy"] + "; frame-src 'self'"
        return self._looks.page(
            request, "order/preview.html", headers={"content-security-policy": policy},
            host=host_of(job.order.url), link=f"/jobs/{request.path_params['key']}",
            frame=f"/preview/{self._desk.keys.preview(job.number)}/",
        )  # fmt: skip

    async def _complete(self, request: Request) -> Job | None:
        job = await self._desk.owned(request.path_params["key"])
        return job if job is not None and (job.state is State.COMPLETE or job.is_offered) else None


def found_in(figures: Mapping[str, object]) -> FoundSoFar:
    """Return what the figures of a job say, as far as pages show it."""
    found: Any = figures
    archives = {name: each.get("recovered", 0) for name, each in found.get("archives", {}).items()}
    copies = found.get("copies", {})
    return FoundSoFar(
        found.get("kinds", {}), {name: n for name, n in archives.items() if n}, copies.get("first"), copies.get("last")
    )


def unlisted_in(figures: Mapping[str, object]) -> dict[str, str]:
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
