"""Many calls at once, and one that is ended halfway, in tasks. sync_face.py has the same names for threads."""

from __future__ import annotations

import asyncio
from typing import Awaitable, Callable, List, Sequence, TypeVar

T = TypeVar("T")

SANDBOXES, RUNS = 50, 200


async def at_once(works: Sequence[Callable[[], Awaitable[T]]]) -> List[T]:
    """Begins all of them before it waits for any; their results in the same order."""
    return list(await asyncio.gather(*(work() for work in works)))


async def interrupted(work: Callable[[], Awaitable[object]], *, after: Callable[[], Awaitable[object]]) -> None:
    """Begins the work, and cancels its task when `after` is over. The work must not end otherwise."""
    task = asyncio.ensure_future(work())
    await after()
    task.cancel()
    try:
        result = await task
    except asyncio.CancelledError:
        return
    raise AssertionError(f"it was not cancelled: {result!r}")
