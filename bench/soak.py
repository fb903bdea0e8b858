"""An hour's worth of load on the service, as fast as it goes, with faults at random: memory stays, nothing is lost.

What must hold was decided before it was measured: behind the first third of the requests, a straight line through the
samples of memory rises by at most 5 % until the end; no descriptors are left open; no answer but those that are
expected; no order lost, although archives fail and workers are killed with -9.
`JOBS_DATABASE=postgresql make bench-soak` has jobs in that database.
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
"""Addresses that are asked for; three of four are held, and the first ones most often asked for."""

ODD = ("/timemap/link/", "/timemap/rubbish/http://a.example/", "/nowhere", "/timegate/not%00an%20address")
EXPECTED = {200, 302, 400, 404, 503}
"""503: nothing was found, and not every routed archive answered."""

# Who does not say for how long is left alone for a minute: of an hour that is over in one, nothing would be left.
FAULTS = (
    Fault.dead(),
    Fault.garbage(),
    Fault.unavailable(retry_after=1),
    Fault.too_many(retry_after=1),
    Fault.slow(0.3),
)
WARM = 1 / 3
MOST_RISE = 1.05
MORE_DESCRIPTORS = 8  # connections that are kept open come and go


@dataclass(frozen=True, slots=True)
class Plan:
    """How much. The defaults are an hour of five requests a second and an order every three minutes.

    faults: how often an archive begins to fail, or all of them are well again. kills: of workers.
    """

    requests: int = 18_000
    orders: int = 20
    faults: int = 180
    kills: int = 12
    at_once: int = 8
    seed: int = 1


@dataclass
class Outcome:
    """What was seen. samples: (requests so far, bytes of memory, open descriptors) of the service's process."""

    statuses: Counter[int] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    samples: list[tuple[int, int, int]] = field(default_factory=list)
    orders: dict[str, str] = field(default_factory=dict)
    kills: int = 0
    seconds: float = 0.0

    def warm(self) -> list[tuple[int, int, int]]:
        """Return the samples that count."""
        last = self.samples[-1][0]
        return [each for each in self.samples if each[0] >= WARM * last]

    def rise(self) -> float:
        """Return the factor of memory growth after the warm-up, by linear regression of the samples."""
        found = [(float(count), float(size)) for count, size, _ in self.warm()]
        middle = sum(x for x, _ in found) / len(found), sum(y for _, y in found) / len(found)
        spread = sum((x - middle[0]) ** 2 for x, _ in found)
        slope = sum((x - middle[0]) * (y - middle[1]) for x, y in found) / spread
        first = middle[1] + slope * (found[0][0] - middle[0])
        return 1 + slope * (found[-1][0] - found[0][0]) / first

    def more_descriptors(self) -> int:
        """Return how many more are open at the end than when it was warm."""
        found = self.warm()
        return found[-1][2] - max(each[2] for each in found[: max(1, len(found) // 4)])


class Soak:
    """One run against a service that is up."""

    def __init__(self, plan: Plan, service: ServiceProcess, archives: list[FakeArchive]) -> None:
        self._plan, self._service, self._archives = plan, service, archives
        self._dice = random.Random(plan.seed)  # noqa: S311  not for secrets
        self._lock = threading.Lock()
        self._done = 0
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Ask for everything, while faults come and go; then let all be well, and wait for the orders."""
        begun = time.monotonic()
        askers = [threading.Thread(target=self._ask, args=(number,)) for number in range(self._plan.at_once)]
        for each in askers:
            each.start()
        self._disturb()
        for each in askers:
            each.join()
        self._heal()
        for key in self.outcome.orders:
            self.outcome.orders[key] = str(self._service.wait_until_ended(key)["state"])
        self._sample()
        self.outcome.seconds = time.monotonic() - begun
        return self.outcome

    def _ask(self, number: int) -> None:
        dice = random.Random(self._plan.seed * 1000 + number)  # noqa: S311
        connection = http.client.HTTPConnection("127.0.0.1", self._service.port, timeout=60)
        for _ in range(self._plan.requests // self._plan.at_once):
            try:
                connection.request("GET", path_of(dice))
                answer = connection.getresponse()
                answer.read()
                status = answer.status
            except (OSError, http.client.HTTPException) as error:
                self.outcome.broken.append(repr(error))
                connection.close()
                continue
            finally:
                with self._lock:
                    self._done += 1
            with self._lock:
                self.outcome.statuses[status] += 1
        connection.close()

    def _disturb(self) -> None:
        """Do what is to be done when so many requests have come."""
        plan, all_ = self._plan, self._plan.requests // self._plan.at_once * self._plan.at_once
        events = [(self._dice.randrange(all_), self._fail) for _ in range(plan.faults)]
        events += [(self._dice.randrange(all_), self._kill) for _ in range(plan.kills)]
        # All orders come in the first part, so that the rest of the time is theirs, too.
        events += [(number * all_ // (2 * plan.orders), self._order) for number in range(plan.orders)]
        events += [(number * all_ // 200, self._sample) for number in range(1, 201)]
        for when, act in sorted(events, key=lambda event: event[0]):
            while self._done < when:
                time.sleep(0.002)
            act()

    def _fail(self) -> None:
        if self._dice.random() < 0.4:
            self._heal()
        else:
            self._dice.choice(self._archives).fail(self._dice.choice(FAULTS), times=self._dice.randrange(1, 40))

    def _heal(self) -> None:
        for archive in self._archives:
            archive.heal()

    def _order(self) -> None:
        order = {"url": "http://small.example/", "mail": "me@example.org"}
        answer = self._service.request("POST", "/api/jobs", order, is_admin=True)
        self.outcome.statuses[answer.status] += 1
        if answer.status == 201:
            self.outcome.orders[answer.json["key"]] = ""

    def _kill(self) -> None:
        """Kill a worker of the service, if one is there just now."""
        pid = self._service.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        with suppress(OSError, ProcessLookupError, IndexError):
            os.kill(int(self._dice.choice(children.read_text().split())), signal.SIGKILL)
            self.outcome.kills += 1

    def _sample(self) -> None:
        place = Path(f"/proc/{self._service.process.pid}")
        pages = int((place / "statm").read_text().split()[1])
        descriptors = len(list((place / "fd").iterdir()))
        self.outcome.samples.append((self._done, pages * os.sysconf("SC_PAGE_SIZE"), descriptors))


def path_of(dice: random.Random) -> str:
    """Return the next request: mostly TimeMaps, some pages more often than others, sometimes invalid."""
    page = f"http://lost.example/{min(int(dice.paretovariate(0.6)), PAGES)}"
    kinds = [f"/timemap/link/{page}"] * 12 + [f"/timemap/json/{page}"] * 3 + [f"/timegate/{page}"] * 3
    return dice.choice([*kinds, "/", "/health", dice.choice(ODD)])


@contextmanager
def prepared(folder: Path, url: str | None = None) -> Iterator[tuple[ServiceProcess, list[FakeArchive]]]:
    """Run three archives of a small lost site, and a service before them. url: of a database in place of a file."""
    held = {f"http://lost.example/{number}": [("2014-02-10", f"<p>{number}")] for number in range(PAGES) if number % 4}
    links = "".join(f"<a href='/{number}'>x</a>" for number in range(20))
    site = {f"http://small.example/{number}": [("2014-02-10", f"<p>{number}")] for number in range(20)}
    site["http://small.example/"] = [("2014-02-10", links)]
    with ExitStack() as stack:
        archives = [stack.enter_context(FakeArchive({**held, **site}, id=name)) for name in ("a", "b", "c")]
        # The first is asked for lists and copies, too: by recoveries.
        entries = [archives[0].registry_entry(), *(each.registry_entry("memento") for each in archives[1:])]
        registry = write_registry(folder / "archives.toml", *entries)
        more = {"UNLOST_WORKER_PAUSE": "0.5", "UNLOST_WORKER_LEASE": "3", **({"UNLOST_DATABASE": url} if url else {})}
        yield (
            stack.enter_context(run_service(folder, registry, "--keep", "20", "--keep-misses", "5", env=more)),
            archives,
        )


def soak(plan: Plan, folder: Path, url: str | None = None) -> Outcome:
    """Run it all, and return what was seen. Raises RuntimeError if the service went away."""
    with prepared(folder, url) as (service, archives):
        wait_until(lambda: any("waits for jobs" in line for line in service.lines))
        outcome = Soak(plan, service, archives).run()
        if service.process.poll() is not None:
            raise RuntimeError(f"the service has ended: {service.lines[-3:]}")
        return outcome


def main() -> None:
    """Measure, judge, and store the report."""
    plan = Plan()
    is_shared = os.environ.get("JOBS_DATABASE") == "postgresql"
    title = f"The service for an hour, compressed{', with PostgreSQL' if is_shared else ''}"
    report = Report("soak-postgresql" if is_shared else "soak", title)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(postgresql.run_cluster()).create_database() if is_shared else None
        found = soak(plan, folder, url)
    report.line(
        f"{plan.requests:,} requests (an hour of five a second), {len(found.orders)} recoveries and {found.kills} "
        f"workers killed in {found.seconds:.0f} s; {plan.faults} times an archive began to fail, or all were well; "
        f"jobs in {'PostgreSQL' if is_shared else 'SQLite'}."
    )
    report.line(f"Answers by status: {dict(sorted(found.statuses.items()))}; connections broken: {len(found.broken)}.")
    sizes = [size / (1 << 20) for _, size, _ in found.warm()]
    report.line(f"Memory behind the first third: from {min(sizes):.1f} to {max(sizes):.1f} MB.")
    report.line("")
    report.gate("memory at the end of the line through the samples / at its beginning", found.rise(), at_most=MOST_RISE)
    report.gate("descriptors more than when it was warm", max(0, found.more_descriptors()), at_most=MORE_DESCRIPTORS)
    expected = sum(count for status, count in found.statuses.items() if status in EXPECTED | {201})
    report.gate("answers that are expected / requests", expected / (plan.requests + plan.orders), at_least=1)
    done = sum(state == "complete" for state in found.orders.values())
    report.gate("orders that are done / made", done / plan.orders, at_least=1)
    report.finish()


if __name__ == "__main__":
    main()
