"""The service or its database is killed while it accepts orders: every acknowledged order is stored once."""

import http.client
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from tests.external import postgresql
from tests.external.postgresql import Postgresql, program
from tests.jobs.service_process import ORDER, ServiceProcess, run_service
from tests.recovery.sample_site import SiteArchives, sample_site, serve_site
from tests.waiting import wait_until
from unlost.jobs import Database, JobStore

POINTS = 5
"""Kills in a round: fifty in ten rounds."""

CUSTOMERS = 3
_NUMBERS = count()
ROUNDS = [0, *(pytest.param(round_, marks=pytest.mark.long) for round_ in range(1, 10))]


@pytest.fixture(scope="module")
def site_archives() -> Iterator[SiteArchives]:
    """Run the archives of a small site."""
    with serve_site(sample_site()) as found:
        yield found


@dataclass
class Orders:
    """Responses that customers got.

    Attributes:
        taken: Names of the accepted orders, by key.
        unanswered: Number of orders without a response.
        refused: Statuses of other responses.
    """

    taken: dict[str, str] = field(default_factory=dict)
    unanswered: int = 0
    refused: list[int] = field(default_factory=list)

    @contextmanager
    def coming(self, service: ServiceProcess) -> Iterator[None]:
        """Let customers submit orders until the service is killed or the block ends."""
        over = threading.Event()
        customers = [threading.Thread(target=self._order, args=(service, over)) for _ in range(CUSTOMERS)]
        for each in customers:
            each.start()
        try:
            yield
        finally:
            over.set()
            for each in customers:
                each.join()

    def _order(self, service: ServiceProcess, over: threading.Event) -> None:
        while not over.is_set():
            name = f"Customer {next(_NUMBERS)}"
            try:
                response = service.request("POST", "/api/jobs", {**ORDER, "name": name, "page": True}, is_admin=True)
            except (OSError, http.client.HTTPException):
                self.unanswered += 1
                return  # it is dead
            if response.status == http.HTTPStatus.CREATED:
                self.taken[response.json["key"]] = name
            else:
                self.refused.append(response.status)
                over.wait(0.02)

    def wait(self, more: int) -> None:
        """Wait until a number of further orders was accepted."""
        enough = len(self.taken) + more
        wait_until(lambda: len(self.taken) >= enough)


def _is_all_there(orders: Orders, url: str, kills: int) -> None:
    """Check that every acknowledged order is stored once; unacknowledged ones may be stored, too."""
    database = Database(url)
    try:
        found = [job.order.name for job in JobStore(database).history()]
    finally:
        database.close()
    taken = set(orders.taken.values())
    assert len(taken) == len(orders.taken) > kills
    assert taken <= set(found)
    assert len(set(found)) == len(found) <= len(taken) + kills * CUSTOMERS


def _points(round_: int, what: str) -> Iterator[tuple[int, float]]:
    """Yield when to kill: after how many orders, and how many seconds later."""
    random_ = random.Random(round_)  # noqa: S311
    for point in range(POINTS):
        after, delay = random_.randint(1, 5), random_.choice([0.0, random_.uniform(0, 0.05)])
        print(f"{what}, round {round_}, point {point}: after {after} orders, {delay} s later")
        yield after, delay


@pytest.mark.parametrize("url", [pytest.param("sqlite", marks=pytest.mark.long), "postgresql"], indirect=True)
@pytest.mark.parametrize("round_", ROUNDS)
def test_no_order_is_lost_when_the_service_is_killed(
    round_: int, url: str, site_archives: SiteArchives, tmp_path: Path
) -> None:
    """The restarted service has all acknowledged orders and completes the jobs."""
    orders, settings = Orders(), {"UNLOST_DATABASE": url}
    registry = site_archives.registry(tmp_path)
    for after, delay in _points(round_, "service"):
        with run_service(tmp_path, registry, "--workers", "1", env=settings) as service:
            with orders.coming(service):
                orders.wait(after)
                time.sleep(delay)
                service.process.kill()
            assert service.process.wait() == -signal.SIGKILL
    assert orders.refused == []
    _is_all_there(orders, url, POINTS)
    with run_service(tmp_path, registry, "--workers", "2", env=settings) as service:
        assert {service.wait_until_ended(key)["state"] for key in orders.taken} == {"complete"}


@pytest.fixture(scope="module")
def durable() -> Iterator[Postgresql]:
    """Run PostgreSQL with durable commits."""
    with postgresql.run_cluster(is_durable=True) as found:
        yield found


@pytest.mark.parametrize("round_", ROUNDS)
def test_no_order_is_lost_when_the_database_is_killed(
    round_: int, durable: Postgresql, site_archives: SiteArchives, tmp_path: Path
) -> None:
    """PostgreSQL crashes repeatedly and recovers; customers are asked to retry."""
    orders, url = Orders(), durable.create_database()
    with run_service(
        tmp_path, site_archives.registry(tmp_path), "--workers", "1", env={"UNLOST_DATABASE": url}
    ) as service:
        with orders.coming(service):
            for after, delay in _points(round_, "database"):
                orders.wait(after)
                time.sleep(delay)
                _break(url)
            orders.wait(1)
        assert (orders.unanswered, set(orders.refused) <= {503}) == (0, True), orders
        _is_all_there(orders, url, POINTS)
        assert {service.wait_until_ended(key)["state"] for key in orders.taken} == {"complete"}


def _break(url: str) -> None:
    """Kill a database process with -9, so that PostgreSQL restarts and recovers from its log."""
    before = _database_processes(url, "checkpointer")

    def is_broken() -> bool:
        if _database_processes(url, "checkpointer") not in ([], before):
            return True
        with suppress(ProcessLookupError):
            for process in _database_processes(url, "client backend")[:1]:
                os.kill(process, signal.SIGKILL)
        return False

    wait_until(is_broken)


def _database_processes(url: str, kind: str) -> list[int]:
    """Return the ids of database processes of a kind; empty while it is down."""
    query = "SELECT backend_type, pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    done = subprocess.run([program("psql"), url, "-qAtc", query], check=False, capture_output=True, text=True)
    rows = [line.partition("|") for line in done.stdout.splitlines()]
    return [int(process) for name, _, process in rows if name == kind]
