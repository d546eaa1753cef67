# Generated from src/agentfense/_async/undo.py by scripts/generate_sync.py: change it there.
"""What to do when an opening fails half-way."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import List, Optional, Type

from agentfense._face.completion import Completion
from agentfense._sync.step import Step


class Undo:
    """Steps that are taken when its block is left by an exception: the newest first, whatever becomes of the others.

    Whoever opened something hears of what went wrong with that, and not of what went wrong with undoing it.
    """

    def __init__(self) -> None:
        self._steps: List[Step] = []

    def add(self, step: Step) -> None:
        """Adds what undoes the thing that was just done."""
        self._steps.append(step)

    def __enter__(self) -> Undo:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if error is not None:
            Completion.of(self._undo)

    def _undo(self) -> None:
        for step in reversed(self._steps):
            with suppress(Exception):
                step()
