"""Moments and lengths of time."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Optional

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from agentfense.exceptions import InvalidConfigurationError
from agentfense.types import Seconds


def moment(timestamp: Timestamp) -> datetime:
    """A moment that is always there; one that a server leaves out is the first of all."""
    return timestamp.ToDatetime(tzinfo=timezone.utc)


def moment_or_none(is_there: bool, timestamp: Timestamp) -> Optional[datetime]:
    """A moment that may not have come yet."""
    return moment(timestamp) if is_there else None


def timestamp_message(time: datetime) -> Timestamp:
    """A moment on its way to the server. As everywhere in Python, one without a time zone is local."""
    message = Timestamp()
    message.FromDatetime(time.astimezone(timezone.utc))
    return message


def seconds_of(time: Optional[Seconds], name: str) -> Optional[float]:
    """A length of time in seconds. 0 would mean "not given" to the server, and is refused; so is for ever."""
    if time is None:
        return None
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    if _is_number(seconds) and math.isfinite(seconds) and seconds > 0:
        return float(seconds)
    raise InvalidConfigurationError(f"{name} must be a number of seconds above 0, not {time!r}")


def duration_message(time: Optional[Seconds], name: str) -> Optional[Duration]:
    """The same for the wire, in whole milliseconds."""
    seconds = seconds_of(time, name)
    if seconds is None:
        return None
    milliseconds = math.ceil(seconds * 1000)
    return Duration(seconds=milliseconds // 1000, nanos=milliseconds % 1000 * 1_000_000)


def idle_pause_message(time: Optional[Seconds]) -> Optional[Duration]:
    """The same where zero is an answer: never, whatever the server's default."""
    return Duration() if time in (0, timedelta(0)) else duration_message(time, "idle_pause")


def timedelta_of(duration: Duration) -> timedelta:
    """A length of time that the server measured."""
    return timedelta(seconds=duration.seconds, microseconds=duration.nanos / 1000)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
