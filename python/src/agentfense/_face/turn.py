"""One at a time: what a lock is in each face."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Optional, Type


class AsyncTurn(asyncio.Lock):
    """Taken with `async with`, by one task at a time, in the order in which they came."""


class Turn:
    """Taken with `with`, by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._lock.release()
