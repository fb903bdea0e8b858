"""Runs coroutines and checks that no task is left."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any

from unlost.memento import Mementos

A, B, C = ["20140210000001"], ["20150210000001", "20160210000001"], ["20140210000001", "20170210000001"]


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine, and check that no task is left."""

    async def watched() -> None:
        await work
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others

    asyncio.run(watched())
    gc.collect()  # unclosed resources warn now


def union(*parts: Mementos) -> Mementos:
    """Return the union of mementos."""
    return Mementos(row for part in parts for row in part)
