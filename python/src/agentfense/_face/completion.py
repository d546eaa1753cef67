"""Work that is done to its end though whoever wanted it is interrupted meanwhile.

What is made on a server has to be known here to be removed again: a call that makes something is not to be left
half-way.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Coroutine, Optional, TypeVar

T = TypeVar("T")


class AsyncCompletion:
    """The end of some work, whatever becomes of the task that waits for it."""

    @staticmethod
    async def of(work: Callable[[], Coroutine[object, object, T]]) -> T:
        """Runs it; a cancellation that comes meanwhile is raised when it is done."""
        task = asyncio.ensure_future(work())
        cancellation: Optional[asyncio.CancelledError] = None
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancellation = error
        if cancellation is None:
            return task.result()
        if not task.cancelled():
            task.exception()  # Looked at, so that nobody complains that nobody did.
        raise cancellation


class Completion:
    """The end of some work, whatever is typed at the keyboard."""

    @staticmethod
    def of(work: Callable[[], T]) -> T:
        """Runs it; a KeyboardInterrupt that comes meanwhile is raised when it is done."""
        # Only the main thread is ever interrupted.
        if threading.current_thread() is not threading.main_thread():
            return work()
        with ThreadPoolExecutor(1, "agentfense-completion") as pool:
            return pool.submit(work).result()
