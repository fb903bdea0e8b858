"""The job service: orders do not wait for queries."""

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import pytest
from starlette.requests import Request

from tests.jobs.in_memory_store import ORDER
from tests.virtual_clock import VirtualClock
from unlost.errors import BusyError, DatabaseError
from unlost.jobs import (
    AdminStore,
    ClientIdentifier,
    Database,
    JobFolders,
    JobService,
    JobState,
    JobStore,
    LinkSigner,
    MailOutbox,
    file_url,
    states,
)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[JobService]:
    """Create a service with an empty database."""
    database = Database(file_url(tmp_path / "jobs.sqlite"))
    database.prepare()

    async def made() -> JobService:
        return JobService.create(
            JobStore(database), JobFolders(tmp_path / "work"), LinkSigner(b"x" * 32), MailOutbox(database), ("a",)
        )

    found = asyncio.run(made())
    yield found
    found.order_threads.shutdown()
    found.login_pool.shutdown()
    database.close()


def test_orders_do_not_wait_for_queries(service: JobService) -> None:
    """An order is accepted while all slots for queries are blocked."""

    async def run() -> None:
        gate = threading.Event()
        crowd = [asyncio.create_task(service.run_query(gate.wait)) for _ in range(40)]
        try:
            await asyncio.sleep(0)
            taken = await service.run_order(service.store.submit, ORDER, is_confirmed=True)
            assert taken.state is JobState.QUEUED
            assert not any(each.done() for each in crowd)
        finally:
            gate.set()
            assert all(await asyncio.gather(*crowd))

    asyncio.run(run())


def test_login_queue_is_bounded(service: JobService, monkeypatch: pytest.MonkeyPatch) -> None:
    """One password is hashed at a time and eight more wait; others are rejected."""
    gate, running = threading.Event(), list[int]()

    def log_in(_: AdminStore, name: str, *__: str) -> str:
        running.append(threading.active_count())
        gate.wait()
        return name

    monkeypatch.setattr(AdminStore, "log_in", log_in)
    admins = AdminStore(service.store.database)

    async def run() -> None:
        waiting = [asyncio.create_task(service.login_pool.run(admins.log_in, str(n), "x", "y")) for n in range(9)]
        while not running:
            await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await service.login_pool.run(admins.log_in, "more", "x", "y")
        assert len(running) == 1
        gate.set()
        assert await asyncio.gather(*waiting) == [str(n) for n in range(9)]
        assert await service.login_pool.run(admins.log_in, "again", "x", "y") == "again"

    asyncio.run(run())


def test_folders_of_removed_jobs_are_deleted(service: JobService) -> None:
    """A folder to which a worker wrote during its removal is deleted later; others are retained."""
    gone, remaining = service.store.submit(ORDER).number, service.store.submit(ORDER).number
    for number in (gone, remaining, 999):
        service.folders.begin_generation(number, 1)
    service.store.change(gone, states.expire)
    service.remove_leftover_folders()
    assert service.folders.list_numbers() == [remaining, 999]


def test_retention_continues_after_unexpected_errors(service: JobService, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is logged, and the next run continues."""
    job = service.store.submit(ORDER)
    service.folders.begin_generation(job.number, 1)
    service.store.change(job.number, states.expire)
    faults = iter([RuntimeError("a fault"), DatabaseError("away")])
    sweep = JobService.remove_leftover_folders

    def faulty(service: JobService) -> None:
        for fault in faults:
            raise fault
        sweep(service)

    monkeypatch.setattr(JobService, "remove_leftover_folders", faulty)

    async def run() -> None:
        looking = asyncio.create_task(service.run_retention(VirtualClock()))
        while service.folders.list_numbers():
            await asyncio.sleep(0)
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)

    asyncio.run(run())


def test_clock_jump_suspends_retention(tmp_path: Path) -> None:
    """An expired order is retained until an operator confirms the time."""
    clock = VirtualClock()
    database = Database(file_url(tmp_path / "jobs.sqlite"), clock)
    database.prepare()
    jobs = JobStore(database)

    async def run() -> None:
        service = JobService.create(
            jobs, JobFolders(tmp_path / "work"), LinkSigner(b"x" * 32), MailOutbox(database), ("a",)
        )
        waiting = BlockingClock()
        number = jobs.submit(ORDER).number
        looking = asyncio.create_task(service.run_retention(waiting))
        await waiting.looked()
        clock.advance(30 * 86_400)
        await waiting.looked()
        assert jobs.get(number).state is JobState.PENDING
        assert (await service.gauges())["unlost_clock_jumped"][1] == 1
        service.clock_guard.confirm()
        await waiting.looked()
        assert jobs.get(number).state is JobState.REMOVED
        assert (await service.gauges())["unlost_clock_jumped"][1] == 0
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        service.order_threads.shutdown()
        service.login_pool.shutdown()

    asyncio.run(run())
    database.close()


class BlockingClock:
    """A clock whose sleep blocks until the test continues."""

    def __init__(self) -> None:
        self._reached, self._go_on = asyncio.Event(), asyncio.Event()

    def now(self) -> float:
        """Return a constant time."""
        return 0.0

    async def sleep(self, _: float) -> None:
        """Wait for `looked`."""
        self._reached.set()
        await self._go_on.wait()
        self._go_on.clear()

    async def looked(self) -> None:
        """Let the service run once, and wait until it has."""
        if self._reached.is_set():
            self._reached.clear()
            self._go_on.set()
        await self._reached.wait()


def client_hash(clients: ClientIdentifier, *lines: bytes, by: str = "127.0.0.1") -> str:
    """Return the client hash of a request with these X-Forwarded-For headers from an address."""
    headers = [(b"x-forwarded-for", line) for line in lines]
    return clients.client_hash(Request({"type": "http", "headers": headers, "client": (by, 1)}))


def test_client_address_is_taken_from_trusted_proxy() -> None:
    """The last address of the last header counts; earlier ones may be forged."""
    code = partial(client_hash, ClientIdentifier(LinkSigner(b"x" * 32), proxies=[ip_network("127.0.0.0/8")]))
    assert code(b"192.0.2.1") == code(b"6.6.6.6, 192.0.2.1") == code(b"6.6.6.6", b"192.0.2.1")
    assert code(b"192.0.2.1", b"6.6.6.6") != code(b"192.0.2.1") != code()
    assert code(b"192.0.2.1", by="::ffff:127.0.0.9") == code(b"192.0.2.1")
    untrusted = {code(b"192.0.2.1", by="192.0.2.7"), code(b"6.6.6.6", by="192.0.2.7"), code(by="192.0.2.7")}
    assert len(untrusted) == 1, "headers of untrusted peers are ignored"


def test_client_address_behind_several_trusted_proxies() -> None:
    """The last address that is not a trusted proxy counts."""
    own = [ip_network(each) for each in ("127.0.0.1", "10.0.0.0/24", "2001:db8:1::/64")]
    code = partial(client_hash, ClientIdentifier(LinkSigner(b"x" * 32), proxies=own))
    visitor = code(b"192.0.2.1")
    assert code(b"192.0.2.1, 10.0.0.7") == code(b"192.0.2.1", b"10.0.0.7, 2001:db8:1::2") == visitor
    forged = [b"6.6.6.6, 192.0.2.1, 10.0.0.7", b"10.0.0.7, 192.0.2.1", b"127.0.0.1,10.0.0.8,192.0.2.1,10.0.0.7"]
    assert {code(each) for each in forged} == {visitor}, "earlier entries are written by the visitor"
    assert code(b"6.6.6.6, 10.0.0.7", b"192.0.2.1") == visitor
    assert code(b"192.0.2.1, 10.0.1.7") == code(b"10.0.1.7") != visitor, "it is near one of ours, and is none"
    assert code(b"10.0.0.9, 10.0.0.7") == code(by="10.0.0.9") != code(by="10.0.0.7"), "a proxy is the client itself"
    assert code(b"192.0.2.1, nonsense, 10.0.0.7") == code(b"nonsense") != visitor, (
        "an invalid IP address ends the search"
    )
    assert code(b"192.0.2.1, 10.0.0.7", by="192.0.2.9") == code(by="192.0.2.9"), (
        "requests that bypass the proxies are not trusted"
    )
