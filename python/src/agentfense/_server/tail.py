"""The end of what a process prints."""

from __future__ import annotations

import re
import threading
from typing import IO, Optional

_KEPT_BYTES = 8 * 1024
_PIECE_BYTES = 64 * 1024


class Tail:
    """Reads a pipe until it ends and closes it, so that who writes never waits; keeps the last 8 KiB."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._kept = b""
        self._ended = False
        self._news = threading.Condition()
        # A daemon: the interpreter must be able to end before the pipe does.
        self._thread = threading.Thread(target=self._read, name="agentfense-server-output", daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        """What is kept, without the half of a character that it may begin with."""
        with self._news:
            return self._kept.decode("utf-8", errors="ignore").strip()

    def wait_for(self, pattern: re.Pattern[str], seconds: float) -> Optional[re.Match[str]]:
        """Waits until the text has it; None when the pipe ends or the time is over before."""

        def found() -> Optional[re.Match[str]]:
            return pattern.search(self._kept.decode("utf-8", errors="ignore"))

        with self._news:
            self._news.wait_for(lambda: self._ended or found() is not None, seconds)
            return found()

    def wait_for_end(self, seconds: float) -> None:
        """Waits until everybody who could write is gone."""
        self._thread.join(seconds)

    def forget(self) -> None:
        """In a copy of this process, where nobody reads."""
        self._pipe.close()

    def _read(self) -> None:
        with self._pipe:
            while True:
                piece = self._pipe.read(_PIECE_BYTES)
                with self._news:
                    self._kept = (self._kept + piece)[-_KEPT_BYTES:]
                    self._ended = not piece
                    self._news.notify_all()
                if not piece:
                    return
