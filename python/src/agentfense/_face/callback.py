"""Functions of the caller's that are told something."""

from __future__ import annotations

import inspect
from typing import Callable, TypeVar

Told = TypeVar("Told")


class AsyncCallback:
    """A function, or a coroutine function, which is waited for: a slow listener slows whoever tells him."""

    @staticmethod
    async def tell(callback: Callable[[Told], object], told: Told) -> None:
        """Calls it."""
        answer = callback(told)
        if inspect.isawaitable(answer):
            await answer


class Callback:
    """A function."""

    @staticmethod
    def tell(callback: Callable[[Told], object], told: Told) -> None:
        """Calls it."""
        callback(told)
