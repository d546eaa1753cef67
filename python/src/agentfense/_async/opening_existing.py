"""How a sandbox that is there is taken hold of."""

from __future__ import annotations

from typing import Optional

from agentfense._async.client import AsyncSandboxClient
from agentfense._async.connection import AsyncConnection, connect
from agentfense._async.parts import AsyncSandboxParts
from agentfense._async.undo import AsyncUndo
from agentfense._sandbox.options import ServerOptions
from agentfense.exceptions import CodebaseNotFoundError, SandboxError
from agentfense.types import SandboxInfo


async def open_existing(
    sandbox_id: str, server: ServerOptions, client: Optional[AsyncSandboxClient]
) -> AsyncSandboxParts:
    """Connects to a sandbox that is there, in whatever state."""
    async with AsyncUndo() as undo:
        connection = await connect(undo, server, client)
        info = await connection.client.get_sandbox(sandbox_id)
        return await foreign_parts(connection, info)


async def foreign_parts(connection: AsyncConnection, info: SandboxInfo) -> AsyncSandboxParts:
    """What a sandbox is made of that somebody else made."""
    try:
        codebase = await connection.client.get_codebase(info.codebase_id)
    except CodebaseNotFoundError:
        codebase = None
    return AsyncSandboxParts(connection, info, codebase, is_own=False, owns_codebase=False)


async def start_idempotently(client: AsyncSandboxClient, sandbox_id: str) -> SandboxInfo:
    """Starts it unless it runs; somebody else may be quicker."""
    try:
        return await client.start_sandbox(sandbox_id)
    except SandboxError as error:
        if error.code != "SANDBOX_ALREADY_RUNNING":
            raise
        return await client.get_sandbox(sandbox_id)
