"""How long a server may be away before a follower of its events gives up."""

from __future__ import annotations

import time
from typing import Callable, Optional

from agentfense._connection.retry import pause_before
from agentfense.exceptions import ConnectionError

_LOST_FOR_GOOD_SECONDS = 30.0
# Nothing may happen for hours: an attempt that held for so long was a connection.
_HELD_SECONDS = _LOST_FOR_GOOD_SECONDS / 2


class Absence:
    """For how long a server has been away, and how long to wait before it is asked again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._attempted_at = clock()
        self._since: Optional[float] = None
        self._failures = 0

    def attempt(self) -> None:
        """Says that the server is being asked now."""
        self._attempted_at = self._clock()

    def end(self) -> None:
        """Says that it is there."""
        self._since = None
        self._failures = 0

    def pause_after(self, error: ConnectionError) -> float:
        """Gives the seconds to wait; raises the error when the server has been away for too long."""
        now = self._clock()
        if now - self._attempted_at > _HELD_SECONDS:
            self.end()
        if self._since is None:
            self._since = now
        pause = pause_before(self._failures, error)
        self._failures += 1
        if pause is None or now - self._since > _LOST_FOR_GOOD_SECONDS:
            raise error
        return pause
