"""URLs of databases and paths of files reach no client, whatever fails."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.service.jobs.shelf import ORDER
from tests.virtual_clock import VirtualClock
from unlost.archives.archive import Archive, Kind
from unlost.errors import ArchiveFileError, DateError, FailedError, InputError, UriError
from unlost.service.about import about
from unlost.service.answers import Message
from unlost.service.jobs.database import Database, file_url
from unlost.service.jobs.folders import JobFolders
from unlost.service.jobs.job import State
from unlost.service.jobs.keys import Keys
from unlost.service.jobs.letters import Letters
from unlost.service.jobs.store import Jobs
from unlost.service.jobs.work import Tools, Work
from unlost.service.jobs_api import JobsApi
from unlost.service.jobs_desk import Desk
from unlost.service.proxy import Proxy
from unlost.service.refusals import refusal
from unlost.service.standing import Standing


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Have a database whose path is a secret."""
    found = Database(file_url(tmp_path / "a-secret-path.sqlite"))
    found.prepare()
    yield found
    found.close()


def away(file: Path) -> None:
    """Have no database."""
    file.unlink()
    file.mkdir()


def damaged(file: Path) -> None:
    """Have something else in its place."""
    file.write_bytes(b"not a database " * 1_000)


@pytest.mark.parametrize("harm", [away, damaged])
def test_a_database_that_fails(
    database: Database, tmp_path: Path, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    """The response is 503 and says nothing of where it is; the log does."""
    number = Jobs(database).submit(ORDER).number
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
        keys = Keys(b"x" * 32)
        desk = Desk.of(Jobs(database), JobFolders(tmp_path / "work"), keys, Letters(database), ("a",))
        path = f"/api/jobs/{keys.owner(number)}"
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": []}
        await JobsApi(desk, None).router({**scope, "query_string": b"", "root_path": ""}, receive, send)
        desk.orders.shutdown()
        desk.logins.shutdown()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["error"]
    assert b"secret" not in sent[1]["body"]
    assert b"sqlite" not in sent[1]["body"]
    assert "a-secret-path" in caplog.text


def test_files_of_the_service() -> None:
    """What cannot be read is not the client's fault, and is not named; what the client sent wrongly is."""
    answer = refusal(InputError("/a/secret/cache.sqlite: damaged"))
    assert (answer.status, b"secret" in answer.body) == (503, False)
    for error in (UriError("no URL", "bad-uri"), DateError("no date")):
        assert refusal(error).status == 400
        assert str(error).encode() in refusal(error).body
    proxy = Proxy(cast("Any", None), cast("Any", None), VirtualClock())
    assert b"secret" not in proxy._failure(ArchiveFileError("/a/secret.warc.gz: damaged")).body
    assert b"status 500" in proxy._failure(FailedError("status 500", "a", "status")).body


def test_what_went_wrong_with_an_archive() -> None:
    """Anybody sees the kind of a failure; only administrators see its message, which may have paths and URLs."""
    archive = Archive("a", "A", Kind.MEMENTO, timemap="http://a.example/")
    standing = Standing(archive, True, "why", failure="malformed: /a/secret.cdx: of http://private.example/")
    assert "secret" not in json.dumps(about([standing], VirtualClock(), is_public=True))
    assert '"malformed"' in json.dumps(about([standing], VirtualClock(), is_public=True))
    assert "secret" in json.dumps(about([standing], VirtualClock()))


def test_a_job_that_fails(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner is not shown the path of a file that cannot be read."""
    jobs = Jobs(database)
    number = jobs.submit(ORDER, is_confirmed=True).number
    job = jobs.claim("w", 60)
    assert job is not None

    async def fail(_: Work, __: object) -> None:
        raise InputError("/a/secret/state.sqlite: damaged")

    monkeypatch.setattr(Work, "_ending", fail)
    tools = Tools(jobs, JobFolders(tmp_path / "work"), {}, lambda _: None, VirtualClock())  # type: ignore[arg-type, return-value]
    asyncio.run(Work(tools, job).run())
    failed = jobs.get(number)
    assert (failed.state, "secret" in failed.message) == (State.FAILED, False)
    assert failed.message
