"""What a sandbox is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from agentfense._async.connection import AsyncConnection
from agentfense._async.local_directory import AsyncLocalDirectory
from agentfense.types import Codebase, SandboxInfo


@dataclass(frozen=True)
class AsyncSandboxParts:
    """What a sandbox is made of."""

    connection: AsyncConnection
    info: SandboxInfo
    #: None where the server would not tell.
    codebase: Optional[Codebase]
    #: Whoever made it destroys it at the end of its `with` block; of others it only lets go.
    is_own: bool
    #: The codebase was made for this sandbox and is to go with it.
    owns_codebase: bool
    #: The directory that was uploaded, where there is one.
    local_directory: Optional[AsyncLocalDirectory] = None
