"""A command that shows whether it still runs."""

from __future__ import annotations

from agentfense import AsyncSandbox
from tests.integrations.script import Call

#: Takes a lock, and keeps it for as long as it lives.
HOLD_LOCK = Call(
    "shell",
    {"command": "exec 9> src/lock; flock 9; echo > src/held; sleep 300", "timeout_ms": 300_000},
)


async def lock_is_held(sandbox: AsyncSandbox) -> None:
    """Until somebody runs HOLD_LOCK."""
    await sandbox.run("until [ -e src/held ]; do sleep 0.02; done", check=True)


async def lock_is_free(sandbox: AsyncSandbox) -> bool:
    """Waits for the lock: whoever held it is no more."""
    return (await sandbox.run("flock --timeout 50 src/lock true")).success
