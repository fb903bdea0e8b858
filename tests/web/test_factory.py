"""A complete service with three real archives, maps and filters."""

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.archives.clients.records import response
from tests.cli.run import unlost
from tests.external import pywb
from tests.external.process import free_port
from unlost.aggregate import CacheControl, RoutingOptions, describe_archives
from unlost.logs import UpstreamLogEntry, read_upstream_log
from unlost.mementomap import build_filter, build_map
from unlost.problems import Problems
from unlost.registry import Archive
from unlost.web import ServiceContext, ServiceOptions, build_service

PAGES = [
    f"http://site{number % 5}.example/{path}" for number in range(12) for path in (f"a/{number}", f"b/{number}?q=1")
]
ABSENT = ["http://site0.example/a/none", "http://elsewhere.example/", "http://site1.example/"]
NO_CACHE = CacheControl(no_cache=True)


@dataclass(frozen=True)
class Environment:
    """Three archives with maps, each with a part of the pages."""

    archives: tuple[Archive, ...]
    held: tuple[frozenset[str], ...]

    def options(self, home: Path, **options: Any) -> ServiceOptions:  # noqa: ANN401  those of Options
        """Return the options of a service."""
        options = {"archives": self.archives, "contact": "me@example.org", "exploration_share": 0.0, **options}
        return ServiceOptions(state=home / "state", cache=home / "cache", on_message=lambda _: None, **options)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """Run the archives and build their maps and filters."""
    folder = tmp_path_factory.mktemp("world")
    rng = random.Random(5)  # noqa: S311
    held, warcs = [], []
    for number in range(3):
        pages = rng.sample(PAGES, 10)
        warc = folder / f"{number}.warc.gz"
        records = [
            response(page, f"20{10 + rng.randrange(9)}-02-10T00:00:0{index}Z", b"<p>hello</p>")
            for page in pages
            for index in range(rng.randint(1, 3))
        ]
        warc.write_bytes(b"".join(records))
        build_map([warc], folder / f"{number}.ukvs")
        build_filter([warc], folder / f"{number}.filter")
        held.append(frozenset(pages))
        warcs.append(warc)
    with pywb.serve_warcs(warcs, folder) as servers:
        archives = tuple(
            replace(
                server.archive(f"a{number}"),
                mementomap=str(folder / f"{number}.ukvs"),
                filters=(str(folder / f"{number}.filter"),),
            )
            for number, server in enumerate(servers)
        )
        yield Environment(archives, tuple(held))


def run(options: ServiceOptions, what: Callable[[ServiceContext], Coroutine[Any, Any, None]]) -> None:
    """Run a function with the context of a service."""

    async def work() -> None:
        async with build_service(options) as parts:
            await what(parts)

    asyncio.run(work())


def test_routed_results_equal_broadcast_results(environment: Environment, tmp_path: Path) -> None:
    """For archived and other pages, all mementos are found, and archives without captures are not queried."""

    async def compare(parts: ServiceContext) -> None:
        for page in PAGES + ABSENT:
            routed = await parts.finder.find(page, RoutingOptions(), NO_CACHE)
            broadcast = await parts.finder.find(page, RoutingOptions(broadcast=True), NO_CACHE)
            assert list(routed.mementos) == list(broadcast.mementos)
            assert (routed.failures, broadcast.failures) == ((), ())
            holders = {f"a{number}" for number, pages in enumerate(environment.held) if page in pages}
            assert {row.archive for row in broadcast.mementos} == holders
            assert {report.archive for report in routed.reports} >= holders
            assert {report.archive for report in broadcast.reports} == {"a0", "a1", "a2"}
            if page in ABSENT:
                assert (routed.reports, routed.passed_over) == ((), ("a0", "a1", "a2"))

    run(environment.options(tmp_path), compare)


def test_results_are_cached_on_disk(environment: Environment, tmp_path: Path) -> None:
    """The next service does not query archives again, unless the registry changed."""
    page = next(iter(environment.held[0]))

    async def ask(parts: ServiceContext) -> None:
        assert not (await parts.finder.find(page)).from_cache

    async def ask_again(parts: ServiceContext) -> None:
        assert (await parts.finder.find(page, RoutingOptions(), CacheControl(only_if_cached=True))).from_cache

    run(environment.options(tmp_path), ask)
    run(environment.options(tmp_path), ask_again)
    run(environment.options(tmp_path, archives=environment.archives[:2]), ask)


def test_routing_statistics_are_reported(environment: Environment, tmp_path: Path) -> None:
    """The statistics of each map are reported and retained by the next service."""

    async def ask(parts: ServiceContext) -> None:
        for page in PAGES:
            await parts.finder.find(page, RoutingOptions(), NO_CACHE)

    run(environment.options(tmp_path, exploration_share=1.0), ask)

    async def look(parts: ServiceContext) -> None:
        about = describe_archives(parts.archive_status.archive_statuses(), parts.clock)
        archives = about["archives"]
        assert isinstance(archives, list)
        for number, each in enumerate(archives):
            assert each["routed"] == {"asked": len(environment.held[number]), "hits": len(environment.held[number])}
            assert (each["precision"], each["breaker"]) == (1.0, "active")
            assert each["why"] == "routed by its map and its filter"
        explored = [each["explored"] for each in archives]
        # One for each page for which anybody would be passed over.
        passed_over = sum(1 for page in PAGES if not all(page in held for held in environment.held))
        assert sum(each["asked"] for each in explored) == passed_over
        assert all(each["hits"] == 0 for each in explored)

    run(environment.options(tmp_path), look)


def test_upstream_log_is_used_by_maps_and_the_next_service(environment: Environment, tmp_path: Path) -> None:
    """`map exclude` and the hit rates read the log, which has a line for each request."""
    log = tmp_path / "upstream.ndjson"
    archives = tuple(replace(each, mementomap=None, filters=()) for each in environment.archives)
    missed = [page for page in PAGES if page not in environment.held[0] and "?" not in page]

    async def ask(parts: ServiceContext) -> None:
        for page in PAGES:
            await parts.finder.find(page)

    run(environment.options(tmp_path, archives=archives, upstream_log=log), ask)
    problems = Problems()
    responses: list[UpstreamLogEntry] = list(read_upstream_log(log, problems))
    assert (problems.total, len(responses)) == (0, 3 * len(PAGES))
    assert {response.reason for response in responses} == {"learned"}
    for number, held in enumerate(environment.held):
        hits = {response.uri for response in responses if (response.archive, response.outcome) == (f"a{number}", "hit")}
        assert hits == held
    everything = tmp_path / "all.ukvs"
    everything.write_text('!context ["https://git.io/mementomap"]\nexample,* 100\n')
    done = unlost(
        "map", "exclude", str(everything), "--misses", str(log), "--archive", "a0", "-o", str(tmp_path / "m"), "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["added"], result["problems"]) == (len(missed), {}), result

    async def look(parts: ServiceContext) -> None:
        rates = {each.archive.id: each.hit_rate for each in parts.archive_status.archive_statuses()}
        for number, held in enumerate(environment.held):
            # The default share is one half.
            assert abs((rates[f"a{number}"] or 0) - len(held) / len(PAGES)) < 0.1

    (tmp_path / "state" / "hit-rates.json").unlink()
    run(environment.options(tmp_path, archives=archives, upstream_log=log), look)


def test_circuit_of_a_failing_archive_opens(environment: Environment, tmp_path: Path) -> None:
    """Other archives respond, misses are not cached, and the circuit opens."""
    dead = replace(
        environment.archives[0], id="dead", timemap=f"http://127.0.0.1:{free_port()}/", mementomap=None, filters=()
    )
    page = next(iter(environment.held[1]))

    async def ask(parts: ServiceContext) -> None:
        for _ in range(4):
            found = await parts.finder.find(page, RoutingOptions(broadcast=True), NO_CACHE)
            assert "a1" in {row.archive for row in found.mementos}
            assert [report.archive for report in found.failures] == ["dead"]
        absent = await parts.finder.find(ABSENT[1], RoutingOptions(broadcast=True))
        assert (len(absent.mementos), absent.expires_at <= absent.created_at) == (0, True)
        again = await parts.finder.find(ABSENT[1], RoutingOptions(broadcast=True))
        assert not again.from_cache

    run(environment.options(tmp_path, archives=(*environment.archives, dead)), ask)
