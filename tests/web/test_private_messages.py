"""Responses to errors contain no URLs of databases or paths of files."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.jobs.in_memory_store import ORDER
from tests.virtual_clock import VirtualClock
from unlost.aggregate import ArchiveStatus, describe_archives
from unlost.errors import ArchiveFileError, DateError, FailedError, InputError, UriError
from unlost.jobs import (
    Database,
    JobFolders,
    JobRunner,
    JobService,
    JobState,
    JobStore,
    LinkSigner,
    MailOutbox,
    WorkerContext,
    file_url,
)
from unlost.registry import Archive, ArchiveKind
from unlost.web import JobsApi, Message, ReplayProxy, error_response


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Create a database whose path is a secret."""
    found = Database(file_url(tmp_path / "a-secret-path.sqlite"))
    found.prepare()
    yield found
    found.close()


def away(file: Path) -> None:
    """Remove the database."""
    file.unlink()
    file.mkdir()


def damage_database(file: Path) -> None:
    """Replace the database by another file."""
    file.write_bytes(b"not a database " * 1_000)


@pytest.mark.parametrize("harm", [away, damage_database])
def test_database_errors_are_not_exposed(
    database: Database, tmp_path: Path, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    """The response is 503 without the path; the log has it."""
    number = JobStore(database).submit(ORDER).number
    database.close()
    for file in tmp_path.glob("a-secret-path.sqlite-*"):
        file.unlink()
    harm(tmp_path / "a-secret-path.sqlite")
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> None:
        keys = LinkSigner(b"x" * 32)
        desk = JobService.create(JobStore(database), JobFolders(tmp_path / "work"), keys, MailOutbox(database), ("a",))
        path = f"/api/jobs/{keys.owner_key(number)}"
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": []}
        await JobsApi(desk, None).router({**scope, "query_string": b"", "root_path": ""}, receive, send)
        desk.order_threads.shutdown()
        desk.login_pool.shutdown()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["error"]
    assert b"secret" not in sent[1]["body"]
    assert b"sqlite" not in sent[1]["body"]
    assert "a-secret-path" in caplog.text


def test_file_paths_are_not_exposed() -> None:
    """An unreadable file is not a client error and is not named; an invalid request is."""
    response = error_response(InputError("/a/secret/cache.sqlite: damaged"))
    assert (response.status, b"secret" in response.body) == (503, False)
    for error in (UriError("no URL", "bad-uri"), DateError("no date")):
        assert error_response(error).status == 400
        assert str(error).encode() in error_response(error).body
    proxy = ReplayProxy(cast("Any", None), cast("Any", None), VirtualClock())
    assert b"secret" not in proxy._error_response(ArchiveFileError("/a/secret.warc.gz: damaged")).body
    assert b"status 500" in proxy._error_response(FailedError("status 500", "a", "status")).body


def test_archive_errors_are_not_exposed() -> None:
    """The kind of failure is public; only administrators see the message."""
    archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap="http://a.example/")
    standing = ArchiveStatus(archive, True, "why", failure="malformed: /a/secret.cdx: of http://private.example/")
    assert "secret" not in json.dumps(describe_archives([standing], VirtualClock(), is_public=True))
    assert '"malformed"' in json.dumps(describe_archives([standing], VirtualClock(), is_public=True))
    assert "secret" in json.dumps(describe_archives([standing], VirtualClock()))


def test_job_errors_are_not_exposed(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner does not see the path of an unreadable file."""
    jobs = JobStore(database)
    number = jobs.submit(ORDER, is_confirmed=True).number
    job = jobs.claim("w", 60)
    assert job is not None

    async def fail(_: JobRunner, __: object) -> None:
        raise InputError("/a/secret/state.sqlite: damaged")

    monkeypatch.setattr(JobRunner, "_execute", fail)
    tools = WorkerContext(jobs, JobFolders(tmp_path / "work"), {}, lambda _: None, VirtualClock())  # type: ignore[arg-type, return-value]
    asyncio.run(JobRunner(tools, job).run())
    failed = jobs.get(number)
    assert (failed.state, "secret" in failed.message) == (JobState.FAILED, False)
    assert failed.message
