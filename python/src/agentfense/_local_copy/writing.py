"""Changes on their way into the local copy, with the content that has yet to arrive."""

from __future__ import annotations

import hashlib
from threading import Lock
from types import TracebackType
from typing import BinaryIO, Generator, List, Optional, Type

from typing_extensions import Self

from agentfense.types import ApplyOutcome


class Content:
    """A file whose content is wanted. Nothing is at its path before all of it has arrived."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        #: "src/a.py", as the codebase has it.
        self.path = path
        self.error: Optional[Exception] = None
        self._file = file
        self._digest = hashlib.sha256()
        self._lock = Lock()

    def write(self, piece: bytes) -> None:
        """The next piece."""
        with self._lock:
            self._digest.update(piece)
            self._file.write(piece)

    def fail(self, error: Exception) -> None:
        """It will not arrive, and this is why; the others are written all the same."""
        self.error = error

    def finish(self) -> str:
        """The hash of what arrived, all of which is in the file now."""
        with self._lock:
            self._file.close()
            return self._digest.hexdigest()


Steps = Generator[Content, None, List[ApplyOutcome]]


class Writing:
    """Writes as far as it can without content, and asks for that of one file after the other.

    The calls may come from several threads, one at a time or not. Whoever stops early has to close: that removes what
    is half written.
    """

    def __init__(self, steps: Steps) -> None:
        #: What became of each change; complete when there is no next content.
        self.outcomes: List[ApplyOutcome] = []
        self._steps = steps
        self._lock = Lock()

    def next_content(self) -> Optional[Content]:
        """The next file that lacks its content, or None at the end. The one before is put in its place now."""
        with self._lock:
            try:
                return next(self._steps)
            except StopIteration as end:
                self.outcomes = end.value or self.outcomes
                return None

    def close(self) -> None:
        """Ends it, wherever it is."""
        with self._lock:
            self._steps.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()
