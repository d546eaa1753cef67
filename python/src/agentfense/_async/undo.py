"""What to do when an opening fails half-way."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import List, Optional, Type

from agentfense._async.step import AsyncStep
from agentfense._face.completion import AsyncCompletion


class AsyncUndo:
    """Steps that are taken when its block is left by an exception: the newest first, whatever becomes of the others.

    Whoever opened something hears of what went wrong with that, and not of what went wrong with undoing it.
    """

    def __init__(self) -> None:
        self._steps: List[AsyncStep] = []

    def add(self, step: AsyncStep) -> None:
        """Adds what undoes the thing that was just done."""
        self._steps.append(step)

    async def __aenter__(self) -> AsyncUndo:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if error is not None:
            await AsyncCompletion.of(self._undo)

    async def _undo(self) -> None:
        for step in reversed(self._steps):
            with suppress(Exception):
                await step()
