# Generated from src/agentfense/_async/file_watch.py by scripts/generate_sync.py: change it there.
"""Changes of files as they happen."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, Type

from typing_extensions import Protocol

from agentfense._face.turn import Turn
from agentfense.exceptions import InvalidConfigurationError, SandboxError
from agentfense.types import FileChange


class FileChanges(Protocol):
    """A watch that is on."""

    def __next__(self) -> FileChange: ...

    def close(self) -> None: ...


class Begin(Protocol):
    """Begins a watch; returns when it is on."""

    def __call__(self) -> FileChanges: ...


class FileWatch:
    """Changes of files as they happen: `sandbox.files.watch` makes one.

    It is on once its `with` block was entered, `ready()` has returned or its loop has begun; what happens between then
    and the loop is not lost. It ends with the block, with `close()` or with the sandbox.
    """

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._changes: Optional[FileChanges] = None
        self._closed = False
        self._turn = Turn()

    def ready(self) -> None:
        """Returns when every change from then on is seen."""
        self._begun()

    def __iter__(self) -> FileWatch:
        return self

    def __next__(self) -> FileChange:
        """Gives the next change; the loop ends with the watch."""
        if self._closed:
            raise StopIteration
        try:
            changes = self._begun()
            return changes.__next__()
        except SandboxError:
            if self._was_closed():
                raise StopIteration from None
            raise

    def close(self) -> None:
        """Ends the watch, and the loop over it."""
        self._closed = True
        if self._changes is not None:
            self._changes.close()

    def __enter__(self) -> FileWatch:
        self.ready()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def _begun(self) -> FileChanges:
        with self._turn:
            if self._closed:
                raise InvalidConfigurationError("the watch is closed")
            if self._changes is None:
                self._changes = self._begin()
        if self._was_closed():
            self._changes.close()
        return self._changes

    def _was_closed(self) -> bool:
        """By somebody else, while this one waited."""
        return self._closed
