"""Rendering of large reports does not delay other requests and is limited."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.requests import Request

from tests.report.recovery.states import make_state
from unlost.errors import BusyError
from unlost.jobs import Database, JobFolders, JobService, JobStore, LinkSigner, MailOutbox, file_url
from unlost.webui import CsrfForms, JobPages, PageRenderer
from unlost.webui import job_pages as owner_module


def request() -> Request:
    """Return a request for a report."""
    return Request({"type": "http", "path": "/", "headers": [], "query_string": b"", "path_params": {"key": "1-x"}})


def test_concurrent_reports_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Further reports are rejected, and the database remains usable."""
    end = threading.Event()

    def render(*_: object) -> Iterator[str]:
        assert end.wait(10)
        yield "rendered"

    async def complete(*_: object) -> Any:  # noqa: ANN401
        return cast("Any", "a job")

    folder = make_state(tmp_path / "recovery", [])
    monkeypatch.setattr(owner_module, "render_report", render)
    monkeypatch.setattr(owner_module, "_MAX_REPORTS", 9)
    monkeypatch.setattr(JobPages, "_find_offered", complete)
    monkeypatch.setattr(JobService, "offered_folder", lambda *_: folder)

    async def run(database: Database) -> None:
        keys = LinkSigner(b"x" * 32)
        desk = JobService.create(JobStore(database), JobFolders(tmp_path / "work"), keys, MailOutbox(database), ())
        forms = CsrfForms(keys, is_secure=False)
        report = JobPages(desk, PageRenderer(forms, {}), forms)._report
        going = [asyncio.create_task(report(request())) for _ in range(9)]
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await desk.run_query(desk.store.check_connection)
        with pytest.raises(BusyError):
            await report(request())
        end.set()
        ends = [response.background for response in await asyncio.gather(*going)]
        with pytest.raises(BusyError):
            await report(request())  # none is sent yet
        await cast("Any", ends.pop())()
        ends.append((await report(request())).background)
        for each in ends:
            await cast("Any", each)()
        desk.report_pool.shutdown()

    database = Database(file_url(tmp_path / "jobs.sqlite"))
    database.prepare()
    asyncio.run(run(database))
    database.close()
