# Generated from src/agentfense/_async/opening_by_key.py by scripts/generate_sync.py: change it there.
"""How the sandbox of a key comes to be, or is found again."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from agentfense._face.sync_face import sleep
from agentfense._sandbox.options import SandboxOptions, ServerOptions
from agentfense._sync.client import SandboxClient
from agentfense._sync.connection import connect
from agentfense._sync.opening import LayGround, build
from agentfense._sync.opening_existing import foreign_parts, start_idempotently
from agentfense._sync.parts import SandboxParts
from agentfense._sync.undo import Undo
from agentfense.exceptions import InvalidConfigurationError, SandboxNotFoundError
from agentfense.types import SandboxInfo, SandboxStatus

# The label that sandboxes are found again by.
_KEY_LABEL = "agentfense-key"
# A sandbox may be destroyed by others while it is being found; then there is none, and one is made.
_ATTEMPTS = 3
# Longer than the tick of the server's clock in `created_at`.
_TICK_SECONDS = 0.002


def open_by_key(
    key: str,
    lay_ground: LayGround,
    options: SandboxOptions,
    server: ServerOptions,
    client: Optional[SandboxClient],
) -> SandboxParts:
    """Gives the sandbox of this key, started; a new one if there is none.

    Whoever makes one looks again afterwards, and of several the oldest stays: callers that race end with the same one.
    """
    if key == "":
        raise InvalidConfigurationError("the key is empty")
    labelled = replace(options, labels={**(options.labels or {}), _KEY_LABEL: key})
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _attempt_once(key, lay_ground, labelled, server, client)
        except SandboxNotFoundError:
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def _attempt_once(
    key: str,
    lay_ground: LayGround,
    options: SandboxOptions,
    server: ServerOptions,
    given: Optional[SandboxClient],
) -> SandboxParts:
    with Undo() as undo:
        connection = connect(undo, server, given)
        client = connection.client
        found = _oldest(client, key)
        if found is None:
            own = build(undo, connection, lay_ground, options, start=False)
            # Whoever is made after the next look is younger by the clock too: it cannot win against what that finds.
            sleep(_TICK_SECONDS)
            found = _oldest(client, key) or own.info
            if found.id == own.info.id:
                return replace(own, info=start_idempotently(client, found.id), is_own=False)
            client.destroy_sandbox(own.info.id)
            if own.owns_codebase:
                client.delete_codebase(own.info.codebase_id)
        info = start_idempotently(client, found.id)
        return foreign_parts(connection, info)


def _oldest(client: SandboxClient, key: str) -> Optional[SandboxInfo]:
    everyone = client.list_sandboxes(labels={_KEY_LABEL: key})
    # One that failed is of no use to anybody.
    usable = [info for info in everyone if info.status is not SandboxStatus.ERROR]
    return min(usable, key=lambda info: (info.created_at, info.id), default=None)
