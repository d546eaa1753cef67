# Generated from src/agentfense/_async/parts.py by scripts/generate_sync.py: change it there.
"""What a sandbox is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from agentfense._sync.connection import Connection
from agentfense._sync.local_directory import LocalDirectory
from agentfense.types import Codebase, SandboxInfo


@dataclass(frozen=True)
class SandboxParts:
    """What a sandbox is made of."""

    connection: Connection
    info: SandboxInfo
    #: None where the server would not tell.
    codebase: Optional[Codebase]
    #: Whoever made it destroys it at the end of its `with` block; of others it only lets go.
    is_own: bool
    #: The codebase was made for this sandbox and is to go with it.
    owns_codebase: bool
    #: The directory that was uploaded, where there is one.
    local_directory: Optional[LocalDirectory] = None
