"""Questions to archives without a network that leave no task behind."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any

from unlost.memento import Mementos

A, B, C = ["20140210000001"], ["20150210000001", "20160210000001"], ["20140210000001", "20170210000001"]


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run it, and see that it leaves no task behind."""

    async def watched() -> None:
        await work
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others

    asyncio.run(watched())
    gc.collect()  # what was not closed says so now


def union(*parts: Mementos) -> Mementos:
    """Return all copies, made from the single ones."""
    return Mementos(row for part in parts for row in part)
