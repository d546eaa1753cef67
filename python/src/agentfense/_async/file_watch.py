"""Changes of files as they happen."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, Type

from typing_extensions import Protocol

from agentfense._face.turn import AsyncTurn
from agentfense.exceptions import InvalidConfigurationError, SandboxError
from agentfense.types import FileChange


class AsyncFileChanges(Protocol):
    """A watch that is on."""

    async def __anext__(self) -> FileChange: ...

    async def close(self) -> None: ...


class AsyncBegin(Protocol):
    """Begins a watch; returns when it is on."""

    async def __call__(self) -> AsyncFileChanges: ...


class AsyncFileWatch:
    """Changes of files as they happen: `sandbox.files.watch` makes one.

    It is on once its `with` block was entered, `ready()` has returned or its loop has begun; what happens between then
    and the loop is not lost. It ends with the block, with `close()` or with the sandbox.
    """

    def __init__(self, begin: AsyncBegin) -> None:
        self._begin = begin
        self._changes: Optional[AsyncFileChanges] = None
        self._closed = False
        self._turn = AsyncTurn()

    async def ready(self) -> None:
        """Returns when every change from then on is seen."""
        await self._begun()

    def __aiter__(self) -> AsyncFileWatch:
        return self

    async def __anext__(self) -> FileChange:
        """Gives the next change; the loop ends with the watch."""
        if self._closed:
            raise StopAsyncIteration
        try:
            changes = await self._begun()
            return await changes.__anext__()
        except SandboxError:
            if self._was_closed():
                raise StopAsyncIteration from None
            raise

    async def close(self) -> None:
        """Ends the watch, and the loop over it."""
        self._closed = True
        if self._changes is not None:
            await self._changes.close()

    async def __aenter__(self) -> AsyncFileWatch:
        await self.ready()
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    async def _begun(self) -> AsyncFileChanges:
        async with self._turn:
            if self._closed:
                raise InvalidConfigurationError("the watch is closed")
            if self._changes is None:
                self._changes = await self._begin()
        if self._was_closed():
            await self._changes.close()
        return self._changes

    def _was_closed(self) -> bool:
        """By somebody else, while this one waited."""
        return self._closed
