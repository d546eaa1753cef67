"""What happens to a sandbox, from the audit log."""

from __future__ import annotations

from typing import AsyncIterator, Callable, Optional, Sequence

from agentfense._async.client import AsyncSandboxClient
from agentfense._face.async_face import sleep
from agentfense._sandbox.absence import Absence
from agentfense.exceptions import ConnectionError
from agentfense.types import AuditEvent

# The last thing that is told of a sandbox.
_LAST_EVENT = "sandbox_destroyed"


async def past_events(
    client: AsyncSandboxClient, sandbox_id: str, *, types: Optional[Sequence[str]], after_sequence: int
) -> AsyncIterator[AuditEvent]:
    """Gives what happened so far, oldest first."""
    for event in await client.list_events(sandbox_id=sandbox_id, types=types):
        if event.sequence > after_sequence:
            yield event


async def follow_events(
    client: AsyncSandboxClient,
    sandbox_id: str,
    *,
    types: Optional[Sequence[str]],
    after_sequence: int,
    is_over: Callable[[], bool] = lambda: False,
) -> AsyncIterator[AuditEvent]:
    """Gives what happened so far, then what happens, without gaps or repeats.

    After a lost connection it goes on where it was. It gives up when the server stays away for 30 s, and ends in peace
    once `is_over` says so.
    """
    absence = Absence()
    cursor = after_sequence
    while True:
        try:
            absence.attempt()
            async with client.watch_events(sandbox_id=sandbox_id, types=types, after_sequence=cursor) as watch:
                async for event in watch:
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
            await sleep(absence.pause_after(error))
