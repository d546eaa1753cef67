# Generated from src/agentfense/_async/opening_existing.py by scripts/generate_sync.py: change it there.
"""How a sandbox that is there is taken hold of."""

from __future__ import annotations

from typing import Optional

from agentfense._sandbox.options import ServerOptions
from agentfense._sync.client import SandboxClient
from agentfense._sync.connection import Connection, connect
from agentfense._sync.parts import SandboxParts
from agentfense._sync.undo import Undo
from agentfense.exceptions import CodebaseNotFoundError, SandboxError
from agentfense.types import SandboxInfo


def open_existing(sandbox_id: str, server: ServerOptions, client: Optional[SandboxClient]) -> SandboxParts:
    """Connects to a sandbox that is there, in whatever state."""
    with Undo() as undo:
        connection = connect(undo, server, client)
        info = connection.client.get_sandbox(sandbox_id)
        return foreign_parts(connection, info)


def foreign_parts(connection: Connection, info: SandboxInfo) -> SandboxParts:
    """What a sandbox is made of that somebody else made."""
    try:
        codebase = connection.client.get_codebase(info.codebase_id)
    except CodebaseNotFoundError:
        codebase = None
    return SandboxParts(connection, info, codebase, is_own=False, owns_codebase=False)


def start_idempotently(client: SandboxClient, sandbox_id: str) -> SandboxInfo:
    """Starts it unless it runs; somebody else may be quicker."""
    try:
        return client.start_sandbox(sandbox_id)
    except SandboxError as error:
        if error.code != "SANDBOX_ALREADY_RUNNING":
            raise
        return client.get_sandbox(sandbox_id)
