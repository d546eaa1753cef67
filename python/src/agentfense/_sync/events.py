# Generated from src/agentfense/_async/events.py by scripts/generate_sync.py: change it there.
"""What happens to a sandbox, from the audit log."""

from __future__ import annotations

from typing import Callable, Iterator, Optional, Sequence

from agentfense._face.sync_face import sleep
from agentfense._sandbox.absence import Absence
from agentfense._sync.client import SandboxClient
from agentfense.exceptions import ConnectionError
from agentfense.types import AuditEvent

# The last thing that is told of a sandbox.
_LAST_EVENT = "sandbox_destroyed"


def past_events(
    client: SandboxClient, sandbox_id: str, *, types: Optional[Sequence[str]], after_sequence: int
) -> Iterator[AuditEvent]:
    """Gives what happened so far, oldest first."""
    for event in client.list_events(sandbox_id=sandbox_id, types=types):
        if event.sequence > after_sequence:
            yield event


def follow_events(
    client: SandboxClient,
    sandbox_id: str,
    *,
    types: Optional[Sequence[str]],
    after_sequence: int,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[AuditEvent]:
    """Gives what happened so far, then what happens, without gaps or repeats.

    After a lost connection it goes on where it was. It gives up when the server stays away for 30 s, and ends in peace
    once `is_over` says so.
    """
    absence = Absence()
    cursor = after_sequence
    while True:
        try:
            absence.attempt()
            with client.watch_events(sandbox_id=sandbox_id, types=types, after_sequence=cursor) as watch:
                for event in watch:
                    absence.end()
                    if event.sequence <= cursor:
                        continue
                    cursor = event.sequence
                    yield event
                    if event.type == _LAST_EVENT:
                        return
            # A server that goes on purpose ends its streams in peace.
            raise ConnectionError("the server ended the events", code="CONNECTION_FAILED", retryable=True)
        except ConnectionError as error:
            if is_over():
                return
            sleep(absence.pause_after(error))
