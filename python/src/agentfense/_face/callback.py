"""Functions of the caller's that are told something."""

from __future__ import annotations

import inspect
from typing import Callable


class AsyncCallback:
    """A function, or a coroutine function, which is waited for: a slow listener slows whoever tells him."""

    @staticmethod
    async def tell(callback: Callable[[str], object], text: str) -> None:
        """Calls it."""
        answer = callback(text)
        if inspect.isawaitable(answer):
            await answer


class Callback:
    """A function."""

    @staticmethod
    def tell(callback: Callable[[str], object], text: str) -> None:
        """Calls it."""
        callback(text)
