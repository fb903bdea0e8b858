"""A long TimeMap is rendered in chunks, so that other requests are served in between."""

import asyncio
import threading
from itertools import pairwise
from typing import Any, cast

import pytest

from unlost.aggregate import MEMENTOS_PER_PIECE, AggregateResult, ArchiveStatus, CacheControl, RoutingOptions
from unlost.clock import SystemClock
from unlost.memento import Mementos, MementoTuple
from unlost.web import Application, ServiceContext

PAGE = "http://a.example/"
SLICES = 5


class Long:
    """A finder with a result of very many mementos."""

    def __init__(self) -> None:
        rows = (
            MementoTuple("20140101000000", "a", f"http://x/{number}") for number in range(SLICES * MEMENTOS_PER_PIECE)
        )
        self._found = AggregateResult(PAGE, Mementos(rows), (), (), 1.7e9, 1.7e9)

    async def find(
        self,
        uri: str,  # noqa: ARG002
        wish: RoutingOptions = RoutingOptions(),  # noqa: ARG002, B008
        freshness: CacheControl = CacheControl(),  # noqa: ARG002, B008
    ) -> AggregateResult:
        """Return the result."""
        return self._found

    def archive_statuses(self) -> list[ArchiveStatus]:
        """Return no statuses."""
        return []


@pytest.mark.parametrize(
    ("path", "query"),
    [
        *((f"/timemap/{form}/{PAGE}", "") for form in ("link", "json", "cdxj", "text")),
        ("/api/find", f"uri={PAGE}&format=link"),
    ],
)
def test_other_tasks_run_while_a_timemap_is_streamed(path: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tasks run after each chunk, and the digest is computed in a thread."""
    finder = Long()
    turns = 0
    turns_at_slice: list[int] = []
    threads: set[int] = set()
    pack = Mementos.pack

    def noting(mementos: Mementos) -> bytes:
        threads.add(threading.get_ident())
        return pack(mementos)

    monkeypatch.setattr(Mementos, "pack", noting)

    async def send(message: Any) -> None:  # noqa: ANN401
        if message.get("body"):
            assert len(message["body"]) < 200 * MEMENTOS_PER_PIECE
            turns_at_slice.append(turns)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def request() -> None:
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"us.example")],
            "scheme": "http",
        }
        parts = ServiceContext(finder, cast("Any", None), finder, SystemClock())
        other = asyncio.create_task(others())
        await Application(parts)(cast("Any", scope), cast("Any", asyncio.Event().wait), send)
        other.cancel()

    asyncio.run(request())
    assert len(turns_at_slice) >= SLICES
    assert all(before < after for before, after in pairwise(turns_at_slice))
    assert threads
    assert threading.get_ident() not in threads
