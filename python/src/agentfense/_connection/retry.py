"""When a call is tried again, and for how long."""

from __future__ import annotations

import random
import time
from typing import Callable, Optional

from agentfense.exceptions import SandboxError

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0
# Whoever is told to wait for longer rather hears of it.
_LONGEST_ASKED_PAUSE_SECONDS = 10.0


def pause_before(attempt: int, error: SandboxError, chance: Callable[[], float] = random.random) -> Optional[float]:
    """How long to wait before the attempt after this one (the first is 0); None when it is not worth one."""
    if not error.retryable:
        return None
    # Half of it is chance, so that many clients that lost one server do not come back at the same moment.
    pause = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0 ** min(attempt, 10)) * (0.5 + chance() / 2)
    asked = _seconds_asked(error.details.get("retry_after_ms", ""))
    if asked > _LONGEST_ASKED_PAUSE_SECONDS:
        return None
    return max(pause, asked)


def _seconds_asked(milliseconds: str) -> float:
    return int(milliseconds) / 1000 if milliseconds.isdecimal() else 0.0


class Deadline:
    """The end of somebody's patience, over all attempts of a call. None is for ever."""

    def __init__(self, seconds: Optional[float], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends_at = None if seconds is None else clock() + seconds

    def left(self) -> Optional[float]:
        """The seconds that are left, for one more attempt."""
        return None if self._ends_at is None else max(0.001, self._ends_at - self._clock())

    def allows(self, pause: float) -> bool:
        """There is time for waiting so long, and for something after it."""
        return self._ends_at is None or self._clock() + pause < self._ends_at
