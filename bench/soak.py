"""Soak test: an hour of load on the service at full speed with random faults; memory is stable and no job is lost.

The criteria were fixed before the first measurement. After the first third of the requests, a regression line through
the memory samples rises by at most 5 %; no descriptors leak; all responses have expected statuses; no job is lost,
although archives fail and workers are killed with SIGKILL.
`JOBS_DATABASE=postgresql make bench-soak` stores jobs in that database.
"""

import http.client
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.external import postgresql
from tests.jobs.service_process import ServiceProcess, run_service
from tests.waiting import wait_until

from bench.measure import Report
from unlost.testing import FakeArchive, Fault, write_registry

PAGES = 3_000
"""Number of requested pages; three in four are archived, and the first ones are requested most often."""

INVALID_PATHS = ("/timemap/link/", "/timemap/rubbish/http://a.example/", "/nowhere", "/timegate/not%00an%20address")
EXPECTED_STATUSES = {200, 302, 400, 404, 503}
"""503: nothing was found, and not every routed archive responded."""

# With Retry-After: without it a circuit stays open for a minute, which would be most of this compressed hour.
FAULTS = (
    Fault.dead(),
    Fault.garbage(),
    Fault.unavailable(retry_after=1),
    Fault.too_many(retry_after=1),
    Fault.slow(0.3),
)
WARM_UP_SHARE = 1 / 3
MAX_MEMORY_GROWTH = 1.05
MAX_NEW_DESCRIPTORS = 8  # keep-alive connections vary


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """The amount of load. The defaults are an hour of five requests a second and a job every three minutes.

    Attributes:
        requests: Number of requests.
        orders: Number of submitted jobs.
        faults: How often an archive starts to fail, or all of them recover.
        kills: Number of killed workers.
        concurrency: Number of clients.
        seed: Seed of all random choices.
    """

    requests: int = 18_000
    orders: int = 20
    faults: int = 180
    kills: int = 12
    concurrency: int = 8
    seed: int = 1


@dataclass
class SoakResult:
    """Observations. samples: (requests so far, bytes of memory, open descriptors) of the service process."""

    statuses: Counter[int] = field(default_factory=Counter)
    broken_responses: list[str] = field(default_factory=list)
    samples: list[tuple[int, int, int]] = field(default_factory=list)
    orders: dict[str, str] = field(default_factory=dict)
    kills: int = 0
    seconds: float = 0.0

    def warm_samples(self) -> list[tuple[int, int, int]]:
        """Return the samples after the warm-up."""
        last = self.samples[-1][0]
        return [each for each in self.samples if each[0] >= WARM_UP_SHARE * last]

    def memory_growth(self) -> float:
        """Return the factor of memory growth after the warm-up, by linear regression of the samples."""
        found = [(float(count), float(size)) for count, size, _ in self.warm_samples()]
        middle = sum(x for x, _ in found) / len(found), sum(y for _, y in found) / len(found)
        spread = sum((x - middle[0]) ** 2 for x, _ in found)
        slope = sum((x - middle[0]) * (y - middle[1]) for x, y in found) / spread
        first = middle[1] + slope * (found[0][0] - middle[0])
        return 1 + slope * (found[-1][0] - found[0][0]) / first

    def new_descriptors(self) -> int:
        """Return how many more descriptors are open at the end than after the warm-up."""
        found = self.warm_samples()
        return found[-1][2] - max(each[2] for each in found[: max(1, len(found) // 4)])


class Soak:
    """One run against a running service."""

    def __init__(self, options: SoakOptions, service: ServiceProcess, archives: list[FakeArchive]) -> None:
        self._options, self._service, self._archives = options, service, archives
        self._random = random.Random(options.seed)  # noqa: S311  not for secrets
        self._lock = threading.Lock()
        self._done = 0
        self.outcome = SoakResult()

    def run(self) -> SoakResult:
        """Send all requests while faults occur; then end all faults and wait for the jobs."""
        start = time.monotonic()
        clients = [
            threading.Thread(target=self._send_requests, args=(number,)) for number in range(self._options.concurrency)
        ]
        for each in clients:
            each.start()
        self._schedule_events()
        for each in clients:
            each.join()
        self._heal()
        for key in self.outcome.orders:
            self.outcome.orders[key] = str(self._service.wait_until_ended(key)["state"])
        self._sample()
        self.outcome.seconds = time.monotonic() - start
        return self.outcome

    def _send_requests(self, number: int) -> None:
        rng = random.Random(self._options.seed * 1000 + number)  # noqa: S311
        connection = http.client.HTTPConnection("127.0.0.1", self._service.port, timeout=60)
        for _ in range(self._options.requests // self._options.concurrency):
            try:
                connection.request("GET", random_path(rng))
                response = connection.getresponse()
                response.read()
                status = response.status
            except (OSError, http.client.HTTPException) as error:
                self.outcome.broken_responses.append(repr(error))
                connection.close()
                continue
            finally:
                with self._lock:
                    self._done += 1
            with self._lock:
                self.outcome.statuses[status] += 1
        connection.close()

    def _schedule_events(self) -> None:
        """Trigger each event after its number of requests."""
        options, total = self._options, self._options.requests // self._options.concurrency * self._options.concurrency
        events = [(self._random.randrange(total), self._fail) for _ in range(options.faults)]
        events += [(self._random.randrange(total), self._kill) for _ in range(options.kills)]
        # All jobs are submitted in the first half, so that they can finish in the rest of the time.
        events += [(number * total // (2 * options.orders), self._order) for number in range(options.orders)]
        events += [(number * total // 200, self._sample) for number in range(1, 201)]
        for when, act in sorted(events, key=lambda event: event[0]):
            while self._done < when:
                time.sleep(0.002)
            act()

    def _fail(self) -> None:
        if self._random.random() < 0.4:
            self._heal()
        else:
            self._random.choice(self._archives).fail(self._random.choice(FAULTS), times=self._random.randrange(1, 40))

    def _heal(self) -> None:
        for archive in self._archives:
            archive.heal()

    def _order(self) -> None:
        order = {"url": "http://small.example/", "mail": "me@example.org"}
        response = self._service.request("POST", "/api/jobs", order, is_admin=True)
        self.outcome.statuses[response.status] += 1
        if response.status == 201:
            self.outcome.orders[response.json["key"]] = ""

    def _kill(self) -> None:
        """Kill a worker of the service, if one is running."""
        pid = self._service.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        with suppress(OSError, ProcessLookupError, IndexError):
            os.kill(int(self._random.choice(children.read_text().split())), signal.SIGKILL)
            self.outcome.kills += 1

    def _sample(self) -> None:
        proc = Path(f"/proc/{self._service.process.pid}")
        pages = int((proc / "statm").read_text().split()[1])
        descriptors = len(list((proc / "fd").iterdir()))
        self.outcome.samples.append((self._done, pages * os.sysconf("SC_PAGE_SIZE"), descriptors))


def random_path(rng: random.Random) -> str:
    """Return the next request: mostly TimeMaps, some pages more often than others, sometimes invalid."""
    page = f"http://lost.example/{min(int(rng.paretovariate(0.6)), PAGES)}"
    kinds = [f"/timemap/link/{page}"] * 12 + [f"/timemap/json/{page}"] * 3 + [f"/timegate/{page}"] * 3
    return rng.choice([*kinds, "/", "/health", rng.choice(INVALID_PATHS)])


@contextmanager
def run_environment(folder: Path, url: str | None = None) -> Iterator[tuple[ServiceProcess, list[FakeArchive]]]:
    """Run three archives of a small lost site, and a service that queries them. url: database to use."""
    archived = {
        f"http://lost.example/{number}": [("2014-02-10", f"<p>{number}")] for number in range(PAGES) if number % 4
    }
    links = "".join(f"<a href='/{number}'>x</a>" for number in range(20))
    site = {f"http://small.example/{number}": [("2014-02-10", f"<p>{number}")] for number in range(20)}
    site["http://small.example/"] = [("2014-02-10", links)]
    with ExitStack() as stack:
        archives = [stack.enter_context(FakeArchive({**archived, **site}, id=name)) for name in ("a", "b", "c")]
        # Recoveries also request listings and captures from the first archive.
        entries = [archives[0].registry_entry(), *(each.registry_entry("memento") for each in archives[1:])]
        registry = write_registry(folder / "archives.toml", *entries)
        more = {"UNLOST_WORKER_PAUSE": "0.5", "UNLOST_WORKER_LEASE": "3", **({"UNLOST_DATABASE": url} if url else {})}
        yield (
            stack.enter_context(run_service(folder, registry, "--keep", "20", "--keep-misses", "5", env=more)),
            archives,
        )


def soak(options: SoakOptions, folder: Path, url: str | None = None) -> SoakResult:
    """Run the soak test and return the observations. Raises RuntimeError if the service has ended."""
    with run_environment(folder, url) as (service, archives):
        wait_until(lambda: any("waits for jobs" in line for line in service.lines))
        outcome = Soak(options, service, archives).run()
        if service.process.poll() is not None:
            raise RuntimeError(f"the service has ended: {service.lines[-3:]}")
        return outcome


def main() -> None:
    """Measure and write the report."""
    options = SoakOptions()
    is_shared = os.environ.get("JOBS_DATABASE") == "postgresql"
    title = f"The service for an hour, compressed{', with PostgreSQL' if is_shared else ''}"
    report = Report("soak-postgresql" if is_shared else "soak", title)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(postgresql.run_cluster()).create_database() if is_shared else None
        found = soak(options, folder, url)
    report.line(
        f"{options.requests:,} requests (an hour of five a second), {len(found.orders)} recoveries and {found.kills} "
        f"workers killed in {found.seconds:.0f} s; {options.faults} times an archive began to fail, or all were well; "
        f"jobs in {'PostgreSQL' if is_shared else 'SQLite'}."
    )
    report.line(
        f"Answers by status: {dict(sorted(found.statuses.items()))}; connections broken: {len(found.broken_responses)}."
    )
    sizes = [size / (1 << 20) for _, size, _ in found.warm_samples()]
    report.line(f"Memory behind the first third: from {min(sizes):.1f} to {max(sizes):.1f} MB.")
    report.line("")
    report.gate(
        "memory at the end of the line through the samples / at its beginning",
        found.memory_growth(),
        at_most=MAX_MEMORY_GROWTH,
    )
    report.gate("descriptors more than when it was warm", max(0, found.new_descriptors()), at_most=MAX_NEW_DESCRIPTORS)
    expected = sum(count for status, count in found.statuses.items() if status in EXPECTED_STATUSES | {201})
    report.gate("answers that are expected / requests", expected / (options.requests + options.orders), at_least=1)
    done = sum(state == "complete" for state in found.orders.values())
    report.gate("orders that are done / made", done / options.orders, at_least=1)
    report.finish()


if __name__ == "__main__":
    main()
