"""Something to be done later."""

from __future__ import annotations

from typing_extensions import Protocol


class AsyncStep(Protocol):
    """Something to be done later, without a word about how."""

    async def __call__(self) -> object: ...
