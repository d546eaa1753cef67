"""How the sandbox of a key comes to be, or is found again."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from agentfense._async.client import AsyncSandboxClient
from agentfense._async.connection import connect
from agentfense._async.opening import AsyncLayGround, build
from agentfense._async.opening_existing import foreign_parts, start_idempotently
from agentfense._async.parts import AsyncSandboxParts
from agentfense._async.undo import AsyncUndo
from agentfense._face.async_face import sleep
from agentfense._sandbox.options import SandboxOptions, ServerOptions
from agentfense.exceptions import InvalidConfigurationError, SandboxNotFoundError
from agentfense.types import SandboxInfo, SandboxStatus

# The label that sandboxes are found again by.
_KEY_LABEL = "agentfense-key"
# A sandbox may be destroyed by others while it is being found; then there is none, and one is made.
_ATTEMPTS = 3
# Longer than the tick of the server's clock in `created_at`.
_TICK_SECONDS = 0.002


async def open_by_key(
    key: str,
    lay_ground: AsyncLayGround,
    options: SandboxOptions,
    server: ServerOptions,
    client: Optional[AsyncSandboxClient],
) -> AsyncSandboxParts:
    """Gives the sandbox of this key, started; a new one if there is none.

    Whoever makes one looks again afterwards, and of several the oldest stays: callers that race end with the same one.
    """
    if key == "":
        raise InvalidConfigurationError("the key is empty")
    labelled = replace(options, labels={**(options.labels or {}), _KEY_LABEL: key})
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return await _attempt_once(key, lay_ground, labelled, server, client)
        except SandboxNotFoundError:
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


async def _attempt_once(
    key: str,
    lay_ground: AsyncLayGround,
    options: SandboxOptions,
    server: ServerOptions,
    given: Optional[AsyncSandboxClient],
) -> AsyncSandboxParts:
    async with AsyncUndo() as undo:
        connection = await connect(undo, server, given)
        client = connection.client
        found = await _oldest(client, key)
        if found is None:
            own = await build(undo, connection, lay_ground, options, start=False)
            # Whoever is made after the next look is younger by the clock too: it cannot win against what that finds.
            await sleep(_TICK_SECONDS)
            found = await _oldest(client, key) or own.info
            if found.id == own.info.id:
                return replace(own, info=await start_idempotently(client, found.id), is_own=False)
            await client.destroy_sandbox(own.info.id)
            if own.owns_codebase:
                await client.delete_codebase(own.info.codebase_id)
        info = await start_idempotently(client, found.id)
        return await foreign_parts(connection, info)


async def _oldest(client: AsyncSandboxClient, key: str) -> Optional[SandboxInfo]:
    everyone = await client.list_sandboxes(labels={_KEY_LABEL: key})
    # One that failed is of no use to anybody.
    usable = [info for info in everyone if info.status is not SandboxStatus.ERROR]
    return min(usable, key=lambda info: (info.created_at, info.id), default=None)
